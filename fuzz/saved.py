"""Files of saved maps, damaged or forged with a correct checksum: each is refused, or its map answers distributions."""

from __future__ import annotations

import copy
import json
import struct
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import calibrant
from calibrant import registry
from calibrant.files.container import pack, unpack
from calibrant.files.saving import to_bytes

from .harness import Finding, attempt, probabilities, same

Rng = np.random.Generator
MORE = ("ts > irova > platt", "ts + vector", "ts > bts")
SLOW = {"blend"}  # fitted once as well, but its files are large: drawn less often
WILD = [np.nan, np.inf, -np.inf, -5.0, -1e-3, 0.0, 1.0, 2.0, 1e300, -1e300, 1e-320, 1e30, 0.5]
WORDS = [
    "",
    "no-such-class",
    "os:system",
    "builtins:eval",
    "ts",
    "calibrant.maps.kernel:KCal",
    "kcal",
    "hoki",
    "chain",
    "é" * 40,
]
ROOM = Path(tempfile.mkdtemp(prefix="calibrant-fuzz-"))


OPERATORS: dict[str, Any] = {
    "top label": lambda: calibrant.TopLabel(calibrant.PlattScaling()),
    "top label of steps": lambda: calibrant.TopLabel(calibrant.Isotonic(), keep_label=False),
    "shifted": lambda: calibrant.PriorShift(calibrant.make("ts > vector")),
    "many labels": lambda: calibrant.MultiLabel(calibrant.BetaCalibration()),
    "groups": lambda: calibrant.ByGroup(calibrant.make("ts")),
    "many groups": lambda: calibrant.Multicalibrated(calibrant.make("platt")),
}


@cache
def names() -> tuple[str, ...]:
    """Return the names of maps whose files are forged."""
    return (*registry.names(), *MORE, *OPERATORS)


@cache
def rows(k: int) -> tuple[Any, Any]:
    """Return scores and labels of a few rows."""
    rng = np.random.default_rng(k)
    z = rng.normal(size=(80, k)) * 2
    return z, np.where(rng.random(80) < 0.6, z.argmax(axis=1), rng.integers(0, k, 80))


@cache
def saved(name: str, k: int) -> bytes:
    """Return the file of a fitted map."""
    z, y = rows(k)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name not in OPERATORS:
            return to_bytes(calibrant.make(name).fit(z, y))
        made = OPERATORS[name]()
        if name in ("groups", "many groups"):
            return to_bytes(made.fit(z, y, groups=_groups(len(y))))
        return to_bytes(made.fit(z, np.eye(k)[y] if name == "many labels" else y))


def _groups(n: int) -> Any:
    return np.arange(n) % 3


def case(rng: Rng) -> str:
    """Damage or forge a file, load it, and ask the map."""
    k = int(rng.choice([2, 3]))
    name = names()[rng.integers(len(names()))]
    if name in SLOW and rng.random() < 0.8:
        name = "ts"
    data = saved(name, k)
    path = ROOM / "map.calibrant"
    path.write_bytes(_damaged(rng, data) if rng.random() < 0.3 else _forged(rng, data))
    loaded = attempt(lambda: calibrant.load(path))
    if isinstance(loaded, BaseException):
        same(loaded, attempt(lambda: calibrant.load(path)), name)
        return name
    x = rows(k)[0][:20] * float(rng.choice([1.0, 1e-3, 30.0, 1e6]))
    x = x.astype(np.float32) if rng.random() < 0.5 else x
    width = loaded.n_features_in_
    if width != k:
        raise Finding(f"{name}: a map of {width} columns came out of one of {k}")
    given = {"groups": _groups(len(x))} if isinstance(loaded, (calibrant.ByGroup, calibrant.Multicalibrated)) else {}
    answer = attempt(lambda: loaded.predict_proba(x, **given))
    if not isinstance(answer, BaseException):
        _check(answer, loaded, len(x), name)
    same(answer, attempt(lambda: loaded.predict_proba(x, **given)), name)
    attempt(lambda: loaded.predict(x, **given))
    attempt(lambda: f"{loaded!r} {loaded.fit_report_}")
    if rng.random() < 0.1:
        attempt(lambda: calibrant.estimate_performance(loaded, x))
        attempt(lambda: calibrant.export(loaded, ROOM / "map.json"))
        attempt(lambda: loaded.save(ROOM / "again.calibrant"))
    if hasattr(loaded, "predict_interval"):
        low, high = getattr(loaded, "predict_interval")(x)  # noqa: B009  pyright does not know it
        if not ((low >= 0) & (low <= high) & (high <= 1)).all():
            raise Finding(f"{name}: intervals from {np.min(low)} to {np.max(high)}")
    return name


