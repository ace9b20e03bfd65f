"""Safeguarded Newton for one problem of few unknowns, or for many such problems side by side.

It survives what real scores bring: curvature that is singular, negative or missing, values that overflow, optima at a
bound, losses that fall for ever. SciPy has nothing that solves many small bounded problems in common passes, which is
what one-versus-rest lifts need; for a single problem `scipy.optimize` (trust-constr, L-BFGS-B) takes several times as
many passes, as it does not use the exact Hessian together with bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...types import Array, Mask
from .quadratic import quadratic_step

ARMIJO = 1e-4  # the part of the promised decrease that a step must bring (Nocedal & Wright, §3.1)
_ROUNDING = 1e-15  # of the value: a change that floating point does not show
SINGLE = 1e-7  # of a value: sums of losses in single precision are known no better, and cannot tell such steps apart
_NEAR = 100.0  # times the tolerance: a bin of sure rows has a small loss, but the rounding of many rows
_ULPS = 1e-15  # an unknown as close to its bound as this part of its step's ends is on it
_GENTLE = 3  # cuts of a step to no less than a tenth; one that is still too long is cut ever more boldly
_CURVED = 0.1  # part of a last step's promise that curvature must account for, or it is not taken unseen


class Sums(NamedTuple):
    """Values (G,), gradients (G, d) and Hessians (G, d, d) of G problems at their present unknowns."""

    value: Array
    gradient: Array
    hessian: Array


@dataclass(frozen=True, eq=False)
class Found:
    """Where the problems ended: unknowns (G, d), the sums there, passes, and which met their tolerance (G,)."""

    theta: Array
    sums: Sums
    passes: int
    converged: Mask


Problem = Callable[[Array, Mask], Sums]


def newton(
    problem: Problem,
    start: Array,
    tolerance: Array | float,
    *,
    low: Array | float = -np.inf,
    high: Array | float = np.inf,
    most: int = 200,
    known: Sums | None = None,
    shortest: float = 0.1,
) -> Found:
    """Minimise G smooth functions of d unknowns each, all in the same passes.

    A step minimises the quadratic through value, gradient and Hessian within the bounds (`quadratic_step`); it is cut
    until the value falls.

    Parameters
    ----------
    problem : callable
        From unknowns (G, d) and a mask of the problems that are wanted to `Sums`; one pass over the rows. What it
        returns for problems that are not wanted is not looked at.
    start : array of shape (G, d)
    tolerance : float or array of shape (G,)
        A problem has arrived when Newton's step promises a smaller decrease of its value. That step is then taken
        without another pass: what it leaves is far smaller still, as Newton's error is squared at every step. The sums
        returned are moved along with it, as the quadratic has them.
    low, high : float or array
        Bounds of the unknowns.
    most : int
        Passes after which a problem that has not arrived is left where it is.
    known : Sums, optional
        The sums at the start, where an earlier pass has them.
    shortest : float
        A step that raises the value is cut to no less than this part of it at first.
    """
    search = _Search(problem, start, tolerance, low, high, known, shortest)
    while search.passes < most and search.moving.any():
        search.advance()
    return search.finish()


class _Search:
    """Where each problem stands: unknowns, sums, the next step, the decrease it promises, the part of it to try."""

    def __init__(
        self,
        problem: Problem,
        start: Array,
        tolerance: Array | float,
        low: Array | float,
        high: Array | float,
        known: Sums | None,
        shortest: float,
    ) -> None:
        self.problem, self.tolerance, self.shortest = problem, tolerance, shortest
        self.low, self.high = (
            np.broadcast_to(np.asarray(bound, dtype=np.float64), start.shape) for bound in (low, high)
        )
        self.theta = np.clip(np.array(start, dtype=np.float64), self.low, self.high)
        everyone = np.ones(len(start), dtype=bool)
        self.passes = int(known is None)
        self.sums = Sums(*(np.array(part, dtype=np.float64) for part in known or self._sums_at(self.theta, everyone)))
        self.step, self.decrease = np.zeros(start.shape), np.zeros(len(start))
        self.size, self.cuts, self.finite = np.ones(len(start)), np.zeros(len(start), dtype=int), _finite(self.sums)
        self._aim(everyone)

    @property
    def moving(self) -> Mask:
        return (self.decrease > self.tolerance) & ~self.exhausted

    @property
    def exhausted(self) -> Mask:
        """Whether what is left of the step could change the value by rounding only."""
        return self.size * self.decrease <= _ROUNDING * np.abs(self.sums.value)

    def _sums_at(self, theta: Array, wanted: Mask) -> Sums:
        with np.errstate(all="ignore"):  # a step may leave what floating point can hold; such steps are cut
            return self.problem(theta, wanted)

    def advance(self) -> None:
        """One pass: try the steps, take those that lower their value enough, and cut the others."""
        moving = self.moving
        trial = self._within(np.where(moving, self.size, 0.0)[:, None] * self.step)
        found = self._sums_at(trial, moving)
        self.passes += 1
        self.finite = np.where(moving, _finite(found), self.finite)
        promised = self.size * self.decrease
        lower = (found.value <= self.sums.value - ARMIJO * promised) | self._flatter(found)
        better = moving & self.finite & lower
        self._cut(moving & ~better, found.value, promised)
        if better.any():
            self._accept(better, trial, found)

    def _flatter(self, found: Sums) -> Mask:
        """Where values differ by rounding alone, a step that halves the slope along it is good (Hager & Zhang 2005)."""
        with np.errstate(all="ignore"):
            rounding = np.maximum(SINGLE * np.abs(self.sums.value), _NEAR * self.tolerance)
            level = np.abs(found.value - self.sums.value) <= rounding
            return level & (np.abs((found.gradient * self.step).sum(axis=1)) <= 0.5 * self.decrease)

    def _within(self, step: Array) -> Array:
        """Return where steps lead, within the bounds, and on them where rounding alone would keep them off."""
        with np.errstate(all="ignore"):
            trial = self.theta + step
            for bound in (self.low, self.high):
                close = np.abs(trial - bound) <= _ULPS * (np.abs(self.theta) + np.abs(trial))
                trial = np.where(close, bound, trial)
        return np.clip(trial, self.low, self.high)

    def _cut(self, those: Mask, value: Array, promised: Array) -> None:
        """Shorten steps to the minimum of the parabola through what is known.

        To a half at most and ``shortest`` at least, or a tenth where the value there is no number. After three cuts it
        is a tenth at most, and 10⁻², 10⁻⁴, 10⁻⁸ … at least.
        """
        if not those.any():
            return
        rise = np.where(self.finite, value - self.sums.value, np.inf)[those] + promised[those]
        best = promised[those] / (2 * rise)  # above zero: the value fell by less than promised
        bold = np.clip(self.cuts[those] - _GENTLE + 1, 0, 8)
        least = np.where((bold == 0) & self.finite[those], self.shortest, 0.1 ** (2.0**bold))
        self.size[those] *= np.clip(best, least, np.where(bold > 0, 0.1, 0.5))
        self.cuts[those] += 1

    def _accept(self, those: Mask, trial: Array, found: Sums) -> None:
        self.theta[those] = trial[those]
        for mine, new in zip(self.sums, found, strict=True):
            mine[those] = new[those]
        self.size[those], self.cuts[those] = 1.0, 0
        self._aim(those)

    def _aim(self, those: Mask) -> None:
        """Set the next step of some problems, and the decrease that its slope promises."""
        theta, gradient = self.theta[those], self.sums.gradient[those]
        length = np.maximum(1.0, np.abs(theta))
        room = self.low[those] - theta, self.high[those] - theta
        step = quadratic_step(self.sums.hessian[those], gradient, *room, length)
        with np.errstate(all="ignore"):
            decrease = -(gradient * step).sum(axis=1)
        usable = np.isfinite(decrease) & np.isfinite(self.sums.value[those])
        self.step[those] = np.where(usable[:, None], step, 0.0)
        self.decrease[those] = np.where(usable, np.maximum(decrease, 0.0), 0.0)

    def finish(self) -> Found:
        """Take the last steps, and say which problems have arrived."""
        arrived = (self.decrease <= self.tolerance) & _finite(self.sums)
        with np.errstate(all="ignore"):
            bend = np.einsum("gij,gj->gi", self.sums.hessian, self.step)
            curvature = (self.step * bend).sum(axis=1)
            known = arrived & (curvature >= _CURVED * self.decrease) & (curvature <= 2 * self.decrease)
        step = np.where(known[:, None], self.step, 0.0)
        value = self.sums.value - np.where(known, self.decrease - 0.5 * curvature, 0.0)
        gradient = self.sums.gradient + np.where(known[:, None], bend, 0.0)
        theta = self._within(step)
        converged = arrived | (self.exhausted & self.finite)
        return Found(theta, Sums(value, gradient, self.sums.hessian), self.passes, converged)


def _finite(sums: Sums) -> Mask:
    found = np.isfinite(sums.value) & np.isfinite(sums.gradient).all(axis=1)
    return found & np.isfinite(sums.hessian).all(axis=(1, 2))
