"""Cells: tied scores as one, in increasing order. What every estimator that sorts works on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .pairs import Pairs, rows_of

__all__ = ["Cells", "cells_of"]


@dataclass(frozen=True, eq=False)
class Cells:
    """Distinct scores with what happened at them.

    Working on cells makes a result a function of the set of rows: rows with the same score cannot be told apart.

    Attributes
    ----------
    scores : float64 array of shape (m,)
        Increasing.
    weights : float64 array of shape (m,)
        The weight of the rows with this score, positive.
    outcomes : float64 array of shape (m,)
        The weight of those whose event happened.
    """

    scores: NDArray[np.float64]
    weights: NDArray[np.float64]
    outcomes: NDArray[np.float64]

    @property
    def frequencies(self) -> NDArray[np.float64]:
        """The share of each cell's weight whose event happened."""
        return self.outcomes / self.weights

    @property
    def rows(self) -> float:
        """As how many rows these count."""
        return rows_of(len(self.weights), self.weights)

    @property
    def share(self) -> NDArray[np.float64]:
        """Each cell's share of the total weight."""
        return self.weights / self.weights.sum()


def cells_of(pairs: Pairs) -> Cells:
    """Sort the pairs and join tied scores; rows of weight zero are left out."""
    pairs = pairs.counted()
    order = np.argsort(pairs.scores)
    scores, outcomes = pairs.scores[order], pairs.outcomes[order]
    weights = np.ones(len(scores)) if pairs.weights is None else pairs.weights[order]
    outcomes = outcomes if pairs.weights is None else outcomes * weights
    changes = scores[1:] != scores[:-1]
    if changes.all():
        return Cells(scores, weights, outcomes)
    first = np.flatnonzero(np.r_[True, changes])
    return Cells(scores[first], np.add.reduceat(weights, first), np.add.reduceat(outcomes, first))
