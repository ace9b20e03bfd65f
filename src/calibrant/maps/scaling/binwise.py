"""Bin-wise temperature scaling: one temperature for each range of the top confidence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from ... import _core
from ...arrays import keep_top, softmax
from ...calibrator import Calibrator
from ...cells.counted import cells_of_groups
from ...cells.edges import mass_bounds
from ...declared import attribute, declared, parameter
from ...fits.judge import estimate
from ...fits.report import FitReport
from ...fits.solvers.newton import Sums, newton
from ...formulas import Term, log_odds
from ...invariants import TEMPERATURE, Values
from ...parameters import Number, count_from
from ...passes import Block, Data, Rows
from ...threads import get_threads
from ...traits import Traits
from ...types import Array, Floats, Integers
from .temperature import best_temperature, temperature_sums

_LEAST_WEIGHT = 20.0  # rows a bin must hold on average, or there are fewer bins
_LARGEST_STEP = 1.0  # in log T: as far as a bin's parabola is taken at its word
_WIDEST = 9.0  # the prior's variance of log T between bins is searched up to this: a factor of e³ either way
_LEAST_VARIANCE = 1e-10  # a spread of 1e-5 in log T changes no probability that anyone reads
_LEAST_CURVATURE = 1e-200  # rows that say nothing at all; one over it is still a number
_FARTHEST = 50.0  # log β is within so much of the shared one, or its exponential would overflow
_FINAL = 1e-10  # nats a row, before a last step that squares what is left
_SAME = 1e-6  # change of the variance, of itself, at which it stands
_MOST, _STEPS = 60, 3  # estimates of the variance, and passes after each; some seven of one pass each are usual


@declared
class BinwiseTemperatureScaling(Calibrator):
    """p = softmax(z / T_b), with b the bin of the row's top confidence (Ji et al. 2019).

    Rows are sorted by the log-odds of their top class (the top probability on a scale that does not saturate) and cut
    into bins of equal weight; equal values stay together. Each bin's temperature minimises the log-loss of its rows
    plus (log T_b - log T)² / 2τ², with T the temperature of all rows: a bin of few rows, or one that says little,
    stays near T. The spread τ between bins is not tuned but estimated: it maximises the Laplace approximation of the
    marginal likelihood of the bins' temperatures, and τ = 0 (plain temperature scaling) where the bins agree within
    noise. Every Newton step on all bins is one pass.

    The ranking of every row is kept. Across rows the map is a step function of the confidence: two rows on either
    side of an edge get different temperatures, so of two rows the one with the higher raw confidence may end lower.

    Parameters
    ----------
    bins : int
        The most bins used; there are fewer where a bin would hold less than 20 rows, or the confidences tie.
    inputs, classes, saturated
        See `Calibrator`.

    Attributes
    ----------
    temperatures_ : array of shape (bins,)
    edges_ : array of shape (bins - 1,)
        Log-odds of the top class between the bins; a row on an edge belongs above it.
    spread_ : float
        τ, the estimated spread of log T between bins.
    """

    _identifier = "binwise-temperature-scaling"
    _traits = Traits("scaling", "ranking", "top label", "bins", sees="cells")
    bins: int = parameter(count_from(1), default=15)
    temperatures_: Array = attribute(Values("bins", low=TEMPERATURE.low, high=TEMPERATURE.high), counted=True)
    edges_: Array = attribute(Values("bins-1", order="rising", finite=False))
    spread_: float = attribute(Number(0))

    def _fit(self, data: Data) -> FitReport:
        shared = best_temperature(data)
        self.edges_ = _edges(data, self.bins)
        found = _fit_bins(data, tuple(self.edges_), np.log(shared.beta))
        self.temperatures_ = np.exp(-found.log_betas)
        self.spread_ = found.spread
        details = {"temperature": 1.0 / shared.beta, "spread": found.spread}
        loss = found.loss / data.total_weight
        report = shared.report("nll").gone_on(found.passes, found.converged, loss, **details)
        return report if report.at_bound else estimate(report, data, softmax, self._map, 1.0 + found.effective)

    def _map(self, logits: Floats) -> Floats:
        logits = np.ascontiguousarray(logits)
        out = np.empty_like(logits)
        _core.binwise_apply(logits, self.edges_, 1.0 / self.temperatures_, get_threads(), out)
        return keep_top(out, logits)

    def _formula(self, z: Term) -> Term:
        one = np.zeros(1, dtype=np.int64)
        odds = z.first_top().where(log_odds(z, rounded=False), -np.inf).row_max().gridded()
        beta = odds.locate([self.edges_], one).pick([1.0 / self.temperatures_], one)
        return ((z - z.row_max()) * beta).softmax()


def top_log_odds(logits: Floats) -> Array:
    """Return log p/(1-p) of the largest p of softmax(z), from the logits, so that p = 1 has its own size too."""
    return _core.top_log_odds(np.ascontiguousarray(logits), get_threads())


def _odds(block: Block) -> Array:
    return top_log_odds(block.logits)


def _edges(data: Data, bins: int) -> Array:
    """Return edges of equal weight; of rows that are not in memory by fine cells, right to 2⁻¹⁵ of the weight."""
    if data.in_memory:
        position, weights = data.reduce(_positions).columns
        return equal_weight_edges(position, weights, bins)
    (cells,) = cells_of_groups(data.viewed(_TopView(), 2, 2), np.array([-1, 0]))
    mass = np.cumsum(cells.weights)
    return cells.cuts[mass_bounds(np.append(0.0, mass[:-1]), mass[-1], bins) - 1]


class _TopView:
    """The log-odds of the top class as the score of one event."""

    def __call__(self, block: Block) -> Block:
        odds = _odds(block)
        return Block(np.stack([np.zeros_like(odds), odds], axis=1), np.ones_like(block.labels), block.weights, 2)


def _positions(block: Block) -> Rows:
    """One pass: the log-odds of every row's top class, and its weight."""
    return Rows(block.kept(_odds), block.weight_array)


