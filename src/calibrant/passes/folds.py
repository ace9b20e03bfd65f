"""The one rule for folds: a row's fold comes from a hash of its content.

So folds know neither the order of the rows nor how they were cut into blocks, and a row given twice is in one fold like
a row of weight two. Two things keep folds even:

- Up to 4,096 rows the keys (`row_keys`) are sorted within each class and dealt out in turn, so that every class is
  spread over all folds. With more rows a key modulo the number of folds does.
- Where scores take few values, one content may be a large part of the rows. Where so many contents share a key, or one
  of several that share it has so many rows (more than four and more than one in a thousand), all digits of the scores
  tell them apart (`fine_keys`). Rows whose content is as frequent as that by itself are told apart by their number
  among their equals, as if that were content. A content alone with its key goes by it, whatever its precision.

Up to 4,096 rows those of the same scores are in one fold whatever their labels, or, where the scores are as frequent as
that, told apart by number. Were the rows of each label in a fold of their own, a map would be judged where it has
learnt from the other labels alone: of 300 rounded scores of an event a step function's held-out loss was .03 too high.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..threads import get_threads
from ..types import Array, Integers, Mask
from .block import Block
from .statistic import Rows

if TYPE_CHECKING:
    from .data import Data

Keys = NDArray[np.uint64]
_DEALT = 4096  # rows up to which folds are dealt class by class: there chance would leave them uneven
_ALIKE = 4  # rows of one content that stay together whatever their share
_LARGE_SHARE = 1000  # contents of more than one row in so many are values that scores take (k-NN), not copies of a row
_MOST_APART = 1 << 18  # contents that are counted one by one: 8 MB of keys and counts
_BUCKETS = 4096  # contents are counted in so many cells before those that may be large are counted one by one
_NONE = np.zeros(0, np.uint64)
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ over the golden ratio: multiples are spread evenly


def row_keys(block: Block) -> Keys:
    """Return a hash of each row's label and scores, the same for any shift of its logits and for any precision."""
    return _keys(block, fine=False)


def fine_keys(block: Block) -> Keys:
    """Return a hash of each row's key and of all digits of its scores."""
    return _keys(block, fine=True)


def score_keys(block: Block) -> Keys:
    """Return a hash of all digits of each row's scores, whatever its label."""
    return _keys(replace(block, labels=np.zeros_like(block.labels)), fine=True)


def _keys(block: Block, *, fine: bool) -> Keys:
    relative = block.logits.shape[1] == block.n_classes
    return _core.row_keys(block.logits, block.labels, relative, fine, get_threads())


@dataclass(frozen=True, eq=False)
class FoldPlan:
    """What turns keys into folds."""

    count: int  # number of folds
    crowded: Keys  # keys, in order, of which there are so many that fine keys take their place
    frequent: Keys  # keys in use, in order, of the contents whose rows are told apart by their number
    joined: Keys = field(default_factory=lambda: _NONE)  # score keys, in order, that rows of several labels go by
    dealt: Keys | None = None  # keys, in order, that were dealt out; None where folds are keys modulo the count
    fold_of: Integers | None = None  # the fold of each key in ``dealt``
    # By partition of a cluster, how many rows of each frequent content earlier partitions have.
    before: Mapping[int, Integers] = field(default_factory=dict)

    @property
    def by_key(self) -> bool:
        """Whether a row's key alone says its fold."""
        return self.dealt is None and not len(self.crowded) and not len(self.frequent)

    def start(self) -> Callable[[Block], Integers]:
        """Return a function from the blocks of one pass to the folds of their rows."""
        seen: dict[int, Integers] = {}

        def folds(block: Block) -> Integers:
            keys = block.kept(row_keys)
            if len(self.crowded):
                keys = _finer(keys, block.kept(fine_keys), self.crowded)
            if block.part not in seen:
                seen[block.part] = self.before.get(block.part, np.zeros(len(self.frequent), dtype=np.int64)).copy()
            keys = _numbered(keys, block.weight_array, self.frequent, seen[block.part])
            return self._of_keys(_joined(keys, block.kept(score_keys), self.joined) if len(self.joined) else keys)

        return folds

    def of_rows(self, keys: Keys, fine: Keys, scores: Keys, weights: Array) -> Integers:
        """Return the folds of all rows, where their keys, fine keys, score keys and weights are at hand."""
        finer = _finer(keys, fine, self.crowded)
        numbered = _numbered(finer, weights, self.frequent, np.zeros(len(self.frequent), dtype=np.int64))
        return self._of_keys(_joined(numbered, scores, self.joined))

    def _of_keys(self, keys: Keys) -> Integers:
        if self.dealt is None or self.fold_of is None:
            return (keys % np.uint64(self.count)).astype(np.int64)
        place = np.minimum(np.searchsorted(self.dealt, keys), len(self.dealt) - 1)
        return self.fold_of[place]


