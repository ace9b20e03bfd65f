"""Many logistic regressions on a score at once: projected Newton steps, one pass over the rows each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from ... import _core
from ...fits.report import FitReport
from ...passes import Block, reduce
from ...threads import get_threads

__all__ = ["Found", "LogisticProblem"]

_PASSES = 200
_SMALLEST = 1e-12  # part of a step, at which rounding decides

Values = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Found:
    """Coefficients of each group in the basis, the mean losses they start from and reach, passes, and who arrived."""

    values: Values
    before: Values
    after: Values
    passes: int
    converged: Mask

    def reports(self) -> list[FitReport]:
        """Return the report of each group."""
        found = zip(self.converged.tolist(), self.before.tolist(), self.after.tolist(), strict=True)
        return [FitReport(self.passes, arrived, "nll", before, after) for arrived, before, after in found]


class LogisticProblem:
    """Regressions of the outcomes on (log p, -log(1 - p), 1), one a group of classes, solved side by side.

    Parameters
    ----------
    sample : Block
    groups : int array of shape (K,)
        The group of each class; a class of group -1 is left out.
    basis : array of shape (3, d)
        What each coefficient adds to (a, b, c).
    smooth : bool
        Outcomes 1 and 0 become (n₊ + 1)/(n₊ + 2) and 1/(n₋ + 2).
    """

    def __init__(self, sample: Block, groups: NDArray[np.int64], basis: Values, smooth: bool) -> None:
        self.sample, self.groups, self.basis = sample, groups, basis
        count = int(groups.max()) + 1
        weights, owners = sample.weight_array, groups[sample.labels]
        self.totals = np.bincount(groups[groups >= 0], minlength=count) * weights.sum()
        self.positives = np.bincount(owners[owners >= 0], weights[owners >= 0], minlength=count)
        self.targets = np.tile([0.0, 1.0], (count, 1))
        if smooth:
            self.targets[:, 0] = 1 / (self.totals - self.positives + 2)
            self.targets[:, 1] = (self.positives + 1) / (self.positives + 2)
        alone = np.linalg.lstsq(basis, np.array([1.0, 1.0, 0.0]), rcond=None)[0]  # leaves the scores alone
        self.start = np.tile(alone, (count, 1)).astype(np.float64)

    def sums(self, values: Values, wanted: Mask) -> tuple[Values, Values, Values]:
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

    def constants(self) -> tuple[Values, Values]:
        """Coefficients that answer the same for every score, as well as can be, and their losses."""
        expected = (self.totals - self.positives) * self.targets[:, 0] + self.positives * self.targets[:, 1]
        free = np.array_equal(self.basis[:, -1], [0, 0, 1])
        margin = logit(np.clip(expected / self.totals, 1e-12, 1 - 1e-12)) if free else np.zeros(len(expected))
        values = np.zeros_like(self.start)
        values[:, -1] = margin
        return values, self.totals * np.logaddexp(0, margin) - expected * margin

    def solve(self, start: Values, nonnegative: tuple[int, ...]) -> Found:
        """Newton steps, cut until the loss falls, on the side of zero that is allowed (Bertsekas 1982).

        A coefficient that is zero and wants to be negative is held. The last step of a group is taken without
        another pass: what it would still gain is far below a millionth of its standard error.
        """
        search = _Search(self, start, nonnegative)
        before = search.loss.copy()
        search.give_up_hopeless()
        passes = 1
        while passes < _PASSES and search.moving.any():
            search.advance()
            passes += 1
        arrived = search.finish()
        return Found(search.values, before / self.totals, search.loss / self.totals, passes, arrived)


class _Search:
    """Where each group stands: coefficients, loss, the next step, the decrease it promises, the part of it to try."""

    def __init__(self, problem: LogisticProblem, start: Values, nonnegative: tuple[int, ...]) -> None:
        self.problem, self.values = problem, start.copy()
        self.bounded = np.isin(np.arange(problem.basis.shape[1]), nonnegative)
        self.limit = np.minimum(1e-9 * problem.totals, 1e-6)
        self.loss, gradient, hessian = problem.sums(self.values, np.full(len(start), True))
        self.step, self.decrease = _newton_step(self.values, gradient, hessian, self.bounded)
        self.size = np.ones(len(start))

    @property
    def moving(self) -> Mask:
        return (self.decrease > self.limit) & (self.size > _SMALLEST)

    def give_up_hopeless(self) -> None:
        """Start anew from a constant where that beats the start.

        There scores say less than nothing, or are so large that Newton sees no curvature.
        """
        flat, loss = self.problem.constants()
        hopeless = loss < self.loss
        if hopeless.any():
            self._move(hopeless, np.where(hopeless[:, None], flat, self.values), *self.problem.sums(flat, hopeless))

    def advance(self) -> None:
        """One pass: try the steps; take those that lower the loss, and cut the others."""
        moving, loss = self.moving, self.loss
        trial = self._projected(self.values + np.where(moving, self.size, 0.0)[:, None] * self.step)
        sums = self.problem.sums(trial, moving)
        better = moving & (sums[0] <= loss)
        worse = moving & ~better
        promised = self.size[worse] * self.decrease[worse]  # the parabola of this slope through both losses ends at:
        self.size[worse] *= np.clip(promised / (2 * (sums[0][worse] - loss[worse] + promised)), 0.25, 0.5)
        self._move(better, trial, *sums)

    def finish(self) -> Mask:
        """Take the last steps, and return which groups have arrived."""
        last = self.decrease <= self.limit
        self.values = np.where(last[:, None], self._projected(self.values + self.step), self.values)
        self.loss = self.loss - np.where(last, self.decrease / 2, 0.0)
        return last | (self.size <= _SMALLEST)

    def _move(self, those: Mask, values: Values, loss: Values, gradient: Values, hessian: Values) -> None:
        self.values[those], self.loss[those], self.size[those] = values[those], loss[those], 1.0
        steps = _newton_step(values[those], gradient[those], hessian[those], self.bounded)
        self.step[those], self.decrease[those] = steps

    def _projected(self, values: Values) -> Values:
        return np.where(self.bounded & (values < 0), 0.0, values)


def _newton_step(values: Values, gradient: Values, hessian: Values, bounded: Mask) -> tuple[Values, Values]:
    """Steps of all groups and the decrease they promise; directions without curvature are left alone."""
    at_zero = bounded & (values <= 0)
    free = ~(at_zero & (gradient > 0))
    gradient = np.where(free, gradient, 0.0)
    scale = np.sqrt(np.maximum(np.einsum("gii->gi", hessian), 1e-300))
    unit = hessian / (scale[:, :, None] * scale[:, None, :]) * (free[:, :, None] & free[:, None, :])
    with np.errstate(over="ignore", invalid="ignore"):
        step = -np.einsum("gij,gj->gi", np.linalg.pinv(unit, rcond=1e-10, hermitian=True), gradient / scale) / scale
    step = np.where(np.isfinite(step).all(axis=1, keepdims=True), step, 0.0)
    step = np.where(at_zero & (step < 0), 0.0, step)
    return step, -np.einsum("gi,gi->g", gradient, step)
