"""Intervals of means and of shares: figures whose rows are draws of their own, so that no resampling is needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import stdtrit

from ...arrays import inner
from ...cells.moments import Moments, moments_of
from ...cells.pairs import Pairs, standard_error
from ...types import Array
from .intervals import Interval, frequency_interval

# With fewer rows of the rarer outcome than this, the rows cannot tell how skewed their losses are: Hall's interval
# covers in 98 of 100 samples of 300 rows with 6 of them on average, and in 62 of 100 with one.
FEW = 5
Words = tuple[str, str, str]  # said of one row, of several, and of those expected
RARER = ("has the rarer outcome", "have the rarer outcome", "have the rarer outcome")
AGAINST = ("went against its score", "went against their scores", "go against their scores")
# With fewer than this, intervals from a standard error cover about 90 % instead of 95 (docs/evidence/coverage.md).
SHORT = 20


def rate_of(pairs: Pairs) -> float:
    """Return the share of the weight whose event happened."""
    return inner(pairs.weight_array, pairs.outcomes) / pairs.total


def rarer(pairs: Pairs) -> float:
    """Return how many rows have the rarer of the two outcomes; of rows in clusters, how many clusters have some."""
    share = rate_of(pairs)
    if pairs.clusters is None:
        return min(share, 1 - share) * pairs.rows
    seen = (pairs.outcomes > 0 if share <= 0.5 else pairs.outcomes < 1) & (pairs.weight_array > 0)
    return float(len(np.unique(pairs.clusters[seen])))


def too_few(pairs: Pairs) -> bool:
    """Tell whether the rarer outcome is too rare for an interval of what it decides.

    That is so with fewer than five seen, and with fewer than five expected by the scores unless ten were seen: where
    2.5 are expected, the samples that have five are the odd ones, and intervals offered in those covered 76 %.
    """
    seen = rarer(pairs)
    return seen < FEW or (seen < 2 * FEW and _expected(pairs) < FEW)


def _expected(pairs: Pairs) -> float:
    """Return how many rows the scores expect to have what turned out the rarer outcome."""
    share = inner(pairs.weight_array, pairs.scores) / pairs.total
    return (share if rate_of(pairs) <= 0.5 else 1 - share) * pairs.rows


def turned(pairs: Pairs) -> Pairs:
    """Return the rows seen from the likelier side: the event is that a row goes against its score.

    Gaps and losses stay what they are, as a score s above ½ becomes 1 - s and its outcome y becomes 1 - y.
    """
    high = pairs.scores > 0.5
    flipped = (np.where(high, 1 - part, part) for part in (pairs.scores, pairs.outcomes))
    return replace(pairs, **dict(zip(("scores", "outcomes"), flipped, strict=True)))


def few_against(pairs: Pairs) -> str:
    """Say why the rows cannot tell a loss: too few of one outcome, or against their scores; empty where they can.

    Scores near 0 and 1 are the same question as rare events: the loss lies in the few rows that go against them, and
    with one in a hundred such rows intervals covered 41 % of samples of 50 rows and 83 % of 200, with both outcomes
    equally frequent.
    """
    return next((few_words(seen, what) for seen, what in sides(pairs) if too_few(seen)), "")


def sides(pairs: Pairs) -> Iterator[tuple[Pairs, Words]]:
    """Yield the rows as they are and as `turned`, each with what is said where one outcome is too rare."""
    yield pairs, RARER
    yield turned(pairs), AGAINST


def few_words(pairs: Pairs, what: Words = RARER) -> str:
    """Say that the rarer outcome is too rare, and how rare it is."""
    one, many, other = what
    if rarer(pairs) >= FEW:
        return f"the scores expect only {_expected(pairs):.2g} of {pairs.rows:,.0f} rows to {other}"
    if pairs.clusters is not None:
        return f"only {rarer(pairs):.0f} of {len(np.unique(pairs.clusters)):,} clusters {many}"
    return f"only {rarer(pairs):.3g} of {pairs.rows:,.0f} rows {one if rarer(pairs) == 1 else many}"


def short_words(pairs: Pairs) -> str:
    """Say that intervals may be a little short, where fewer than 20 rows, or clusters, have the rarer outcome."""
    few, what = rarer(pairs), "row" if pairs.clusters is None else "cluster"
    who = f"{few:.3g} {what} has" if few == 1 else f"{few:.3g} {what}s have"
    return f"only {who} the rarer outcome: so few may make the interval short, or wide" if few < SHORT else ""


def share_ends(pairs: Pairs, confidence: float) -> tuple[float, float]:
    """Return Clopper and Pearson's limits of how often the event happens: they cover at any share and size."""
    share, rows = _share(pairs)
    low, high = frequency_interval([share * rows], [rows], confidence=confidence, method="clopper_pearson")
    return float(low[0]), float(high[0])


