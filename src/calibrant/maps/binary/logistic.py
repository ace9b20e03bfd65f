"""Maps that are a logistic regression on the score: Platt scaling and beta calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ... import _core
from ...fit_report import FitReport
from ...passes import Sample, reduce
from ...threads import get_threads
from .base import BinaryMap, Pairs

__all__ = ["LogisticMap"]

_PASSES = 100
_CLIPPED = 1e30


class LogisticMap(BinaryMap):
    """q = σ(a u + b v + c) with u = log p and v = -log(1 - p), of which u + v is the log-odds λ.

    A subclass says which (a, b, c) it allows: the columns of ``_basis`` span them, and the coefficients of the columns
    in ``_nonnegative`` must not be negative. The problem is convex: Newton steps for all groups of classes at once,
    one pass over the rows each. Where a coefficient would turn negative, the best solution with some at zero is the
    constrained optimum.
    """

    smooth_targets: bool
    coefficients_: NDArray[np.float64]

    @property
    def _basis(self) -> NDArray[np.float64]:
        """(3, d): column i is what coefficient i adds to (a, b, c)."""
        raise NotImplementedError

    @property
    def _nonnegative(self) -> tuple[int, ...]:
        return ()

    def _fit_pairs(self, pairs: Pairs) -> FitReport:
        logits = np.stack([np.zeros_like(pairs.log_odds), pairs.log_odds], axis=1)
        sample = Sample(logits, pairs.outcomes.astype(np.int64), pairs.weights, 2)
        (report,) = self._solve(sample, np.array([-1, 0]), [self])
        return report

    def _fit_groups(self, sample: Sample, groups: NDArray[np.int64]) -> list[BinaryMap]:
        maps = [self.unfitted() for _ in range(groups.max() + 1)]
        for fitted, report in zip(maps, self._solve(sample, groups, maps), strict=True):
            fitted.classes_, fitted.fit_report_ = np.arange(2), report
        return list(maps)

    def _solve(self, sample: Sample, groups: NDArray[np.int64], maps: Sequence[LogisticMap]) -> list[FitReport]:
        problem = _Problem(sample, groups, self._basis, self.smooth_targets)
        found = problem.solve(np.full(problem.start.shape, True), np.full(len(problem.start), True))
        wrong = np.asarray((found.values[:, list(self._nonnegative)] < 0).any(axis=1))
        if wrong.any():
            found = problem.constrained(found, self._nonnegative, wrong)
        for fitted, values in zip(maps, found.values @ self._basis.T, strict=True):
            fitted.coefficients_ = values
        return found.reports(problem)

    def _map_scores(self, log_odds: NDArray[np.floating]) -> NDArray[np.floating]:
        a, b, c = self.coefficients_
        x = np.clip(log_odds, -_CLIPPED, _CLIPPED)  # an infinite score times a coefficient of zero is zero
        v = np.logaddexp(x.dtype.type(0), x)
        return expit(x.dtype.type(a) * (x - v) + x.dtype.type(b) * v + x.dtype.type(c))


@dataclass
class _Found:
    """Coefficients of each group in the basis, the loss they reach, passes and whether they converged."""

    values: NDArray[np.float64]
    loss: NDArray[np.float64]
    passes: int
    converged: NDArray[np.bool_]

    def reports(self, problem: _Problem) -> list[FitReport]:
        before, total = problem.sums(problem.start)[0], problem.totals
        return [
            FitReport(self.passes, bool(self.converged[g]), "nll", float(before[g] / t), float(self.loss[g] / t))
            for g, t in enumerate(total)
        ]


class _Problem:
    """One logistic regression a group of classes, solved side by side."""

    def __init__(self, sample: Sample, groups: NDArray[np.int64], basis: NDArray[np.float64], smooth: bool) -> None:
        self.sample, self.groups, self.basis = sample, groups, basis
        count = int(groups.max()) + 1
        weights = sample.weight_array
        rows = np.bincount(groups[groups >= 0], minlength=count) * weights.sum()
        owners = groups[sample.labels]
        positives = np.bincount(owners[owners >= 0], weights[owners >= 0], minlength=count)
        self.totals = rows
        self.targets = np.tile([0.0, 1.0], (count, 1))
        if smooth:
            self.targets[:, 0] = 1 / (rows - positives + 2)
            self.targets[:, 1] = (positives + 1) / (positives + 2)
        alone = np.linalg.lstsq(basis, np.array([1.0, 1.0, 0.0]), rcond=None)[0]  # leaves the scores alone
        self.start = np.tile(alone, (count, 1)).astype(np.float64)

    def sums(self, values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """One pass: loss, gradient and Hessian of every group in the basis."""
        coefficients = np.ascontiguousarray(values @ self.basis.T)
        threads = get_threads()
        found = reduce(
            lambda rows: _core.logistic_sums(
                rows.logits, rows.labels, rows.weights, self.groups, coefficients, self.targets, threads
            ),
            self.sample,
        )
        hessian = found[:, 4:][:, [[0, 1, 2], [1, 3, 4], [2, 4, 5]]]
        return found[:, 0], found[:, 1:4] @ self.basis, self.basis.T @ hessian @ self.basis

    def solve(self, free: NDArray[np.bool_], wanted: NDArray[np.bool_]) -> _Found:
        """Newton steps, halved until the loss falls; coefficients that are not ``free`` stay at zero.

        Groups that are not ``wanted`` stay where they start.
        """
        values = np.where(free, self.start, 0.0)
        loss, gradient, hessian = self.sums(values)
        step, decrease = _newton_step(gradient, hessian, free)
        halvings = np.zeros(len(values), dtype=np.int64)
        for passes in range(2, _PASSES):
            done = ~wanted | (decrease <= 1e-13 * self.totals) | (halvings > 40)
            if done.all():
                return _Found(values, loss, passes, done)
            trial = np.where(done[:, None], values, values + step)
            new_loss, new_gradient, new_hessian = self.sums(trial)
            better = ~done & (new_loss <= loss)
            values[better], loss[better], halvings[better] = trial[better], new_loss[better], 0
            fresh = _newton_step(new_gradient, new_hessian, free)
            step[better], decrease[better] = fresh[0][better], fresh[1][better]
            step[~better] /= 2
            halvings[~better] += 1
        return _Found(values, loss, _PASSES, decrease <= 1e-13 * self.totals)

    def constrained(self, found: _Found, nonnegative: tuple[int, ...], wrong: NDArray[np.bool_]) -> _Found:
        """Replace the solution of groups that are ``wrong`` by their best one with some coefficients at zero."""
        found.loss[wrong] = np.inf
        for count in range(1, len(nonnegative) + 1):
            for fixed in combinations(nonnegative, count):
                free = np.ones_like(found.values, dtype=bool)
                free[:, list(fixed)] = False
                part = self.solve(free, wrong)
                better = wrong & (part.values[:, list(nonnegative)] >= 0).all(axis=1) & (part.loss < found.loss)
                found.values[better], found.loss[better] = part.values[better], part.loss[better]
                found.converged[better] = part.converged[better]
                found.passes = max(found.passes, part.passes)
        return found


def _newton_step(
    gradient: NDArray[np.float64], hessian: NDArray[np.float64], free: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Steps of all groups and the decrease they promise; directions without curvature are left alone."""
    gradient = np.where(free, gradient, 0.0)
    scale = np.sqrt(np.maximum(np.einsum("gii->gi", hessian), 1e-300))
    unit = hessian / (scale[:, :, None] * scale[:, None, :]) * (free[:, :, None] & free[:, None, :])
    with np.errstate(over="ignore", invalid="ignore"):
        step = -np.einsum("gij,gj->gi", np.linalg.pinv(unit, rcond=1e-10, hermitian=True), gradient / scale) / scale
    step = np.where(np.isfinite(step).all(axis=1, keepdims=True), step, 0.0)
    return step, -np.einsum("gi,gi->g", gradient, step)
