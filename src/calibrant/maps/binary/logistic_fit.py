"""Many logistic regressions on a score at once: Newton steps, one pass over the rows each."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import logit

from ... import _core
from ...fits.report import FitReport
from ...fits.solvers.newton import Sums, newton
from ...passes import Block, Data, together
from ...threads import get_threads
from ...types import Array, Integers, Mask
from ._regression import smooth_pair

_GAIN = 1e-6  # of the summed loss: what a last step would still gain; a standard error is worth 0.5
_PILOT_ROWS = 1 << 15  # at most: the more, the fewer passes over all rows
_SHORTEST = 0.25  # part of a step that is too long: shorter ones take more passes where there are many classes
_SHARE = 1e-9  # of the mean loss: the same where the rows weigh little


@dataclass(frozen=True, eq=False)
class Found:
    """Coefficients of each group in the basis, the mean losses they start from and reach, passes, and who arrived."""

    values: Array
    before: Array
    after: Array
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
    data : Data
    groups : int array of shape (K,)
        The group of each class; a class of group -1 is left out.
    basis : array of shape (3, d)
        What each coefficient adds to (a, b, c).
    nonnegative : tuple of int
        The coefficients that must not be negative.
    smooth : float
        s: outcomes 1 and 0 become (n₊ + s)/(n₊ + 2s) and s/(n₋ + 2s).
    """

    def __init__(self, data: Data, groups: Integers, basis: Array, nonnegative: tuple[int, ...], smooth: float) -> None:
        self.data, self.groups, self.basis = data, groups, basis
        count = int(groups.max()) + 1
        own = groups >= 0
        self.totals = np.bincount(groups[own], minlength=count) * data.total_weight
        self.positives: Array = np.bincount(groups[own], data.class_weights[own], minlength=count).astype(np.float64)
        self.targets = np.stack(
            smooth_pair(self.positives, np.asarray(self.totals - self.positives, float), float(smooth)), axis=1
        )
        self.low = np.where(np.isin(np.arange(basis.shape[1]), nonnegative), 0.0, -np.inf)
        alone = np.linalg.lstsq(basis, np.array([1.0, 1.0, 0.0]), rcond=None)[0]  # leaves the scores alone
        self.start = np.tile(alone, (count, 1)).astype(np.float64)

    def __call__(self, values: Array, wanted: Mask) -> Sums:
        """One pass: loss, gradient and Hessian in the basis of every group that is wanted; zeros for the others."""
        return self._sums_of(self.data, values, wanted)

    def _sums_of(self, data: Data, values: Array, wanted: Mask) -> Sums:
        groups = np.where((self.groups >= 0) & wanted[self.groups], self.groups, -1)
        two = not np.array_equal(self.basis[0], self.basis[1])
        coefficients = np.ascontiguousarray(values @ self.basis.T)
        found = data.reduce(
            partial(logistic_sums, groups=groups, coefficients=coefficients, targets=self.targets, two_slopes=two)
        )
        basis = self.basis if two else self.basis[1:]
        size = len(basis)
        places = np.zeros((size, size), dtype=np.int64)
        places[np.triu_indices(size)] = places.T[np.triu_indices(size)] = np.arange(size * (size + 1) // 2)
        hessian = found[:, 1 + size :][:, places]
        return Sums(found[:, 0], found[:, 1 : 1 + size] @ basis, basis.T @ hessian @ basis)

    def constants(self) -> tuple[Array, Array]:
        """Return coefficients that answer the same for every score, as well as can be, and their losses."""
        expected = (self.totals - self.positives) * self.targets[:, 0] + self.positives * self.targets[:, 1]
        free = np.array_equal(self.basis[:, -1], [0, 0, 1])
        margin = logit(np.clip(expected / self.totals, 1e-12, 1 - 1e-12)) if free else np.zeros(len(expected))
        values = np.zeros_like(self.start)
        values[:, -1] = margin
        return values, self.totals * np.logaddexp(0, margin) - expected * margin

    def _begin(self) -> list[Array]:
        """Return the scores as they are, and where to begin if not there: the optimum on a pilot where passes cost."""
        if self.data.in_memory:
            return [self.start]
        pilot = copy(self)
        pilot.data = self.data.surveyed(_PILOT_ROWS)
        found = pilot.solve()
        return [self.start, np.where(found.converged[:, None], found.values, self.start)]

    def solve(self, start: Array | None = None) -> Found:
        """Newton from the scores as they are, or from ``start``.

        Where the best constant beats the start, the scores say less than nothing, or are so large that Newton sees no
        curvature: there it starts anew from the constant.
        """
        begin = self._begin() if start is None else [start]
        every = np.ones(len(self.start), dtype=bool)
        known = together(self.data, [partial(self._sums_of, values=values, wanted=every) for values in begin])
        start, sums = begin[-1], known[-1]
        before, passes = known[0].value, 1
        flat, loss = self.constants()
        hopeless = loss < sums.value
        if hopeless.any():
            start = np.where(hopeless[:, None], flat, start)
            pairs = zip(self(start, hopeless), sums, strict=True)
            sums = Sums(*(np.where(hopeless.reshape(-1, *[1] * (a.ndim - 1)), a, b) for a, b in pairs))
            passes = 2
        tolerance = np.minimum(_GAIN, _SHARE * self.totals)
        found = newton(self, start, tolerance, low=self.low, known=sums, shortest=_SHORTEST)
        after = found.sums.value / self.totals
        return Found(found.theta, before / self.totals, after, passes + found.passes, found.converged)


def logistic_sums(block: Block, groups: Integers, coefficients: Array, targets: Array, two_slopes: bool) -> Array:
    """One pass: of each group the loss, its gradient and the upper triangle of its Hessian (cpp/logistic.hpp)."""
    return _core.logistic_sums(
        block.logits, block.labels, block.weights, groups, coefficients, targets, two_slopes, get_threads()
    )
