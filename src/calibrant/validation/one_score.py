"""One score a row of two classes: many of them are checked by their least and their largest alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..types import Floats
from .arrays import as_array
from .scores import LEAST, MOST, in_double, pair_of

_MANY = 500_000  # rows from which fits on fine cells look at logits no more, and one fold judges them


@dataclass(frozen=True, eq=False)
class ScoreColumn:
    """Valid scores of the second of two classes, none of them saturated."""

    values: Floats  # (n,): float32 or float64
    inputs: str  # {"logits", "probabilities"}
    extremes: Floats  # (2,): the least and the largest

    @property
    def logits(self) -> Floats:
        """What `as_scores` makes of them: (n, 2)."""
        return pair_of(self.values.reshape(-1, 1), self.inputs)

    @property
    def widest(self) -> float:
        """The log-odds farthest from zero: no rounded logarithm falls where its argument rises."""
        ((_, odds),) = ScoreColumn(self.extremes, self.inputs, self.extremes).log_odds(2)
        return float(np.abs(odds).max())

    def turned(self) -> ScoreColumn:
        """Return the scores of the other class."""
        values = -self.values if self.inputs == "logits" else 1 - self.values
        return ScoreColumn(values, self.inputs, np.stack([values.min(), values.max()]))

    def log_odds(self, rows: int) -> Iterator[tuple[slice, Floats]]:
        """Yield slices of so many rows, each with the differences of their logits, in memory that the next will use."""
        room = np.empty((2, min(rows, len(self.values))), dtype=self.values.dtype)
        for first in range(0, len(self.values), rows):
            some = slice(first, first + rows)
            yield some, self._odds(self.values[some], room)

    def _odds(self, values: Floats, room: Floats) -> Floats:
        if self.inputs == "logits":
            return values
        against, own = room[:, : len(values)]
        in_double(np.log1p, np.negative(values, out=against), against)
        return np.subtract(in_double(np.log, values, own), against, out=own)


def as_score_column(values: Any, inputs: str) -> ScoreColumn | None:
    """Return many scores that a first look finds in order; None where there are few, or anything to look at closer."""
    array, _ = as_array(values, "scores")
    if array.dtype.char not in "fd" or array.size < _MANY or array.size != len(array):
        return None
    flat = np.ascontiguousarray(array).reshape(-1)
    extremes = np.stack([np.minimum.reduce(flat), np.maximum.reduce(flat)])  # NaN, where one of the scores is
    low, high = extremes.tolist()
    size = max(-low, high)
    probable = low >= 0 and high <= 1
    good = low > 0 and high < 1 if inputs == "probabilities" else not probable
    fits = LEAST[flat.dtype.char] <= size <= MOST[flat.dtype.char]
    return ScoreColumn(flat, inputs, extremes) if good and fits else None
