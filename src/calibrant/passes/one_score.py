"""Rows of two classes with one score each, as they came: what can be counted without logits needs no room for these."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..types import Floats, Integers
from .statistic import Keeper


@dataclass(frozen=True, eq=False)
class OneScore(Keeper):
    """One score a row of two classes; every row weighs one."""

    labels: Integers  # (n,): 0 or 1
    # From a number of rows to slices of as many, each with its log-odds, bit for bit those that the logits have. These
    # last until the next are made.
    log_odds: Callable[[int], Iterator[tuple[slice, Floats]]]

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.labels)
