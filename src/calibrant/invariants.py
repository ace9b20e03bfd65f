"""What fitted attributes must be: one table a map makes the check of a file, its message, and the tests' forgeries.

A file is an input like any other: whoever wrote it may be wrong, or mean harm. A map declares in ``_state`` what each
attribute that its fit sets must be, in sizes (K classes, D columns, others by the names of its own choice) and ranges:

    _state = {"edges_": Values("bins-1", order="rising"), "temperatures_": Values("bins", low=1e-9)}

The first attribute that names a size says what it is; ``bins-1`` is one less. What tables cannot say, a map checks in
``_check_state``. Every map inside another is checked by its own table.
"""

from __future__ import annotations

import numbers
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import InvalidInput
from .parameters import MOST, AnyOf, Number

Sizes = dict[str, int]
TEMPERATURE = Number(1e-120, 1e120)  # both it and one over it times a score are finite
_KINDS = {"f": "numbers", "i": "integers", "b": "truth values"}


@dataclass(frozen=True)
class Values:
    """An array of such a shape.

    Parameters
    ----------
    *shape : str or int
        A length each: a number, the name of a size, or one more or less of it ("K+1").
    low, high : float
        The range of its values.
    order : {"", "rising", "falling"}
        Along the last axis; equal neighbours are allowed.
    total : float, optional
        The sum along the last axis.
    kind : {"f", "i", "b"}
        Numbers, integers or truth values.
    below : str
        The name of a size that all values are below: they are places in something of that size.
    finite : bool
        Whether infinity is refused; NaN always is.
    """

    shape: tuple[str | int, ...]
    low: float = -MOST
    high: float = MOST
    order: str = ""
    total: float | None = None
    kind: str = "f"
    below: str = ""
    finite: bool = True

    def __init__(self, *shape: str | int, **options: Any) -> None:
        object.__setattr__(self, "shape", shape)
        for name, value in options.items():
            if name not in Values.__dataclass_fields__:
                raise TypeError(f"Values has no option {name}")
            object.__setattr__(self, name, value)

    def wrong(self, value: Any, sizes: Sizes) -> str:
        """Return what is wrong with a value, or nothing; learn sizes that were not known."""
        if not isinstance(value, np.ndarray) or value.dtype.kind != self.kind or value.dtype.itemsize > 8:
            return f"it must be an array of {_KINDS[self.kind]}"
        if self.kind in "if" and value.dtype.itemsize < 4:  # sums of small ones overflow, and are off by more than 1e-4
            return "its numbers must have 32 or 64 bits"
        if value.ndim != len(self.shape) or not all(map(_fits, value.shape, self.shape, [sizes] * value.ndim)):
            return f"its shape is {value.shape}, not ({', '.join(map(str, self.shape))})"
        return self._wrong_values(value, sizes) if value.size and self.kind != "b" else ""

    def _wrong_values(self, value: np.ndarray[Any, Any], sizes: Sizes) -> str:
        if np.isnan(value).any() or (self.finite and not np.isfinite(value).all()):
            return "it holds NaN or infinity"
        inside = value[np.isfinite(value)]
        high = sizes[self.below] - 1 if self.below else self.high
        least, most = (float(inside.min()), float(inside.max())) if inside.size else (self.low, high)
        if not (least >= self.low and most <= high):
            return f"it holds values from {least:.6g} to {most:.6g}, outside [{self.low:g}, {high:g}]"
        if self.order and value.shape[-1] > 1:
            first, second = value[..., :-1], value[..., 1:]
            if not (first <= second if self.order == "rising" else first >= second).all():
                return f"its values are not {self.order}"
        if self.total is not None and not np.abs(value.sum(axis=-1) - self.total).max() <= 1e-6:
            return f"its values do not sum to {self.total:g}"
        return ""


@dataclass(frozen=True)
class Fitted:
    """A fitted map, or with a ``count`` a list of so many, on ``classes`` classes each."""

    count: str | int = ""
    classes: str | int = "K"

    def wrong(self, value: Any, sizes: Sizes) -> str:
        """Return what is wrong with a value, or nothing; learn sizes that were not known."""
        if self.count and (not isinstance(value, list) or not value or not _fits(len(value), self.count, sizes)):
            return f"it must be a list of maps, {self.count} of them"
        wanted = sizes.get(self.classes) if isinstance(self.classes, str) else self.classes
        parts: list[Any] = value if self.count else [value]
        for part in parts:
            if not (hasattr(part, "_map") and hasattr(part, "_state")):
                return "it must be a map"
            needed = {name for name, check in (part._state or {}).items() if not isinstance(check, Optional)}
            if not all(hasattr(part, name) for name in needed):
                return "it holds a map that is not fitted"
            if wanted is not None and len(getattr(part, "classes_", range(wanted))) != wanted:
                return f"it holds a map of {len(part.classes_)} classes in place of {wanted}"
        return ""


