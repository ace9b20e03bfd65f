"""Pairs: scores and outcomes of one event, as views make them of K classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Pairs", "is_whole", "rows_of"]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Scores in [0, 1], whether the event of each happened, and how much each row counts.

    Attributes
    ----------
    scores : float64 array of shape (n,)
    outcomes : float64 array of shape (n,)
        0 or 1.
    weights : float64 array of shape (n,) or None
        None means one each. A weight of 2 is the row twice.
    """

    scores: NDArray[np.float64]
    outcomes: NDArray[np.float64]
    weights: NDArray[np.float64] | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.scores)

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.n) if self.weights is None else float(self.weights.sum())

    @property
    def rows(self) -> float:
        """As how many rows these count."""
        return rows_of(self.n, self.weights)

    @property
    def weight_array(self) -> NDArray[np.float64]:
        """The weights, as ones where none were given."""
        return np.ones(self.n) if self.weights is None else self.weights

    def take(self, rows: NDArray[Any]) -> Pairs:
        """Return the given rows (indices or a mask)."""
        weights = None if self.weights is None else self.weights[rows]
        return Pairs(self.scores[rows], self.outcomes[rows], weights)

    def counted(self) -> Pairs:
        """Return the pairs without rows of weight zero."""
        return self if self.weights is None or self.weights.all() else self.take(self.weights > 0)


def rows_of(n: int, weights: NDArray[np.float64] | None) -> float:
    """Return as how many rows weights count, where a rule depends on their number.

    Whole weights are numbers of rows. Fractional ones count as many rows as give a mean the same variance, (Σw)²/Σw²,
    whatever their scale.
    """
    if weights is None:
        return float(n)
    total = float(weights.sum())
    return total if is_whole(weights) else total**2 / float((weights**2).sum())


def is_whole(weights: NDArray[np.float64]) -> bool:
    """Tell whether weights are numbers of rows."""
    return bool((weights == np.floor(weights)).all())
