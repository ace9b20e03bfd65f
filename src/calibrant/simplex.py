"""Small convex problems on the simplex: mixture weights."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from . import _core
from .threads import get_threads

__all__ = ["best_log_mixture", "best_quadratic", "log_mixture"]

Array = NDArray[np.float64]


def best_quadratic(gram: Array, linear: Array) -> Array:
    """Minimise ½ w'Gw - c'w over the simplex exactly, face by face, the largest first (few weights only).

    On a face the optimum is one linear system. The problem is convex, so the first answer that is feasible and whose
    absent weights would not pay (the Karush-Kuhn-Tucker conditions) is the global optimum.
    """
    m = len(linear)
    best, answer = np.inf, np.full(m, 1.0 / m)
    for size in range(m, 0, -1):
        for face in combinations(range(m), size):
            w = _on_face(gram, linear, np.array(face))
            if w is None:
                continue
            slope = gram @ w - linear
            level = w @ slope
            if (slope >= level - 1e-12 * (1 + abs(level))).all():
                return w
            value = 0.5 * w @ gram @ w - linear @ w
            if value < best:
                best, answer = value, w
    return answer


def _on_face(gram: Array, linear: Array, face: NDArray[np.int64]) -> Array | None:
    """Solve the equality-constrained problem on one face; None where the answer leaves the simplex."""
    size = len(face)
    system = np.ones((size + 1, size + 1))
    system[:size, :size] = gram[np.ix_(face, face)]
    system[size, size] = 0.0
    right = np.append(linear[face], 1.0)
    if size == 1:
        w = np.zeros(len(linear))
        w[face] = 1.0
        return w
    try:
        solution = np.linalg.solve(system, right)[:size]
    except np.linalg.LinAlgError:
        solution = np.linalg.lstsq(system, right, rcond=None)[0][:size]
    if not np.isfinite(solution).all() or solution.min() < -1e-12 or abs(solution.sum() - 1.0) > 1e-9:
        return None
    w = np.zeros(len(linear))
    w[face] = np.maximum(solution, 0.0)
    return w / w.sum()


def best_log_mixture(columns: Array, weights: Array | None, start: Array | None = None, most: int = 100) -> Array:
    """Minimise -Σ ωᵢ log(Σⱼ wⱼ cᵢⱼ) over the simplex: Newton's quadratic model solved exactly, with a line search.

    The problem is convex, so the answer is global. ``columns`` holds each part's probability of the label.
    """
    columns, m = np.ascontiguousarray(columns), columns.shape[1]
    w = np.full(m, 1.0 / m) if start is None else start
    value, slope, curvature = log_mixture(columns, weights, w)
    if not np.isfinite(value):
        w = np.full(m, 1.0 / m)
        value, slope, curvature = log_mixture(columns, weights, w)
    for _ in range(most):
        step = best_quadratic(curvature, curvature @ w - slope) - w
        gain = float(slope @ step)
        if not gain < -1e-13 * abs(value):
            break
        size = 1.0
        trial = log_mixture(columns, weights, w + step)
        while not trial[0] <= value + 1e-4 * size * gain and size > 1e-10:
            size *= 0.5
            trial = log_mixture(columns, weights, w + size * step)
        if size <= 1e-10:
            break
        w, (value, slope, curvature) = w + size * step, trial
    return np.maximum(w, 0.0) / np.maximum(w, 0.0).sum()


def log_mixture(columns: Array, weights: Array | None, w: Array) -> tuple[float, Array, Array]:
    """Return the loss that `best_log_mixture` minimises, its gradient and its Hessian in w."""
    m = len(w)
    sums = _core.mixture_sums(columns, weights, w, get_threads())
    return float(sums[0]), sums[1 : 1 + m], sums[1 + m :].reshape(m, m)
