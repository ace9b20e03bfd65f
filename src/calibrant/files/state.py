"""A fitted map as plain JSON and arrays, and back.

JSON values stand for themselves. Everything else is an object with one key that says what it is: ``{"array": "t3"}``
is a tensor, ``{"tuple": […]}`` a tuple, ``{"map": {"class": …, "parameters": …, "state": …}}`` a calibrator
of the class with that identifier (see `classes`).
Reading builds only what is listed here, so a file cannot make anything run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FileProblem, InvalidInput
from ..fits.report import FitReport
from ..parameters import check_parameters
from .classes import find_class, identifier_of, is_known

__all__ = ["Tensors", "decode", "encode"]

Tensors = dict[str, NDArray[Any]]
_TENSOR_KINDS = "biuf"
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


def decode(tree: Any, tensors: Mapping[str, NDArray[Any]]) -> Any:
    """Return what `encode` was given."""
    if isinstance(tree, list):
        return [decode(item, tensors) for item in tree]
    if not isinstance(tree, dict):
        return tree
    for tag, build in _BUILDERS.items():
        if tag in tree:
            return build(tree, tensors)
    raise FileProblem("the file holds a value of an unknown kind", seen=", ".join(map(str, list(tree)[:3])))


def _array(tree: Any, tensors: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    if tree["array"] not in tensors:
        raise FileProblem("the file lacks an array that it refers to", seen=repr(tree["array"]))
    array = tensors[tree["array"]]
    return np.asfortranarray(array) if tree.get("order") == "F" else array


def _objects(tree: Any, tensors: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    dtype = np.dtype(str(tree["dtype"]))
    if dtype.kind not in "OU" or dtype.itemsize > 1 << 20:
        raise FileProblem("the file holds an array of an unknown type", seen=str(dtype))
    flat = np.empty(len(tree["objects"]), dtype=dtype)
    flat[:] = [decode(item, tensors) for item in tree["objects"]]
    return flat.reshape([int(length) for length in tree["shape"]])


def _map(tree: Any, tensors: Mapping[str, NDArray[Any]]) -> Any:
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
    made = cls(**parameters)
    state = _state(cls, parts["state"], tensors)
    for name, value in state.items():
        setattr(made, name, value)
    ranges = getattr(cls, "_state_constraints", {})
    check_parameters(made, {name: ranges[name] for name in ranges if name in state})
    return made


def _state(cls: type, tree: Any, tensors: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Return fitted attributes by name; a class that has changed since turns what earlier versions wrote into its own.

    Its class method ``_upgraded_state(state)`` is given every file's attributes and returns those of today.
    """
    for name in tree:
        if not _is_state(name) or callable(getattr(cls, name, None)):
            raise FileProblem(f"the file sets {name!r}, which is no fitted attribute of {cls.__name__}")
    state = {name: decode(value, tensors) for name, value in tree.items()}
    upgrade = getattr(cls, "_upgraded_state", None)
    return upgrade(state) if state and upgrade is not None else state


def _report(tree: Any, tensors: Mapping[str, NDArray[Any]]) -> FitReport:
    known = {k: decode(v, tensors) for k, v in tree["report"].items() if k in _REPORT_FIELDS}
    return FitReport(**known)


_BUILDERS: dict[str, Callable[[Any, Mapping[str, NDArray[Any]]], Any]] = {
    "array": _array,
    "objects": _objects,
    "scalar": lambda tree, tensors: decode(tree["scalar"], tensors)[()],
    "float": lambda tree, _: float(tree["float"]),
    "tuple": lambda tree, tensors: tuple(decode(tree["tuple"], tensors)),
    "dict": lambda tree, tensors: {decode(k, tensors): decode(v, tensors) for k, v in tree["dict"]},
    "report": _report,
    "map": _map,
}
