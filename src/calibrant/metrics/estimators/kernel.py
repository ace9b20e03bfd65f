"""Kernel calibration error of the whole vector (SKCE): full calibration, not only its projections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from ...cells.pairs import is_whole
from ...errors import InvalidInput
from ...parameters import AnyOf, Number, OneOf, is_one_of
from ...types import Array
from ..views.forecasts import Forecasts, read

_BLOCK = 1024
_BANDWIDTH = AnyOf(OneOf("median"), Number(0.0, np.inf, open_low=True))


def skce(
    y_true: Any,
    y_prob: Any,
    *,
    estimator: str = "unbiased",
    kernel: str = "gaussian",
    bandwidth: Any = "median",
    sample_weight: Any = None,
    classes: Any = None,
) -> float:
    """Squared kernel calibration error (Widmann, Lindsten and Zachariah 2019).

    The expectation of h = k(p, p')·⟨e_y - p, e_y' - p'⟩ over two independent rows: zero exactly when the whole vector
    is calibrated, which no top-label or class-wise error can tell.

    Parameters
    ----------
    estimator : {"unbiased", "biased", "linear"}
        The mean of h over all pairs of different rows (it may be negative, and is so half of the time for a calibrated
        model); over all pairs (never negative); or over the pairs of rows 1 and 2, 3 and 4, … (linear time; this one
        depends on the order of the rows by its definition, and takes no weights).
    kernel : {"gaussian", "laplacian"}
        exp(-‖p - p'‖²/(2ν²)), one matrix product; or exp(-TV(p, p')/ν) with the total variation distance, as in the
        paper's experiments.
    bandwidth : "median" or number
        ν. The median of the distances between (at most 1,000) rows.

    Examples
    --------
    >>> round(skce([0, 1, 1], [[1, 0], [0, 1], [1, 0]], bandwidth=1.0), 4)
    0.0
    """
    forecasts = read(y_true, y_prob, sample_weight, classes=classes)
    return skce_of(forecasts, estimator=estimator, kernel=kernel, bandwidth=bandwidth)


def skce_of(
    forecasts: Forecasts, *, estimator: str = "unbiased", kernel: str = "gaussian", bandwidth: Any = "median"
) -> float:
    """Squared kernel calibration error of validated forecasts."""
    if not is_one_of(estimator, ("unbiased", "biased", "linear")):
        raise InvalidInput("no such estimator", seen=repr(estimator), allowed="'unbiased', 'biased' or 'linear'")
    if estimator == "linear":
        return _linear(forecasts, kernel, bandwidth)
    w = np.ones(forecasts.n) if forecasts.weights is None else forecasts.weights
    same = w if is_whole(w) else w**2  # what pairs of a row with itself weigh: a whole weight is a number of rows
    total, own = 0.0, 0.0
    for rows, terms in _blocks(forecasts, kernel, bandwidth):
        total += float(w[rows] @ terms @ w)
        own += float(same[rows] @ np.diagonal(terms, rows.start))
    square = float(w.sum()) ** 2
    if estimator == "biased":
        return total / square
    if max(np.count_nonzero(w), square if same is w else 0) < 2:
        raise InvalidInput("the unbiased estimator needs two rows", seen="one")
    return (total - own) / (square - float(same.sum()))


def median_bandwidth(forecasts: Forecasts, kernel: str) -> float:
    """Median distance between rows, of at most 1,000 that are chosen by their values and not by their order."""
    w = np.ones(forecasts.n) if forecasts.weights is None else forecasts.weights
    order = np.lexsort((forecasts.given.squares, forecasts.given.top))
    ends = np.cumsum((w if is_whole(w) else w > 0)[order])
    places = np.arange(0, ends[-1], max(1, -(-ends[-1] // 1000)))
    p = forecasts.vectors()[order[np.searchsorted(ends, places, side="right")]]
    distances = _distances(p, p, kernel)[np.triu_indices(len(p), 1)]
    median = float(np.median(distances)) if len(distances) else 0.0
    return median if median > 0 else 1.0


def _distances(a: Array, b: Array, kernel: str) -> Array:
    if kernel == "laplacian":
        return cdist(a, b, "cityblock") / 2
    if kernel != "gaussian":
        raise InvalidInput("no such kernel", seen=repr(kernel), allowed="'gaussian' or 'laplacian'")
    squares = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1) - 2 * (a @ b.T)
    return np.sqrt(np.maximum(squares, 0))


def _similarity(distance: Array, kernel: str, bandwidth: float) -> Array:
    return np.exp(-distance / bandwidth) if kernel == "laplacian" else np.exp(-0.5 * (distance / bandwidth) ** 2)


def _parts(forecasts: Forecasts, kernel: str, bandwidth: Any) -> tuple[Array, Array, float]:
    if not _BANDWIDTH.accepts(bandwidth):
        raise InvalidInput("bandwidth is not valid", seen=repr(bandwidth), allowed=_BANDWIDTH.allowed)
    p = forecasts.vectors()
    residuals = -p
    residuals[np.arange(forecasts.n), forecasts.labels] += 1
    return p, residuals, median_bandwidth(forecasts, kernel) if bandwidth == "median" else float(bandwidth)


def _blocks(forecasts: Forecasts, kernel: str, bandwidth: Any) -> Iterator[tuple[slice, Array]]:
    """Yield blocks of rows with their terms against all rows."""
    p, residuals, width = _parts(forecasts, kernel, bandwidth)
    for start in range(0, forecasts.n, _BLOCK):
        rows = slice(start, min(start + _BLOCK, forecasts.n))
        similarity = _similarity(_distances(p[rows], p, kernel), kernel, width)
        yield rows, similarity * (residuals[rows] @ residuals.T)


def _linear(forecasts: Forecasts, kernel: str, bandwidth: Any) -> float:
    if forecasts.weights is not None:
        raise InvalidInput("the linear estimator takes no sample_weight", hint="use estimator='unbiased'")
    if forecasts.n < 2:
        raise InvalidInput("the linear estimator needs two rows", seen=str(forecasts.n))
    p, residuals, width = _parts(forecasts, kernel, bandwidth)
    even = 2 * (forecasts.n // 2)
    apart = p[0:even:2] - p[1:even:2]
    distance = np.abs(apart).sum(axis=1) / 2 if kernel == "laplacian" else np.sqrt((apart**2).sum(axis=1))
    inner = np.einsum("ij,ij->i", residuals[0:even:2], residuals[1:even:2])
    return float((_similarity(distance, kernel, width) * inner).mean())
