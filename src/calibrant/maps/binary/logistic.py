"""Maps that are a logistic regression on the score: Platt scaling and beta calibration."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ... import _core
from ...fit_report import FitReport
from ...passes import Sample, reduce
from ...threads import get_threads
from .base import BinaryMap, Pairs

__all__ = ["LogisticMap"]

_PASSES = 200


class LogisticMap(BinaryMap):
    """q = σ(a u + b v + c) with u = log p and v = -log(1 - p), of which u + v is the log-odds λ.

    A subclass says which (a, b, c) it allows: the columns of ``_basis`` span them, and the coefficients of the columns
    in ``_nonnegative`` must not be negative. The problem is convex: projected Newton steps for all groups of classes at
    once, one pass over the rows each, in which groups that have arrived cost nothing.
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
        problem = _Problem(sample, np.array([-1, 0]), self._basis, self.smooth_targets)
        found = problem.solve(problem.start, self._nonnegative)
        self.coefficients_ = (found.values @ self._basis.T)[0]
        return found.reports(problem)[0]

    def _fit_groups(self, sample: Sample, groups: NDArray[np.int64]) -> list[BinaryMap]:
        problem = _Problem(sample, groups, self._basis, self.smooth_targets)
        return self._maps(problem, problem.solve(problem.start, self._nonnegative))

    def _fit_groups_apart(
        self, sample: Sample, groups: NDArray[np.int64], fold: NDArray[np.int64]
    ) -> tuple[list[BinaryMap], list[BinaryMap]]:
        rest = sample.weight_array.copy()
        rest[fold] = 0
        whole, part = (
            _Problem(rows, groups, self._basis, self.smooth_targets) for rows in (sample, replace(sample, weights=rest))
        )
        found = whole.solve(whole.start, self._nonnegative)
        return self._maps(whole, found), self._maps(part, part.solve(found.values, self._nonnegative))

    def _maps(self, problem: _Problem, found: _Found) -> list[BinaryMap]:
        maps: list[BinaryMap] = []
        blank = self.unfitted()
        for values, report in zip(found.values @ self._basis.T, found.reports(problem), strict=True):
            fitted = copy(blank)
            fitted.classes_, fitted.coefficients_, fitted.fit_report_ = np.arange(2), values, report
            maps.append(fitted)
        return maps

    def _map_scores(self, log_odds: NDArray[np.floating]) -> NDArray[np.floating]:
        flat = np.ascontiguousarray(log_odds).reshape(1, -1)
        out = np.empty_like(flat)
        _core.logistic_apply(flat, self.coefficients_[None], get_threads(), out)
        return out.reshape(log_odds.shape)

    def _map_groups(
        self, maps: list[BinaryMap], log_odds: NDArray[np.floating], groups: NDArray[np.int64]
    ) -> NDArray[np.floating]:
        out = np.empty_like(log_odds)
        _core.logistic_apply(log_odds, _coefficients(maps, groups), get_threads(), out)
        return out

    def _lift(
        self, maps: list[BinaryMap], logits: NDArray[np.floating], groups: NDArray[np.int64], normalize: bool
    ) -> NDArray[np.floating] | None:
        logits = np.ascontiguousarray(logits)
        out = np.empty_like(logits)
        _core.logistic_lift(logits, _coefficients(maps, groups), normalize, get_threads(), out)
        return out


def _coefficients(maps: list[BinaryMap], groups: NDArray[np.int64]) -> NDArray[np.float64]:
    """Coefficients of every class, or one row where all share them."""
    rows = np.array([m.coefficients_ for m in maps if isinstance(m, LogisticMap)])
    return rows if len(rows) == 1 else rows[groups]


