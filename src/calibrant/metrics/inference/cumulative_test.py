"""Tests of the cumulative errors: a running sum of residuals is Brownian motion if the scores are true."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from ...cells.pairs import Pairs, is_whole
from ..estimators.cumulative import deviation, ecce, ks
from ..estimators.norms import Norm
from ..estimators.two_bin import averaged_two_bin, two_bin_of
from .clustered import clusters_of

__all__ = ["cumulative_pvalue", "maximum_pvalue", "null_walks", "range_pvalue", "two_bin_pvalue"]

Floats = NDArray[np.float64]
_TERMS = np.arange(60)  # of the series: more than enough on either side of the point where they meet
_TAIL = 3.0  # beyond this many deviations one term of the other series is enough
_BLOCK = 2_000_000  # entries of drawn outcomes at once
SMALL = 11.0  # Σs(1-s) below which the walk strays less than Brownian motion, and tests raised 2.5 to 3.9 %
SMALL_WEIGHTED = 50.0  # the same of fractional weights, a few of which may be most of the sum
MOST_ROWS = 20_000  # in clusters, that are drawn again: more take seconds


def range_pvalue(x: float) -> float:
    """Return P(range of Brownian motion on [0, 1] ≥ x)."""
    if x <= 0:
        return 1.0
    if x > _TAIL:
        k = np.arange(1, 20)
        return float(np.clip(8 * ((-1.0) ** (k - 1) * k * ndtr(-k * x)).sum(), 0, 1))
    half = (_TERMS + 0.5) ** 2
    below = ((8 / x**2 + 2 / (np.pi**2 * half)) * np.exp(-2 * np.pi**2 * half / x**2)).sum()
    return float(np.clip(1 - below, 0, 1))


def maximum_pvalue(x: float) -> float:
    """Return P(largest |Brownian motion| on [0, 1] ≥ x)."""
    if x <= 0:
        return 1.0
    odd = 2 * _TERMS + 1
    if x > _TAIL:
        return float(np.clip(4 * ((-1.0) ** _TERMS[:20] * ndtr(-odd[:20] * x)).sum(), 0, 1))
    below = 4 / np.pi * ((-1.0) ** _TERMS / odd * np.exp(-(odd**2) * np.pi**2 / (8 * x**2))).sum()
    return float(np.clip(1 - below, 0, 1))


def cumulative_pvalue(pairs: Pairs, statistic: str, resamples: int, rng: np.random.Generator) -> tuple[float, float]:
    """Return the p-value of the range ("ecce") or the largest modulus ("ks"), and the smallest that was possible.

    By Brownian motion, which is exact as rows grow; by drawn outcomes where Σs(1-s) < 11 (50 of fractional weights), as
    the sum then has too few steps, and of clusters, whose rows lie apart.
    """
    pairs = pairs.counted()
    if pairs.clusters is not None and pairs.n <= MOST_ROWS:
        seen, null = _clustered(pairs, statistic, resamples, rng)
        return (1 + int((null >= seen * (1 - 1e-9)).sum())) / (1 + resamples), 1 / (1 + resamples)
    spread = float((pairs.weight_array * pairs.scores * (1 - pairs.scores)).sum() * pairs.rows / pairs.total)
    seen = ecce(pairs) if statistic == "ecce" else ks(pairs)
    if spread >= (SMALL if is_whole(pairs.weight_array) else SMALL_WEIGHTED):
        scale = deviation(pairs)
        return (range_pvalue if statistic == "ecce" else maximum_pvalue)(seen / scale), 0.0
    null = np.concatenate([_strayed(walks, statistic) for walks in null_walks(pairs, resamples, rng)])
    return (1 + int((null >= seen * (1 - 1e-9)).sum())) / (1 + resamples), 1 / (1 + resamples)


def _clustered(pairs: Pairs, statistic: str, resamples: int, rng: np.random.Generator) -> tuple[float, Floats]:
    """Return how far the walk strays, in deviations of its end as its own residuals tell them: seen, and drawn."""
    pairs = pairs.take(pairs.order)
    known, ones = clusters_of(pairs), np.ones((pairs.n, 1))
    first = _starts(pairs.scores)

    def strayed(residuals: Floats) -> Floats:
        walks = _summed(residuals, first)
        return _strayed(walks, statistic) / np.sqrt(np.maximum(known.spread(ones, residuals)[:, 0, 0], 1e-300))

    null = [strayed(residuals) for residuals in known.drawn(resamples, rng)]
    return float(strayed(known.residuals[None])[0]), np.concatenate(null)


def _strayed(walks: Floats, statistic: str) -> Floats:
    return np.ptp(walks, axis=1) if statistic == "ecce" else np.abs(walks).max(axis=1)


def null_walks(pairs: Pairs, resamples: int, rng: np.random.Generator) -> list[Floats]:
    """Return running sums of residuals under calibration, in blocks of shape (r, cells + 1).

    Outcomes are drawn from the scores; those of clusters as `clustered` says.
    """
    pairs = pairs.take(pairs.order)
    w, s = pairs.weight_array, pairs.scores
    first = _starts(s)
    if pairs.clusters is not None:
        return [_summed(steps, first) / pairs.total for steps in clusters_of(pairs).drawn(resamples, rng)]
    found = []
    for size in np.diff(np.r_[np.arange(0, resamples, max(1, _BLOCK // pairs.n)), resamples]):
        if pairs.draws is not None:
            rows = np.maximum(np.rint(pairs.draws).astype(np.int64), 1)
            steps = (rng.binomial(rows, s, (size, pairs.n)) / rows - s) * w
        else:
            steps = drawn_residuals(w, s, int(size), rng)
        found.append(_summed(steps, first) / pairs.total)
    return found


def _starts(scores: Floats) -> NDArray[np.int64]:
    """Return where a new score begins, of sorted ones."""
    return np.flatnonzero(np.r_[True, scores[1:] != scores[:-1]])


def _summed(steps: Floats, first: NDArray[np.int64]) -> Floats:
    """Return running sums from 0, read after ties only."""
    sums = np.add.reduceat(steps, first, axis=1)
    return np.concatenate([np.zeros((len(steps), 1)), np.cumsum(sums, axis=1)], axis=1)


def drawn_residuals(w: Floats, s: Floats, size: int, rng: np.random.Generator) -> Floats:
    """Return w(y - s) of outcomes drawn from the scores; a whole weight is a number of rows."""
    if (w == 1).all():
        return (rng.random((size, len(s))) < s) - s
    if (w == np.floor(w)).all():
        return rng.binomial(w.astype(np.int64), s, (size, len(s))) - w * s
    return w * ((rng.random((size, len(s))) < s) - s)


def two_bin_pvalue(pairs: Pairs, norm: Norm, resamples: int, rng: np.random.Generator) -> float:
    """Return the share of drawn outcomes whose two-bin error is at least the one seen."""
    pairs = pairs.counted()
    seen = averaged_two_bin(pairs, norm=norm)
    null = np.concatenate([two_bin_of(pairs.cells.scores, w, norm) for w in null_walks(pairs, resamples, rng)])
    return (1 + int((null >= seen * (1 - 1e-9)).sum())) / (1 + resamples)
