"""Small convex problems on the simplex: mixture weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from . import _core
from .threads import get_threads

__all__ = ["best_log_mixture", "best_quadratic", "log_mixture"]

Array = NDArray[np.float64]


def best_quadratic(gram: Array, linear: Array) -> Array:
    """Minimise ½ w'Gw - c'w over the simplex exactly, face by face, the largest first (few weights only)."""
    return _core.best_quadratic(np.ascontiguousarray(gram), np.ascontiguousarray(linear))


def best_log_mixture(columns: Array, weights: Array | None, start: Array | None = None, most: int = 100) -> Array:
    """Minimise -Σ ωᵢ log(Σⱼ wⱼ cᵢⱼ) over the simplex: Newton's quadratic model solved exactly, with a line search.

    The problem is convex, so the answer is global. ``columns`` holds each part's probability of the label.
    """
    columns, parts = np.ascontiguousarray(columns), columns.shape[1]
    w = np.full(parts, 1.0 / parts) if start is None else start
    return _core.best_mixture(columns, weights, w, most, get_threads())


def log_mixture(columns: Array, weights: Array | None, w: Array) -> tuple[float, Array, Array]:
    """Return the loss that `best_log_mixture` minimises, its gradient and its Hessian in w."""
    m = len(w)
    sums = _core.mixture_sums(columns, weights, w, get_threads())
    return float(sums[0]), sums[1 : 1 + m], sums[1 + m :].reshape(m, m)
