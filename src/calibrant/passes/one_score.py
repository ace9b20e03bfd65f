"""Rows of two classes with one score each, as they came: what can be counted without logits needs no room for these."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..types import Floats, Integers

Value = TypeVar("Value")


@dataclass(frozen=True, eq=False)
class OneScore:
    """One score a row of two classes; every row weighs one.

    Attributes
    ----------
    labels : int64 array of shape (n,)
        0 or 1.
    log_odds : callable
        From a number of rows to slices of as many, each with its log-odds, bit for bit those that the logits have.
        These last until the next are made.
    """

    labels: Integers
    log_odds: Callable[[int], Iterator[tuple[slice, Floats]]]
    _kept: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.labels)

    def kept(self, function: Callable[..., Value], *arguments: Any) -> Value:
        """Return ``function(rows, *arguments)``, computed once for these rows."""
        key = (function, arguments)
        if key not in self._kept:
            self._kept[key] = function(self, *arguments)
        return self._kept[key]
