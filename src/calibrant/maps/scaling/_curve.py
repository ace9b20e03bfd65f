"""Maps that send every class's -log p through one curve: their data passes, their solver and their evidence.

The scores of a row become t_k = -log softmax(β z)_k, and the map is softmax(v(t)), with v linear between its values at
a few knots. The values are linear in the parameters θ, so the log-loss is convex in θ and a Newton step is one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import lsq_linear

from ... import _core
from ...passes import Block, reduce
from ...threads import get_threads

__all__ = ["Curves", "Optimum", "apply_curves", "climb", "minimise", "polish"]

Array = NDArray[np.float64]
_SEARCH_TOLERANCE = 1e-2  # differences of evidence below this do not matter
_FINAL_TOLERANCE = 1e-12  # a row
_LEAST_PARAMETERS = 1e-6  # rounding may make none of them negative, and a held-out loss that is the same look worse


@dataclass(frozen=True, eq=False)
class Curves:
    """A family of curves, linear in θ, and the rows it is fitted on.

    Attributes
    ----------
    sample : Block
    places : array of shape (n,)
        Where each row lies between the stations, from 0 to stations - 1.
    knots : array of shape (J,)
        Values of t; beyond the last the curve goes on straight.
    beta : float
    offset : array of shape (stations, J)
    basis : array of shape (stations · J, P)
        The values at the knots are offset + basis·θ.
    """

    sample: Block
    places: Array
    knots: Array
    beta: float
    offset: Array
    basis: Array

    def values(self, theta: Array) -> Array:
        """Return the values at the knots, (stations, J)."""
        return self.offset + (self.basis @ theta).reshape(self.offset.shape)

    def at(self, theta: Array) -> tuple[Array, Array, Array]:
        """One pass: by fold the log-loss, its gradient and its Hessian in θ."""
        values = self.values(theta)

        def statistic(rows: Block) -> Array:
            return _core.curve_sums(
                rows.logits, rows.labels, rows.weights, self.places, self.knots, values, self.beta, get_threads()
            )

        sums = reduce(statistic, self.sample)
        size = values.size
        hessian = sums[:, 1 + size :].reshape(-1, size, size)
        hessian = np.triu(hessian) + np.triu(hessian, 1).transpose(0, 2, 1)
        return sums[:, 0], sums[:, 1 : 1 + size] @ self.basis, self.basis.T @ hessian @ self.basis


def apply_curves(
    logits: NDArray[np.floating], places: Array, knots: Array, values: Array, beta: float
) -> NDArray[np.floating]:
    """Return softmax(v(t)) for every row; -inf gives 0."""
    logits = np.ascontiguousarray(logits)
    out = np.empty_like(logits)
    _core.curve_apply(logits, places, knots, values, beta, get_threads(), out)
    return out


@dataclass(frozen=True, eq=False)
class Optimum:
    """The θ that minimises the log-loss plus ½ (θ - centre)ᵀ precision (θ - centre), subject to θ ≥ low."""

    curves: Curves
    theta: Array
    losses: Array
    gradients: Array
    hessians: Array
    centre: Array
    precision: Array
    low: float
    passes: int
    converged: bool

    @property
    def sums(self) -> tuple[Array, Array, Array]:
        """What `Curves.at` returns at θ."""
        return self.losses, self.gradients, self.hessians

    @property
    def loss(self) -> float:
        """The log-loss of all rows, without the penalty."""
        return float(self.losses.sum())

    @property
    def evidence(self) -> float:
        """Laplace's approximation of the log marginal likelihood, up to a constant."""
        away = self.theta - self.centre
        prior = np.linalg.slogdet(self.precision)[1]
        posterior = np.linalg.slogdet(self.hessians.sum(axis=0) + self.precision)[1]
        return float(-self.loss - 0.5 * away @ self.precision @ away + 0.5 * (prior - posterior))

    @property
    def effective_parameters(self) -> float:
        """How many parameters the data, not the prior, decide: the trace of H (H + precision)⁻¹."""
        hessian = self.hessians.sum(axis=0)
        return max(_LEAST_PARAMETERS, float(np.trace(np.linalg.solve(hessian + self.precision, hessian))))

    def held_out_loss(self) -> float:
        """Five-fold cross-validated log-loss, by one Newton step from θ for each fold left out: no further pass."""
        total = 0.0
        rest_gradient = self.gradients.sum(axis=0) - self.gradients
        rest_hessian = self.hessians.sum(axis=0) - self.hessians
        for fold, loss in enumerate(self.losses):
            gradient = rest_gradient[fold] + self.precision @ (self.theta - self.centre)
            step = _bounded_step(gradient, rest_hessian[fold] + self.precision, self.low - self.theta)
            total += loss + self.gradients[fold] @ step + 0.5 * step @ self.hessians[fold] @ step
        return float(total)