@dataclass(frozen=True)
class Numbers:
    """A tuple or list of real numbers, so many or any number of them."""

    count: int | None = None

    def wrong(self, value: Any, sizes: Sizes) -> str:
        """Return what is wrong with a value, or nothing."""
        if not isinstance(value, (tuple, list)) or not all(isinstance(v, numbers.Real) for v in value):
            return "it must hold numbers"
        return "" if self.count in (None, len(value)) else f"it must hold {self.count} numbers"


@dataclass(frozen=True)
class Text:
    """A string."""

    def wrong(self, value: Any, sizes: Sizes) -> str:
        """Return what is wrong with a value, or nothing."""
        return "" if isinstance(value, str) else "it must be text"


@dataclass(frozen=True)
class Anything:
    """Whatever it is, no answer depends on it."""

    def wrong(self, value: Any, sizes: Sizes) -> str:
        """Return nothing."""
        return ""


ANY = Anything()


@dataclass(frozen=True)
class Optional:
    """What need not be there, or may be None."""

    check: Any

    def wrong(self, value: Any, sizes: Sizes) -> str:
        """Return what is wrong with a value that is there, or nothing."""
        return "" if value is None else _wrong(self.check, value, sizes)


def _fits(length: int, size: str | int, sizes: Sizes) -> bool:
    """Tell whether a length is that of a size; the first length that a name is given is its size from then on."""
    if isinstance(size, int):
        return length == size
    name, more = re.fullmatch(r"(\w+?)([+-]\d+)?", size).groups()  # pyright: ignore  a table that does not match is ours
    return length == sizes.setdefault(name, length - int(more or 0)) + int(more or 0)


def _wrong(check: Any, value: Any, sizes: Sizes) -> str:
    """Return what is wrong with a value, by a check of this module or of `parameters`."""
    if hasattr(check, "wrong"):
        return check.wrong(value, sizes)
    if isinstance(check, AnyOf):
        found = [_wrong(option, value, sizes) for option in check.options]
        return "" if "" in found else found[-1]
    return "" if check.accepts(value) else f"it is {value!r:.60}, not {check.allowed}"


_PLACE = Number(-1e6, 0.0)  # of `zero_`: the logarithm of a probability


def check_state(fitted: Any) -> None:
    """Raise where an attribute of a map that was read is not what its class says, is missing, or is unknown."""
    names = {name for name in vars(fitted) if name.endswith("_") and not name.startswith("_")}
    classes = np.asarray(getattr(fitted, "classes_", [])) if "classes_" in names else None
    if classes is not None and (classes.ndim != 1 or len(set(classes.tolist())) != len(classes) or not len(classes)):
        raise _refusal(fitted, "classes_", "it must name each class once")
    if classes is not None and not isinstance(fitted.classes_, np.ndarray):
        raise _refusal(fitted, "classes_", "it must be an array")
    if classes is not None and any(isinstance(name, float) and not np.isfinite(name) for name in classes.tolist()):
        raise _refusal(fitted, "classes_", "it holds NaN or infinity")
    sizes: Sizes = {} if classes is None else {"K": len(classes)}
    for name, low in (("n_features_in_", 1), ("n_samples_", 0)):
        value = getattr(fitted, name, low)
        if not isinstance(value, numbers.Integral) or not low <= int(value) < 2**62:
            raise _refusal(fitted, name, "it must be a number of columns or rows")
    sizes["D"] = getattr(fitted, "n_features_in_", sizes.get("K", 1))
    zero = getattr(fitted, "zero_", 0.0)
    unread = isinstance(zero, float) and np.isnan(zero) and getattr(fitted, "_needs", "") == "embeddings"
    if not (unread or (isinstance(zero, numbers.Real) and _PLACE.accepts(zero))):
        raise _refusal(fitted, "zero_", "it must be the logarithm of a probability")
    named = getattr(fitted, "feature_names_in_", None)
    if named is not None and not (isinstance(named, np.ndarray) and named.shape == (sizes["D"],)):
        raise _refusal(fitted, "feature_names_in_", "it must hold the name of each column")
    table = getattr(type(fitted), "_state", None)
    if table is not None:
        _check_table(fitted, table, names, sizes)
        fitted._check_state()


def _check_table(fitted: Any, table: Mapping[str, Any], names: set[str], sizes: Sizes) -> None:
    sizes.update(fitted._sizes())
    own = "_identifier" in vars(type(fitted))  # else a user's subclass, with attributes of its own
    whole = {**fitted._state_of_all, **table}
    strange = sorted(names - set(whole)) if own else []
    if strange:
        raise _refusal(fitted, strange[0], "the class has no such attribute")
    for name, check in whole.items():
        if name not in names:
            if isinstance(check, Optional):
                continue
            raise _refusal(fitted, name, "it is missing")
        problem = _wrong(check, getattr(fitted, name), sizes)
        if problem:
            raise _refusal(fitted, name, problem)


def _refusal(fitted: Any, name: str, problem: str) -> InvalidInput:
    return InvalidInput(f"{type(fitted).__name__}.{name} is not usable: {problem}")
