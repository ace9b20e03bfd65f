"""Maps that send every class's -log p through one curve: their passes, their optimum and their evidence.

The scores of a row become t_k = -log softmax(β z)_k, and the map is softmax(v(t)), with v linear between its values at
a few knots. The values are linear in the parameters θ, so the log-loss is convex in θ.

A pass returns the log-loss, its gradient and its Hessian in the values. That quadratic tells, without another pass,
what any prior on the curve would lead to, and how much evidence there is for it; see `_curve_search`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from ... import _core
from ...fits.solvers.newton import Sums
from ...fits.solvers.quadratic import quadratic_step
from ...formulas import Term
from ...passes import Block, Data
from ...threads import get_threads
from ...types import Array, Floats

_FLATTEST = 1e-14  # of the largest eigenvalue: smaller ones are rounding
_LEAST_PARAMETERS = 1e-6  # rounding may make none of them negative


def curve_sums(block: Block, knots: Array, stations: Array, values: Array, beta: float) -> Array:
    """One pass: the log-loss, its gradient in the values, and the upper blocks of its Hessian, in a row."""
    return _core.curve_sums(block.logits, block.labels, block.weights, knots, stations, values, beta, get_threads())


def apply_curve(logits: Floats, knots: Array, stations: Array, values: Array, beta: float) -> Floats:
    """Return softmax(v(t)) for every row; -inf gives 0."""
    logits = np.ascontiguousarray(logits)
    out = np.empty_like(logits)
    _core.curve_apply(logits, knots, stations, values, beta, get_threads(), out)
    return out


def curve_formula(z: Term, knots: Array, stations: Array, values: Array, beta: float) -> Term:
    """Return what `apply_curve` computes, as a formula."""
    one = np.zeros(1, dtype=np.int64)
    below = (z.row_max() - z) * beta
    total = (-below).exp().row_sum()
    t = below + total.log()
    odds = -(total - 1.0).log()
    place = t.locate([knots[1:-1]], one)
    slopes = np.diff(values, axis=1) / np.diff(knots)

    def varying(tables: Array) -> Term:
        """Pick from the table of each station; between stations from both."""
        found = place.pick([tables[0]], one)
        for s in range(len(stations) - 1):
            share = ((odds - stations[s]) / (stations[s + 1] - stations[s])).clip(0.0, 1.0)
            found = found + share * place.pick([tables[s + 1] - tables[s]], one)
        return found

    return (varying(values[:, :-1]) + varying(slopes) * (t - place.pick([knots[:-1]], one))).softmax()


@dataclass(frozen=True, eq=False)
class Family:
    """Curves whose values at the knots are offset + basis·θ, with θ ≥ low and a priori normal.

    Attributes
    ----------
    offset : array of shape (stations, J)
    basis : array of shape (stations · J, P)
    centre : array of shape (P,)
        Mean of θ.
    precision : array of shape (P, P)
    start : array of shape (P,)
        θ to begin with.
    low : float
    """

    offset: Array
    basis: Array
    centre: Array
    precision: Array
    start: Array
    low: float = -np.inf

    def values(self, theta: Array) -> Array:
        """Return the values at the knots, (stations, J)."""
        return self.offset + (self.basis @ theta).reshape(self.offset.shape)

    def penalised(self, theta: Array, local: Local) -> Sums:
        """Return the log-loss plus ½ (θ - centre)ᵀ precision (θ - centre), with derivatives in θ."""
        away = theta - self.centre
        pull = self.precision @ away
        value = local.loss + 0.5 * away @ pull
        gradient = self.basis.T @ local.gradient + pull
        hessian = self.basis.T @ local.hessian @ self.basis + self.precision
        return Sums(np.array([value]), gradient[None], hessian[None])

    @cached_property
    def log_determinant(self) -> float:
        """Of the precision."""
        return float(_log_determinants(self.precision[None])[0])


@dataclass(frozen=True, eq=False)
class Local:
    """What one pass found: the log-loss of all rows at some values, and its derivatives in them."""

    values: Array
    loss: float
    gradient: Array
    hessian: Array

    def under(self, families: Sequence[Family]) -> list[Optimum]:
        """Return the optimum under each of several priors, as the quadratic around these values has it."""
        basis = np.stack([family.basis for family in families])
        centre = np.stack([family.centre for family in families])
        move = np.stack([family.values(family.centre).ravel() for family in families]) - self.values.ravel()
        slope = self.gradient + move @ self.hessian
        gradient = np.einsum("gji,gj->gi", basis, slope)
        hessian = basis.transpose(0, 2, 1) @ (self.hessian @ basis)
        hessian += np.stack([family.precision for family in families])
        low = np.array([[family.low] for family in families]) - centre
        step = quadratic_step(hessian, gradient, low, np.full(low.shape, np.inf), np.ones(low.shape))
        change = move + np.einsum("gij,gj->gi", basis, step)
        loss = self.loss + change @ self.gradient + 0.5 * np.einsum("gi,gi->g", change @ self.hessian, change)
        theta = np.where(step > low, centre + step, low + centre)
        found = zip(families, theta, loss.tolist(), hessian, _log_determinants(hessian).tolist(), strict=True)
        return [Optimum(*parts) for parts in found]


@dataclass(frozen=True, eq=False)
class Optimum:
    """The θ that minimises the penalised log-loss, the log-loss there, and the Hessian of the penalised one."""

    family: Family
    theta: Array
    loss: float
    hessian: Array
    log_determinant: float

    @property
    def evidence(self) -> float:
        """Laplace's approximation of the log marginal likelihood, up to a constant."""
        away = self.theta - self.family.centre
        penalty = 0.5 * float(away @ self.family.precision @ away)
        return 0.5 * (self.family.log_determinant - self.log_determinant) - self.loss - penalty

    @property
    def effective_parameters(self) -> float:
        """How many parameters the data, not the prior, decide: P - trace(precision (H + precision)⁻¹)."""
        unit, scale = _in_units(self.hessian[None])
        values, vectors = np.linalg.eigh(unit[0])
        turned = vectors / scale[0][:, None]
        held = np.einsum("ij,ik,kj->j", turned, self.family.precision, turned)
        with np.errstate(over="ignore"):  # a direction that the prior alone decides
            held = held / np.maximum(values, _FLATTEST * values[-1])
        return float(np.clip(len(held) - held.sum(), _LEAST_PARAMETERS, len(held)))


