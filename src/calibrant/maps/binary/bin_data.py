"""What a binned map is fitted on: fine cells, and sums by bin, of pairs in memory or of many classes at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ... import _core
from ...arrays import log_odds, row_blocks
from ...metrics.fine_cells import FineCells, cells_of_classes, cells_of_scores
from ...metrics.imax import IMax
from ...passes import Block, reduce
from ...threads import get_threads
from .base import Pairs

__all__ = ["Answer", "BinData", "ClassData", "PairData", "data_of_groups"]

_FEW = 1 << 18  # a group of more scores than this is not brought into memory

_MOST_CELLS = 1 << 13  # of a small group, for I-Max

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

    @cached_property
    def raw_loss(self) -> float:
        """Summed log-loss of the scores as they are."""
        cells = self.cells
        return _core.cell_loss(cells.scores, cells.weights, cells.outcomes)

    @cached_property
    def few_cells(self) -> FineCells:
        """As many cells as I-Max needs: neighbours are merged where there are more, and these are forgotten."""
        if self.cells.count <= _MOST_CELLS:
            return self.cells
        few, _ = self.cells.thinned(_MOST_CELLS), self.raw_loss
        self.__dict__.pop("cells")
        return few

    def forget_cells(self) -> None:
        """Give the memory of the cells back: they are larger than the scores."""
        self.__dict__.pop("cells", None)
        self.__dict__.pop("few_cells", None)

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
        z = self.pairs.log_odds
        values = None if self.values is None else np.ascontiguousarray(self.values, dtype=z.dtype)
        return _core.pair_sums(z, self.pairs.outcomes, self.pairs.weights, values, edges)


class ClassData(BinData):
    """The merged scores of many classes, seen by passes over the logits and never held at once."""

    def __init__(self, sample: Block, columns: NDArray[np.int64], answer: Answer | None = None) -> None:
        self.sample = sample
        self.mask = np.zeros(sample.logits.shape[1], dtype=bool)
        self.mask[columns] = True
        self.answer = answer

    @cached_property
    def few_cells(self) -> FineCells:
        """The cells, which are few for so many scores."""
        return self.cells

    def _cells(self) -> FineCells:
        return cells_of_classes(self.sample, None if self.mask.all() else self.mask)

    def sums(self, edges: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sums by bin, by one pass."""
        return reduce(lambda rows: self._sums(rows, edges), self.sample)

    def _sums(self, sample: Block, edges: NDArray[np.float64]) -> NDArray[np.float64]:
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


def data_of_groups(sample: Block, groups: NDArray[np.int64], answer: Answer | None = None) -> Iterator[list[BinData]]:
    """Yield the data of the groups of classes 0 … G-1 in lists; small groups by a few passes for all of a list."""
    waiting: list[NDArray[np.int64]] = []
    room = max(_FEW, sample.logits.size // (10 if answer is None else 20))
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


def _in_memory(sample: Block, groups: list[NDArray[np.int64]], answer: Answer | None) -> list[BinData]:
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