def _check(answer: Any, loaded: Any, rows: int, name: str) -> None:
    """Raise a finding unless the answers are distributions, or of many labels, of which each is a probability."""
    if not isinstance(loaded, calibrant.MultiLabel):
        probabilities(answer, rows, len(loaded.classes_), name)
    elif np.shape(answer) != (rows, loaded.n_features_in_) or not ((answer >= 0) & (answer <= 1)).all():
        raise Finding(
            f"{name}: labels' probabilities of shape {np.shape(answer)}, {np.min(answer)} to {np.max(answer)}"
        )


def _damaged(rng: Rng, data: bytes) -> bytes:
    """Cut, flip, repeat, swap or lengthen."""
    kind = rng.integers(5)
    spoilt = bytearray(data)
    at = int(rng.integers(len(data)))
    if kind == 0:
        return data[:at]
    if kind == 1:
        for place in rng.integers(len(data), size=rng.integers(1, 9)):
            spoilt[place] = rng.integers(256)
        return bytes(spoilt)
    if kind == 2:
        return data[:at] + data[max(0, at - 50) :]
    if kind == 3:
        size = int(rng.choice([0, 1, 7, 2**31, 2**63 - 1, len(data) * 2]))
        return struct.pack("<Q", size) + data[8:]
    return data + rng.bytes(int(rng.integers(1, 100)))


def _forged(rng: Rng, data: bytes) -> bytes:
    """Change the document or the arrays, and write a correct checksum."""
    document, tensors = unpack(data, "forged")
    document = copy.deepcopy(document)
    tensors = {name: array.copy() for name, array in tensors.items()}
    for _ in range(rng.integers(1, 4)):
        if tensors and rng.random() < 0.6:
            _spoil_array(rng, tensors)
        else:
            _spoil_document(rng, document)
    return pack(json.loads(json.dumps(document)), tensors)


def _spoil_array(rng: Rng, tensors: dict[str, Any]) -> None:
    name = sorted(tensors)[rng.integers(len(tensors))]
    array = tensors[name]
    kind = rng.integers(7)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind <= 2 and array.size:
            places = rng.integers(array.size, size=rng.integers(1, 4))
            array.flat[places] = np.asarray(rng.choice(WILD)).astype(array.dtype)
        elif kind == 3 and array.size:
            array.flat[:] = rng.permutation(array.ravel())
        elif kind == 4:
            tensors[name] = array[..., : array.shape[-1] // 2].copy() if array.ndim else array.reshape(1)
        elif kind == 5:
            tensors[name] = array.astype(rng.choice(["f4", "f8", "i8", "i1", "u8", "?", "f2"]))
        else:
            tensors[name] = array.T.copy() if array.ndim == 2 else array.reshape(-1, 1)


def places(tree: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return every (container, key) of a document."""
    for key in list(tree) if isinstance(tree, dict) else range(len(tree)):
        found.append((tree, key))
        if isinstance(tree[key], (dict, list)):
            places(tree[key], found)
    return found


def _spoil_document(rng: Rng, document: dict[str, Any]) -> None:
    found = places([document["calibrator"]], [])
    container, key = found[rng.integers(len(found))]
    kind = rng.integers(8)
    others = found[rng.integers(len(found))]
    if container is not document and found[0] == (container, key):  # all of it is gone already
        return
    if kind == 0:
        container[key] = float(rng.choice([0.0, -5.0, 1e300, 1e-320, 0.5]))
    elif kind == 1:
        container[key] = {"float": str(rng.choice(["nan", "inf", "-inf", "1e999", "x"]))}
    elif kind == 2:
        container[key] = int(rng.choice([0, -1, 1, 2, 2**31, 2**53])) * int(rng.choice([1, 10**10]))
    elif kind == 3:
        container[key] = str(rng.choice(WORDS))
    elif kind == 4:
        container[key] = json.loads(json.dumps(others[0][others[1]]))  # deep ones are too deep for a copy
    elif kind == 5:
        container[key] = [None, True, [], {}, {"tuple": []}, {"dict": []}, {"objects": [], "shape": [0], "dtype": "O"}][
            rng.integers(7)
        ]
    elif kind == 6:
        del container[key]
    else:
        for _ in range(int(rng.choice([3, 40, 100]))):
            container[key] = {"tuple": [container[key]]} if rng.random() < 0.5 else [container[key]]
