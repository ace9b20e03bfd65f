"""The kernel density estimator of calibration error."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays import inner
from ...cells.pairs import Cells, Pairs
from ...errors import InvalidInput
from ...parameters import AnyOf, Number, OneOf, is_one_of
from ...types import Array
from .norms import Norm, check_norm
from .triweight import triweight_sums

_PLACES = 8192
_NARROWEST = 1e-3
_BANDWIDTH = AnyOf(OneOf("reference", "paper"), Number(0.0, np.inf, open_low=True))


def kde(pairs: Pairs, *, norm: Norm = 1, bandwidth: Any = "reference", space: str = "probability") -> float:
    """Kernel density estimate (∫ |x - π(x)|^p f(x) dx)^(1/p) of the calibration error (paper 000, §4.1, Eq. 6).

    f is the density of the scores and π the frequency at x, both smoothed with the triweight kernel
    K(u) = 35/32 (1 - u²)³ on [-1, 1]; the curves are evaluated exactly on a grid (`triweight_sums`).

    Parameters
    ----------
    bandwidth : {"reference", "paper"} or number
        Half the width of the kernel's support, h in K(u/h)/h. "paper" is 1.06·σ·n^(-1/5) with the deviation σ of all
        scores (App. C of paper 000); "reference" is what the authors' code computes, 3·σ₁·(2n)^(-1/5) with the
        deviation σ₁ of the scores of the positives (they pass σ₁·(2n)^(-1/5) to a library that takes it for the
        kernel's standard deviation, a third of its support). A rule never answers less than 1e-3, nor more than 1 in
        probability space.
    space : {"probability", "logit"}
        In probability space the scores are mirrored at 0 and 1. In logit space λ = log p - log(1 - p) (paper 002,
        A6.2) there is no border; scores of exactly 0 and 1 are counted exactly, as bins of their own.

    Notes
    -----
    Differences from the authors' code: their norm 2 has no root (square ours to compare); they bin the data to a grid
    of 2¹⁴ points on [-0.6, 1.6] and use an FFT, where "reference" evaluates exactly on the same grid (the values agree
    to 1e-6); they mirror scores below ½ at 0 only and above ½ at 1 only, which is the same up to a support of ½. Their
    grid misses up to 1e-4 at each end, which for scores that crowd at 1 moves the answer in the fourth digit; the
    other rules integrate over all of [0, 1].
    """
    check_norm(norm)
    if not _BANDWIDTH.accepts(bandwidth):
        raise InvalidInput("bandwidth is not valid", seen=repr(bandwidth), allowed=_BANDWIDTH.allowed)
    if not is_one_of(space, ("probability", "logit")):
        raise InvalidInput("no such space", seen=repr(space), allowed="'probability' or 'logit'")
    cells = pairs.cells
    if space == "probability":
        share, gap = _in_probability_space(cells, bandwidth)
    else:
        share, gap = _in_logit_space(cells, bandwidth)
    if not share.any():
        raise InvalidInput("bandwidth is too narrow: no place of the grid lies near a score", seen=repr(bandwidth))
    if norm == "max":
        return float(gap[share > 1e-6 / _PLACES].max())
    return float((inner(share, gap**norm) / share.sum()) ** (1 / norm))


def bandwidth_of(rule: Any, points: Array, cells: Cells) -> float:
    """Half the support of the kernel by a named rule for cells at these points, or the number itself."""
    if not isinstance(rule, str):
        return float(rule)
    positives = _deviation(points, cells.outcomes)
    if rule == "reference" and positives > 0:
        return max(_NARROWEST, 3 * positives * (2 * cells.rows) ** -0.2)
    return max(_NARROWEST, 1.06 * _deviation(points, cells.weights) * cells.rows**-0.2)


def _deviation(scores: Array, weights: Array) -> float:
    total = weights.sum()
    if total <= 0:
        return 0.0
    mean = inner(weights, scores) / total
    return float(np.sqrt(inner(weights, (scores - mean) ** 2) / total))


def _in_probability_space(cells: Cells, bandwidth: Any) -> tuple[Array, Array]:
    h = min(1.0, bandwidth_of(bandwidth, cells.scores, cells))
    s, w = cells.scores, np.stack([cells.weights, cells.outcomes])
    left, right = s < h, s > 1 - h
    points = np.r_[-s[left][::-1], s, 2 - s[right][::-1]]
    weights = np.hstack([w[:, left][:, ::-1], w, w[:, right][:, ::-1]])
    places, steps = _grid(bandwidth)
    density, positive = triweight_sums(places, points, weights, h) * steps
    return _shares_and_gaps(places, density, positive)


def _grid(bandwidth: Any) -> tuple[Array, Array]:
    """Places in (0, 1) and their share of it: the authors' for "reference", else the middles of equal steps."""
    if not isinstance(bandwidth, str) or bandwidth != "reference":
        return (np.arange(_PLACES) + 0.5) / _PLACES, np.full(_PLACES, 1 / _PLACES)
    places = np.linspace(-0.6, 1.6, 2**14)
    places = places[(places > 0) & (places < 1)]
    steps = np.full(len(places), places[1] - places[0])
    steps[[0, -1]] /= 2
    return places, steps


def _in_logit_space(cells: Cells, bandwidth: Any) -> tuple[Array, Array]:
    ends = (cells.scores <= 0) | (cells.scores >= 1)
    inner = Cells(cells.scores[~ends], cells.weights[~ends], cells.outcomes[~ends], unit=cells.unit)
    at_ends = cells.weights[ends], np.abs(cells.scores[ends] - cells.frequencies[ends])
    if len(inner.scores) == 0:
        return at_ends
    points = np.log(inner.scores) - np.log1p(-inner.scores)
    h = bandwidth_of(bandwidth, points, inner)
    low, high = points[0] - h, points[-1] + h
    count = int(np.clip(32 * (high - low) / h, 1024, 65536))
    places = low + (np.arange(count) + 0.5) * (high - low) / count
    weights = np.stack([inner.weights, inner.outcomes])
    density, positive = triweight_sums(places, points, weights, h) * (high - low) / count
    share, gap = _shares_and_gaps(1 / (1 + np.exp(-places)), density, positive)
    return np.r_[at_ends[0], share], np.r_[at_ends[1], gap]


def _shares_and_gaps(scores: Array, density: Array, positive: Array) -> tuple[Array, Array]:
    """Return the mass at each place and |score - frequency|; where no mass is, the gap is 0."""
    seen = density > 1e-12 * density.max()
    frequency = np.divide(positive, density, out=scores.copy(), where=seen)
    return np.where(seen, density, 0.0), np.abs(scores - np.minimum(frequency, 1.0))
