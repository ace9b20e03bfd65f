"""The one rule for folds: a row's fold comes from a hash of its content.

So folds know neither the order of the rows nor how they were cut into blocks, and a row given twice is in one fold like
a row of weight two. Two things keep folds even:

- Up to 4,096 rows the keys (`row_keys`) are sorted within each class and dealt out in turn, so that every class is
  spread over all folds. With more rows a key modulo the number of folds does.
- Where scores take few values, one content may be a large part of the rows. The rows of a content that has more than
  four rows and more than one in a thousand are told apart by their number among their equals, as if that were content.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..threads import get_threads
from ..types import Array, Integers
from .block import Block
from .statistic import Rows

if TYPE_CHECKING:
    from .data import Data

__all__ = ["FoldPlan", "Keys", "cell_counts", "counted_keys", "fold_plan", "row_keys"]

Keys = NDArray[np.uint64]
_DEALT = 4096  # rows up to which folds are dealt class by class: there chance would leave them uneven
_ALIKE = 4  # rows of one content that stay together whatever their share
_LARGE_SHARE = 1000  # contents of more than one row in so many are values that scores take (k-NN), not copies of a row
_BUCKETS = 4096  # contents are counted in so many cells before those that may be large are counted one by one
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ over the golden ratio: multiples are spread evenly


def row_keys(block: Block) -> Keys:
    """Return a hash of each row's label and scores, the same for any shift of its logits."""
    relative = block.logits.shape[1] == block.n_classes
    return _core.row_keys(block.logits, block.labels, relative, get_threads())


@dataclass(frozen=True, eq=False)
class FoldPlan:
    """What turns keys into folds.

    Attributes
    ----------
    count : int
        Number of folds.
    frequent : uint64 array
        Keys, in order, of the contents whose rows are told apart.
    dealt : uint64 array or None
        Keys, in order, that were dealt out; None where folds are keys modulo the count.
    fold_of : int64 array or None
        The fold of each key in ``dealt``.
    before : mapping of int to int64 array
        By partition of a cluster, how many rows of each frequent content earlier partitions have.
    """

    count: int
    frequent: Keys
    dealt: Keys | None = None
    fold_of: Integers | None = None
    before: Mapping[int, Integers] = field(default_factory=dict)

    def start(self) -> Callable[[Block], Integers]:
        """Return a function from the blocks of one pass to the folds of their rows."""
        seen: dict[int, Integers] = {}

        def folds(block: Block) -> Integers:
            keys = block.kept(row_keys).copy()
            if block.part not in seen:
                seen[block.part] = self.before.get(block.part, np.zeros(len(self.frequent), dtype=np.int64)).copy()
            _tell_apart(keys, block.weight_array, self.frequent, seen[block.part])
            return self._of_keys(keys)

        return folds

    def of_rows(self, keys: Keys, weights: Array) -> Integers:
        """Return the folds of all rows, where their keys and weights are at hand."""
        apart = keys.copy()
        _tell_apart(apart, weights, self.frequent, np.zeros(len(self.frequent), dtype=np.int64))
        return self._of_keys(apart)

    def _of_keys(self, keys: Keys) -> Integers:
        if self.dealt is None or self.fold_of is None:
            return (keys % np.uint64(self.count)).astype(np.int64)
        place = np.minimum(np.searchsorted(self.dealt, keys), len(self.dealt) - 1)
        return self.fold_of[place]


