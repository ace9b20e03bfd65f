"""Bounds of calibration errors that hold whatever the shape: from frequencies of bins, and from the overall one."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays import inner
from ...cells.edges import make_edges
from ...cells.pairs import Pairs
from ..estimators.binned import bin_sums
from ..estimators.norms import Norm
from .intervals import Interval, frequency_interval
from .means import share_ends


def largest_error(pairs: Pairs, confidence: float, norm: Norm = 1) -> float:
    """Return a bound of the calibration error that needs no shape: for few rows of one outcome.

    With c the true frequency at score s, E|s - c| ≤ E[s] + E[c], and E[c] is the event's frequency, of which an upper
    limit is known; the same holds for 1 - s and 1 - c. As gaps are at most 1, the root mean square is at most the
    root of that.
    """
    least, most = share_ends(pairs, confidence)
    said = inner(pairs.weight_array, pairs.scores) / pairs.total
    bound = min(1.0, said + most, (1 - said) + (1 - least))
    return bound if norm == 1 else 1.0 if norm == "max" else float(np.sqrt(bound))


def largest_gap_interval(
    pairs: Pairs, estimate: float, confidence: float, bins: Any = 15, edges: Any = "equal_width"
) -> Interval:
    """Return the largest gap among the bins that have rows, with an interval that covers.

    Each bin's frequency has Clopper and Pearson's interval at level 1 - (1 - confidence)/bins, so that all hold at
    once; the ends are the largest of the smallest gaps they allow, and the largest of the largest. The bootstrap does
    not cover here: a bin of two rows that agree has no spread.
    """
    weight, score, outcome = bin_sums(pairs, make_edges(edges, bins, pairs))
    seen = weight > 0
    rows = weight[seen] * pairs.rows / pairs.total
    level = 1 - (1 - confidence) / int(seen.sum())
    happened = np.clip(outcome[seen] / weight[seen], 0, 1) * rows
    low, high = frequency_interval(happened, rows, confidence=level, method="clopper_pearson")
    said = score[seen] / weight[seen]
    least = np.maximum(0.0, np.maximum(said - high, low - said)).max()
    most = np.maximum(np.abs(said - low), np.abs(said - high)).max()
    return Interval(estimate, float(least), float(most), confidence, np.nan, 0.0, "bins", "max", wide=True)
