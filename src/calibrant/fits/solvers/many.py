"""The solver for many parameters: limited-memory BFGS that starts from a metric of the caller's.

Why not SciPy's L-BFGS-B: it starts from a multiple of the identity and cannot be given a metric, and a pass over the
rows is what costs. On 5,000 rows of 100 classes, matrix scaling takes 2 passes here, after 2 for its metric, and 20
there to reach the same value; vector scaling 3, after 1, and 7. A linear change of variables would give SciPy a metric,
but needs its square root, which the metric of many classes (`calibrant.maps.scaling._shared`) does not have.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...types import Array

Value = tuple[float, Array]
Objective = Callable[[Array], Value]
_MEMORY = 12  # pairs of steps and changes: more bring next to nothing where the metric is good
_ARMIJO = 1e-4  # the part of the promised decrease that a step must bring (Nocedal & Wright, §3.1)
_CUTS = 15  # shortenings of one step, each to a half at most and at least to 10⁻¹, 10⁻², …: 10⁻¹²⁰ of it in all
_ROUNDING = 1e-7  # of a value: sums of losses in single precision are known no better
_NO_BEND = 1e-12  # curvature along a step, by its squared length, that is rounding


@dataclass(frozen=True, eq=False)
class Solution:
    """Where the solver ended, value and gradient there, the passes it took, and whether it met its tolerance."""

    theta: Array
    value: float
    gradient: Array
    passes: int
    converged: bool


class _Pair(NamedTuple):
    """A step, how it changed the gradient, H⁻¹ times that change, and the product of step and change."""

    moved: Array
    change: Array
    scaled: Array
    curvature: float


def minimise(
    objective: Objective,
    start: Array,
    first: Value,
    inverse: Callable[[Array], Array],
    tolerance: float,
    most: int = 300,
) -> Solution:
    """Minimise a smooth function, convex where a promise is wanted; it only ever descends.

    Parameters
    ----------
    objective : callable
        From parameters to (value, gradient); each call is one pass. Where either is not finite, the step is cut.
    start : array
    first : tuple
        Value and gradient at the start.
    inverse : callable
        From a vector to about H⁻¹ times it (symmetric, positive): the metric in which steps are taken first.
    tolerance : float
        Stop when ½ gᵀ H⁻¹ g, the fall that a Newton step would bring, is below it.
    most : int
        Passes after which it gives up.
    """
    theta, (value, gradient) = start, first
    if not _finite(first):
        return Solution(theta, value, gradient, 0, False)
    history: deque[_Pair] = deque(maxlen=_MEMORY)
    scaled = inverse(gradient)
    passes = 0
    while passes < most:
        direction, slope = _descent(gradient, scaled, history)
        if -slope <= 2 * tolerance:
            return Solution(theta, value, gradient, passes, True)
        step, found, used = _search(objective, theta, value, slope, direction)
        passes += used
        if found is None:  # no descent left at this precision
            return Solution(theta, value, gradient, passes, -slope <= 1e-6 * abs(value))
        moved, change, before = step * direction, found[1] - gradient, scaled
        theta, (value, gradient), scaled = theta + moved, found, inverse(found[1])
        curvature = float(moved @ change)
        if curvature > _NO_BEND * float(moved @ moved):
            history.append(_Pair(moved, change, scaled - before, curvature))
    return Solution(theta, value, gradient, passes, False)


def _finite(found: Value) -> bool:
    return bool(np.isfinite(found[0]) and np.isfinite(found[1]).all())


def _descent(gradient: Array, scaled: Array, history: deque[_Pair]) -> tuple[Array, float]:
    """Return a direction and the slope along it, which is negative unless the gradient is zero.

    Where what is remembered, or the metric itself, does not lead down (rounding, curvature that overflowed), it is
    left: first the memory, then the metric for the gradient itself.
    """
    if history:
        direction = _two_loops(gradient, scaled, history)
        slope = float(direction @ gradient)
        if np.isfinite(slope) and slope < 0:
            return direction, slope
        history.clear()
    slope = -float(scaled @ gradient)
    if np.isfinite(slope) and (slope < 0 or not gradient.any()):
        return -scaled, slope
    direction = -gradient / float(np.abs(gradient).max())  # a step of one in the steepest parameter, to be cut
    return direction, float(direction @ gradient)


def _two_loops(gradient: Array, scaled: Array, history: deque[_Pair]) -> Array:
    """Two-loop recursion (Nocedal and Wright, algorithm 7.4) from the scaled metric.

    ``scaled`` is H⁻¹ times the gradient; with it and that of the changes the recursion applies no metric itself.
    """
    q, direction = -gradient, -scaled
    factors: list[float] = []
    for pair in reversed(history):
        factors.append(float(pair.moved @ q) / pair.curvature)
        q = q - factors[-1] * pair.change
        direction -= factors[-1] * pair.scaled
    bend = float(history[-1].change @ history[-1].scaled)
    if bend > 0:
        direction *= history[-1].curvature / bend
    for pair, factor in zip(history, reversed(factors), strict=True):
        direction += (factor - float(pair.change @ direction) / pair.curvature) * pair.moved
    return direction


def _search(
    objective: Objective, theta: Array, value: float, slope: float, direction: Array
) -> tuple[float, Value | None, int]:
    """Backtrack from a full step by quadratic interpolation until the value falls enough, ever more boldly.

    Where values differ by rounding alone, a step is good that halves the slope along it (Hager & Zhang 2005).
    """
    step = 1.0
    for used in range(1, _CUTS + 1):
        with np.errstate(over="ignore", invalid="ignore"):
            found = objective(theta + step * direction)
        if not _finite(found):
            step *= 0.1**used
            continue
        if found[0] <= value + _ARMIJO * step * slope:
            return step, found, used
        if abs(found[0] - value) <= _ROUNDING * abs(value) and abs(float(direction @ found[1])) <= -0.5 * slope:
            return step, found, used
        bend = found[0] - value - step * slope  # above zero: the value fell by less than promised
        step = float(np.clip(-slope * step**2 / (2 * bend), 0.1**used * step, 0.5 * step))
    return 0.0, None, _CUTS
