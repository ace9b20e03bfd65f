"""Class-wise kernel density on a set of labelled points: sums in blocks, the bandwidth, what carries a prediction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from .. import _core
from ..arrays import row_subsample
from ..threads import get_threads

__all__ = ["Support", "best_bandwidth", "class_probabilities", "rule_factor"]

Array = NDArray[np.float64]
_BLOCK = 2**25  # scores held at once: 128 MB in float32, whatever the sizes of both sets
_ZERO_LOG = -745.0  # a kernel sum below exp of this is zero in double precision: only the prior is left
_CLIP = 1e-10


@dataclass(frozen=True, eq=False)
class Support:
    """Points sorted by class, their class borders, weights and place of arrival, and the class frequencies.

    The mean is subtracted before distances are taken as |a|²/2 - <a, b> + |b|²/2: far from the origin that difference
    would lose the digits that matter.
    """

    points: NDArray[np.floating]
    starts: NDArray[np.int64]
    weights: Array | None
    arrival: NDArray[np.int64]
    prior: Array
    centre: NDArray[np.floating]

    @classmethod
    def of(cls, points: NDArray[np.floating], labels: NDArray[np.int64], weights: Array | None, k: int) -> Support:
        """Sort points by class."""
        order = np.argsort(labels, kind="stable")
        share = np.bincount(labels, weights, k).astype(np.float64)
        starts = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=k))]).astype(np.int64)
        centre = points.mean(axis=0, dtype=np.float64).astype(points.dtype)
        sorted_weights = None if weights is None else np.ascontiguousarray(weights[order])
        return cls(
            np.ascontiguousarray(points[order] - centre), starts, sorted_weights, order, share / share.sum(), centre
        )

    @property
    def half_norms(self) -> Array:
        """Half the squared length of each point."""
        return 0.5 * np.einsum("ij,ij->i", self.points, self.points, dtype=np.float64)

    def labels(self) -> NDArray[np.int64]:
        """The class of each sorted point."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


def class_probabilities(
    support: Support, points: NDArray[np.floating], bandwidth: float, skip: NDArray[np.int64] | None = None
) -> Array:
    """P(c | x) = Σ_{j in c} ωⱼ k(x, xⱼ) / Σⱼ ωⱼ k(x, xⱼ), k(x, x') = exp(-|x - x'|² / (2 h²)) (KCal, Eq. 3).

    Sums are taken relative to the largest term, so nothing underflows; a point so far away that every kernel is zero
    in double precision gets the class frequencies, smoothly. ``skip`` names a support point to leave out for each row.
    """
    answers = np.empty((len(points), len(support.prior)))
    norms = support.half_norms
    for rows, products in _blocks(support, points):
        leave = None if skip is None else skip[rows]
        centred = points[rows].astype(np.float64) - support.centre
        own = 0.5 * np.einsum("ij,ij->i", centred, centred)
        answers[rows] = _from_products(support, products, norms, own, bandwidth, leave)
    return answers


def _blocks(support: Support, points: NDArray[np.floating]) -> Iterator[tuple[slice, NDArray[np.floating]]]:
    """Products of a block of rows with the whole support, few enough rows to fit the block."""
    size = max(1, _BLOCK // max(1, len(support.points)))
    for start in range(0, len(points), size):
        rows = slice(start, min(len(points), start + size))
        block = points[rows].astype(support.points.dtype, copy=False) - support.centre
        yield rows, block @ support.points.T


def _from_products(
    support: Support,
    products: NDArray[np.floating],
    norms: Array,
    own: Array,
    bandwidth: float,
    skip: NDArray[np.int64] | None,
) -> Array:
    out = np.empty((len(products), len(support.prior)))
    scale = 1.0 / bandwidth**2
    peaks = _core.class_kernel_sums(products, norms, support.weights, support.starts, skip, scale, get_threads(), out)
    height = np.minimum(peaks - own * scale, 0.0)  # the logarithm of the largest kernel value itself
    floor = np.exp(np.minimum(_ZERO_LOG - np.where(np.isfinite(height), height, -np.inf), 700.0))
    out += floor[:, None] * support.prior
    return out / out.sum(axis=1, keepdims=True)


def best_bandwidth(support: Support, most_rows: int = 2000) -> tuple[float, float]:
    """Bandwidth of the least leave-one-out log-loss, and that loss: a scan for the bracket, then Brent's search.

    On large sets the loss is taken over an even choice of rows, each left out of the whole set.
    """
    n = len(support.points)
    rows = np.arange(n)[row_subsample(n, max(200, min(most_rows, 4 * _BLOCK // max(1, n))))]
    points = support.points[rows]
    products, norms = points @ support.points.T, support.half_norms
    labels = support.labels()[rows]
    weights = np.ones(len(rows)) if support.weights is None else support.weights[rows]

    def loss(log_h: float) -> float:
        p = _from_products(support, products, norms, norms[rows], float(np.exp(log_h)), rows)
        return float(np.average(-np.log(np.maximum(p[np.arange(len(rows)), labels], _CLIP)), weights=weights))

    spread = float(np.sqrt(np.mean(np.var(support.points, axis=0, dtype=np.float64)))) or 1.0
    grid = np.log(spread) + np.linspace(-5.0, 4.0, 28)
    values = [loss(x) for x in grid]
    at = int(np.clip(np.argmin(values), 1, len(grid) - 2))
    found = minimize_scalar(loss, bounds=(grid[at - 1], grid[at + 1]), method="bounded", options={"xatol": 1e-4})
    best = found.x if found.fun <= values[at] else grid[at]
    return float(np.exp(best)), float(min(found.fun, values[at]))


def rule_factor(n: int, dimensions: int) -> float:
    """How a good bandwidth shrinks with n: n^(-1/(d+4))."""
    return float(n) ** (-1.0 / (dimensions + 4))