def fold_plan(data: Data, count: int) -> FoldPlan:
    """Return the plan of so many folds for these rows; one pass, or two where there are many rows."""
    if data.n <= _DEALT:
        keys, labels, weights = data.reduce(_all_keys).columns
        return _dealt_plan(keys, labels, weights, count)
    known = data.known
    cells = data.reduce(cell_counts) if known is None or known.cells is None else known.cells
    limit = max(_ALIKE, data.n // _LARGE_SHARE)
    heavy = np.flatnonzero(cells > limit)
    if not len(heavy):
        return FoldPlan(count, np.zeros(0, np.uint64))
    found = data.reduce(partial(_keys_in_cells, cells=heavy))
    distinct, place = np.unique(found.keys, return_inverse=True)
    frequent = np.bincount(place, found.counts) > limit
    order = np.cumsum(frequent) - 1
    parts = np.unique(found.parts)
    counts = np.zeros((len(parts), int(frequent.sum())), dtype=np.int64)
    chosen = frequent[place]
    np.add.at(counts, (np.searchsorted(parts, found.parts[chosen]), order[place[chosen]]), found.counts[chosen])
    before = np.cumsum(counts, axis=0) - counts
    return FoldPlan(count, distinct[frequent], before=dict(zip(parts.tolist(), before, strict=True)))


def counted_keys(block: Block) -> Keys:
    """Return the keys of the rows that have a weight: the others are as good as absent."""
    keys = block.kept(row_keys)
    return keys if block.weights is None else keys[block.weights > 0]


def _all_keys(block: Block) -> Rows:
    weights = block.weight_array
    return Rows(counted_keys(block), block.labels[weights > 0], weights[weights > 0])


def cell_counts(block: Block) -> Integers:
    """One pass: the rows by cell of their keys."""
    return np.bincount((counted_keys(block) % np.uint64(_BUCKETS)).astype(np.int64), minlength=_BUCKETS)


@dataclass(frozen=True, eq=False)
class KeyCounts:
    """How many rows have a key, by key and partition."""

    keys: Keys
    parts: Integers
    counts: Integers

    def __add__(self, other: KeyCounts) -> KeyCounts:
        keys = np.concatenate([self.keys, other.keys])
        parts = np.concatenate([self.parts, other.parts])
        counts = np.concatenate([self.counts, other.counts])
        order = np.lexsort((parts, keys))
        keys, parts, counts = keys[order], parts[order], counts[order]
        first = np.flatnonzero(np.append(True, (keys[1:] != keys[:-1]) | (parts[1:] != parts[:-1]))[: len(keys)])
        total = np.add.reduceat(counts, first) if len(first) else counts
        return KeyCounts(keys[first], parts[first], total)


def _keys_in_cells(block: Block, cells: Integers) -> KeyCounts:
    keys = counted_keys(block)
    own, counts = np.unique(keys[np.isin((keys % np.uint64(_BUCKETS)).astype(np.int64), cells)], return_counts=True)
    return KeyCounts(own, np.full(len(own), block.part), counts)


def _dealt_plan(keys: Keys, labels: Integers, weights: Array, count: int) -> FoldPlan:
    distinct, counts = np.unique(keys, return_counts=True)
    frequent = distinct[counts > max(_ALIKE, len(keys) // _LARGE_SHARE)]
    keys = keys.copy()
    _tell_apart(keys, weights, frequent, np.zeros(len(frequent), dtype=np.int64))
    dealt, first = np.unique(keys, return_index=True)
    turn = np.empty(len(dealt), dtype=np.int64)
    turn[np.lexsort((dealt, labels[first]))] = np.arange(len(dealt))
    return FoldPlan(count, frequent, dealt, turn % count)


def _tell_apart(keys: Keys, weights: Array, frequent: Keys, seen: Integers) -> None:
    """Give each row of a frequent content a key of its own; ``seen`` counts those of earlier blocks, and is updated."""
    if not len(frequent):
        return
    place = np.minimum(np.searchsorted(frequent, keys), len(frequent) - 1)
    rows = np.flatnonzero((frequent[place] == keys) & (weights > 0))
    if not len(rows):
        return
    rows = rows[np.lexsort((weights[rows], place[rows]))]  # by weight: equal rows may weigh differently
    content = place[rows]
    first = np.searchsorted(content, content)
    number = np.arange(len(rows)) - first + seen[content]
    with np.errstate(over="ignore"):
        mixed = (keys[rows] ^ (number.astype(np.uint64) + np.uint64(1)) * _ODD) * _ODD
    keys[rows] = mixed ^ (mixed >> np.uint64(29))
    seen += np.bincount(content, minlength=len(frequent))