def _in_units(matrices: Array) -> tuple[Array, Array]:
    """Return matrices of positive diagonals with diagonals of ones, and the units they are then measured in.

    Of numbers that cancel, rounding may leave less than nothing, and as much as they are large: its size is the unit.
    """
    scale = np.sqrt(np.maximum(np.abs(np.einsum("gii->gi", matrices)), 1e-200))
    return matrices / scale[:, :, None] / scale[:, None, :], scale


def _log_determinants(matrices: Array) -> Array:
    """Return the logarithms of determinants that are positive but for rounding."""
    unit, scale = _in_units(matrices)
    signs, sizes = np.linalg.slogdet(unit)
    if not (signs > 0).all():
        values = np.linalg.eigvalsh(unit)
        sizes = np.log(np.maximum(values, _FLATTEST * values[:, -1:])).sum(axis=1)
    return sizes + 2 * np.log(scale).sum(axis=1)


@dataclass(frozen=True, eq=False)
class Curves:
    """The rows, and where the curves have their knots.

    Attributes
    ----------
    data : Data
    knots : array of shape (J,)
        Values of t; beyond the last the curve goes on straight.
    stations : array
        Log-odds of the top class at which the values are given; linear between them.
    beta : float
    """

    data: Data
    knots: Array
    stations: Array
    beta: float

    def at(self, values: Array) -> Local:
        """One pass at some values."""
        sums = self.data.reduce(
            partial(curve_sums, knots=self.knots, stations=self.stations, values=values, beta=self.beta)
        )
        size = values.size
        upper = sums[1 + size :].reshape(size, size)
        return Local(values, float(sums[0]), sums[1 : 1 + size], np.triu(upper) + np.triu(upper, 1).T)
