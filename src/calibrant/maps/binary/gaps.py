"""What an isotonic fit of one-hot outcomes needs: sorted positives, and the negatives between neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import _core
from ...passes import Sample, reduce
from ...threads import get_threads
from .base import Pairs

__all__ = ["Gaps", "gaps_of_groups", "gaps_of_pairs"]


@dataclass(frozen=True, eq=False)
class Gaps:
    """Group by group: the distinct positives in order, and the negatives from each to the next.

    Attributes
    ----------
    positives : array of shape (m,)
        Log-odds; group g owns ``starts[g]:starts[g + 1]``.
    weights : float64 array of shape (m,)
        Of the positives.
    starts : int64 array of shape (G + 1,)
    counts, largest : arrays of shape (m + G,)
        Weight and largest of the negatives below the first positive of a group, then from each (with those that
        equal it) to the next; group g owns ``starts[g] + g : starts[g + 1] + g + 1``. -inf where there are none.
    """

    positives: NDArray[np.floating]
    weights: NDArray[np.float64]
    starts: NDArray[np.int64]
    counts: NDArray[np.float64]
    largest: NDArray[np.floating]

    def __add__(self, other: Gaps) -> Gaps:
        """Return the same positives with the negatives of both."""
        counts, largest = self.counts + other.counts, np.maximum(self.largest, other.largest)
        return Gaps(self.positives, self.weights, self.starts, counts, largest)


def gaps_of_pairs(pairs: Pairs, limit: float) -> Gaps:
    """Return the gaps of one set of pairs; log-odds beyond ±limit count as ±limit."""
    scores, weights = np.clip(pairs.log_odds, -limit, limit), pairs.weight_array
    positive = pairs.outcomes
    values, totals, starts = _distinct(scores[positive], weights[positive], np.zeros(positive.sum(), dtype=np.int64), 1)
    place = np.searchsorted(values, scores[~positive], side="right")
    counts = np.bincount(place, weights[~positive], minlength=len(values) + 1).astype(np.float64)
    largest = np.full(len(values) + 1, -np.inf, dtype=scores.dtype)
    np.maximum.at(largest, place, scores[~positive])
    return Gaps(values, totals, starts, counts, largest)


def gaps_of_groups(sample: Sample, groups: NDArray[np.int64], limit: float) -> Gaps:
    """Return the gaps of all groups of classes, by two passes over the rows and no sort of all n·K scores."""
    scores, labels, weights = zip(*reduce(_label_scores, sample), strict=True)
    values = np.clip(np.concatenate(scores), -limit, limit)
    owners, count = groups[np.concatenate(labels)], int(groups.max()) + 1
    positives, totals, starts = _distinct(values, np.concatenate(weights), owners, count)

    def negatives(rows: Sample) -> Gaps:
        found = _core.negatives_between(
            rows.logits, rows.labels, rows.weights, groups, starts, positives, limit, get_threads()
        )
        return Gaps(positives, totals, starts, *found)

    return reduce(negatives, sample)


def _label_scores(rows: Sample) -> list[tuple[NDArray[np.floating], NDArray[np.int64], NDArray[np.float64]]]:
    """Log-odds, label and weight of each row; lists of them add up by joining."""
    scores = _core.label_log_odds(rows.logits, rows.labels, get_threads())
    if rows.weights is None:
        return [(scores, rows.labels, rows.weight_array)]
    kept = rows.weights > 0
    return [(scores[kept], rows.labels[kept], rows.weights[kept])]


def _distinct(
    scores: NDArray[np.floating], weights: NDArray[np.float64], owners: NDArray[np.int64], count: int
) -> tuple[NDArray[np.floating], NDArray[np.float64], NDArray[np.int64]]:
    """Sorted distinct scores of each owner, their total weights, and where each owner's begin."""
    order = np.lexsort((scores, owners))
    scores, owners = scores[order], owners[order]
    fresh = np.ones(len(scores), dtype=bool)
    fresh[1:] = (scores[1:] != scores[:-1]) | (owners[1:] != owners[:-1])
    begin = np.flatnonzero(fresh)
    totals = np.add.reduceat(weights[order], begin) if len(begin) else np.zeros(0)
    return scores[begin], totals, np.searchsorted(owners[begin], np.arange(count + 1))