@dataclass(frozen=True, eq=False)
class _Found:
    """Coefficients of each group in the basis, the loss they start from and reach, passes, and who has arrived."""

    values: NDArray[np.float64]
    before: NDArray[np.float64]
    loss: NDArray[np.float64]
    passes: int
    converged: NDArray[np.bool_]

    def reports(self, problem: _Problem) -> list[FitReport]:
        return [
            FitReport(self.passes, bool(self.converged[g]), "nll", float(self.before[g] / t), float(self.loss[g] / t))
            for g, t in enumerate(problem.totals)
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

    def sums(self, values: NDArray[np.float64], wanted: NDArray[np.bool_]) -> tuple[NDArray[np.float64], ...]:
        """One pass: loss, gradient and Hessian in the basis of every group that is wanted; zeros for the others."""
        coefficients = np.ascontiguousarray(values @ self.basis.T)
        groups = np.where((self.groups >= 0) & wanted[self.groups], self.groups, -1)
        two, threads = not np.array_equal(self.basis[0], self.basis[1]), get_threads()
        found = reduce(
            lambda rows: _core.logistic_sums(
                rows.logits, rows.labels, rows.weights, groups, coefficients, self.targets, two, threads
            ),
            self.sample,
        )
        basis = self.basis if two else self.basis[1:]
        size = len(basis)
        places = np.zeros((size, size), dtype=np.int64)
        places[np.triu_indices(size)] = places.T[np.triu_indices(size)] = np.arange(size * (size + 1) // 2)
        hessian = found[:, 1 + size :][:, places]
        return found[:, 0], found[:, 1 : 1 + size] @ basis, basis.T @ hessian @ basis

    def solve(self, start: NDArray[np.float64], nonnegative: tuple[int, ...]) -> _Found:
        """Newton steps, halved until the loss falls, on the side of zero that is allowed (Bertsekas 1982).

        A coefficient that is zero and wants to be negative is held. The last step of a group is taken without
        another pass: what it would still gain is far below a millionth of its standard error.
        """
        bounded = np.isin(np.arange(self.basis.shape[1]), nonnegative)
        values, everyone = start.copy(), np.full(len(start), True)
        loss, gradient, hessian = self.sums(values, everyone)
        before, limit = loss.copy(), np.minimum(1e-9 * self.totals, 1e-6)
        step, decrease = _newton_step(values, gradient, hessian, bounded)
        halvings = np.zeros(len(values), dtype=np.int64)
        for passes in range(1, _PASSES):
            moving = (decrease > limit) & (halvings <= 40)
            if not moving.any():
                break
            trial = _projected(values + np.where(moving[:, None], step, 0.0), bounded)
            new_loss, new_gradient, new_hessian = self.sums(trial, moving)
            better = moving & (new_loss <= loss)
            values[better], loss[better], halvings[better] = trial[better], new_loss[better], 0
            fresh = _newton_step(values[better], new_gradient[better], new_hessian[better], bounded)
            step[better], decrease[better] = fresh
            step[moving & ~better] /= 2
            halvings[moving & ~better] += 1
        last = decrease <= limit
        values[last] = _projected(values[last] + step[last], bounded)
        return _Found(values, before, loss - np.where(last, decrease / 2, 0.0), passes, last | (halvings > 40))


def _projected(values: NDArray[np.float64], bounded: NDArray[np.bool_]) -> NDArray[np.float64]:
    return np.where(bounded & (values < 0), 0.0, values)


def _newton_step(
    values: NDArray[np.float64], gradient: NDArray[np.float64], hessian: NDArray[np.float64], bounded: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Steps of all groups and the decrease they promise; directions without curvature are left alone."""
    free = ~(bounded & (values <= 0) & (gradient > 0))
    gradient = np.where(free, gradient, 0.0)
    scale = np.sqrt(np.maximum(np.einsum("gii->gi", hessian), 1e-300))
    unit = hessian / (scale[:, :, None] * scale[:, None, :]) * (free[:, :, None] & free[:, None, :])
    with np.errstate(over="ignore", invalid="ignore"):
        step = -np.einsum("gij,gj->gi", np.linalg.pinv(unit, rcond=1e-10, hermitian=True), gradient / scale) / scale
    step = np.where(np.isfinite(step).all(axis=1, keepdims=True), step, 0.0)
    step = np.where(bounded & (values <= 0) & (step < 0), 0.0, step)
    return step, -np.einsum("gi,gi->g", gradient, step)
