"""Maps that are a logistic regression on the score: Platt scaling and beta calibration."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ... import _core
from ...fits.report import FitReport
from ...passes import Block
from ...threads import get_threads
from .base import BinaryMap, Pairs
from .logistic_fit import Found, LogisticProblem

__all__ = ["LogisticMap"]


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
        sample = Block(logits, pairs.outcomes.astype(np.int64), pairs.weights, 2)
        problem = LogisticProblem(sample, np.array([-1, 0]), self._basis, self.smooth_targets)
        found = problem.solve(problem.start, self._nonnegative)
        self.coefficients_ = (found.values @ self._basis.T)[0]
        return found.reports()[0]

    def _fit_groups(self, sample: Block, groups: NDArray[np.int64]) -> list[BinaryMap]:
        problem = LogisticProblem(sample, groups, self._basis, self.smooth_targets)
        return self._maps(problem.solve(problem.start, self._nonnegative))

    def _fit_groups_apart(
        self, sample: Block, groups: NDArray[np.int64], fold: NDArray[np.int64]
    ) -> tuple[list[BinaryMap], list[BinaryMap]]:
        rest = sample.weight_array.copy()
        rest[fold] = 0
        whole, part = (
            LogisticProblem(rows, groups, self._basis, self.smooth_targets)
            for rows in (sample, replace(sample, weights=rest))
        )
        found = whole.solve(whole.start, self._nonnegative)
        return self._maps(found), self._maps(part.solve(found.values, self._nonnegative))

    def _maps(self, found: Found) -> list[BinaryMap]:
        maps: list[BinaryMap] = []
        blank = self.unfitted()
        for values, report in zip(found.values @ self._basis.T, found.reports(), strict=True):
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