def fold_plan(data: Data, count: int) -> FoldPlan:
    """Return the plan of so many folds for these rows; one pass, or two where there are many rows."""
    limit = alike_limit(data.n)
    if data.n <= _DEALT:
        keys, fine, scores, labels, weights = data.reduce(_all_keys).columns
        return _dealt_plan(keys, fine, scores, labels, weights, count, limit)
    known = data.known
    cells = data.reduce(cell_counts) if known is None or known.cells is None else known.cells
    heavy = np.flatnonzero(cells > limit)
    if not len(heavy):
        return FoldPlan(count, _NONE, _NONE)
    found = data.reduce(partial(_keys_in_cells, cells=heavy))
    often = _times(found.fine, found.counts) > limit
    crowded, frequent = _told_apart(found.keys, found.fine, often, limit)
    keys = _finer(found.keys, found.fine, crowded)
    there = np.isin(keys, frequent)
    parts, part = np.unique(found.parts[there], return_inverse=True)
    counts = np.zeros((len(parts), len(frequent)), dtype=np.int64)
    np.add.at(counts, (part, np.searchsorted(frequent, keys[there])), found.counts[there])
    before = np.cumsum(counts, axis=0) - counts
    by_part = dict(zip(parts.tolist(), before, strict=True))
    return FoldPlan(count, crowded, frequent, before=by_part)


def _told_apart(keys: Keys, fine: Keys, often: Mask, limit: int) -> tuple[Keys, Keys]:
    """Return which keys are crowded, and the keys of frequent contents that are in use then, both in order.

    Contents count, not rows, so that rows given twice are told apart where rows of weight two are.
    """
    contents, first = np.unique(fine, return_index=True)
    own, frequent = keys[first], often[first]
    shared, of, alike = np.unique(own, return_inverse=True, return_counts=True)
    crowded = np.union1d(shared[alike > limit], own[frequent & (alike[of] > 1)])
    return crowded, np.unique(_finer(own, contents, crowded)[frequent])


def _times(keys: Keys, counts: Integers | None = None) -> NDArray[Any]:
    """Return how many rows have the key of each."""
    place = np.unique(keys, return_inverse=True)[1]
    return np.bincount(place, counts)[place]


