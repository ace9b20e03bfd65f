"""What an isotonic fit of one-hot outcomes needs: sorted positives, and the negatives between neighbours."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import _core
from ...passes import Block, reduce
from ...threads import get_threads
from .base import Pairs

__all__ = ["Gaps", "gaps_of_groups", "gaps_of_pairs"]


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

    bounds: NDArray[np.floating]
    firsts: NDArray[np.floating]
    tops: NDArray[np.floating]
    weights: NDArray[np.float64]
    starts: NDArray[np.int64]
    counts: NDArray[np.float64]
    largest: NDArray[np.floating]

    def __add__(self, other: Gaps) -> Gaps:
        """Return the same positives with the negatives of both."""
        counts, largest = self.counts + other.counts, np.maximum(self.largest, other.largest)
        return replace(self, counts=counts, largest=largest)


def gaps_of_pairs(pairs: Pairs, resolution: float) -> Gaps:
    """Return the gaps of one set of pairs; probabilities within ``resolution`` of one another are one score."""
    scores, weights = pairs.log_odds, pairs.weight_array
    hit, miss = np.flatnonzero(pairs.outcomes), np.flatnonzero(~pairs.outcomes)
    known = _distinct(scores[hit], weights[hit], np.zeros(len(hit), np.int64), 1, resolution)
    bounds = known[0]
    place = np.searchsorted(bounds, scores[miss], side="right")
    counts = np.bincount(place, weights[miss], minlength=len(bounds) + 1).astype(np.float64)
    largest = np.full(len(bounds) + 1, -np.inf, dtype=scores.dtype)
    np.maximum.at(largest, place, scores[miss])
    return Gaps(*known, counts, largest)


def gaps_of_groups(
    sample: Block, groups: NDArray[np.int64], resolution: float, fold: NDArray[np.int64] | None = None
) -> tuple[Gaps, Gaps | None]:
    """Return the gaps of all groups of classes, and those without the rows of a fold where one is given.

    Two passes over the rows and no sort of all n·K scores; the fold costs no third.
    """
    scores = np.concatenate(
        reduce(lambda rows: [_core.label_log_odds(rows.logits, rows.labels, get_threads())], sample)
    )
    count, weights = int(groups.max()) + 1, sample.weight_array
    if fold is None:
        known = _distinct(scores, weights, groups[sample.labels], count, resolution)
        return reduce(lambda rows: _negatives(rows, groups, known), sample), None
    within = np.zeros(sample.n)
    within[fold] = 1
    known = _distinct(scores, weights, groups[sample.labels], count, resolution)
    rest = _distinct(scores, weights, groups[sample.labels], count, resolution, 1 - within)
    others, held = (replace(sample, weights=weights * part) for part in (1 - within, within))
    without = reduce(lambda rows: _negatives(rows, groups, rest), others)
    whole = reduce(lambda rows: _negatives(rows, groups, known), held) + without
    return whole, without


def _negatives(rows: Block, groups: NDArray[np.int64], known: tuple[Any, ...]) -> Gaps:
    bounds, firsts, tops, totals, starts = known
    found = _core.negatives_between(rows.logits, rows.labels, rows.weights, groups, starts, bounds, get_threads())
    return Gaps(bounds, firsts, tops, totals, starts, *found)


def _distinct(
    scores: NDArray[np.floating],
    weights: NDArray[np.float64],
    owners: NDArray[np.int64],
    count: int,
    resolution: float,
    part: NDArray[np.float64] | None = None,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[np.float64], NDArray[np.int64]]:
    """Distinct scores of each owner in order: bounds, firsts, tops, total weights, where each owner's begin.

    With ``part`` the total weights are those of a part of the rows, the scores still those of all.
    """
    kept = np.flatnonzero(weights > 0)
    scores, owners, weights = scores[kept], owners[kept], (weights if part is None else weights * part)[kept]
    order = np.lexsort((scores, owners))
    scores, owners = scores[order], owners[order]
    fresh, bounds = _core.merge_close(scores, np.searchsorted(owners, np.arange(count + 1)), resolution)
    begin = np.flatnonzero(fresh)
    if not len(begin):
        return bounds, scores, scores, np.zeros(0), np.zeros(count + 1, dtype=np.int64)
    tops = scores[np.append(begin[1:], len(scores)) - 1]
    totals = np.add.reduceat(weights[order], begin)
    return bounds[begin], scores[begin], tops, totals, np.searchsorted(owners[begin], np.arange(count + 1))
