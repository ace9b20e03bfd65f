"""What an isotonic fit of one-hot outcomes needs: sorted positives, and the negatives between neighbours."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import _core
from ...passes import Block, Data, Rows
from ...threads import get_threads
from ...types import Array, Floats, Integers


@dataclass(frozen=True, eq=False)
class Gaps:
    """Group by group: the distinct positives in order, and the negatives from each to the next.

    Positives that differ by rounding alone are one; scores are rounded differently in rows that sum up differently.

    Attributes
    ----------
    bounds, firsts, tops : array of shape (m,)
        Log-odds from which on a score equals the positive or exceeds it, and the least and largest score that are
        this positive; group g owns ``starts[g]:starts[g + 1]``.
    weights : float64 array of shape (m,)
        Of the positives.
    starts : int64 array of shape (G + 1,)
    counts, largest : arrays of shape (m + G,)
        Weight and largest of the negatives below the first positive of a group, then from each (with those that
        equal it) to the next; group g owns ``starts[g] + g : starts[g + 1] + g + 1``. -inf where there are none.
    """

    bounds: Floats
    firsts: Floats
    tops: Floats
    weights: Array
    starts: Integers
    counts: Array
    largest: Floats

    def __add__(self, other: Gaps) -> Gaps:
        """Return the same positives with the negatives of both."""
        counts, largest = self.counts + other.counts, np.maximum(self.largest, other.largest)
        return replace(self, counts=counts, largest=largest)


def gaps_of_groups(data: Data, groups: Integers, resolution: float) -> Gaps:
    """Return the gaps of all groups of classes, by two passes and no sort of all n·K scores.

    ``groups`` holds the group of each class; a class of group -1 is left out. Probabilities within ``resolution`` of
    one another are one score.
    """
    scores, owners, weights = data.reduce(partial(positives, groups=groups)).columns
    known = _distinct(scores, weights, owners, int(groups.max()) + 1, resolution)
    return _negatives(data, groups, known)


def gaps_apart(data: Data, groups: Integers, resolution: float, folds: int) -> tuple[Gaps, Gaps]:
    """Return the gaps of all rows, and of all but the first fold: rows are looked at as often as for one of them."""
    rest, held = data.without(0, folds), data.only(0, folds)
    found = [part.reduce(partial(positives, groups=groups)).columns for part in (rest, held)]
    scores, owners, weights = (np.concatenate(pair) for pair in zip(*found, strict=True))
    outside = np.repeat([1.0, 0.0], [len(part[0]) for part in found])
    count = int(groups.max()) + 1
    known = _distinct(scores, weights, owners, count, resolution)
    part = _distinct(scores, weights, owners, count, resolution, outside)
    without = _negatives(rest, groups, part)
    return _negatives(held, groups, known) + without, without


def positives(block: Block, groups: Integers) -> Rows:
    """One pass: the log-odds of each row's label, the group that the label belongs to, and the row's weight."""
    owners = groups[block.labels]
    scores = block.kept(label_log_odds)
    kept = np.flatnonzero((owners >= 0) & (block.weight_array > 0))
    return Rows(scores[kept], owners[kept], block.weight_array[kept])


def label_log_odds(block: Block) -> Floats:
    """Return the log-odds of each row's label."""
    return _core.label_log_odds(block.logits, block.labels, get_threads())


def _negatives(data: Data, groups: Integers, known: tuple[Any, ...]) -> Gaps:
    """Return the gaps of all negatives; nothing that holds scores is sent where the rows are one block in memory."""
    if data.block is not None:
        return negatives(data.block, groups, known)
    return data.reduce(partial(negatives, groups=groups, known=known))


def negatives(block: Block, groups: Integers, known: tuple[Any, ...]) -> Gaps:
    """One pass: the gaps of this block's negatives between positives that are known."""
    bounds, firsts, tops, totals, starts = known
    found = _core.negatives_between(block.logits, block.labels, block.weights, groups, starts, bounds, get_threads())
    return Gaps(bounds, firsts, tops, totals, starts, *found)


def _distinct(
    scores: Floats,
    weights: Array,
    owners: Integers,
    count: int,
    resolution: float,
    part: Array | None = None,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], Array, Integers]:
    """Distinct scores of each owner in order: bounds, firsts, tops, total weights, where each owner's begin.

    With ``part`` the total weights are those of a part of the rows, the scores still those of all.
    """
    order = np.lexsort((scores, owners))
    scores, owners, weights = scores[order], owners[order], (weights if part is None else weights * part)[order]
    fresh, bounds = _core.merge_close(scores, np.searchsorted(owners, np.arange(count + 1)), resolution)
    begin = np.flatnonzero(fresh)
    if not len(begin):
        return bounds, scores, scores, np.zeros(0), np.zeros(count + 1, dtype=np.int64)
    tops = scores[np.append(begin[1:], len(scores)) - 1]
    totals = np.add.reduceat(weights, begin)
    return bounds[begin], scores[begin], tops, totals, np.searchsorted(owners[begin], np.arange(count + 1))
