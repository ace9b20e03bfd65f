"""How strongly the parameters of a linear map should be held, by the evidence of the rows themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...fit_report import FitReport
from ._curvature import Curvature, curvature
from ._path import Point, solve
from ._problem import Problem

__all__ = ["LEAST", "Fitted", "Prior", "first_guess", "fit_by_evidence", "fit_with", "only_start", "parts_of"]

LEAST = 0.1  # precision of what no prior holds: keeps what no row speaks about (a class that never occurs) finite
_STEPS, _FEWER, _MANY = 40, 6, 100_000  # steps towards the precisions at a time; fewer for many parameters
_LOOSE = 30.0  # precisions need no sharp optimum
_WEIGHT = 0.5  # the rule's word on a precision, in parameters
_BOUNDS = (1e-2, 1e8)


@dataclass(frozen=True, eq=False)
class Prior:
    """Parameter j has the prior N(0, 1 / (α_g s_j)), g its group and s its shape; those of shape 0 are free."""

    groups: NDArray[np.int64]
    shape: NDArray[np.float64]

    def penalty(self, precisions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the precision of each parameter from that of the groups."""
        return precisions[self.groups] * self.shape + LEAST

    def by_group(self, values: NDArray[np.float64], count: int) -> NDArray[np.float64]:
        """Sum over the parameters of each group that are not free."""
        sums = np.bincount(self.groups, weights=values * (self.shape > 0), minlength=count)
        return np.asarray(sums, dtype=np.float64)


def parts_of(k: int, size: int) -> NDArray[np.int64]:
    """Return each parameter's part: 0 its own slope, 1 between classes, 2 intercepts, 3 how sure a row is."""
    parts = np.full((k, size // k), 2)
    if size == 2 * k:
        parts[:, 0] = 0
        return parts.ravel()
    parts[:, :k] = np.where(np.eye(k, dtype=bool), 0, 1)
    parts[:, k:-1] = 3
    return parts.ravel()


def first_guess(k: int) -> NDArray[np.float64]:
    """Return the precisions of the parts that Berta et al. 2026 give by a rule in K."""
    return np.array([2.0 * k, 2.0 * k * max(1, k - 1), 2.0 * k, 2.0 * k])


@dataclass(frozen=True, eq=False)
class Fitted:
    """Precisions by group, the penalised optimum, how many parameters the rows determine there, and the passes."""

    precisions: NDArray[np.float64]
    point: Point
    effective: float
    passes: int
    converged: bool

    def report(self, start: FitReport, total: float) -> FitReport:
        """Return the report of a map that began with what ``start`` reports on, on rows of this total weight."""
        return FitReport(
            start.iterations + self.passes,
            (start.converged or bool(start.at_bound)) and self.converged,
            "nll",
            start.loss_before,
            self.point.sums.loss / total,
            at_bound=start.at_bound,
            messages=start.messages,
        )


def fit_by_evidence(problem: Problem, prior: Prior, start: NDArray[np.float64]) -> Fitted:
    """Find the precisions that maximise the marginal likelihood (MacKay 1992), and the optimum they lead to.

    Parameters
    ----------
    problem : Problem
    prior : Prior
    start : array
        α of each group to begin with, by a rule in K.

    Notes
    -----
    At the optimum, α = γ / Σ s θ² with γ = Σ (1 - α s (H⁻¹)_jj), the number of parameters that the rows determine, H
    the Hessian of the penalised loss, taken class by class. From the optimum at the α to begin with, where the loss
    is taken as quadratic, α steps to that fixed point, which costs no pass over the rows; then the parameters follow.
    The rule's α has a say worth half a parameter (a Gamma prior), which matters where a part has few.
    Where the loss falls by no more than γ/2, which chance would bring, nothing is added; parameters that no prior
    holds must bring all of γ (Akaike), as nothing keeps them from following chance.
    """
    first, penalty = Point.zero(problem), prior.penalty(start)
    near = curvature(problem, first.theta)
    rough = solve(problem, penalty, first, near.metric(penalty), _LOOSE)
    alpha = _estimate(near, rough.point, prior, start)
    penalty = prior.penalty(alpha)
    found = solve(problem, penalty, rough.point, near.metric(penalty))
    shares = _determined(near, penalty)
    effective = float(shares.sum())
    if found.point.sums.loss + float(np.where(prior.shape > 0, 0.5, 1.0) @ shares) >= first.sums.loss:
        return only_start(problem, len(alpha))
    return Fitted(alpha, found.point, effective, rough.passes + found.passes + 2, found.converged)


def only_start(problem: Problem, groups: int) -> Fitted:
    """Return the map that adds nothing: infinite precisions."""
    return Fitted(np.full(groups, np.inf), Point.zero(problem), 0.0, 1, True)


def fit_with(problem: Problem, prior: Prior, precisions: NDArray[np.float64]) -> Fitted:
    """Find the optimum for given precisions."""
    point, penalty = Point.zero(problem), prior.penalty(precisions)
    near = curvature(problem, point.theta)
    found = solve(problem, penalty, point, near.metric(penalty))
    return Fitted(precisions, found.point, float(_determined(near, penalty).sum()), found.passes + 2, found.converged)


def _estimate(near: Curvature, point: Point, prior: Prior, start: NDArray[np.float64]) -> NDArray[np.float64]:
    alpha = start
    for _ in range(_STEPS if len(point.theta) < _MANY else _FEWER):
        penalty = prior.penalty(alpha)
        metric = near.metric(penalty)
        theta = point.theta - metric.apply(point.sums.gradient + penalty * point.theta)
        shares = np.clip(1.0 - penalty * metric.diagonal(), 0.0, 1.0)
        sizes = prior.by_group(prior.shape * theta**2, len(alpha))
        counts = prior.by_group(shares, len(alpha))
        new = np.clip((counts + _WEIGHT) / (sizes + _WEIGHT / start), *_BOUNDS)
        settled = np.abs(np.log(new / alpha)).max() < 0.05
        alpha = new
        if settled:
            break
    return alpha


def _determined(near: Curvature, penalty: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how far the rows, not the prior, determine each parameter, from 0 to 1."""
    return np.clip(1.0 - penalty * near.metric(penalty).diagonal(), 0.0, 1.0)