def share_interval(pairs: Pairs, confidence: float) -> Interval:
    """Return how often the event happened, with the interval of `share_ends`."""
    share, rows = _share(pairs)
    error = float(np.sqrt(share * (1 - share) / rows))
    wide = rarer(pairs) < FEW
    return Interval(share, *share_ends(pairs, confidence), confidence, error, 0.0, "clopper-pearson", wide=wide)


def _share(pairs: Pairs) -> tuple[float, float]:
    """Return the share, and as how many rows it counts: clusters as many as give it the same standard error."""
    share, rows = min(1.0, max(0.0, rate_of(pairs))), pairs.rows
    if pairs.clusters is not None and 0 < share < 1:
        error, count = standard_error(pairs.outcomes, pairs)
        rows = min(rows, share * (1 - share) / error**2 if np.isfinite(error) and error > 0 else count)
    return share, rows


def loss_interval(values: Array | Moments, pairs: Pairs, confidence: float) -> Interval:
    """Return a mean loss with its interval, or without one where the rows cannot tell it.

    That is so where the mean is infinite, and where the rarer outcome is too rare, or too few rows go against their
    scores (`few_against`): the losses of those few rows decide the mean, and none may have been seen.
    """
    if isinstance(values, Moments):
        found = moments_interval(values, confidence)
    else:
        found = mean_interval(values, pairs.weights, confidence, pairs.clusters)
    if not np.isfinite(found.estimate):
        return _without(found, "what happened was given probability 0 in some row")
    few = few_against(pairs)
    if few:
        return _without(found, few)
    return replace(found, note=short_words(pairs))


def mean_interval(values: Array, weights: Any, confidence: float, clusters: Any = None) -> Interval:
    """Return the mean of a number a row with its interval; see `moments_interval`. Clusters are added up to be rows."""
    w = None if weights is None else np.asarray(weights, dtype=np.float64)
    found = moments_of(values, w)
    if clusters is None or not np.isfinite(found.mean):
        return moments_interval(found, confidence)
    sums = np.bincount(clusters, (np.ones(len(values)) if w is None else w) * (values - found.mean))
    sums = sums[np.unique(clusters if w is None else clusters[w > 0])] / found.weight
    apart = moments_of(len(sums) * sums, None)
    return moments_interval(replace(apart, shift=found.mean, least=found.least), confidence, "clusters")


def moments_interval(found: Moments, confidence: float, method: str = "student") -> Interval:
    """Return a mean with Student's interval corrected for skewness (Hall 1992).

    With t = (mean - μ)/s and γ the skewness, g(t) = t + γt²/3 + γ²t³/27 + γ/(6n) is close to normal and monotone;
    the ends are those of g, taken back. Losses are skewed to the right, and Student's own interval is too short on
    that side.
    """
    mean, rows = found.mean, float(found.rows)
    if not np.isfinite(mean) or rows <= 1:
        note = "one cluster has no spread" if method == "clusters" else "one row has no spread"
        return Interval(mean, None, None, confidence, np.nan, 0.0, method, note=note)
    spread, skewness = found.spread
    if spread == 0:
        return Interval(mean, mean, mean, confidence, 0.0, 0.0, method)
    reach = float(stdtrit(rows - 1, 0.5 + confidence / 2)) / np.sqrt(rows)
    low, high = (mean - spread * _straightened(side * reach, skewness, rows) for side in (1, -1))
    least = 0.0 if found.least >= 0 else -np.inf
    return Interval(mean, max(least, low), high, confidence, spread / float(np.sqrt(rows)), 0.0, method)


def _straightened(place: float, skewness: float, rows: float) -> float:
    """Return the t with g(t) = place."""
    if abs(skewness) < 1e-9:  # the limit: g is the identity
        return place
    return float((np.cbrt(1 + skewness * (place - skewness / (6 * rows))) - 1) * 3 / skewness)


def _without(found: Interval, note: str) -> Interval:
    error = found.standard_error if np.isfinite(found.estimate) else np.nan
    return Interval(found.estimate, None, None, found.confidence, error, 0.0, found.method, note=note)
