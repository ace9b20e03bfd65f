"""Sums of triweight kernels at many places in O(n + places), exactly, by sliding polynomial moments."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["triweight_sums"]

Array = NDArray[np.float64]


def triweight_sums(places: Array, points: Array, weights: Array, h: float) -> Array:
    """Return Σ_i w_i K((x - p_i)/h)/h at each place x, with K(u) = 35/32 (1 - u²)³ on [-1, 1].

    A kernel that is a polynomial of degree 6 needs only the moments 0 … 6 of the points in its window. They are
    differences of prefix sums, taken about the centres of cells of width h so that no digits cancel: a window
    overlaps three cells.

    Parameters
    ----------
    places : array of shape (m,)
    points : array of shape (n,)
        Increasing.
    weights : array of shape (c, n)
        Several sets of weights at once.

    Returns
    -------
    array of shape (c, m)
    """
    cell = np.floor(points / h)
    moments = _prefix_moments((points - (cell + 0.5) * h) / h, weights)
    near = np.floor(places / h)
    first, last = np.searchsorted(points, places - h, "left"), np.searchsorted(points, places + h, "right")
    total = np.zeros((len(weights), len(places)))
    for offset in (-1, 0, 1):
        here = near + offset
        low = np.maximum(first, np.searchsorted(cell, here, "left"))
        high = np.minimum(last, np.searchsorted(cell, here, "right"))
        inside = np.flatnonzero(high > low)
        coefficients = _coefficients(places[inside] / h - (here[inside] + 0.5))
        window = moments[:, :, high[inside]] - moments[:, :, low[inside]]
        total[:, inside] += np.einsum("jm,cjm->cm", coefficients, window)
    return np.maximum(total, 0.0) * (35 / 32 / h)


def _prefix_moments(u: Array, weights: Array) -> Array:
    """Return (c, 7, n + 1) prefix sums of w·u^j."""
    prefix = np.zeros((len(weights), 7, len(u) + 1))
    power = weights.copy()
    for j in range(7):
        np.cumsum(power, axis=1, out=prefix[:, j, 1:])
        power *= u
    return prefix


def _coefficients(v: Array) -> Array:
    """Return the coefficients in u of (1 - (v - u)²)³."""
    a, vv = 1 - v * v, v * v
    return np.stack(
        [
            a**3,
            6 * a * a * v,
            12 * a * vv - 3 * a * a,
            8 * v * vv - 12 * a * v,
            3 * a - 12 * vv,
            6 * v,
            np.full_like(v, -1.0),
        ]
    )
