"""Intervals of means and of shares: figures whose rows are independent draws, so that no resampling is needed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from ...arrays import inner
from ...cells.pairs import Pairs, rows_of
from .intervals import Interval, frequency_interval

__all__ = ["FEW", "few_words", "loss_interval", "mean_interval", "rarer", "rate_of", "share_interval"]

Floats = NDArray[np.float64]
# With fewer rows of the rarer outcome than this, the rows cannot tell how skewed their losses are: Hall's interval
# covers in 98 of 100 samples of 300 rows with 6 of them on average, and in 62 of 100 with one.
FEW = 5


def rate_of(pairs: Pairs) -> float:
    """Return the share of the weight whose event happened."""
    return inner(pairs.weight_array, pairs.outcomes) / pairs.total


def rarer(pairs: Pairs) -> float:
    """Return how many rows have the rarer of the two outcomes."""
    share = rate_of(pairs)
    return min(share, 1 - share) * pairs.rows


def few_words(pairs: Pairs) -> str:
    """Say that the rarer outcome is too rare, and how rare it is."""
    return f"only {rarer(pairs):.3g} of {pairs.rows:,.0f} rows have the rarer outcome"


def share_interval(share: float, rows: float, confidence: float) -> Interval:
    """Return a share of so many rows with Clopper and Pearson's interval: it covers at any share and size."""
    share = min(1.0, max(0.0, share))
    low, high = frequency_interval([share * rows], [rows], confidence=confidence, method="clopper_pearson")
    error = float(np.sqrt(share * (1 - share) / rows))
    return Interval(share, float(low[0]), float(high[0]), confidence, error, 0.0, "clopper-pearson")


def loss_interval(values: Floats, pairs: Pairs, confidence: float) -> Interval:
    """Return a mean loss with its interval, or without one where the rows cannot tell it.

    That is so where the mean is infinite, and where fewer than five rows have the rarer outcome: the losses of those
    few rows decide the mean, and none may have been seen.
    """
    found = mean_interval(values, pairs.weights, confidence)
    if not np.isfinite(found.estimate):
        return _without(found, "what happened was given probability 0 in some row")
    if rarer(pairs) < FEW:
        return _without(found, few_words(pairs))
    return found


def mean_interval(values: Floats, weights: Any, confidence: float) -> Interval:
    """Return a mean with Student's interval corrected for skewness (Hall 1992).

    With t = (mean - μ)/s and γ the skewness, g(t) = t + γt²/3 + γ²t³/27 + γ/(6n) is close to normal and monotone;
    the ends are those of g, taken back. Losses are skewed to the right, and Student's own interval is too short on
    that side.
    """
    w = np.ones(len(values)) if weights is None else np.asarray(weights, dtype=np.float64)
    x, w = values[w > 0], w[w > 0]
    rows, share = rows_of(len(x), None if weights is None else w), w / w.sum()
    mean = float(share @ x)
    if not np.isfinite(mean) or rows <= 1:
        return Interval(mean, None, None, confidence, np.nan, 0.0, "student", note="one row has no spread")
    spread = float(np.sqrt(share @ (x - mean) ** 2 * rows / (rows - 1)))
    if spread == 0:
        return Interval(mean, mean, mean, confidence, 0.0, 0.0, "student")
    skewness = float(share @ ((x - mean) / spread) ** 3)
    reach = float(stdtrit(rows - 1, 0.5 + confidence / 2)) / np.sqrt(rows)
    low, high = (mean - spread * _straightened(side * reach, skewness, rows) for side in (1, -1))
    least = 0.0 if x.min() >= 0 else -np.inf
    return Interval(mean, max(least, low), high, confidence, spread / np.sqrt(rows), 0.0, "student")


def _straightened(place: float, skewness: float, rows: float) -> float:
    """Return the t with g(t) = place."""
    if abs(skewness) < 1e-9:  # the limit: g is the identity
        return place
    return float((np.cbrt(1 + skewness * (place - skewness / (6 * rows))) - 1) * 3 / skewness)


def _without(found: Interval, note: str) -> Interval:
    error = found.standard_error if np.isfinite(found.estimate) else np.nan
    return Interval(found.estimate, None, None, found.confidence, error, 0.0, found.method, note=note)