def alike_limit(rows: int) -> int:
    """Return how many of so many rows may share a key before their fine keys take its place."""
    return max(_ALIKE, rows // _LARGE_SHARE)


def counted_keys(block: Block) -> Keys:
    """Return the keys of the rows that have a weight: the others are as good as absent."""
    keys = block.kept(row_keys)
    return keys if block.weights is None else keys[block.weights > 0]


def _all_keys(block: Block) -> Rows:
    counted = block.weight_array > 0
    columns = row_keys(block), fine_keys(block), score_keys(block), block.labels, block.weight_array
    return Rows(*(column[counted] for column in columns))


def cell_counts(block: Block) -> Integers:
    """One pass: the rows by cell of their keys."""
    return np.bincount((counted_keys(block) % np.uint64(_BUCKETS)).astype(np.int64), minlength=_BUCKETS)


@dataclass(frozen=True, eq=False)
class KeyCounts:
    """How many rows have a fine key, by partition, with its key; ``coarse`` where keys took the place of fine ones."""

    keys: Keys
    fine: Keys
    parts: Integers
    counts: Integers
    coarse: bool = False

    @classmethod
    def of(cls, keys: Keys, fine: Keys, parts: Integers, counts: Integers, *, coarse: bool) -> KeyCounts:
        """Add up the counts of the same content in the same partition; by keys alone where these are too many."""
        fine = keys if coarse else fine
        order = np.lexsort((parts, fine))
        keys, fine, parts, counts = keys[order], fine[order], parts[order], counts[order]
        first = np.flatnonzero(np.append(True, (fine[1:] != fine[:-1]) | (parts[1:] != parts[:-1]))[: len(fine)])
        total = np.add.reduceat(counts, first) if len(first) else counts
        keys, fine, parts = keys[first], fine[first], parts[first]
        if len(first) > _MOST_APART and not coarse:
            return cls.of(keys, fine, parts, total, coarse=True)
        return cls(keys, fine, parts, total, coarse)

    def __add__(self, other: KeyCounts) -> KeyCounts:
        columns = ("keys", "fine", "parts", "counts")
        both = (np.concatenate([getattr(self, name), getattr(other, name)]) for name in columns)
        return KeyCounts.of(*both, coarse=self.coarse or other.coarse)


def _keys_in_cells(block: Block, cells: Integers) -> KeyCounts:
    keys = block.kept(row_keys)
    there = np.isin((keys % np.uint64(_BUCKETS)).astype(np.int64), cells) & (block.weight_array > 0)
    some = block.take(np.flatnonzero(there))
    alone = np.ones(some.n, dtype=np.int64)
    return KeyCounts.of(keys[there], fine_keys(some), block.part * alone, alone, coarse=False)


def _dealt_plan(
    keys: Keys, fine: Keys, scores: Keys, labels: Integers, weights: Array, count: int, limit: int
) -> FoldPlan:
    often = _times(scores) > limit
    crowded, frequent = _told_apart(keys, fine, often, limit)
    keys = _numbered(_finer(keys, fine, crowded), weights, frequent, np.zeros(len(frequent), dtype=np.int64))
    joined = np.unique(scores[~often & (_times(scores) > _times(fine))])
    dealt, place = np.unique(_joined(keys, scores, joined), return_inverse=True)
    lowest = np.full(len(dealt), labels.max(initial=0))
    np.minimum.at(lowest, place, labels)
    turn = np.empty(len(dealt), dtype=np.int64)
    turn[np.lexsort((dealt, lowest))] = np.arange(len(dealt))
    return FoldPlan(count, crowded, frequent, joined, dealt, turn % count)


def _joined(keys: Keys, scores: Keys, joined: Keys) -> Keys:
    """Return the keys, those of the scores in place of what rows of several labels share."""
    return np.where(np.isin(scores, joined), scores, keys)


def _finer(keys: Keys, fine: Keys, crowded: Keys) -> Keys:
    """Return the keys, the fine ones in place of those that are crowded."""
    return np.where(np.isin(keys, crowded), fine, keys)


def _numbered(keys: Keys, weights: Array, frequent: Keys, seen: Integers) -> Keys:
    """Return the keys, but each row of a frequent content has one of its own.

    ``seen`` counts the rows of each that earlier blocks have, and is updated.
    """
    if not len(frequent):
        return keys
    place = np.minimum(np.searchsorted(frequent, keys), len(frequent) - 1)
    rows = np.flatnonzero((frequent[place] == keys) & (weights > 0))
    if not len(rows):
        return keys
    rows = rows[np.lexsort((weights[rows], place[rows]))]  # by weight: equal rows may weigh differently
    content = place[rows]
    first = np.searchsorted(content, content)
    number = np.arange(len(rows)) - first + seen[content]
    seen += np.bincount(content, minlength=len(frequent))
    with np.errstate(over="ignore"):
        mixed = (keys[rows] ^ (number.astype(np.uint64) + np.uint64(1)) * _ODD) * _ODD
    keys = keys.copy()
    keys[rows] = mixed ^ (mixed >> np.uint64(29))
    return keys
