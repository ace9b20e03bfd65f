"""What maps share whose answer is a table: edges, and one answer a bin."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy

import numpy as np
from numpy.typing import NDArray

from ... import _core
from ...fits.report import FitReport
from ...passes import Block
from ...threads import get_threads
from .base import BinaryMap, Pairs
from .bin_data import Answer, BinData, PairData, data_of_groups

__all__ = ["TableMap"]

_MOST_COUNTED = 64  # edges; longer tables are searched, one map at a time


class TableMap(BinaryMap):
    """A binary map that answers by the bin of the log-odds; a subclass implements ``_fit_bins(data)``.

    Attributes
    ----------
    edges_ : array of shape (bins - 1,)
        Inner edges, in log-odds; a bin is [lower edge, upper edge).
    representatives_ : array of shape (bins,)
        The answer of each bin.
    """

    edges_: NDArray[np.float64]
    representatives_: NDArray[np.float64]

    def _fit_bins(self, data: BinData) -> FitReport:
        """Set ``edges_`` and ``representatives_``."""
        raise NotImplementedError

    def _prepared(self, batch: Sequence[BinData]) -> Iterable[BinData]:
        """Do for several groups at once what is faster so, before each is fitted."""
        return batch

    def _answer(self, sample: Block, groups: NDArray[np.int64]) -> Answer | None:
        """Return what lends the values that `BinData.sums` adds up; None where none are needed."""
        return None

    def _fit_pairs(self, pairs: Pairs) -> FitReport:
        z = pairs.log_odds
        sample = Block(np.stack([np.zeros_like(z), z], axis=1), pairs.outcomes.astype(np.int64), pairs.weights, 2)
        answer = self._answer(sample, np.array([0, 1]))
        return self._fit_bins(PairData(pairs, None if answer is None else answer(sample.logits)[:, 1]))

    def _fit_groups(self, sample: Block, groups: NDArray[np.int64]) -> list[BinaryMap]:
        maps: list[BinaryMap] = []
        for batch in data_of_groups(sample, groups, self._answer(sample, groups)):
            maps += self._fit_batch(batch)
            batch.clear()  # the next one takes its place in memory
        return maps

    def _fit_batch(self, batch: list[BinData]) -> list[BinaryMap]:
        maps: list[BinaryMap] = []
        blank = self.unfitted()
        for data in self._prepared(batch):
            fitted = copy(blank)
            fitted.classes_ = np.arange(2)
            fitted.fit_report_ = fitted._fit_bins(data)
            maps.append(fitted)
            data.forget_cells()
        return maps

    def _map_scores(self, log_odds: NDArray[np.floating]) -> NDArray[np.floating]:
        flat = np.ascontiguousarray(log_odds).ravel()
        out = np.empty_like(flat)
        _core.bin_look_up(flat, self.edges_, self.representatives_, get_threads(), out)
        return out.reshape(log_odds.shape)

    def _lift(
        self, maps: list[BinaryMap], logits: NDArray[np.floating], groups: NDArray[np.int64], normalize: bool
    ) -> NDArray[np.floating] | None:
        tables = [m for m in maps if isinstance(m, TableMap)]
        if len(tables) > 1 and max(len(m.edges_) for m in tables) > _MOST_COUNTED:
            return None
        edges, table = _stacked(tables)
        if len(tables) > 1:
            edges, table = edges[groups], table[groups]
        logits = np.ascontiguousarray(logits)
        out = np.empty_like(logits)
        _core.bin_lift(logits, edges, table, normalize, get_threads(), out)
        return out


def _stacked(maps: list[TableMap]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Edges and tables of several maps as two arrays: short ones go on at infinity with their last answer."""
    counts = np.array([len(m.edges_) for m in maps])
    short = counts < counts.max()
    edges = np.full((len(maps), counts.max()), np.inf)
    table = np.repeat(np.array([m.representatives_[-1] for m in maps])[:, None], counts.max() + 1, axis=1)
    edges[~short] = [m.edges_ for m in maps if len(m.edges_) == counts.max()]
    table[~short] = [m.representatives_ for m in maps if len(m.edges_) == counts.max()]
    for i in np.flatnonzero(short):
        edges[i, : counts[i]] = maps[i].edges_
        table[i, : counts[i] + 1] = maps[i].representatives_
    return edges, table
