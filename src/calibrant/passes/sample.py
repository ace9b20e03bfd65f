"""The rows a fit works on, after validation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

__all__ = ["Sample"]


@dataclass(frozen=True, eq=False)
class Sample:
    """Finite logits, label indices and weights: what a map's private `_fit` receives.

    Attributes
    ----------
    logits : array of shape (n, K)
        C-contiguous float32 or float64. Probabilities have become log-probabilities, and -inf a finite floor
        (see `calibrant.validation.floored`). For maps on embeddings: the embeddings.
    labels : int64 array of shape (n,)
        Column indices.
    weights : float64 array of shape (n,) or None
        None means one each.
    n_classes : int
        K; differs from the number of columns for embeddings only.
    """

    logits: NDArray[np.floating]
    labels: NDArray[np.int64]
    weights: NDArray[np.float64] | None
    n_classes: int

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.labels)

    @property
    def total_weight(self) -> float:
        """Sum of the weights."""
        return float(self.n) if self.weights is None else float(self.weights.sum())

    @property
    def weight_array(self) -> NDArray[np.float64]:
        """The weights, as ones where none were given."""
        return np.ones(self.n) if self.weights is None else self.weights

    def take(self, rows: NDArray[np.int64] | slice) -> Sample:
        """Return the given rows, as a sample of their own."""
        weights = None if self.weights is None else self.weights[rows]
        return replace(self, logits=np.ascontiguousarray(self.logits[rows]), labels=self.labels[rows], weights=weights)

    def with_logits(self, logits: NDArray[np.floating]) -> Sample:
        """Return the same rows with other scores."""
        return replace(self, logits=np.ascontiguousarray(logits))

    def folds(self, count: int, *, copy: bool = True) -> Iterator[tuple[Sample, Sample]]:
        """Yield (rest, fold) pairs, stratified by class, that do not depend on the order of the rows.

        The rows of a class are ranked by margin and spread, and the ranks dealt out at random (dealing them in order
        would leave every row its neighbours, and flatter maps with many steps). Equal rows go to the same fold, so
        that a row twice is no different from a row of weight two; where scores take so few values that this would
        leave the folds lopsided, equal rows are dealt out too. Without ``copy`` the rest is the whole sample with
        weights of zero in the fold, which takes no memory.
        """
        top = self.logits.max(axis=1)
        margin = top - self.logits[np.arange(self.n), self.labels] if self.n_classes == self.logits.shape[1] else top
        keys = np.stack([top - self.logits.min(axis=1), margin, self.labels])
        order = np.lexsort(keys)
        place = np.cumsum((np.diff(keys[:, order], prepend=-1) != 0).any(axis=0))
        if place[-1] < self.n // 4:
            place = np.arange(self.n)
        first = np.flatnonzero(np.diff(place, prepend=-1))
        shuffled = np.lexsort([np.random.default_rng(0).random(len(first)), self.labels[order[first]]])
        dealt = np.empty(len(first), dtype=np.int64)
        dealt[shuffled] = np.arange(len(first)) % count
        fold = np.empty(self.n, dtype=np.int64)
        fold[order] = np.repeat(dealt, np.diff(np.append(first, self.n)))
        for f in range(count):
            rest = self.take(np.flatnonzero(fold != f)) if copy else self._without(fold == f)
            yield rest, self.take(np.flatnonzero(fold == f))

    def _without(self, rows: NDArray[np.bool_]) -> Sample:
        return replace(self, weights=np.where(rows, 0.0, self.weight_array))
