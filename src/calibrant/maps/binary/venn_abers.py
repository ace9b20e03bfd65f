"""Venn–Abers: two isotonic answers, one for either outcome of the row in question, and the probability between them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ... import _core
from ...arrays import log_odds
from ...cells.counted import cells_of_groups
from ...cells.fine import FineCells
from ...declared import attribute, declared, parameter
from ...errors import InvalidInput
from ...fits.report import FitReport
from ...invariants import Values
from ...parameters import SCALE, AnyOf, OneOf, count_from
from ...passes import Data
from ...traits import Traits
from ...types import Array, Floats, Integers
from .base import Learnt
from .table import TableMap, cell_losses

_ROUNDING = 1e-14  # of a score, beside itself: what sums of K exponentials in double differ by


@declared
class VennAbers(TableMap):
    """The isotonic value at a score were its row one more with outcome 0 (p₀), or with outcome 1 (p₁).

    Vovk, Petej & Fedorova 2015. Where rows are exchangeable, one of the two is calibrated, whatever the model and the
    sample size: the outcome's own. `predict_interval` returns both; the answer is between them, where the larger of the
    two regrets is least: p₁/(1 - p₀ + p₁) in log-loss, p₁ + (p₀² - p₁²)/2 in squared loss. Both are step functions of
    the score, tabulated in linear time after a sort.

    Parameters
    ----------
    folds : int, optional
        The cross form (CVAP): one table for each of so many folds of the rows, merged by geometric means (log-loss) or
        by means (squared loss). On the scores of one model it mostly adds noise, as each table sees a fold only.
    loss : {"nll", "brier"}
        Whose regret the answer minimises.
    unit : float
        Weight of the row in question.
    inputs, classes, saturated
        See `Calibrator`.

    Attributes
    ----------
    edges_, representatives_ : arrays
        See `TableMap`; the merged answer of each bin of log-odds.
    lower_, upper_ : float64 arrays of shape (bins,)
        p₀ and p₁ of each bin.
    """

    _identifier = "venn-abers"
    _traits = Traits("binary", "nothing", "each class", "n", sees="cells")
    _zeros_lowest = True
    folds: int | None = parameter(AnyOf(OneOf(None), count_from(2)), default=None)
    loss: str = parameter(OneOf("nll", "brier"), default="nll")
    unit: float = parameter(SCALE, default=1.0)
    lower_: Array = attribute(Values("bins", low=0, high=1))
    upper_: Array = attribute(Values("bins", low=0, high=1))

    def _check_state(self) -> None:
        """No interval ends before it begins."""
        if (self.lower_ > self.upper_).any():
            raise InvalidInput("VennAbers.lower_ is not usable: it is above upper_")

    def predict_interval(self, scores: Any) -> tuple[Floats, Floats]:
        """Return (p₀, p₁) of the second class: two arrays of shape (n,)."""
        odds = np.ascontiguousarray(log_odds(self._scores_to_map(scores).logits)[:, 1])
        return self.interval_of(odds)

    def interval_of(self, odds: Floats) -> tuple[Floats, Floats]:
        """Return (p₀, p₁) of log-odds of any shape."""
        place = np.searchsorted(self.edges_, odds, side="right")
        return self.lower_[place].astype(odds.dtype), self.upper_[place].astype(odds.dtype)

    def _learn_cells(self, cells: Iterator[FineCells], data: Data, groups: Integers) -> list[Learnt]:
        if self.folds is None:
            return super()._learn_cells(cells, data, groups)
        parts = [data.only(fold, self.folds) for fold in range(self.folds)]
        found = [list(cells_of_groups(part, groups)) for part in parts if part.n]
        return [self._merged([part[g] for part in found], own) for g, own in enumerate(cells)]

    def _learnt_from(self, cells: FineCells, dtype: Any) -> Learnt:
        return self._merged([cells], cells)

    def _merged(self, parts: list[FineCells], cells: FineCells) -> Learnt:
        """Return the tables of one group of classes: of its cells, or of the cells of each fold."""
        tables = [table_of(part, self.unit) for part in parts]
        edges = np.unique(np.concatenate([own for own, _, _ in tables]))
        places = [np.searchsorted(own, np.append(-np.inf, edges), side="right") for own, _, _ in tables]
        lower = np.array([low[place] for (_, low, _), place in zip(tables, places, strict=True)])
        upper = np.array([high[place] for (_, _, high), place in zip(tables, places, strict=True)])
        answers, low, high = merged(lower, upper, self.loss)
        kept = np.flatnonzero((np.diff(low) != 0) | (np.diff(high) != 0) | (np.diff(answers) != 0))
        bins = np.append(0, kept + 1)
        state = {"edges_": edges[kept], "representatives_": answers[bins], "lower_": low[bins], "upper_": high[bins]}
        answered = answers[np.searchsorted(edges, cells.scores, side="right")]
        return Learnt(state, FitReport(0, True, "nll", *cell_losses(cells, answered)))


def table_of(cells: FineCells, unit: float) -> tuple[Array, Array, Array]:
    """Return edges in log-odds, and p₀ and p₁ of each bin; a bin is [lower edge, upper edge).

    With one score a cell, a score that is seen has a bin of its own, wide enough for log-odds of K classes that were
    summed in another order, and those between two that are seen share one.
    """
    upper = _core.upper_venn_abers(cells.weights, cells.outcomes, unit)
    other = np.maximum(cells.weights - cells.outcomes, 0.0)
    mirrored = _core.upper_venn_abers(cells.weights[::-1].copy(), other[::-1].copy(), unit)
    lower = 1.0 - mirrored[::-1]
    if not cells.exact:
        return cells.cuts, lower, upper
    width = _ROUNDING * (1 + np.abs(cells.scores))
    begin = np.maximum(cells.scores - width, np.append(-np.inf, cells.cuts))
    end = np.minimum(cells.scores + width, np.append(cells.cuts, np.inf))
    edges = np.stack([begin, end], axis=1).ravel()
    low = np.append(0.0, np.repeat(lower, 2))
    high = np.append(np.repeat(upper, 2), 1.0)
    return edges, low, high


def merged(lower: Array, upper: Array, loss: str) -> tuple[Array, Array, Array]:
    """Return the answer, p₀ and p₁ from those of several tables (folds, bins).

    In log-loss p₁ is the geometric mean, and so is 1 - p₀; in squared loss all are plain means.
    """
    if loss == "brier":
        return (upper + (lower**2 - upper**2) / 2).mean(axis=0), lower.mean(axis=0), upper.mean(axis=0)
    if len(lower) == 1:
        low, high = lower[0], upper[0]
    else:
        with np.errstate(divide="ignore"):
            low = -np.expm1(np.log1p(-lower).mean(axis=0))
            high = np.exp(np.log(upper).mean(axis=0))
    return high / (1 - low + high), low, high
