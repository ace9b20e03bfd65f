"""What maps share that learn from fine cells, and those whose answer is a table: edges, and one answer a bin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import xlogy

from ... import _core
from ...cells.counted import Apart, cells_apart, cells_in_folds, cells_of_groups
from ...cells.fine import FineCells
from ...cells.one_score import cells_of_one_score
from ...declared import attribute, declared
from ...fits.judge import FOLDS, Comparison, judged, one_fold_tells
from ...fits.report import FitReport
from ...formulas import Term
from ...invariants import Values
from ...passes import Data, together
from ...threads import get_threads
from ...types import Array, Floats, Integers
from .base import HELD_OUT, SECOND, BinaryMap, Learnt
from .stack import CurveStack, Stack

_MOST_COUNTED = 64  # edges a class; longer tables are searched


class CellMap(BinaryMap):
    """A binary map that learns from the fine cells of each group of classes."""

    def _learn_cells(self, cells: Iterator[FineCells], data: Data, groups: Integers) -> list[Learnt]:
        """Learn from the cells of each group in turn; the rows are there for what cells do not say."""
        return [self._learnt_from(own, data.dtype) for own in cells]

    def _learnt_from(self, cells: FineCells, dtype: Any) -> Learnt:
        raise NotImplementedError

    @property
    def _has_folds(self) -> bool:
        return True

    def _learn(self, data: Data, groups: Integers) -> list[Learnt]:
        asked = np.array_equal(groups, SECOND) and not (data.in_memory and data.one_score is None)
        parts = _in_folds(data) if asked else None  # where they cost as little as the cells of all rows
        cells = cells_of_groups(data, groups) if parts is None else iter([parts.whole])
        return self._learn_cells(cells, data, groups)

    def _judged(self, report: FitReport, data: Data) -> FitReport:
        """Judge the fit by all rows of the first fold of many, each at the middle of its cell."""
        parts = _in_folds(data)
        if parts is None:
            return super()._judged(report, data)
        rest = _without_first(data, parts)
        (fitted,) = self._copies(self._learn_cells(iter([parts.rest]), rest, SECOND))
        return judged(report, _compared(parts, fitted, data.dtype), rest.total_weight)

    def _fit_groups_apart(self, data: Data, groups: Integers) -> tuple[list[BinaryMap], list[BinaryMap]]:
        whole, rest = cells_apart(data, groups, HELD_OUT)
        return self._learnt_apart(data, whole, rest, groups)

    def _learnt_apart(
        self, data: Data, whole: Iterator[FineCells], rest: Iterator[FineCells], groups: Integers
    ) -> tuple[list[BinaryMap], list[BinaryMap]]:
        """Learn from the cells of all rows and of all but the first fold, side by side."""
        learnt = together(
            data,
            [
                lambda rows: self._learn_cells(whole, rows, groups),
                lambda rows: self._learn_cells(rest, rows.without(0, HELD_OUT), groups),
            ],
        )
        return self._copies(learnt[0]), self._copies(learnt[1])


@declared
class TableMap(CellMap):
    """A binary map that answers by the bin of the log-odds.

    Attributes
    ----------
    edges_ : array of shape (bins - 1,)
        Inner edges, in log-odds; a bin is [lower edge, upper edge).
    representatives_ : array of shape (bins,)
        The answer of each bin.
    """

    representatives_: Array = attribute(Values("bins", low=0, high=1), counted=True)
    edges_: Array = attribute(Values("bins-1", order="rising", high=np.inf, finite=False))

    def _stacked(self, maps: list[BinaryMap], groups: Integers, dtype: Any) -> Stack:
        tables = [m for m in maps if isinstance(m, TableMap)]
        if len(tables) == 1 or max(len(m.edges_) for m in tables) <= _MOST_COUNTED:
            edges, answers = _side_by_side(tables)
            own = slice(None) if len(tables) == 1 else groups
            return TableStack(edges[own], answers[own])
        knots = [_as_knots(m.edges_, dtype) for m in tables]
        return CurveStack(knots, [m.representatives_ for m in tables], groups, dtype, steps=True)

    def _lifted_formula(self, maps: list[BinaryMap], groups: Integers, odds: Term) -> Term:
        tables = [m for m in maps if isinstance(m, TableMap)]
        place = odds.locate([m.edges_ for m in tables], groups)
        return place.pick([m.representatives_ for m in tables], groups).rounded()


class TableStack(Stack):
    """Tables of equal length: edges (K, m) and answers (K, m + 1), or one of each that all classes share."""

    def __init__(self, edges: Array, table: Array) -> None:
        self._edges, self._table = edges, table

    def answers(self, odds: Floats) -> Floats:
        """Return the probabilities of log-odds (n, K)."""
        out = np.empty_like(odds)
        if len(self._edges) == 1:
            _core.bin_look_up(odds.ravel(), self._edges[0], self._table[0], get_threads(), out.reshape(-1))
            return out
        for k, (edges, table) in enumerate(zip(self._edges, self._table, strict=True)):
            column = np.empty(len(odds), dtype=odds.dtype)
            _core.bin_look_up(np.ascontiguousarray(odds[:, k]), edges, table, get_threads(), column)
            out[:, k] = column
        return out

    def _swept(self, logits: Floats, normalize: bool) -> Floats:
        out = np.empty_like(logits)
        _core.bin_lift(logits, self._edges, self._table, normalize, get_threads(), out)
        return out


def _in_folds(data: Data) -> Apart | None:
    """Return the cells of many rows of two classes, the first fold's apart; None of fewer rows."""
    if not one_fold_tells(data):
        return None
    return cells_of_one_score(data, FOLDS) or data.kept(cells_in_folds, FOLDS)


