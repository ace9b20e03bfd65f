"""Fine cells of many rows, counted by passes over blocks of them: for all groups of classes together, and by fold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..arrays import log_odds
from ..passes import Block, Data, Rows, together
from ..threads import get_threads
from ..types import Array, Integers
from .fine import FineCells, cells_of_scores, cells_within

Groups = Integers
_SECOND = np.array([-1, 0])  # of two classes
_EXACT = (
    1 << 18
)  # scores of a group up to which every distinct score is a cell: beyond, counting is faster than sorting
_HELD = 1 << 22  # scores of all groups that are held for that: 32 MB
_COARSE = 1 << 21  # coarse cells of all groups together: 32 MB of sums
_LEAST_BITS, _MOST_BITS = 9, 16  # of a float32 that name a coarse cell: at least its sign and exponent
_FINE = 1 << 20  # fine cells of all groups for each of two measures, the mass of all scores and of the positives
_SUMS = 80  # bytes for each of them: 2.5 cells, as these are powers of two, with two sums, of all rows and of a fold
_A_MAP = 40_000  # bytes for what is made of the cells of a group, as measured with 1000 of them
_LEAST_FINE, MOST_FINE = 1 << 7, 1 << 15  # of those for one group


def cells_of_groups(data: Data, groups: Groups) -> Iterator[FineCells]:
    """Yield the cells of the log-odds of each group of classes 0 … G-1, merged within a group.

    ``groups`` holds the group of each class; a class of group -1 is left out. Up to 2¹⁸ scores a group and 2²² in all,
    every distinct score is a cell: one pass. Beyond, two passes for all groups together count them: by the upper bits
    of their float32 value (16 for up to 32 groups, fewer for more), then with each of these coarse cells split evenly
    by its share of the group's scores or of its positives. A share s becomes at least s·F cells, F being 2¹⁵ for up to
    32 groups and 2²⁰/G for more, so a fine cell holds about 1/F of a group's scores and of its positives or less: so
    much the mass of a bin may be off, and a score by the width of its cell. Cells depend on the set of weighted rows
    alone: not on their order, their blocks, the number of threads or the scale of the scores.
    """
    if _few(data, groups):
        return _cells_of(data.reduce(partial(class_scores, columns=np.flatnonzero(groups >= 0))), groups)
    split = _split_of(data, groups)
    return split.cells(data.reduce(CellSums(groups, split.bits, split)))


def cells_apart(data: Data, groups: Groups, folds: int) -> tuple[Iterator[FineCells], Iterator[FineCells]]:
    """Return the cells of all rows, and of all but the first fold: rows are looked at as often as for one of them."""
    if _few(data, groups):
        columns = np.flatnonzero(groups >= 0)
        without, held = apart(data, folds, partial(class_scores, columns=columns))
        return _cells_of(without + held, groups), _cells_of(without, groups)
    split = _split_of(data, groups)
    without, held = apart(data, folds, CellSums(groups, split.bits, split))
    return split.cells(without, held), split.cells(without)


class Apart(NamedTuple):
    """Cells of all rows, of all but those of the first fold, and of these.

    ``squares``: of the last cells the sum of squared weights, and that of the positives.
    """

    whole: FineCells
    rest: FineCells
    held: FineCells
    squares: Array


def cells_in_folds(data: Data, folds: int) -> Apart | None:
    """Return the cells of the second of two classes; None where every distinct score is one, or a side has no rows."""
    if _few(data, _SECOND):
        return None
    split = _split_of(data, _SECOND)
    sums = CellSums(_SECOND, split.bits, split)
    rest, held = apart(data, folds, sums, SquaredSums(sums))
    if rest is None or held is None or not rest.any() or not held.any():
        return None
    sides = ([rest, held[0]], [rest], [held[0]])
    whole, without, inside = (next(split.cells(*side)) for side in sides)
    return Apart(whole, without, inside, held[1][held[0][:, 0] > 0])


def apart(
    data: Data, folds: int, function: Callable[[Block], Any], inside: Callable[[Block], Any] | None = None
) -> Any:
    """Return a statistic of all rows but the first fold, and of these: by one pass where rows are not in memory.

    ``inside`` is the statistic of the fold, where that is another.
    """
    functions = (function, inside or function)
    if data.in_memory:
        return [part(0, folds).reduce(own) for part, own in zip((data.without, data.only), functions, strict=True)]
    data.plan(folds)  # once for both
    return together(
        data, [partial(_fold_statistic, inside=i, folds=folds, function=own) for i, own in enumerate(functions)]
    )


def _fold_statistic(data: Data, inside: int, folds: int, function: Callable[[Block], Any]) -> Any:
    return (data.only if inside else data.without)(0, folds).reduce(function)


def _few(data: Data, groups: Groups) -> bool:
    scores = data.n * np.bincount(groups[groups >= 0])
    return bool(scores.max() <= _EXACT and scores.sum() <= _HELD)


def _cells_of(rows: Rows, groups: Groups) -> Iterator[FineCells]:
    columns = np.flatnonzero(groups >= 0)
    scores, labels, weights = rows.columns
    alike = bool((weights == 1).all())
    for g in range(int(groups.max()) + 1):
        own = groups[columns] == g
        outcomes = labels == columns[own][:, None]
        many = None if alike else np.tile(weights, len(outcomes))
        yield cells_of_scores(np.ascontiguousarray(scores[:, own].T).ravel(), outcomes.ravel(), many)


def class_scores(block: Block, columns: Integers) -> Rows:
    """One pass: the log-odds of some classes, labels and weights, for a number of rows that is known to be small."""
    odds = log_odds(block.logits)
    return Rows(odds if len(columns) == odds.shape[1] else odds[:, columns], block.labels, block.weight_array)


@dataclass(frozen=True, eq=False)
class Split:
    """How the coarse cells of all groups are split into fine ones; see cpp/binning.hpp.

    ``coarse`` are the numbers of the coarse cells that hold anything, ``starts`` the first fine cell of each.
    """

    bits: int
    first: NDArray[np.int32]
    shift: NDArray[np.int32]
    coarse: Integers
    starts: Integers
    count: int

    def cells(self, *sums: Array) -> Iterator[FineCells]:
        """Yield the fine cells of each group that hold anything, from the sums of all; several are added up.

        A group at a time: places and bounds of all cells would take many times the room of their sums.
        """
        groups = len(self.first) >> self.bits
        ends = np.append(self.starts, self.count)
        for begin, end in pairwise(np.searchsorted(self.coarse >> self.bits, np.arange(groups + 1))):
            own = slice(ends[begin], ends[end])
            yield self._cells_of(begin, sum((part[own] for part in sums[1:]), sums[0][own]), ends[begin : end + 1])

    def _cells_of(self, begin: int, sums: Array, ends: Integers) -> FineCells:
        """Return the cells of one group: coarse ones from number ``begin`` on, whose fine ones lie at ``ends``."""
        return cells_within(*self._limits(begin, ends), sums[:, 0], sums[:, 1])

    def _limits(self, begin: int, ends: Integers) -> tuple[Array, Array]:
        """Return the least and the largest score of each fine cell of a group."""
        coarse, sizes = self.coarse[begin : begin + len(ends) - 1], np.diff(ends)
        width = np.left_shift(1, self.shift[coarse].astype(np.int64))
        first = ((coarse & ((1 << self.bits) - 1)) << (32 - self.bits)) - ends[:-1] * width
        widths = np.repeat(width, sizes)
        low = np.repeat(first, sizes) + np.arange(ends[0], ends[-1]) * widths
        return _float_of(low), _float_of(low + (widths - 1))

    @cached_property
    def limits_of_one(self) -> tuple[Array, Array]:
        """The least and the largest score of each fine cell, where there is one group."""
        return self._limits(0, np.append(self.starts, self.count))


def _split_of(data: Data, groups: Groups) -> Split:
    """Count coarse cells by one pass, and split each by its larger share of mass and of positives."""
    count = int(groups.max()) + 1
    bits = int(np.clip(np.log2(_COARSE / count), _LEAST_BITS, _MOST_BITS))
    fine = max(_LEAST_FINE, min(MOST_FINE, _FINE // count))
    data.takes((_SUMS * fine + (8 << bits) + _A_MAP) * count, f"cells of {count} groups of classes")
    return split_of_sums(data.reduce(CellSums(groups, bits)), count, bits, fine)


def split_of_sums(flat: Array, count: int, bits: int, fine: int) -> Split:
    """Split the coarse cells of so many groups, whose weights and positives these are, into about ``fine`` each."""
    there = np.flatnonzero(flat[:, 0] > 0)
    own, totals = flat[there], np.zeros((count, 2))
    np.add.at(totals, there >> bits, own)
    share = (own / np.where(totals > 0, totals, 1.0)[there >> bits]).max(axis=1)
    # Shares that rounding alone tells from a power of two are that power: rows add up differently in other orders.
    finer = np.clip(np.ceil(np.log2(np.maximum(share * fine, 1.0)) - 1e-9), 0, 32 - bits).astype(np.int64)
    sizes = np.left_shift(1, finer)
    starts = np.cumsum(sizes) - sizes
    first, shift = np.zeros(len(flat), dtype=np.int32), np.full(len(flat), 32 - bits, dtype=np.int32)
    first[there], shift[there] = starts, 32 - bits - finer
    return Split(bits, first, shift, there, starts, int(sizes.sum()))


@dataclass(frozen=True, eq=False)
class CellSums:
    """One pass: weight and positives of every coarse cell of every group, or of every fine cell.

    Blocks are added to the sums of those before, as sums of many cells are as large as a block.
    """

    groups: Groups
    bits: int
    split: Split | None = None

    def __call__(self, block: Block) -> Array:
        """Return the sums of a block."""
        cells = self._count << self.bits if self.split is None else self.split.count
        return self.add(np.zeros((cells, 2)), block)

    @property
    def _count(self) -> int:
        return int(self.groups.max()) + 1

    def add(self, sums: Array, block: Block) -> Array:
        """Add a block to sums, and return these."""
        first, shift = (None, None) if self.split is None else (self.split.first, self.split.shift)
        _core.cell_sums(
            block.logits,
            block.labels,
            block.weights,
            self.groups,
            self._count,
            self.bits,
            first,
            shift,
            get_threads(),
            sums,
        )
        return sums


@dataclass(frozen=True, eq=False)
class SquaredSums:
    """One pass: what `CellSums` finds, and the same of squared weights, one above the other."""

    sums: CellSums

    def __call__(self, block: Block) -> Array:
        """Return the sums of a block."""
        one = self.sums(block)
        return np.stack([one, one if block.weights is None else self.sums(_squared(block))])

    def add(self, both: Array, block: Block) -> Array:
        """Add a block to sums, and return these."""
        self.sums.add(both[0], block)
        self.sums.add(both[1], _squared(block))
        return both


def _squared(block: Block) -> Block:
    if block.weights is None:
        return block
    with np.errstate(over="ignore", under="ignore"):
        return block.with_weights(block.weights**2)


def _float_of(keys: Integers) -> Array:
    """Undo the kernel's key: the float32 whose reordered bits these are."""
    signed = (keys - (1 << 31)).astype(np.int32)
    bits = np.where(signed < 0, signed ^ np.int32(0x7FFFFFFF), signed).astype(np.int32)
    return bits.view(np.float32).astype(np.float64)
