"""How strongly parameters should be held, by the evidence of the rows themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..types import Array
from .priors import Prior
from .problem import Curvature, Point, Problem, Solved, solve
from .report import FitReport

_STEPS, _FEWER, _MANY = 40, 6, 100_000  # steps towards the precisions; fewer for many parameters, as each takes long
_LOOSE = 30.0  # times the tolerance: precisions need no sharp optimum
_WEIGHT = 0.5  # the rule's word on a precision, in parameters
_BOUNDS = (1e-2, 1e8)  # of a precision: beyond them a parameter is as good as free, or zero
_SETTLED = 0.05  # a step in log α after which the next ones change nothing that matters
_FASTEST = 0.8  # the share of a step that the next one is at most taken to repeat


@dataclass(frozen=True, eq=False)
class Fitted:
    """Precisions by group, the start and the penalised optimum, how many parameters the rows determine, the passes."""

    precisions: Array
    start: Point
    point: Point
    effective: float
    passes: int
    converged: bool

    def report(self, before: FitReport, total: float) -> FitReport:
        """Return the report of a map that began with what ``before`` reports on, on rows of this total weight."""
        after = self.point.sums.loss / total
        return before.gone_on(self.passes, self.converged, after, effective_parameters=self.effective)


def fit_by_evidence(problem: Problem, prior: Prior, start: Array, rule: Array | None = None) -> Fitted:
    """Find the precisions that maximise the marginal likelihood (MacKay 1992), and the optimum they lead to.

    Parameters
    ----------
    problem : Problem
    prior : Prior
    start : array
        α of each group to begin with.
    rule : array, optional
        α of each group that a rule expects; by default that to begin with.

    Notes
    -----
    At the optimum, α = γ / Σ s θ² with γ = Σ (1 - α s (H⁻¹)_jj), the number of parameters that the rows determine, H
    the Hessian of the penalised loss, taken class by class. From the optimum at the α to begin with, where the loss
    is taken as quadratic, α steps to that fixed point, which costs no pass over the rows; then the parameters follow.
    The rule's α has a say worth half a parameter (a Gamma prior), which matters where a part has few.
    Where the loss falls by no more than γ/2, which chance would bring, nothing is added; parameters that no prior
    holds must bring all of γ (Akaike), as nothing keeps them from following chance.
    """
    first, near = Point.zero_and_curvature(problem)
    penalty = prior.penalty(start)
    rough = solve(problem, penalty, first, near.metric(penalty), _LOOSE)
    alpha = _estimate(near, rough.point, prior, start, start if rule is None else rule)
    penalty = prior.penalty(alpha)
    found = solve(problem, penalty, rough.point, near.metric(penalty))
    shares = _determined(near, penalty)
    cost = float(np.where(prior.shape > 0, 0.5, 1.0) @ shares)
    if not found.point.sums.loss + cost < first.sums.loss:
        return only_start(first, len(alpha))
    return _fitted(alpha, first, found, shares, rough.passes)


def only_start(first: Point, groups: int) -> Fitted:
    """Return the map that adds nothing: infinite precisions."""
    return Fitted(np.full(groups, np.inf), first, first, 0.0, 1, True)


def fit_with(problem: Problem, prior: Prior, precisions: Array) -> Fitted:
    """Find the optimum for given precisions."""
    first, near = Point.zero_and_curvature(problem)
    penalty = prior.penalty(precisions)
    found = solve(problem, penalty, first, near.metric(penalty))
    return _fitted(precisions, first, found, _determined(near, penalty), 0)


def _fitted(precisions: Array, first: Point, found: Solved, shares: Array, passes: int) -> Fitted:
    passes += found.passes + 2  # at the start, and for the curvature there
    return Fitted(precisions, first, found.point, float(shares.sum()), passes, found.converged)


def _estimate(near: Curvature, point: Point, prior: Prior, start: Array, rule: Array) -> Array:
    """Return the fixed point of α, by steps in log α; every second goes on where the last two are heading (Aitken)."""
    x, before, ahead = np.log(start), np.zeros_like(start), near.outlook(point.theta, point.sums.gradient, prior)
    for step in range(1, 1 + (_STEPS if len(point.theta) < _MANY else _FEWER)):
        sizes, counts = ahead.under(np.exp(x))
        moved = np.log(np.clip((counts + _WEIGHT) / (sizes + _WEIGHT / rule), *_BOUNDS)) - x
        x = x + moved
        if np.abs(moved).max() < _SETTLED:
            break
        if step % 2 == 0:
            rate = np.clip(moved / np.where(before == 0.0, np.inf, before), 0.0, _FASTEST)
            x = np.clip(x + moved * rate / (1.0 - rate), *np.log(_BOUNDS))
        before = moved
    return np.exp(x)


def _determined(near: Curvature, penalty: Array) -> Array:
    """Return how far the rows, not the prior, determine each parameter, from 0 to 1."""
    return np.clip(1.0 - penalty * near.metric(penalty).diagonal(), 0.0, 1.0)
