"""Limited-memory BFGS with a metric to start from, for smooth convex problems whose passes are expensive."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Solution", "minimise"]

_MEMORY = 12
_ARMIJO = 1e-4

Metric = Callable[[NDArray[np.float64]], NDArray[np.float64]]
Objective = Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]]


@dataclass(frozen=True, eq=False)
class Solution:
    """Where the solver ended, value and gradient there, the passes it took, and whether it met its tolerance."""

    theta: NDArray[np.float64]
    value: float
    gradient: NDArray[np.float64]
    passes: int
    converged: bool


class _Pair(NamedTuple):
    """A step, how it changed the gradient, H⁻¹ times that change, and the product of step and change."""

    moved: NDArray[np.float64]
    change: NDArray[np.float64]
    scaled: NDArray[np.float64]
    curvature: float


def minimise(
    objective: Objective,
    start: NDArray[np.float64],
    first: tuple[float, NDArray[np.float64]],
    inverse: Metric,
    tolerance: float,
    most: int = 300,
) -> Solution:
    """Minimise a convex function.

    Parameters
    ----------
    objective : callable
        From parameters to (value, gradient); each call is one pass.
    start : array
    first : tuple
        Value and gradient at the start.
    inverse : callable
        From a vector to about H⁻¹ times it (symmetric, positive): the metric in which steps are taken first.
    tolerance : float
        Stop when ½ gᵀ H⁻¹ g, the fall that a Newton step would bring, is below it.
    """
    theta, (value, gradient) = start, first
    scaled = inverse(gradient)
    history: deque[_Pair] = deque(maxlen=_MEMORY)
    passes = 0
    while passes < most:
        direction = _direction(gradient, scaled, history)
        slope = float(direction @ gradient)
        if -slope <= 2 * tolerance:
            return Solution(theta, value, gradient, passes, True)
        step, found, used = _search(objective, theta, value, slope, direction)
        passes += used
        if found is None:  # no descent left at this precision
            return Solution(theta, value, gradient, passes, -slope <= 1e-6 * abs(value))
        moved, change, before = step * direction, found[1] - gradient, scaled
        theta, (value, gradient), scaled = theta + moved, found, inverse(found[1])
        curvature = float(moved @ change)
        if curvature > 1e-12 * float(moved @ moved):
            history.append(_Pair(moved, change, scaled - before, curvature))
    return Solution(theta, value, gradient, passes, False)


def _direction(
    gradient: NDArray[np.float64], scaled: NDArray[np.float64], history: deque[_Pair]
) -> NDArray[np.float64]:
    """Two-loop recursion (Nocedal and Wright, algorithm 7.4) from the scaled metric.

    ``scaled`` is H⁻¹ times the gradient; with it and that of the changes the recursion applies no metric itself.
    """
    q, direction = -gradient, -scaled
    factors: list[float] = []
    for pair in reversed(history):
        factors.append(float(pair.moved @ q) / pair.curvature)
        q = q - factors[-1] * pair.change
        direction -= factors[-1] * pair.scaled
    if history:
        direction *= history[-1].curvature / float(history[-1].change @ history[-1].scaled)
    for pair, factor in zip(history, reversed(factors), strict=True):
        direction += (factor - float(pair.change @ direction) / pair.curvature) * pair.moved
    return direction


def _search(
    objective: Objective, theta: NDArray[np.float64], value: float, slope: float, direction: NDArray[np.float64]
) -> tuple[float, tuple[float, NDArray[np.float64]] | None, int]:
    """Backtrack from a full step by safeguarded quadratic interpolation until the value falls enough."""
    step = 1.0
    for used in range(1, 16):
        found = objective(theta + step * direction)
        if found[0] <= value + _ARMIJO * step * slope:
            return step, found, used
        bend = found[0] - value - step * slope
        best = -slope * step**2 / (2 * bend) if np.isfinite(bend) and bend > 0 else 0.0
        step = float(np.clip(best, 0.1 * step, 0.5 * step))
    return 0.0, None, 15
