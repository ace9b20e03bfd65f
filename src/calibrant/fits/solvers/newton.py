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
from numpy.typing import NDArray

__all__ = ["Found", "Sums", "newton"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
_FLATTEST = 1e-10  # curvature below this part of the largest says nothing: rounding is of that size
_ARMIJO = 1e-4  # the part of the promised decrease that a step must bring (Nocedal & Wright, §3.1)
_SMALLEST = 1e-12  # part of a step at which rounding decides
_ROUNDING = 1e-7  # of a value: sums of losses in single precision are known no better, and cannot tell such steps apart


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
) -> Found:
    """Minimise G smooth functions of d unknowns each, all in the same passes.

    Parameters
    ----------
    problem : callable
        From unknowns (G, d) and a mask of the problems that are wanted to `Sums`; one pass over the rows. What it
        returns for problems that are not wanted is not looked at.
    start : array of shape (G, d)
    tolerance : float or array of shape (G,)
        A problem has arrived when Newton's step promises a smaller decrease of its value. That step is then taken
        without another pass: what it leaves is far smaller still, as Newton's error is squared at every step.
    low, high : float or array
        Bounds of the unknowns. One that lies on its bound and wants to leave is held there.
    known : Sums, optional
        The sums at the start, where an earlier pass has them.
    """
    search = _Search(problem, start, tolerance, low, high, known)
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
    ) -> None:
        self.problem, self.low, self.high, self.tolerance = problem, low, high, tolerance
        self.theta = np.clip(np.array(start, dtype=np.float64), low, high)
        self.passes = int(known is None)
        sums = problem(self.theta, np.ones(len(start), dtype=bool)) if known is None else known
        self.sums = Sums(*(np.array(part, dtype=np.float64) for part in sums))
        self.size = np.ones(len(start))
        self.step, self.decrease = self._newton_step(self.theta, self.sums)

    @property
    def moving(self) -> Mask:
        return (self.decrease > self.tolerance) & (self.size > _SMALLEST)

    def advance(self) -> None:
        """One pass: try the steps, take those that lower their value enough, and cut the others."""
        moving = self.moving
        trial = self.theta + np.where(moving, self.size, 0.0)[:, None] * self.step
        trial = np.clip(trial, self.low, self.high)
        with np.errstate(all="ignore"):  # a step may leave what floating point can hold; such steps are cut
            found = self.problem(trial, moving)
        self.passes += 1
        finite = np.isfinite(found.value) & np.isfinite(found.gradient).all(axis=1)
        finite &= np.isfinite(found.hessian).all(axis=(1, 2))
        promised = self.size * self.decrease
        better = moving & finite & ((found.value <= self.sums.value - _ARMIJO * promised) | self._flatter(found))
        self._cut(moving & ~better, finite, found.value, promised)
        if better.any():
            self._accept(better, trial, found)

    def _flatter(self, found: Sums) -> Mask:
        """Where values differ by rounding alone, a step that halves the slope along it is good (Hager & Zhang 2005)."""
        level = np.abs(found.value - self.sums.value) <= _ROUNDING * np.abs(self.sums.value)
        return level & (np.abs((found.gradient * self.step).sum(axis=1)) <= 0.5 * self.decrease)

    def _cut(self, those: Mask, finite: Mask, value: Array, promised: Array) -> None:
        """Shorten steps to the minimum of the parabola through what is known, within a tenth and a half."""
        if not those.any():
            return
        rise = np.where(finite, value - self.sums.value, np.inf)[those] + promised[those]
        best = np.divide(promised[those], 2 * rise, out=np.zeros(len(rise)), where=rise > 0)
        self.size[those] *= np.clip(best, 0.1, 0.5)

    def _accept(self, those: Mask, trial: Array, found: Sums) -> None:
        self.theta[those] = trial[those]
        for mine, new in zip(self.sums, found, strict=True):
            mine[those] = new[those]
        self.size[those] = 1.0
        here = Sums(*(part[those] for part in self.sums))
        self.step[those], self.decrease[those] = self._newton_step(self.theta[those], here, those)

    def finish(self) -> Found:
        """Take the last steps, and say which problems have arrived."""
        arrived = self.decrease <= self.tolerance
        last = np.clip(self.theta + self.step, self.low, self.high)
        self.theta = np.where(arrived[:, None], last, self.theta)
        value = self.sums.value - np.where(arrived, 0.5 * self.decrease, 0.0)
        return Found(self.theta, self.sums._replace(value=value), self.passes, arrived | (self.size <= _SMALLEST))

    def _newton_step(self, theta: Array, sums: Sums, those: Mask | None = None) -> tuple[Array, Array]:
        """Return steps and the decrease that their slope promises; unknowns held at a bound stay there."""
        low, high = (self._bound(bound, theta.shape, those) for bound in (self.low, self.high))
        held = ((theta <= low) & (sums.gradient > 0)) | ((theta >= high) & (sums.gradient < 0))
        gradient = np.where(held, 0.0, sums.gradient)
        step = _solve(sums.hessian, gradient, held)
        step = np.clip(theta + step, low, high) - theta
        step = np.where(np.isfinite(step), step, 0.0)
        return step, np.maximum(-(gradient * step).sum(axis=1), 0.0)

    @staticmethod
    def _bound(bound: Array | float, shape: tuple[int, ...], those: Mask | None) -> Array | float:
        if np.ndim(bound) < 2 or those is None:
            return bound
        return np.broadcast_to(np.asarray(bound), (len(those), shape[1]))[those]


def _solve(hessian: Array, gradient: Array, held: Mask) -> Array:
    """Return -|H|⁻¹ g: negative curvature counts as positive, so that every step descends.

    Unknowns are scaled by their own curvature first. Where nothing curves at all, the step is of the gradient's sign
    and the line search finds its length.
    """
    if gradient.shape[1] == 1:
        curvature = np.abs(hessian[:, :, 0])
        flat = ~(curvature > 0)
        return np.where(flat, -np.sign(gradient), -gradient / np.where(flat, 1.0, curvature))
    diagonal = np.abs(np.einsum("gii->gi", hessian))
    scale = np.sqrt(np.where((diagonal > 0) & ~held, diagonal, 1.0))
    unit = hessian / (scale[:, :, None] * scale[:, None, :])
    unit = np.where(held[:, :, None] | held[:, None, :], 0.0, unit)
    with np.errstate(over="ignore", invalid="ignore"):
        values, vectors = np.linalg.eigh(np.where(np.isfinite(unit), unit, 0.0))
        values = np.abs(values)
        largest = values.max(axis=1, keepdims=True)
        values = np.where(values > _FLATTEST * largest, values, np.where(largest > 0, np.inf, 1.0))
        turned = np.einsum("gij,gi->gj", vectors, gradient / scale) / values
        return -np.einsum("gij,gj->gi", vectors, turned) / scale
