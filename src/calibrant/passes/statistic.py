"""How partial results of a pass merge.

A statistic is anything that ``+`` merges: arrays and numbers add up, tuples do so entry by entry, and what needs
another rule (concatenation, a maximum, a union) is a small class with its own ``__add__``. Merging must not depend on
the order or on how rows were cut into blocks, but for rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Value = TypeVar("Value")


def merge(one: Any, other: Any) -> Any:
    """Return what the rows of both blocks give together."""
    if isinstance(one, tuple):
        return tuple(merge(a, b) for a, b in zip(one, other, strict=True))
    return one + other


def merged(one: Any, other: Any) -> Any:
    """Return what two sides give together, one of which may have had no rows: None."""
    return (one if other is None else other) if one is None or other is None else merge(one, other)


def added(one: Any, other: Any, *names: str, **others: Any) -> Any:
    """Return a dataclass with these fields merged of both, others as they are given, and the rest as in the first."""
    return replace(one, **{name: merge(getattr(one, name), getattr(other, name)) for name in names}, **others)


@dataclass(frozen=True, eq=False)
class Keeper:
    """What keeps what was computed of it."""

    _kept: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    def kept(self, function: Callable[..., Value], *arguments: Any) -> Value:
        """Return ``function(self, *arguments)``, computed once for this object."""
        key = (function, arguments)
        if key not in self._kept:
            self._kept[key] = function(self, *arguments)
        return self._kept[key]


@dataclass(frozen=True, eq=False)
class Largest:
    """An array whose entries merge by their maximum."""

    values: NDArray[Any]

    def __add__(self, other: Largest) -> Largest:
        return Largest(np.maximum(self.values, other.values))


class Rows:
    """A few numbers a row, which merge by concatenation: for maps whose trait says that they need rows.

    Parts are joined once, at the end: adding blocks one by one costs no copies.
    """

    def __init__(self, *columns: NDArray[Any]) -> None:
        self._parts: list[Sequence[NDArray[Any]]] = [columns]

    def __add__(self, other: Rows) -> Rows:
        both = Rows()
        both._parts = [*self._parts, *other._parts]
        return both

    @property
    def columns(self) -> tuple[NDArray[Any], ...]:
        """The columns of all rows."""
        return tuple(np.concatenate(parts) for parts in zip(*self._parts, strict=True))