def minimise(
    curves: Curves,
    theta: Array,
    centre: Array,
    precision: Array,
    low: float = -np.inf,
    tolerance: float = _SEARCH_TOLERANCE,
    known: tuple[Array, Array, Array] | None = None,
) -> Optimum:
    """Find the optimum by Newton steps on the bounded quadratic model, halved until the objective falls.

    It stops where the next step promises less than ``tolerance``, in nats over all rows. ``known`` is what
    `Curves.at` returns at ``theta``, where an earlier optimum has it: no penalty is in it.
    """
    point = curves.at(theta) if known is None else known
    passes, converged = int(known is None), False
    rounding = max(tolerance, 1e3 * _FINAL_TOLERANCE * curves.sample.total_weight)
    while passes < 100 and not converged:
        away = theta - centre
        value = point[0].sum() + 0.5 * away @ precision @ away
        gradient = point[1].sum(axis=0) + precision @ away
        step = _bounded_step(gradient, point[2].sum(axis=0) + precision, low - theta)
        promised = -float(gradient @ step)
        scale, converged = 1.0, promised <= tolerance
        while not converged:
            tried = curves.at(theta + scale * step)
            passes += 1
            away = theta + scale * step - centre
            if tried[0].sum() + 0.5 * away @ precision @ away <= value - 1e-4 * scale * promised:
                theta, point = theta + scale * step, tried
                break
            scale *= 0.5
            converged = promised * scale <= rounding  # rounding, not curvature, is what is left
            if passes >= 100:
                break
    return Optimum(curves, theta, *point, centre, precision, low, passes, converged)


def polish(found: Optimum) -> Optimum:
    """Carry an optimum of the search to full precision."""
    tolerance = _FINAL_TOLERANCE * found.curves.sample.total_weight
    return minimise(found.curves, found.theta, found.centre, found.precision, found.low, tolerance, found.sums)


def _bounded_step(gradient: Array, hessian: Array, low: Array) -> Array:
    """Minimise gradient·d + ½ dᵀ hessian d over d ≥ low."""
    factor = cholesky(hessian, lower=True)
    target = -solve_triangular(factor, gradient, lower=True)
    step = solve_triangular(factor, target, lower=True, trans=1)
    if (step >= low).all():
        return step
    bounds = (np.minimum(low, -1e-300), np.full(len(low), np.inf))
    return np.asarray(lsq_linear(factor.T, target, bounds=bounds, method="bvls").x)


def climb(
    fit: Callable[[tuple[float, ...], Optimum | None], Optimum],
    grids: Sequence[Sequence[float]],
    start: tuple[int, ...],
) -> tuple[tuple[float, ...], Optimum, int]:
    """Walk over a grid of hyper-parameters to a summit of the evidence; a fit starts from the best so far.

    Returns the hyper-parameters, the optimum there (to the last digits), and the number of passes in all.
    """

    def values_at(at: tuple[int, ...]) -> tuple[float, ...]:
        return tuple(grid[i] for grid, i in zip(grids, at, strict=True))

    best = fit(values_at(start), None)
    passes, seen, at = best.passes, {start}, start
    moved = True
    while moved:
        moved = False
        for axis, side in [(axis, side) for axis in range(len(grids)) for side in (-1, 1)]:
            neighbour = (*at[:axis], at[axis] + side, *at[axis + 1 :])
            if neighbour in seen or not 0 <= neighbour[axis] < len(grids[axis]):
                continue
            seen.add(neighbour)
            found = fit(values_at(neighbour), best)
            passes += found.passes
            if found.evidence > best.evidence:
                best, at, moved = found, neighbour, True
    last = polish(best)
    return values_at(at), last, passes + last.passes