def _without_first(data: Data, parts: Apart) -> Data:
    """Return all rows but the first fold, whose logits are not made unless something asks for them."""
    if data.one_score is None:
        return data.without(0, FOLDS)
    positives = parts.rest.outcomes.sum()
    weights = np.array([parts.rest.weights.sum() - positives, positives])
    return data.without_first(FOLDS, (weights, weights.astype(np.int64)))


def _compared(parts: Apart, fitted: BinaryMap, dtype: Any) -> Comparison:
    """Return the losses of the scores and of a map on the first fold, which it was not fitted on, by its cells."""
    held = parts.held
    happened = held.outcomes > 0
    missed = held.weights > held.outcomes
    second = fitted._map_scores(held.scores.astype(dtype))
    wrong = np.maximum(held.scores, 0.0) + np.log1p(np.exp(-np.abs(held.scores)))  # loss where nothing happened
    before = np.concatenate([wrong[missed], (wrong - held.scores)[happened]])
    with np.errstate(divide="ignore"):
        after = -np.log(np.concatenate([(1 - second)[missed], second[happened]]).astype(np.float64))
    sums = (held.weights, held.outcomes), parts.squares.T
    weights, squares = (np.concatenate([(all_ - own)[missed], own[happened]]) for all_, own in sums)
    return Comparison.of_sums(before, after, weights, squares)


def _side_by_side(maps: list[TableMap]) -> tuple[Array, Array]:
    """Edges and tables of several maps as two arrays: short ones go on at infinity with their last answer."""
    longest = max(len(m.edges_) for m in maps)
    edges, table = np.full((len(maps), longest), np.inf), np.empty((len(maps), longest + 1))
    for i, fitted in enumerate(maps):
        count = len(fitted.edges_)
        edges[i, :count] = fitted.edges_
        table[i, : count + 1] = fitted.representatives_
        table[i, count + 1 :] = fitted.representatives_[-1]
    return edges, table


def _as_knots(edges: Array, dtype: Any) -> Floats:
    """Return where steps of one answer a bin begin: the first answer holds below the first edge too.

    A knot is the smallest number of the dtype that is not below its edge.
    """
    if not len(edges):
        return np.zeros(1, dtype=dtype)
    knots = edges.astype(dtype)
    knots = np.where(knots < edges, np.nextafter(knots, dtype.type(np.inf)), knots)
    return np.append(knots[:1], knots)


def table_losses(raw: float, weights: Array, positives: Array, answers: Floats) -> tuple[float, float]:
    """Return the mean log-loss of the pairs before (``raw`` is its sum), and with the answers of their bins."""
    mapped = -(xlogy(positives, answers) + xlogy(np.maximum(weights - positives, 0.0), 1 - answers)).sum()
    return float(raw / weights.sum()), float(mapped / weights.sum())


def cell_losses(cells: FineCells, answers: Floats) -> tuple[float, float]:
    """Return the mean log-loss of the pairs before, and with one answer a cell."""
    return table_losses(cells.raw_loss, cells.weights, cells.outcomes, answers)
