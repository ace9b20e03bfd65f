"""Some rows, after validation: what a pass is handed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..types import Array, Floats, Integers
from .statistic import Keeper


@dataclass(frozen=True, eq=False)
class Block(Keeper):
    """Finite logits, label indices and weights of some rows.

    What is kept of it is a few numbers a row that several passes need. Rows in memory stay one block between passes; a
    stream makes its blocks anew, so nothing is kept there beyond a pass.
    """

    # (n, K): C-contiguous float32 or float64, finite: probabilities have become log-probabilities, and exact zeros what
    # they are read as (see `calibrant.validation.saturation`). For maps on embeddings: the embeddings.
    logits: Floats
    labels: Integers  # (n,): column indices
    weights: Array | None  # (n,): None means one each
    n_classes: int  # K; differs from the number of columns for embeddings only
    part: int = 0  # the partition of a cluster that the rows are in

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.labels)

    @property
    def total_weight(self) -> float:
        """Sum of the weights."""
        return float(self.n) if self.weights is None else float(self.weights.sum())

    @property
    def weight_array(self) -> Array:
        """The weights, as ones where none were given."""
        return np.ones(self.n) if self.weights is None else self.weights

    def take(self, rows: NDArray[Any] | slice) -> Block:
        """Return the given rows, as a block of their own."""
        weights = None if self.weights is None else self.weights[rows]
        return Block(np.ascontiguousarray(self.logits[rows]), self.labels[rows], weights, self.n_classes, self.part)

    def with_logits(self, logits: Floats) -> Block:
        """Return the same rows with other scores."""
        return Block(np.ascontiguousarray(logits), self.labels, self.weights, self.n_classes, self.part)

    def with_weights(self, weights: Array | None) -> Block:
        """Return the same rows with other weights."""
        return replace(self, weights=weights)
