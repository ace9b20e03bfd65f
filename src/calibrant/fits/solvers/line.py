"""Newton for one problem of one unknown: the steps of `newton` in plain numbers.

Arrays of one entry would cost ten times as much as a pass over a thousand rows. A test holds the two together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from .newton import ARMIJO, SINGLE

_ROUNDING = 1e-16  # of the value: what a step must promise to be more than rounding


class LineSums(NamedTuple):
    """Value, slope and curvature at one place."""

    value: float
    slope: float
    curvature: float

    @property
    def finite(self) -> bool:
        """Whether all three are numbers."""
        return math.isfinite(self.value) and math.isfinite(self.slope) and math.isfinite(self.curvature)


class LineFound(NamedTuple):
    """Where the search ended, the value there, passes, and whether it met its tolerance."""

    x: float
    value: float
    passes: int
    converged: bool


def newton_line(
    function: Callable[[float], LineSums],
    start: float,
    tolerance: float,
    low: float,
    high: float,
    known: LineSums | None = None,
    most: int = 200,
) -> LineFound:
    """Minimise a smooth function of one unknown between two bounds; parameters as in `newton`."""
    x = min(max(start, low), high)
    here = function(x) if known is None else known
    passes = int(known is None)
    step, decrease = _aim(x, here, low, high)
    size = 1.0
    while decrease > tolerance and passes < most and size * decrease > _ROUNDING * abs(here.value):
        trial = min(max(x + size * step, low), high)
        there = function(trial)
        passes += 1
        if there.finite and (_lower(here, there, size * decrease) or _flatter(here, there, step, decrease, tolerance)):
            x, here, size = trial, there, 1.0
            step, decrease = _aim(x, here, low, high)
        else:
            size *= _cut(here, there, size * decrease)
    if decrease > tolerance:
        return LineFound(x, here.value, passes, passes < most)
    if not here.curvature * step * step <= 2 * decrease:  # not the parabola's minimum: a step along a flat
        return LineFound(x, here.value, passes, True)
    value = here.value - decrease + 0.5 * max(here.curvature, 0.0) * step * step
    return LineFound(min(max(x + step, low), high), value, passes, True)


def _aim(x: float, here: LineSums, low: float, high: float) -> tuple[float, float]:
    """Return Newton's step within the bounds, and the decrease that its slope promises."""
    curvature = abs(here.curvature)
    length = here.slope / curvature if curvature > 0 else math.copysign(max(1.0, abs(x)), here.slope)
    if here.slope == 0 or not math.isfinite(length):
        return 0.0, 0.0
    step = min(max(x - length, low), high) - x
    return step, max(-here.slope * step, 0.0)


def _lower(here: LineSums, there: LineSums, promised: float) -> bool:
    return there.value <= here.value - ARMIJO * promised


def _flatter(here: LineSums, there: LineSums, step: float, decrease: float, tolerance: float) -> bool:
    """Where values differ by rounding alone, a step that halves the slope along it is good (Hager & Zhang 2005)."""
    level = abs(there.value - here.value) <= max(SINGLE * abs(here.value), tolerance)
    return level and abs(there.slope * step) <= 0.5 * decrease


def _cut(here: LineSums, there: LineSums, promised: float) -> float:
    """Return by how much to shorten a step: to the minimum of the parabola through what is known, .1 to .5."""
    rise = there.value - here.value + promised if there.finite else math.inf  # above zero: the value fell by less
    return min(max(promised / (2 * rise), 0.1), 0.5)
