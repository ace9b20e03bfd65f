"""Sums of triweight kernels at many places in O(n + places), exactly, by sliding polynomial moments."""

from __future__ import annotations

from ... import _core
from ...types import Array


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
    return _core.triweight(places, points, weights, h)
