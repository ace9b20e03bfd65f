"""Bin edges: the one place where they are made and where a score is given its bin.

The convention, everywhere: bins are [lo, hi), the last one is closed, the first edge is 0 and the last is 1, so that
p = 0 and p = 1 lie in bins. Equal-width edges are the correctly rounded i/b. Equal-mass bins follow ranks in integer
arithmetic (row i of n in sorted order belongs to bin ⌊i·b/n⌋) and tied scores stay together, in the bin of the first
of them, so that a result is a function of the set of rows and never of their order.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput
from ..parameters import AnyOf, OneOf, count_from
from ..types import Array, Floats, Integers
from ..validation.arrays import as_array, as_float
from .fine import FineCells
from .imax import imax
from .pairs import Pairs

Edges = Array

_COUNTED = 2.0**62  # products of whole weights and bins below this are exact in integers
_CLOSE = 1e-9  # of a bin: weights that are no whole numbers add up differently in other orders

_BINS = AnyOf(count_from(1), OneOf("sturges"))


@lru_cache(maxsize=64)
def equal_width(bins: int) -> Edges:
    """Return the edges i/b of b bins of equal width, as an array that cannot be written to."""
    edges = np.arange(bins + 1) / bins
    edges.flags.writeable = False
    return edges


def sturges(n: float) -> int:
    """Return Sturges' number of bins, ⌈log₂ n⌉ + 1."""
    return math.ceil(math.log2(n)) + 1 if n > 1 else 1


def equal_mass(
    scores: Array,
    bins: int,
    weights: Array | None = None,
    order: Integers | None = None,
) -> Edges:
    """Return edges of at most b bins of equal mass.

    A group of tied scores lies in bin ⌊C·b/n⌋, C being the weight of all smaller scores; bins that end up empty
    have no edge. With integer weights a weight is a number of equal rows. ``order`` saves sorting where it is known.
    """
    if weights is None:
        ordered, mass = np.sort(scores) if order is None else scores[order], None
    else:
        order = np.argsort(scores) if order is None else order
        ordered, mass = scores[order], np.concatenate([[0.0], np.cumsum(weights[order])])
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    below, total = (first, len(scores)) if mass is None else (mass[first], mass[-1])
    starts = first[mass_bounds(below, total, bins)]
    return np.concatenate([[0.0], ordered[starts], [1.0]])


def mass_bounds(below: NDArray[Any], total: Any, bins: int) -> Integers:
    """Return the groups of tied scores at which bins of equal mass begin, but the first, from the weight below each."""
    ranks = np.arange(1, bins)
    least = (ranks - _CLOSE) * (total / bins)  # the weight below the first group of each bin
    whole = below.dtype.kind == "i" or (total == np.floor(total) and (below == np.floor(below)).all())
    if whole and total * bins < _COUNTED:
        least = -(-ranks * int(total) // bins)  # of whole weights: exact
    starts = np.searchsorted(below, least)
    starts = starts[(starts > 0) & (starts < len(below))]
    return np.concatenate([starts[:1], starts[1:][starts[1:] != starts[:-1]]])  # each once


def kmeans(scores: Array, bins: int, weights: Array | None = None) -> Edges:
    """Return edges half-way between the centres of Lloyd's algorithm, started at the centres of equal-mass bins."""
    mass = np.ones(len(scores)) if weights is None else weights
    values, inverse = np.unique(scores, return_inverse=True)
    counts = np.bincount(inverse, weights=mass).astype(np.float64)
    values, counts = values[counts > 0], counts[counts > 0]
    edges = equal_mass(values, bins, counts)
    for _ in range(300):
        place = bin_index(values, edges)
        size = np.bincount(place, weights=counts)
        centres = np.bincount(place, weights=counts * values)[size > 0] / size[size > 0]
        moved = np.r_[0.0, (centres[1:] + centres[:-1]) / 2, 1.0]
        if len(moved) == len(edges) and np.abs(moved - edges).max() < 1e-12:
            break
        edges = moved
    return edges


def imax_edges(scores: Array, bins: int, weights: Array | None = None) -> Edges:
    """Return the edges of I-Max (paper 002, §3.2) under the model that the scores are true: no outcome is looked at."""
    values, inverse = np.unique(scores, return_inverse=True)
    counts = np.bincount(inverse, weights=weights).astype(np.float64)
    values, counts = values[counts > 0], counts[counts > 0]
    with np.errstate(divide="ignore"):
        odds = np.clip(np.log(values) - np.log1p(-values), -750.0, 750.0)
    cells = FineCells(odds, counts, counts * values, values[1:])
    return np.concatenate([[0.0], values[imax(cells, bins, affine=False).bounds], [1.0]])


def given(edges: Any) -> Edges:
    """Check edges that a user gave: increasing, from 0 to 1 (interior edges alone are completed)."""
    array = as_float(as_array(edges, "edges")[0], "edges").astype(np.float64)
    if array.ndim != 1 or not np.isfinite(array).all() or (np.diff(array) < 0).any():
        raise InvalidInput("edges must be one increasing row of numbers", seen=repr(edges), allowed="0 … 1")
    if len(array) and (array[0] < 0 or array[-1] > 1):
        raise InvalidInput("edges must lie in [0, 1]", seen=f"{array[0]:g} to {array[-1]:g}", allowed="0 … 1")
    low = [] if len(array) and array[0] == 0 else [0.0]
    high = [] if len(array) and array[-1] == 1 else [1.0]
    return np.r_[low, array, high]


def bin_index(scores: Floats, edges: Edges) -> Integers:
    """Return the bin of each score: [lo, hi), the last bin closed."""
    return np.clip(np.searchsorted(edges, scores, side="right") - 1, 0, len(edges) - 2)


EDGES = ("equal_width", "equal_mass", "kmeans", "imax", "sturges")
_MADE = {"kmeans": kmeans, "imax": imax_edges}


def check_edges(edges: Any, bins: Any) -> None:
    """Refuse names of edges that do not exist, and numbers of bins that are none."""
    if isinstance(edges, str) and edges not in EDGES:
        raise InvalidInput("no such edges", seen=repr(edges), allowed=", ".join(EDGES) + ", or an array")
    if not _BINS.accepts(bins):
        raise InvalidInput("bins is not valid", seen=repr(bins), allowed=_BINS.allowed)


def fixed_edges(edges: Any, bins: Any, n: float) -> Edges | None:
    """Return edges that do not depend on the scores, or None where they do."""
    check_edges(edges, bins)
    if not isinstance(edges, str):
        return None if edges is None else given(edges)
    bins = sturges(n) if edges == "sturges" or bins == "sturges" else bins
    return equal_width(bins) if edges in ("equal_width", "sturges") else None


def make_edges(edges: Any, bins: Any, pairs: Pairs) -> Edges:
    """Return edges by name (see `EDGES`) for the scores at hand, or the given ones.

    "sturges" means equal width with Sturges' number of bins; as ``bins`` it means that number alone.
    """
    fixed = fixed_edges(edges, bins, pairs.rows)
    if fixed is not None:
        return fixed
    bins = sturges(pairs.rows) if bins == "sturges" else bins
    if edges == "equal_mass":
        return equal_mass(pairs.scores, bins, pairs.weights, pairs.known_order)
    return _MADE[edges](pairs.scores, bins, pairs.weights)
