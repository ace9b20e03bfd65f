"""Tests of the cumulative errors: a running sum of residuals is Brownian motion if the scores are true."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import ndtr

from ...cells.pairs import Cells, Pairs
from ...types import Array, Integers
from ..estimators.cumulative import deviation, ecce, ks
from ..estimators.norms import Norm
from ..estimators.two_bin import averaged_two_bin, two_bin_of
from .clustered import clusters_of
from .intervals import drawn_pvalue
from .replicates import prefix

_TERMS = np.arange(60)  # of the series: more than enough on either side of the point where they meet
_TAIL = 3.0  # beyond this many deviations the other series has nothing to add to its first terms but rounding
_BLOCK = 2_000_000  # entries of drawn outcomes at once
SMALL = 11.0  # Σs(1-s) below which the walk strays less than Brownian motion, and tests raised 2.5 to 3.9 %
SMALL_WEIGHTED = 50.0  # the same of fractional weights, a few of which may be most of the sum
PLACES = 300.0  # steps alike from which Brownian motion raises 4.1 % and more: with 100 it raises 3.5 %, with 11 2.2 %
MOST_ROWS = 20_000  # in clusters, or places, that are drawn again: more take seconds


def range_pvalue(x: float) -> float:
    """Return P(range of Brownian motion on [0, 1] ≥ x)."""
    if x <= 0:
        return 1.0
    if x > _TAIL:
        return float(8 * (ndtr(-x) - 2 * ndtr(-2 * x)))
    half = (_TERMS + 0.5) ** 2
    below = ((8 / x**2 + 2 / (np.pi**2 * half)) * np.exp(-2 * np.pi**2 * half / x**2)).sum()
    return float(np.clip(1 - below, 0, 1))


def maximum_pvalue(x: float) -> float:
    """Return P(largest |Brownian motion| on [0, 1] ≥ x)."""
    if x <= 0:
        return 1.0
    if x > _TAIL:
        return float(4 * ndtr(-x))
    odd = 2 * _TERMS + 1
    below = 4 / np.pi * ((-1.0) ** _TERMS / odd * np.exp(-(odd**2) * np.pi**2 / (8 * x**2))).sum()
    return float(np.clip(1 - below, 0, 1))


def cumulative_pvalue(pairs: Pairs, statistic: str, resamples: int, rng: np.random.Generator) -> tuple[float, float]:
    """Return the p-value of the range ("ecce") or the largest modulus ("ks"), and the smallest that was possible.

    By Brownian motion where the walk has 300 places or more, and where that p-value, which is too large with
    fewer, is below what resamples can tell. Else by drawn outcomes: of tied scores, which are a place each; where
    Σs(1-s) < 11 (50 of fractional weights), as the sum then has too few steps; and of clusters, whose rows lie apart.
    """
    pairs = pairs.counted()
    floor = 1 / (1 + resamples)
    if pairs.clusters is not None and pairs.n <= MOST_ROWS:
        return drawn_pvalue(*_clustered(pairs, statistic, resamples, rng)), floor
    spread = float((pairs.weight_array * pairs.scores * (1 - pairs.scores)).sum() * pairs.rows / pairs.total)
    seen = ecce(pairs) if statistic == "ecce" else ks(pairs)
    if spread >= (SMALL if pairs.counts else SMALL_WEIGHTED):
        pvalue = (range_pvalue if statistic == "ecce" else maximum_pvalue)(seen / deviation(pairs))
        if pvalue <= floor or _places(pairs.cells) >= PLACES or len(pairs.cells.scores) > MOST_ROWS:
            return pvalue, 0.0
    null = np.concatenate([_strayed(walks, statistic) for walks in null_walks(pairs, resamples, rng)])
    return drawn_pvalue(seen, null), floor


def _places(cells: Cells) -> float:
    """Return as how many steps of equal variance the walk of cells counts: (Σv)²/Σv², v = ws(1-s)."""
    v = cells.weights * cells.scores * (1 - cells.scores)
    return float(v.sum() ** 2 / (v @ v))


def _clustered(pairs: Pairs, statistic: str, resamples: int, rng: np.random.Generator) -> tuple[float, Array]:
    """Return how far the walk strays, in deviations of its end as its own residuals tell them: seen, and drawn."""
    pairs = pairs.take(pairs.order)
    known, ones = clusters_of(pairs), np.ones((pairs.n, 1))
    first, said = _starts(pairs.scores), pairs.weight_array * pairs.scores

    def strayed(residuals: Array) -> Array:
        walks = prefix(np.add.reduceat(residuals, first, axis=1))
        return _strayed(walks, statistic) / np.sqrt(np.maximum(known.spread(ones, residuals)[:, 0, 0], 1e-300))

    null = [strayed(outcomes - said) for outcomes in known.drawn(resamples, rng)]
    return float(strayed(known.residuals[None])[0]), np.concatenate(null)


def _strayed(walks: Array, statistic: str) -> Array:
    return np.ptp(walks, axis=1) if statistic == "ecce" else np.abs(walks).max(axis=1)


def null_walks(pairs: Pairs, resamples: int, rng: np.random.Generator) -> Iterator[Array]:
    """Yield running sums of residuals under calibration, in blocks of shape (r, cells + 1)."""
    said, total = pairs.cells.weights * pairs.cells.scores, pairs.total
    for outcomes in drawn_outcomes(pairs, resamples, rng):
        yield prefix(outcomes - said) / total


def drawn_sums(pairs: Pairs, design: Array, resamples: int, rng: np.random.Generator) -> Array:
    """Return Σ w(y - s)d of outcomes drawn from the scores, on which alone a row's d depends."""
    own = design[pairs.order[_starts(pairs.scores[pairs.order])]]
    said = pairs.cells.weights * pairs.cells.scores
    return np.concatenate([(outcomes - said) @ own for outcomes in drawn_outcomes(pairs, resamples, rng)])


