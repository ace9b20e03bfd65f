"""Newton on the simplex: weights that are at least zero and sum to one, and beside them a few bounded unknowns.

Newton's quadratic model is minimised exactly over the weights, by an active set in the compiled core; unknowns beside
them are eliminated first (a Schur complement). It survives what mixtures bring: parts that are equal, optima in a
corner, curvature that is singular or negative, values that overflow. `scipy.optimize` (SLSQP, trust-constr) takes many
times as many passes, as it does not use the exact Hessian, and raises on singular curvature.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple

import numpy as np

from ... import _core
from ...types import Array, Mask
from .sums import Sums
from .valley import Valley

_ARMIJO = 1e-4  # the part of the promised decrease that a step must bring (Nocedal & Wright, §3.1)
_ROUNDING = 1e-7  # of the value: differences below are rounding where sums come from single precision
_FLATTEST = 1e-10  # curvature below this part of the largest says nothing: rounding is of that size
_NOTHING = 1e-100  # slope and curvature below are none: one over them, times another sum, may be no number
_REACH = 2.0  # the longest step of an unknown beside the weights, a logarithm: a factor of seven


_INSIDE = 1e-3  # how far a start is moved into the simplex where weights that are zero would pay
_NEARLY = 0.95  # part of a step that ends at a border which is to go on, where the optimum is before it
_STEEP = 1.0  # by how many times the mean slope of the others a weight at zero must pay to count as missed


@dataclass(frozen=True, eq=False)
class Found:
    """Where the search ended: weights, unknowns beside them, the value, passes, and whether it arrived."""

    weights: Array
    beside: Array
    value: float
    passes: int
    converged: bool


Problem = Callable[[Array, Array], Sums]


class _Step(NamedTuple):
    """A step, the decrease that its slope promises, whether the model was the exact one, and whether in a `Valley`."""

    weights: Array
    beside: Array
    decrease: float
    exact: bool
    turned: bool = False


def minimise_on_simplex(
    problem: Problem,
    weights: Array,
    tolerance: float,
    *,
    beside: Array | None = None,
    low: float = -np.inf,
    high: float = np.inf,
    most: int = 100,
    enough: float = 0.0,
    valley: Valley | None = None,
) -> Found:
    """Minimise a smooth function of weights on the simplex and of unknowns beside them.

    Parameters
    ----------
    problem : callable
        From weights (m,) and the unknowns beside them (f,) to `Sums`; one pass over the rows.
    weights : array of shape (m,)
        Where to start. Where the value there is not finite, the search starts with equal weights.
    tolerance : float
        The search has arrived when the next step promises a smaller decrease of the value. That step is then taken
        without another pass: what it leaves is far smaller still, as Newton's error is squared at every step.
    beside : array of shape (f,), optional
        Unknowns that are free between ``low`` and ``high``; of the order of one, as logarithms are.
    most : int
        Passes at most.
    enough : float
        A search that came to its last pass has arrived as well if its next step promises no more than this.
    valley : Valley, optional
        Coordinates for the steps, where the one unknown beside the weights may make two parts equal.
    """
    w, x = np.array(weights, dtype=np.float64), np.zeros(0) if beside is None else np.clip(beside, low, high)
    if valley is not None:
        w, x = valley.start(w, x, low, high)
    search = _Search(low, high, valley)
    with np.errstate(all="ignore"):  # a step may leave what floating point can hold; such steps are cut
        here, passes = problem(w, x), 1
        if not _finite(here):
            w, passes = np.full(len(w), 1.0 / len(w)), 2
            here = problem(w, x)
        if not _finite(here):
            return Found(w, x, here.value, passes, False)
        if _missed(here, w, w == 0.0):
            w, passes = (1.0 - _INSIDE) * w + _INSIDE / len(w), passes + 1
            here = problem(w, x)
        step, size = search.step(here, w, x), 1.0
        while size * step.decrease > tolerance and passes < most:
            trial, moved = search.reached(w, x, step, size)
            there, passes = problem(trial, moved), passes + 1
            if not _finite(there) or not _is_better(here, there, step, size):
                size *= _cut(here, there, size * step.decrease)
            elif _missed(there, trial, (trial == 0.0) & (w > 0.0)):
                size *= _NEARLY
            else:
                w, x, here, size = trial, moved, there, 1.0
                step = search.step(here, w, x)
    if not (step.decrease <= tolerance and size == 1.0 and step.exact):
        return Found(w, x, here.value, passes, size * step.decrease <= max(tolerance, enough))
    w, x = search.reached(w, x, step, 1.0)
    return Found(w, x, here.value - 0.5 * step.decrease, passes, True)


class _Search(NamedTuple):
    """How a search makes its steps: bounds of the unknowns beside the weights, and the coordinates."""

    low: float
    high: float
    valley: Valley | None

    def step(self, here: Sums, w: Array, x: Array) -> _Step:
        """Return the next step from here."""
        plain = _newton_step(here, w, x, self.low, self.high)
        if self.valley is None or not self.valley.applies(here, w, x):
            return plain
        step = _newton_step(self.valley.turned(here, w, x), w, x, self.low, self.high)
        return plain if self.valley.on_border(w, step.weights) else step._replace(turned=True)

    def reached(self, w: Array, x: Array, step: _Step, size: float) -> tuple[Array, Array]:
        """Return where so much of a step ends."""
        weights, moved = _on_simplex(w + size * step.weights), np.clip(x + size * step.beside, self.low, self.high)
        if self.valley is None or not step.turned:
            return weights, moved
        return self.valley.reached(x, weights, moved)


def _finite(sums: Sums) -> bool:
    return isfinite(sums.value) and isfinite(sums.gradient.sum()) and isfinite(sums.hessian.sum())


def _on_simplex(w: Array) -> Array:
    """Return weights with what rounding has left undone: none is negative, and they sum to one."""
    w = np.maximum(w, 0.0)
    return w / w.sum()


def _is_better(here: Sums, there: Sums, step: _Step, size: float) -> bool:
    """Whether a step lowers the value enough; or halves the slope, where values differ by rounding alone."""
    if there.value <= here.value - _ARMIJO * size * step.decrease:
        return True
    level = abs(there.value - here.value) <= _ROUNDING * abs(here.value)
    along = there.gradient @ np.concatenate([step.weights, step.beside])
    return bool(level and abs(along) <= 0.5 * step.decrease)


def _missed(sums: Sums, w: Array, gone: Mask) -> bool:
    """Whether a weight that is gone would be worth having: the optimum is near the border, but not on it.

    Beyond a border that was passed over, a logarithm is so steep that Newton's steps are tiny.
    """
    slope = sums.gradient[: len(w)]
    level = slope @ w
    return bool((slope[gone] < level - _STEEP * abs(level)).any())


def _cut(here: Sums, there: Sums, promised: float) -> float:
    """Return the part of a step to try next: the minimum of the parabola through what is known."""
    rise = there.value - here.value + promised
    return float(np.clip(promised / (2 * rise), 0.1, 0.5)) if np.isfinite(rise) and rise > 0 else 0.1


def _newton_step(sums: Sums, w: Array, x: Array, low: float, high: float) -> _Step:
    m = len(w)
    gradient, hessian = sums.gradient, sums.hessian
    if len(x):
        held = ((x <= low) & (gradient[m:] > 0)) | ((x >= high) & (gradient[m:] < 0))
        loose = m + np.flatnonzero(~held)
        inverse, sound = _inverse(hessian[np.ix_(loose, loose)], gradient[loose])
        cross = hessian[:m, loose] @ inverse
        slope, curvature = gradient[:m] - cross @ gradient[loose], hessian[:m, :m] - cross @ hessian[loose, :m]
        moved, convex = _best_weights(curvature, slope, w)
        step = np.zeros(len(gradient))
        step[:m] = moved - w
        step[loose] = -inverse @ (gradient[loose] + hessian[loose, :m] @ step[:m])
        step *= _share(step[m:], x, low, high)
        exact = sound and convex
    else:
        moved, exact = _best_weights(hessian, gradient, w)
        step = moved - w
    return _Step(step[:m], step[m:], max(float(-gradient @ step), 0.0), exact)


def _inverse(hessian: Array, gradient: Array) -> tuple[Array, bool]:
    """Return |H|⁻¹, with curvature enough that no step is longer than the reach; and whether H was as it should be."""
    values, vectors = np.linalg.eigh(hessian)
    enough = np.maximum(np.abs(vectors.T @ gradient) / _REACH, _FLATTEST * np.abs(values).max(initial=0.0))
    used = np.maximum(np.abs(values), enough)
    inverse = np.divide(1.0, used, out=np.zeros(len(used)), where=used > _NOTHING)  # no slope, no curvature: no step
    return vectors * inverse @ vectors.T, bool((used == values).all())


def _share(step: Array, x: Array, low: float, high: float) -> float:
    """Return the part of a step at which an unknown comes to its bound or the end of its reach, one at most."""
    room = np.minimum(np.where(step > 0, high - x, x - low), _REACH)
    return float(np.min(np.divide(room, np.abs(step), out=np.ones(len(step)), where=np.abs(step) > room), initial=1.0))


def _best_weights(curvature: Array, slope: Array, w: Array) -> tuple[Array, bool]:
    """Return the weights that minimise the quadratic model around w, and whether it was convex where they lie.

    Only directions in which weights still sum to one count. Where the model curves down along some of them, they are
    made to curve up as much. The parts that have a weight then are looked at alone: near an optimum in a corner the
    model is convex among these, and the step is Newton's.
    """
    linear = curvature @ w - slope
    if _core.convex_on_simplex(curvature):
        return _core.best_quadratic(curvature, linear, w), True
    first = found = _core.best_quadratic(*_upward(curvature, linear, w), w)
    face, convex = np.flatnonzero(found), False
    while len(face) < len(w) and not convex:
        gram, pull, start = np.ascontiguousarray(curvature[np.ix_(face, face)]), linear[face], found[face]
        convex = _core.convex_on_simplex(gram)
        if not convex:
            gram, pull = _upward(gram, pull, start)
        found = np.zeros(len(w))
        found[face] = _core.best_quadratic(gram, pull, start)
        smaller = np.flatnonzero(found)
        if len(smaller) == len(face):
            break
        face = smaller
    descends = slope @ (found - w) < 0
    return (found, convex) if descends else (first, False)


def _upward(gram: Array, linear: Array, w: Array) -> tuple[Array, Array]:
    """Return G and c of a quadratic with the slope of ½ w'Gw - c'w at w that curves up wherever that curves at all."""
    along = gram - gram.mean(axis=0)
    along -= along.mean(axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(along)
    upward = (vectors * np.abs(values)) @ vectors.T
    return upward, upward @ w - gram @ w + linear
