"""Maps that are a logistic regression on the score: Platt scaling and beta calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ... import _core
from ...arrays import softmax
from ...declared import attribute, declared
from ...fits.judge import mean_losses
from ...fits.report import FitReport
from ...formulas import Term, sigmoid, softplus
from ...invariants import Values
from ...passes import Data, together
from ...threads import get_threads
from ...types import Array, Floats, Integers
from ._regression import SMOOTH
from .base import HELD_OUT, BinaryMap, Learnt
from .logistic_fit import Found, LogisticProblem
from .stack import Stack

_FAR = 1e30  # an infinite score times a coefficient of zero is zero
_LEAST = float(np.finfo(np.float32).tiny)  # a sigmoid is never zero


@declared
class LogisticMap(BinaryMap):
    """q = σ(a u + b v + c) with u = log p and v = -log(1 - p), of which u + v is the log-odds λ.

    A subclass says which (a, b, c) it allows: the columns of ``_basis`` span them, and the coefficients of the columns
    in ``_nonnegative`` must not be negative. The problem is convex: Newton steps for all groups of classes at once, one
    pass over the rows each, in which groups that have arrived cost nothing.
    """

    smooth_targets = SMOOTH
    coefficients_: Array = attribute(Values(3))

    @property
    def _steep(self) -> bool:
        return True

    @property
    def _basis(self) -> Array:
        """(3, d): column i is what coefficient i adds to (a, b, c)."""
        raise NotImplementedError

    @property
    def _nonnegative(self) -> tuple[int, ...]:
        return ()

    def _problem(self, data: Data, groups: Integers) -> LogisticProblem:
        return LogisticProblem(data, groups, self._basis, self._nonnegative, self.smooth_targets)

    def _fit(self, data: Data) -> FitReport:
        """Fit, and tell the losses of the labels themselves: those that were minimised are of smoothed targets."""
        report = super()._fit(data)
        if not self.smooth_targets:
            return report
        before, after = mean_losses(data, softmax, self._map)
        return replace(report, loss_before=before, loss_after=after)

    def _learn(self, data: Data, groups: Integers) -> list[Learnt]:
        return self._learnt_from(self._problem(data, groups).solve())

    def _fit_groups(self, data: Data, groups: Integers, near: Sequence[BinaryMap] = ()) -> list[BinaryMap]:
        start = None
        if len(near) == int(groups.max()) + 1:
            known = np.array([m.coefficients_ for m in near if isinstance(m, LogisticMap)])
            start = known @ np.linalg.pinv(self._basis).T
        return self._copies(self._learnt_from(self._problem(data, groups).solve(start)))

    def _fit_groups_apart(self, data: Data, groups: Integers) -> tuple[list[BinaryMap], list[BinaryMap]]:
        if data.in_memory:  # the second search begins where the first ended
            fitted = self._fit_groups(data, groups)
            return fitted, self._fit_groups(data.without(0, HELD_OUT), groups, fitted)
        whole, part = together(
            data,
            [
                lambda rows: self._problem(rows, groups).solve(),
                lambda rows: self._problem(rows.without(0, HELD_OUT), groups).solve(),
            ],
        )
        return self._copies(self._learnt_from(whole)), self._copies(self._learnt_from(part))

    def _learnt_from(self, found: Found) -> list[Learnt]:
        pairs = zip(found.values @ self._basis.T, found.reports(), strict=True)
        return [Learnt({"coefficients_": values}, report) for values, report in pairs]

    def _count_parameters(self) -> float:
        return float(self._basis.shape[1])

    def _stacked(self, maps: list[BinaryMap], groups: Integers, dtype: Any) -> SigmoidStack:
        rows = np.array([m.coefficients_ for m in maps if isinstance(m, LogisticMap)])
        return SigmoidStack(rows if len(rows) == 1 else rows[groups])

    def _lifted_formula(self, maps: list[BinaryMap], groups: Integers, odds: Term) -> Term:
        a, b, c = np.array([m.coefficients_ for m in maps if isinstance(m, LogisticMap)])[groups].T
        x = odds.clip(-_FAR, _FAR)
        v = softplus(x)
        margin = x * a + c if (a == b).all() else (x - v) * a + v * b + c
        return sigmoid(margin).at_least(_LEAST)


class SigmoidStack(Stack):
    """Sigmoids of coefficients (K, 3), or (1, 3) where all classes share them."""

    def __init__(self, coefficients: Array) -> None:
        self._coefficients = coefficients

    def answers(self, odds: Floats) -> Floats:
        """Return the probabilities of log-odds (n, K)."""
        out = np.empty_like(odds)
        _core.logistic_apply(odds, self._coefficients, get_threads(), out)
        return out

    def _swept(self, logits: Floats, normalize: bool) -> Floats:
        out = np.empty_like(logits)
        _core.logistic_lift(logits, self._coefficients, normalize, get_threads(), out)
        return out
