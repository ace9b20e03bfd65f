"""A fitted map as plain JSON and arrays, and back.

JSON values stand for themselves. Everything else is an object with one key that says what it is: ``{"array": "t3"}``
is a tensor, ``{"tuple": […]}`` a tuple, ``{"map": {"class": …, "parameters": …, "state": …}}`` a calibrator
of the class with that identifier (see `classes`).
Reading builds only what is listed here, so a file cannot make anything run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FileProblem, InvalidInput
from ..fits.report import FitReport
from ..invariants import check_state
from .classes import find_class, identifier_of, is_known

Tensors = dict[str, NDArray[Any]]
_TENSOR_KINDS = "biuf"
_DEEPEST = 60  # maps, lists and the like inside one another; ours have a dozen
_PADDING = 1000  # times that an array of text may be longer than its text
_NUMBER = (int, float, np.floating, np.integer)
_REPORT_KINDS: dict[str, Any] = {
    "iterations": (int, np.integer),
    "converged": (bool, np.bool_),
    **dict.fromkeys(("loss", "caveat"), str),
    **dict.fromkeys(("loss_before", "loss_after"), _NUMBER),
    **dict.fromkeys(("held_out_before", "held_out_after", "held_out_error", "held_out_pvalue"), (*_NUMBER, type(None))),
    **dict.fromkeys(("at_bound", "messages"), tuple),
    "details": dict,
}
_REPORT_FIELDS = {f.name for f in fields(FitReport)}


def encode(value: Any, tensors: Tensors, where: str = "map") -> Any:
    """Return ``value`` as JSON, its arrays put into ``tensors``; ``where`` names it in errors."""
    if value is None or isinstance(value, (bool, str)) or type(value) is int:
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, np.ndarray):
        return _encode_array(value, tensors, where)
    if isinstance(value, np.generic):
        return {"scalar": _encode_array(np.asarray(value), tensors, where)}
    if isinstance(value, (tuple, list)) and type(value) in (tuple, list):
        items = [encode(item, tensors, f"{where}[{i}]") for i, item in enumerate(value)]
        return {"tuple": items} if isinstance(value, tuple) else items
    if type(value) is dict:
        pairs = value.items()
        return {"dict": [[encode(k, tensors, where), encode(v, tensors, f"{where}[{k!r}]")] for k, v in pairs]}
    if isinstance(value, FitReport):
        return {"report": {f: encode(getattr(value, f), tensors, f"{where}.{f}") for f in sorted(_REPORT_FIELDS)}}
    if is_known(type(value)):
        return {"map": _encode_map(value, tensors, where)}
    raise InvalidInput(
        f"{where} cannot be saved",
        seen=f"an object of type {type(value).__name__}",
        allowed="arrays, numbers, strings, lists, tuples, dicts and calibrators",
    )


def _encode_array(array: NDArray[Any], tensors: Tensors, where: str) -> Any:
    if array.dtype.kind in _TENSOR_KINDS and array.dtype.itemsize <= 8:
        name = f"t{len(tensors)}"
        tensors[name] = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("=")).reshape(array.shape)
        # A matrix product may round differently for a transposed layout; the same bytes need the same layout.
        columnwise = array.flags.f_contiguous and not array.flags.c_contiguous
        return {"array": name, "order": "F"} if columnwise else {"array": name}
    if array.dtype.kind in "OU":
        items = [encode(item, tensors, where) for item in array.ravel().tolist()]
        return {"objects": items, "shape": list(array.shape), "dtype": array.dtype.str}
    raise InvalidInput(f"{where} cannot be saved", seen=f"an array of {array.dtype}")


def _encode_map(value: Any, tensors: Tensors, where: str) -> dict[str, Any]:
    parameters = value.get_params(deep=False)
    state = {name: v for name, v in vars(value).items() if _is_state(name)}
    return {
        "class": identifier_of(type(value)),
        "parameters": {k: encode(v, tensors, f"{where}.{k}") for k, v in parameters.items()},
        "state": {k: encode(state[k], tensors, f"{where}.{k}") for k in sorted(state)},
    }


def _is_state(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_") and name.isidentifier()


def refuse_depth(tree: Any) -> None:
    """Raise where values are nested deeper than any map is, before anything is built of them."""
    level = [tree] if isinstance(tree, (dict, list)) else []
    for _ in range(4 * _DEEPEST):  # a level of a map is some levels of JSON
        level = [item for one in level for item in (one.values() if isinstance(one, dict) else one)]
        level = [item for item in level if isinstance(item, (dict, list))]
        if not level:
            return
    raise FileProblem("the file holds maps inside maps, deeper than any map goes", seen=f"over {_DEEPEST} levels")


def decode(tree: Any, tensors: Tensors) -> Any:
    """Return what `encode` was given."""
    if isinstance(tree, list):
        return [decode(item, tensors) for item in tree]
    if not isinstance(tree, dict):
        return tree
    for tag, build in _BUILDERS.items():
        if tag in tree:
            return build(tree, tensors)
    raise FileProblem("the file holds a value of an unknown kind", seen=", ".join(map(str, list(tree)[:3])))


def _array(tree: Any, tensors: Tensors) -> NDArray[Any]:
    name = tree["array"]
    if not isinstance(name, str) or name not in tensors:
        raise FileProblem("the file lacks an array that it refers to", seen=f"{name!r:.60}")
    if tree.get("order") != "F":
        return tensors[name]
    turned = f"{name} by columns"  # made once, however often the file refers to it: memory is bounded by its size
    if turned not in tensors:
        tensors[turned] = np.asfortranarray(tensors[name])
    return tensors[turned]


def _objects(tree: Any, tensors: Tensors) -> NDArray[Any]:
    kind, items, shape = str(tree["dtype"]).lstrip("<>=|")[:1], decode(tree["objects"], tensors), tree["shape"]
    if kind not in ("O", "U") or (kind == "U" and not all(isinstance(item, str) for item in items)):
        raise FileProblem("the file holds an array of an unknown type", seen=f"{tree['dtype']!r:.60}")
    if kind == "U" and sum(map(len, items)) * _PADDING < max(map(len, items), default=0) * len(items):
        raise FileProblem("the file holds text of very different lengths, which would need much memory")
    flat = np.empty(len(items), dtype=object)
    flat[:] = items
    flat = flat.astype(str) if kind == "U" else flat
    return flat.reshape([int(length) for length in shape])


def _map(tree: Any, tensors: Tensors) -> Any:
    parts = tree["map"]
    cls = find_class(parts["class"])
    parameters = {k: decode(v, tensors) for k, v in parts["parameters"].items()}
    known = set(getattr(cls, "_get_param_names")())  # noqa: B009  scikit-learn's, untyped
    if not set(parameters) <= known:
        raise FileProblem(
            f"the file gives {cls.__name__} parameters that it does not have",
            seen=", ".join(sorted(set(parameters) - known)),
            hint="it comes from another version of calibrant",
        )
    made: Any = cls(**parameters)
    made._check_parameters()
    state = _state(cls, parts["state"], tensors)
    for name, value in state.items():
        setattr(made, name, value)
    if state:
        check_state(made)
    return made


def _state(cls: type, tree: Any, tensors: Tensors) -> dict[str, Any]:
    """Return fitted attributes by name; a class that has changed since turns what earlier versions wrote into its own.

    Its class method ``_upgraded_state(state)`` is given every file's attributes and returns those of today.
    """
    for name in tree:
        if not _is_state(name) or callable(getattr(cls, name, None)):
            raise FileProblem(f"the file sets {name!r}, which is no fitted attribute of {cls.__name__}")
    state = {name: decode(value, tensors) for name, value in tree.items()}
    upgrade = getattr(cls, "_upgraded_state", None)
    return upgrade(state) if state and upgrade is not None else state


def _report(tree: Any, tensors: Tensors) -> FitReport:
    known = {k: decode(v, tensors) for k, v in tree["report"].items() if k in _REPORT_FIELDS}
    report = FitReport(**known)
    for name, kinds in _REPORT_KINDS.items():
        value = getattr(report, name)
        good = isinstance(value, kinds) and (
            not isinstance(value, _NUMBER) or abs(value) < 2**62 or type(value) is float
        )
        if not good or (isinstance(value, tuple) and not all(type(v) is str for v in value)):
            raise FileProblem(f"the report of the fit has no usable {name}", seen=f"{value!r:.60}")
    return report


_BUILDERS: dict[str, Callable[[Any, Tensors], Any]] = {
    "array": _array,
    "objects": _objects,
    "scalar": lambda tree, tensors: decode(tree["scalar"], tensors)[()],
    "float": lambda tree, _: float(tree["float"]),
    "tuple": lambda tree, tensors: tuple(decode(tree["tuple"], tensors)),
    "dict": lambda tree, tensors: {decode(k, tensors): decode(v, tensors) for k, v in tree["dict"]},
    "report": _report,
    "map": _map,
}
