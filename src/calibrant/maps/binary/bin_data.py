"""What a binned map is fitted on: fine cells, and sums by bin, of pairs in memory or of many classes at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ... import _core
from ...arrays import log_odds, row_blocks
from ...metrics.fine_cells import FineCells, cells_of_classes, cells_of_scores
from ...metrics.imax import IMax
from ...passes import Sample, reduce
from ...threads import get_threads
from .base import Pairs

__all__ = ["Answer", "BinData", "ClassData", "PairData", "data_of_groups"]

_FEW = 1 << 18  # a group of more scores than this is not brought into memory

Answer = Callable[[NDArray[np.floating]], NDArray[np.floating]]
"""From logits (rows, K) to what another fitted map answers, (rows, K)."""


class BinData:
    """Scores, outcomes and, where another map lends them, values.

    ``start`` may hold the bins of I-Max, where they were found for many groups at once.
    """

    start: IMax | None = None

    @cached_property
    def cells(self) -> FineCells:
        """Fine cells of the scores."""
        return self._cells()

    def forget_cells(self) -> None:
        """Give the memory of the cells back: they are larger than the scores."""
        self.__dict__.pop("cells", None)

    def sums(self, edges: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return by bin: weight, weight of the positives, Σ σ(score), Σ value; shape (bins, 4)."""
        raise NotImplementedError

    def _cells(self) -> FineCells:
        raise NotImplementedError


class PairData(BinData):
    """Pairs in memory."""

    def __init__(self, pairs: Pairs, values: NDArray[np.floating] | None = None) -> None:
        self.pairs = pairs
        self.values = values

    def _cells(self) -> FineCells:
        return cells_of_scores(self.pairs.log_odds, self.pairs.outcomes, self.pairs.weights)

    def sums(self, edges: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sums by bin."""
        place = np.searchsorted(edges, self.pairs.log_odds, side="right")
        w = self.pairs.weight_array
        columns = [w, w * self.pairs.outcomes, w * expit(self.pairs.log_odds.astype(np.float64))]
        columns.append(np.zeros_like(w) if self.values is None else w * self.values)
        sums = [np.bincount(place, c, minlength=len(edges) + 1).astype(np.float64) for c in columns]
        return np.stack(sums, axis=1)


class ClassData(BinData):
    """The merged scores of many classes, seen by passes over the logits and never held at once."""

    def __init__(self, sample: Sample, columns: NDArray[np.int64], answer: Answer | None = None) -> None:
        self.sample = sample
        self.mask = np.zeros(sample.logits.shape[1], dtype=bool)
        self.mask[columns] = True
        self.answer = answer

    def _cells(self) -> FineCells:
        return cells_of_classes(self.sample, None if self.mask.all() else self.mask)

    def sums(self, edges: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sums by bin, by one pass."""
        return reduce(lambda rows: self._sums(rows, edges), self.sample)

    def _sums(self, sample: Sample, edges: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.answer is None:
            return self._kernel(sample.logits, sample.labels, sample.weights, None, edges)
        total = np.zeros((len(edges) + 1, 4))
        for rows in row_blocks(*sample.logits.shape):
            z = sample.logits[rows]
            weights = None if sample.weights is None else sample.weights[rows]
            total += self._kernel(z, sample.labels[rows], weights, np.ascontiguousarray(self.answer(z)), edges)
        return total

    def _kernel(
        self,
        logits: NDArray[np.floating],
        labels: NDArray[np.int64],
        weights: NDArray[np.float64] | None,
        values: NDArray[np.floating] | None,
        edges: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        columns = None if self.mask.all() else self.mask
        return _core.bin_sums(logits, labels, weights, columns, values, edges, get_threads())


def data_of_groups(sample: Sample, groups: NDArray[np.int64], answer: Answer | None = None) -> Iterator[list[BinData]]:
    """Yield the data of the groups of classes 0 … G-1 in lists; small groups by a few passes for all of a list."""
    waiting: list[NDArray[np.int64]] = []
    room = max(_FEW, sample.logits.size // 16)
    for g in range(int(groups.max()) + 1):
        columns = np.flatnonzero(groups == g)
        large = sample.n * len(columns) > _FEW
        if large or sample.n * sum(map(len, [*waiting, columns])) > room:
            yield _in_memory(sample, waiting, answer)
            waiting = []
        if large:
            yield [ClassData(sample, columns, answer)]
        else:
            waiting.append(columns)
    yield _in_memory(sample, waiting, answer)


def _in_memory(sample: Sample, groups: list[NDArray[np.int64]], answer: Answer | None) -> list[BinData]:
    if not groups:
        return []
    columns = np.concatenate(groups)
    scores = np.empty((len(columns), sample.n), dtype=sample.logits.dtype)
    values = None if answer is None else np.empty_like(scores)
    for rows in row_blocks(*sample.logits.shape):
        z = sample.logits[rows]
        scores[:, rows] = log_odds(z)[:, columns].T
        if answer is not None and values is not None:
            values[:, rows] = answer(z)[:, columns].T
    start = 0
    found: list[BinData] = []
    for members in groups:
        stop = start + len(members)
        outcomes = (sample.labels == members[:, None]).ravel()
        weights = None if sample.weights is None else np.tile(sample.weights, len(members))
        own = None if values is None else values[start:stop].ravel()
        found.append(PairData(Pairs(scores[start:stop].ravel(), outcomes, weights), own))
        start = stop
    return found
