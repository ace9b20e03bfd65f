"""Statistics as versioned bytes, so that they can be sent without a pickle: plain values, arrays, and our own classes.

A message is the word CALS, a version, the length of a header, the header (JSON) and the arrays' bytes behind it. What
it may name are dataclasses and statistics of calibrant; nothing in it is run, and no array stands for two, so that what
is made of a message is about as large as it.
"""

from __future__ import annotations

import json
import math
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

import numpy as np

from ..errors import FileProblem, reading_state
from .statistic import Rows

_MAGIC, VERSION = b"CALS", 1
_ODD = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def to_bytes(value: Any) -> bytes:
    """Return a statistic as bytes."""
    arrays: list[bytes] = []
    header = json.dumps(_told(value, arrays)).encode()
    lengths = json.dumps([len(part) for part in arrays]).encode()
    sizes = len(header).to_bytes(8, "little") + len(lengths).to_bytes(8, "little")
    return b"".join([_MAGIC, bytes([VERSION]), sizes, header, lengths, *arrays])


def from_bytes(data: bytes) -> Any:
    """Return the statistic that `to_bytes` told; what it cannot have told is refused."""
    if data[:5] != _MAGIC + bytes([VERSION]):
        seen = f"version {data[4]}" if data[:4] == _MAGIC and len(data) > 4 else "other bytes"
        raise FileProblem("a worker sent a statistic of another version", seen=seen, allowed=f"version {VERSION}")
    with reading_state("statistic of a worker"):
        first, second = int.from_bytes(data[5:13], "little"), int.from_bytes(data[13:21], "little")
        place = 21 + first + second
        parts: dict[int, bytes] = {}
        for number, length in enumerate(json.loads(data[21 + first : place])):
            parts[number] = data[place : place + length]
            place += length
        found = _made(json.loads(data[21 : 21 + first]), parts)
        if parts or place != len(data):
            raise FileProblem("this is no statistic of a worker", seen="bytes that belong to nothing")
        return found


def _told(value: Any, arrays: list[bytes]) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"odd": str(value)}
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "O":
            value = value.astype(str)
        arrays.append(np.ascontiguousarray(value).tobytes())
        return {"array": len(arrays) - 1, "dtype": value.dtype.str, "shape": list(value.shape)}
    if isinstance(value, np.dtype):
        return {"dtype_of": value.str}
    if isinstance(value, (list, tuple)):
        return {"tuple" if isinstance(value, tuple) else "list": [_told(one, arrays) for one in value]}
    if isinstance(value, dict):
        return {"dict": [[_told(key, arrays), _told(one, arrays)] for key, one in value.items()]}
    if isinstance(value, Rows):
        return {"rows": [_told(column, arrays) for column in value.columns]}
    if hasattr(value, "to_dict") and hasattr(type(value), "from_dict"):
        return {"state": _name(value), "told": _told(value.to_dict(), arrays)}
    if is_dataclass(value) and type(value).__module__.startswith("calibrant."):
        own = {f.name: _told(getattr(value, f.name), arrays) for f in fields(value) if f.init}
        return {"class": _name(value), "fields": own}
    raise FileProblem("a statistic cannot be sent", seen=type(value).__name__)


def _name(value: Any) -> str:
    return f"{type(value).__module__}:{type(value).__qualname__}"


def _made(told: Any, arrays: dict[int, bytes]) -> Any:
    if not isinstance(told, dict):
        return told
    if "odd" in told:
        return _ODD[told["odd"]]
    if "array" in told:
        found = np.frombuffer(arrays.pop(told["array"]), np.dtype(told["dtype"])).reshape(told["shape"])
        return found.copy()
    if "dtype_of" in told:
        return np.dtype(told["dtype_of"])
    if "tuple" in told or "list" in told:
        made = [_made(one, arrays) for one in told["tuple" if "tuple" in told else "list"]]
        return tuple(made) if "tuple" in told else made
    if "dict" in told:
        return {_made(key, arrays): _made(one, arrays) for key, one in told["dict"]}
    if "rows" in told:
        return Rows(*(_made(column, arrays) for column in told["rows"]))
    if "state" in told:
        return _class(told["state"], "from_dict").from_dict(_made(told["told"], arrays))
    fields_told = {name: _made(one, arrays) for name, one in told["fields"].items()}
    return _class(told["class"], "__dataclass_fields__")(**fields_told)


def _class(name: str, having: str) -> Any:
    """Return a class of ours that stands in the module it is said to be of, and can be made from what is told."""
    module, _, qualname = name.partition(":")
    if not module.startswith("calibrant.") or module.endswith("__main__"):
        raise FileProblem("a worker sent a statistic that is not calibrant's", seen=name[:80])
    try:
        found = getattr(import_module(module), qualname, None)
    except ImportError:
        found = None
    if not isinstance(found, type) or found.__module__ != module or not hasattr(found, having):
        raise FileProblem("a worker sent a statistic that is not known here", seen=name[:80])
    return found