def _places(block: Block, edges: tuple[float, ...]) -> Integers:
    return np.searchsorted(np.array(edges), block.kept(_odds), side="right")


def equal_weight_edges(position: Array, weights: Array, bins: int) -> Array:
    """Return edges halfway between neighbours that cut the positions into bins of about equal weight.

    A weight of two counts as the row twice and zero as none at all; equal positions are never parted.
    """
    present = weights > 0
    values, inverse = np.unique(position[present], return_inverse=True)
    mass = np.bincount(inverse, weights=weights[present])
    count = int(min(bins, max(1.0, mass.sum() // _LEAST_WEIGHT)))
    below = np.cumsum(mass)[:-1] / mass.sum()
    cuts = np.unique(np.searchsorted(below, np.arange(1, count) / count - 1e-12))
    cuts = cuts[cuts < len(below)]
    return 0.5 * (values[cuts] + values[cuts + 1])


def _bin_sums(block: Block, edges: tuple[float, ...], betas: Array) -> Array:
    """One pass: by bin, the log-loss of softmax(β z) and its first two derivatives in β."""
    return temperature_sums(block, betas, places=block.kept(_places, edges))


@dataclass(frozen=True, eq=False)
class _Bins:
    """log β of each bin, τ, the log-loss, how many of the temperatures the rows decide, passes, and the outcome."""

    log_betas: Array
    spread: float
    loss: float
    effective: float
    passes: int
    converged: bool


def _fit_bins(data: Data, edges: tuple[float, ...], centre: float) -> _Bins:
    """Find every bin's log β under a normal prior around ``centre`` whose variance the bins themselves tell.

    The variance is estimated from the parabolas of the bins' log-losses where they stand; a Newton step for all bins
    under that prior follows, in common passes; and so on until neither moves.
    """
    problem = _BinProblem(data, edges, centre)
    away = np.zeros(len(edges) + 1)
    sums = first = problem.sums(away)
    variance, passes, converged = np.inf, 1, False
    for _ in range(_MOST):
        previous, variance = variance, _between_variance(away, sums)
        if variance < _LEAST_VARIANCE or len(away) == 1:
            return _Bins(np.full(len(away), centre), 0.0, float(first[:, 0].sum()), 0.0, passes, True)
        found = newton(
            replace(problem, variance=variance),
            away[:, None],
            _FINAL * data.total_weight,
            low=-_FARTHEST,
            high=_FARTHEST,
            most=_STEPS,
            known=_with_prior(sums, away, variance),
        )
        away, passes = found.theta[:, 0], passes + found.passes
        sums = _without_prior(found.sums, away, variance)
        converged = bool(found.converged.all()) and abs(variance - previous) <= _SAME * variance
        if converged:
            break
    loss = float(sums[:, 0].sum())
    if not loss <= first[:, 0].sum():
        return _Bins(np.full(len(away), centre), 0.0, float(first[:, 0].sum()), 0.0, passes, converged)
    pull = np.maximum(sums[:, 2], 0.0) * variance  # of the rows, as a multiple of the prior's
    return _Bins(centre + away, float(np.sqrt(variance)), loss, float((pull / (1.0 + pull)).sum()), passes, converged)


@dataclass(frozen=True, eq=False)
class _BinProblem:
    """The bins' log-losses as functions of how far log β is from a centre, with or without a prior of that variance."""

    data: Data
    edges: tuple[float, ...]
    centre: float
    variance: float = np.inf

    def sums(self, away: Array) -> Array:
        """One pass: by bin, the log-loss, its slope and its Fisher curvature in log β, (bins, 3)."""
        beta = np.exp(self.centre + away)
        found = self.data.reduce(partial(_bin_sums, edges=self.edges, betas=beta))
        return found * beta[:, None] ** np.arange(3)

    def __call__(self, theta: Array, _: object) -> Sums:
        return _with_prior(self.sums(theta[:, 0]), theta[:, 0], self.variance)


def _with_prior(sums: Array, away: Array, variance: float) -> Sums:
    """Add the prior, and to the Fisher curvature what makes it the second derivative in log β."""
    value, slope, curvature = sums.T
    return Sums(
        value + away**2 / (2 * variance),
        (slope + away / variance)[:, None],
        (curvature + slope + 1.0 / variance)[:, None, None],
    )


def _without_prior(sums: Sums, away: Array, variance: float) -> Array:
    slope = sums.gradient[:, 0] - away / variance
    value = sums.value - away**2 / (2 * variance)
    return np.stack([value, slope, sums.hessian[:, 0, 0] - slope - 1.0 / variance], axis=1)


def _between_variance(away: Array, sums: Array) -> float:
    """Return the variance v that maximises the likelihood of the bins' own optima ~ N(0, v + 1/curvature)."""
    informed = sums[:, 2] > _LEAST_CURVATURE
    if not informed.any():
        return 0.0
    slope, curvature = sums[informed, 1], sums[informed, 2]
    free = away[informed] - np.clip(slope / curvature, -_LARGEST_STEP, _LARGEST_STEP)

    def loss(root: float) -> float:
        total = root**2 + 1.0 / curvature
        return float(np.sum(np.log(total) + free**2 / total))

    found: Any = minimize_scalar(loss, bounds=(0.0, np.sqrt(_WIDEST)), method="bounded", options={"xatol": 1e-10})
    root = float(found.x)
    return root**2 if loss(root) < loss(0.0) else 0.0