def drawn_outcomes(pairs: Pairs, resamples: int, rng: np.random.Generator) -> Iterator[Array]:
    """Yield outcomes under calibration, times weights, summed by cell: blocks of shape (r, cells).

    Outcomes are drawn from the scores; those of clusters as `clustered` says. A whole weight is a number of rows.
    """
    cells, pairs = pairs.cells, pairs.take(pairs.order)
    w, s, first = pairs.weight_array, pairs.scores, _starts(pairs.scores)
    if pairs.clusters is not None:
        for outcomes in clusters_of(pairs).drawn(resamples, rng):
            yield np.add.reduceat(outcomes, first, axis=1)
        return
    counts = cells.weights.astype(np.int64)
    tied = np.flatnonzero(counts > 1)
    whole = pairs.counts
    for size in np.diff(np.r_[np.arange(0, resamples, max(1, _BLOCK // len(cells.scores if whole else s))), resamples]):
        if whole:
            drawn = (rng.random((size, len(counts)), dtype=np.float32) < cells.scores).astype(np.float64)
            drawn[:, tied] = rng.binomial(counts[tied], cells.scores[tied], (size, len(tied)))
            yield drawn
        elif pairs.draws is not None:
            rows = np.maximum(np.rint(pairs.draws).astype(np.int64), 1)
            yield np.add.reduceat(rng.binomial(rows, s, (size, pairs.n)) / rows * w, first, axis=1)
        else:
            yield np.add.reduceat((rng.random((size, pairs.n), dtype=np.float32) < s) * w, first, axis=1)


def _starts(scores: Array) -> Integers:
    """Return where a new score begins, of sorted ones."""
    return np.flatnonzero(np.r_[True, scores[1:] != scores[:-1]])


def two_bin_pvalue(pairs: Pairs, norm: Norm, resamples: int, rng: np.random.Generator) -> float:
    """Return the p-value of the two-bin error among those of drawn outcomes."""
    pairs = pairs.counted()
    seen = averaged_two_bin(pairs, norm=norm)
    null = np.concatenate([two_bin_of(pairs.cells.scores, w, norm) for w in null_walks(pairs, resamples, rng)])
    return drawn_pvalue(seen, null)
