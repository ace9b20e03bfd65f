"""Plain array functions that several rooms share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import _core
from .threads import get_threads
from .types import Array, Floats, Integers

_PANEL = 64  # bytes of a column of a panel: kPanel of cpp/panels.hpp


def in_precision(values: Array, dtype: Any) -> Array:
    """Return numbers as another precision has them; beyond its largest they are infinite."""
    with np.errstate(over="ignore"):
        return values.astype(dtype).astype(np.float64)


def inner(a: Array, b: Array) -> float:
    """Return Σ a·b by NumPy's pairwise sum: a threaded BLAS would sum in another order, and wait on a busy machine."""
    return float(np.add.reduce(a * b))


def softmax(logits: Floats) -> Floats:
    """Return softmax over the columns; -inf gives exactly 0."""
    return tempered_softmax(logits, 1.0)


def tempered_softmax(logits: Floats, beta: float, weights: tuple[float, float, float] = (1.0, 0.0, 0.0)) -> Floats:
    """Return w₀·softmax(β z) + w₁·softmax(z) + w₂/K in one sweep over the rows."""
    logits = np.ascontiguousarray(logits)
    out = np.empty_like(logits)
    _core.ensemble_apply(logits, beta, *weights, get_threads(), out)
    return out


def log_softmax(logits: Floats) -> Floats:
    """Return the logarithm of softmax without leaving the log domain."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def log_odds(logits: Floats) -> Floats:
    """Return λ_k = z_k - log Σ_{j≠k} exp z_j of every class, exact where p_k itself is rounded to 0 or 1."""
    logits = np.ascontiguousarray(logits)
    out = np.empty_like(logits)
    _core.log_odds(logits, get_threads(), out)
    return out


def best_column(values: Floats, ties: Floats) -> Integers:
    """Return the column of each row's largest value; among equals the one with the largest ``ties``."""
    top = values.argmax(axis=1)
    largest = values[np.arange(len(values)), top]
    tied = np.flatnonzero((values == largest[:, None]).sum(axis=1) > 1)
    if len(tied):
        allowed = values[tied] == largest[tied, None]
        top[tied] = np.where(allowed, ties[tied], -np.inf).argmax(axis=1)
    return top


def keep_top(probabilities: Floats, logits: Floats) -> Floats:
    """Raise the top class by one unit in the last place where rounding has tied it with an earlier column.

    For maps that keep the order: two logits so close that their probabilities round to the same float would
    otherwise let ``argmax`` name the wrong one. Works in place; equal logits stay equal.
    """
    _core.keep_top(np.ascontiguousarray(logits), get_threads(), probabilities)
    return probabilities


def panels_of(matrix: Floats, dtype: np.dtype) -> Floats:
    """Return a matrix D as `products` wants it: in panels of a few rows, each column by column, the last filled up."""
    rows, columns = matrix.shape
    height = _PANEL // dtype.itemsize
    count = -(-rows // height)
    padded = np.zeros((count * height, columns), dtype=dtype)
    padded[:rows] = matrix
    return padded.reshape(count, height, columns).swapaxes(1, 2).ravel()


def products(x: Floats, panels: Floats, rows: int, threads: int | None = None) -> Floats:
    """Return x Dᵀ, D of so many rows in panels. A row of x gives the same bits alone and among others.

    A BLAS does not promise that: it takes other kernels for other shapes.
    """
    out = np.empty((len(x), rows), dtype=x.dtype)
    _core.panel_products(np.ascontiguousarray(x), panels, threads or get_threads(), out)
    return out


def weighted_quantiles(values: Array, weights: Array, shares: Array) -> Array:
    """Return quantiles of sorted values: NumPy's default where all weights are one, and weights count as copies."""
    total = weights.cumsum()
    place = np.asarray(shares) * max(total[-1] - 1.0, 0.0)
    last = len(values) - 1
    below = np.minimum(np.searchsorted(total, np.floor(place), side="right"), last)
    above = np.minimum(np.searchsorted(total, np.floor(place) + 1.0, side="right"), last)
    return values[below] + (place - np.floor(place)) * (values[above] - values[below])


def below_ties(edges: Array) -> Array:
    """Return edges so little lower that rows of one value, but for rounding in single precision, are on one side."""
    return edges * (1 - 1e-6)


def row_subsample(n: int, most: int) -> slice:
    """Return an evenly spaced choice of at most ``most`` of n rows."""
    return slice(None, None, max(1, -(-n // most)))


def row_blocks(n: int, k: int, most: int = 2_000_000) -> Iterator[slice]:
    """Yield slices of rows of at most about ``most`` scores each, for work that needs memory of a block's size."""
    step = max(1, most // max(1, k))
    for start in range(0, n, step):
        yield slice(start, min(n, start + step))


def rounded_once(function: Callable[[Floats], Floats], scores: Floats) -> Floats:
    """Return what a function of rows answers, in the precision of the scores, computed in double: a block at a time."""
    if scores.dtype == np.float64 or not len(scores):
        return function(scores)
    answers = (function(scores[rows].astype(np.float64)).astype(scores.dtype) for rows in row_blocks(*scores.shape))
    return np.concatenate(list(answers))
