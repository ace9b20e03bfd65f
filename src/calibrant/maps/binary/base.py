"""What the maps on one score share: how they are fitted on groups of classes, and how a lift uses them."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from ...arrays import log_odds, softmax
from ...calibrator import Calibrator
from ...errors import InvalidInput
from ...fits.judge import FOLDS, cross_validate, one_fold_tells
from ...fits.report import FitReport
from ...formulas import Term, as_rows
from ...formulas import log_odds as log_odds_formula
from ...passes import Data, together
from ...types import Floats, Integers
from .stack import ColumnStack, Stack

HELD_OUT = 10  # of a large fit's rows one in so many is held out
SECOND = np.array([-1, 0])  # of two classes the second is the one whose probability is learnt


class Learnt(NamedTuple):
    """What one group of classes has taught a map: the fitted attributes, and the report."""

    state: dict[str, Any]
    report: FitReport


class BinaryMap(Calibrator):
    """Base of the maps from one score of one class to its probability.

    The score is λ = log p - log(1 - p), never computed through a rounded p. A binary map implements ``_learn(data,
    groups)`` and either ``_map_scores(log_odds)``, which answers an array of any shape with probabilities of that shape
    and dtype, for ±inf too, or ``_stacked(maps, groups, dtype)``, which answers for many maps at once. Used by itself
    it calibrates the second of two classes; `OneVsRest` lifts it to K classes.
    """

    @property
    def is_strict(self) -> bool:
        """Whether a larger score always gets a larger probability (up to rounding)."""
        return False

    # What a binary map implements -----------------------------------------------------------------------------

    def _learn(self, data: Data, groups: Integers) -> list[Learnt]:
        """Learn from the pairs (log-odds of a class, is it the label) of each group of classes.

        ``groups`` holds the group of each class, 0 … G-1; the pairs of a class of group -1 are left out.
        """
        raise NotImplementedError

    def _map_scores(self, log_odds: Floats) -> Floats:
        column = np.ascontiguousarray(log_odds).reshape(-1, 1)
        return self._stacked([self], np.zeros(1, dtype=np.int64), column.dtype).answers(column).reshape(log_odds.shape)

    def _stacked(self, maps: list[BinaryMap], groups: Integers, dtype: Any) -> Stack:
        """Return what answers column k by ``maps[groups[k]]``; one column at a time, unless overridden."""
        return ColumnStack([fitted._map_scores for fitted in maps], groups)

    def _lifted_formula(self, maps: list[BinaryMap], groups: Integers, odds: Term) -> Term:
        """What `_stacked` answers, as a formula."""
        found = self._stacked(maps, groups, np.dtype(np.float64)).formula(odds)
        return super()._formula(odds) if found is None else found

    def _score_formula(self, odds: Term) -> Term:
        """The probabilities of log-odds of one class."""
        return self._lifted_formula([self], np.zeros(1, dtype=np.int64), odds)

    # What the lift calls --------------------------------------------------------------------------------------

    def _fit_groups(self, data: Data, groups: Integers, near: Sequence[BinaryMap] = ()) -> list[BinaryMap]:
        """Return a fitted copy of this map for each group of classes.

        ``near`` are maps of these groups from other rows of the same kind: where a search may begin.
        """
        return self._copies(self._learn(data, groups))

    def _fit_groups_apart(self, data: Data, groups: Integers) -> tuple[list[BinaryMap], list[BinaryMap]]:
        """Fit on all rows, and on all but the first of ten folds; overridden where both need hardly more than one."""
        return self._fit_groups(data, groups), self._fit_groups(data.without(0, HELD_OUT), groups)

    # Shared ---------------------------------------------------------------------------------------------------

    def fit_data(self, data: Data, *, check: bool = False) -> FitReport:
        """Fit on validated rows; ``check`` fills in the held-out losses.

        Where many rows are not in memory, the fit that one fold judges shares the passes of the fit on all of them.
        """
        apart = check and not data.in_memory and not self._has_folds and one_fold_tells(data)
        if not apart or not 0 < data.only(0, FOLDS).total_weight < data.total_weight:
            return super().fit_data(data, check=check)
        fit = super().fit_data
        report, after = together(data, [fit, lambda rows: self._fit_copy(rows.without(0, FOLDS))])
        self.fit_report_ = cross_validate(report, data, lambda _: after, softmax)
        return self.fit_report_

    @property
    def _has_folds(self) -> bool:
        """Whether what a fit on many rows learns from tells the first fold from the others."""
        return False

    def _copies(self, learnt: list[Learnt]) -> list[BinaryMap]:
        blank = self.unfitted()
        blank.classes_ = np.arange(2)
        maps: list[BinaryMap] = []
        for one in learnt:
            fitted = copy(blank)
            fitted._remember(one)
            maps.append(fitted)
        return maps

    def _remember(self, learnt: Learnt) -> None:
        for name, value in learnt.state.items():
            setattr(self, name, value)
        self.fit_report_ = learnt.report

    def _fit(self, data: Data) -> FitReport:
        if data.n_classes != 2:
            name = type(self).__name__
            raise InvalidInput(
                f"{name} acts on one score of one class, so by itself it takes two classes",
                seen=f"scores of {data.n_classes} classes",
                hint=f"OneVsRest({name}()) lifts it to any number of classes",
            )
        (learnt,) = self._learn(data, SECOND)
        self._remember(learnt)
        return learnt.report

    def _map(self, logits: Floats) -> Floats:
        second = self._map_scores(np.ascontiguousarray(log_odds(logits)[:, 1]))
        return np.stack([1 - second, second], axis=1)

    def _formula(self, z: Term) -> Term:
        second = self._score_formula(log_odds_formula(z, rounded=not self._steep).column(1))
        return as_rows([1.0 - second, second])
