"""Isotonic regression: the best non-decreasing map, without a form of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from ... import _core
from ...arrays import softmax
from ...cells.counted import cells_apart, cells_of_groups
from ...cells.fine import FineCells
from ...declared import attribute, declared, parameter
from ...fits.judge import mean_losses
from ...fits.report import FitReport
from ...invariants import Values
from ...parameters import AMOUNT, Number, OneOf
from ...passes import Data, in_memory
from ...traits import Traits
from ...types import Array, Floats, Integers
from .base import HELD_OUT, BinaryMap, Learnt
from .gaps import Gaps, gaps_apart, gaps_of_groups
from .stack import CurveStack

_FETCHED = 1 << 22  # scores that are brought into memory to be sorted: 32 MB
_CLOSEST = 1e-15  # scikit-learn takes probabilities within this of one another for one


@declared
class Isotonic(BinaryMap):
    """The non-decreasing step function nearest to the outcomes in squared loss (Zadrozny & Elkan 2002).

    Between steps the answer is interpolated linearly in the raw probability, and constant beyond the first and the last
    score, as scikit-learn does. The fit never sorts all scores: a rise can only lie right before a positive, so the
    sorted positives and the weight and largest of the negatives between neighbours determine it. More than four million
    scores that are not in memory are pooled as fine cells instead (`calibrant.cells.counted`): a step then
    begins in the middle of a cell, which holds 1/F of the scores and of the positives of its classes or less, and so
    much of either a step's answer may be off; F is 2¹⁵ for up to 32 groups of classes, 2²⁰/G for more.

    Parameters
    ----------
    strict : bool
        Add a trace of the raw probability, (1 - ε) f(p) + ε p, so that the map is strictly increasing: Mix-n-Match's
        IRM (§3.3.2) is ``OneVsRest(Isotonic(strict=True), share="all")``.
    epsilon : float
        The ε of ``strict``.
    interpolate : bool
        False for plain steps: each holds until the next begins.
    smoothing : float
        Pseudo-count. A step of weight w and frequency f answers (w f + s/2) / (w + s), pooled again where that breaks
        the order, so that no answer is exactly 0 or 1. 0 is the papers' form, which is scikit-learn's: it also takes
        probabilities within 1e-15 of one another for one, where otherwise log-odds tell 1 - 1e-16 from 1 - 1e-30.
    inputs, classes, saturated
        See `Calibrator`.

    Attributes
    ----------
    knots_ : array
        Log-odds at which steps begin and end.
    values_ : float64 array
        The answer at each knot.
    """

    _identifier = "isotonic"
    _traits = Traits("binary", "nothing", "each class", "n", sees="cells")
    strict: bool = parameter(OneOf(True, False), default=False)
    epsilon: float = parameter(Number(0, 0.5, open_low=True), default=1e-9)
    interpolate: bool = parameter(OneOf(True, False), default=True)
    smoothing: float = parameter(AMOUNT, default=1.0)
    values_: Array = attribute(Values("knots", low=0, high=1, order="rising"), counted=True)
    knots_: Floats = attribute(Values("knots", low=-np.inf, high=np.inf, order="rising", finite=False))

    @property
    def is_strict(self) -> bool:
        """Whether a larger score always gets a larger probability."""
        return self.strict

    def _learn(self, data: Data, groups: Integers) -> list[Learnt]:
        data = _fetched(data)
        if not data.in_memory:
            return self._learnt_from_cells(cells_of_groups(data, groups), data.dtype)
        gaps = gaps_of_groups(data, groups, self._resolution)
        return self._learnt_from(gaps)

    def _fit_groups_apart(self, data: Data, groups: Integers) -> tuple[list[BinaryMap], list[BinaryMap]]:
        data = _fetched(data)
        if not data.in_memory:
            found = [self._learnt_from_cells(cells, data.dtype) for cells in cells_apart(data, groups, HELD_OUT)]
            return self._copies(found[0]), self._copies(found[1])
        whole, without = gaps_apart(data, groups, self._resolution, HELD_OUT)
        return self._copies(self._learnt_from(whole)), self._copies(self._learnt_from(without))

    def _learnt_from(self, gaps: Gaps) -> list[Learnt]:
        knots, values, starts = knots_of(gaps, self.smoothing)
        return [_learnt(knots[begin:end].copy(), values[begin:end].copy()) for begin, end in pairwise(starts)]

    def _learnt_from_cells(self, cells: Iterator[FineCells], dtype: Any) -> list[Learnt]:
        learnt: list[Learnt] = []
        for own in cells:
            # Scores that are equal but for rounding are one, as they are in memory (`gaps_of_groups`).
            scores = np.ascontiguousarray(own.scores, dtype)
            fresh, _ = _core.merge_close(scores, np.array([0, own.count]), self._resolution)
            begin = np.flatnonzero(fresh)
            end = np.append(begin[1:], own.count) - 1
            outcomes = np.add.reduceat(own.outcomes, begin)
            weights = np.add.reduceat(own.weights, begin)
            starts = np.array([0, len(begin)])
            knots, values, _ = steps_of(outcomes, weights, scores[begin], scores[end], starts, self.smoothing)
            learnt.append(_learnt(knots, values))
        return learnt

    def _fit(self, data: Data) -> FitReport:
        super()._fit(data)
        return FitReport(0, True, "nll", *mean_losses(data, softmax, self._map))

    def _stacked(self, maps: list[BinaryMap], groups: Integers, dtype: Any) -> CurveStack:
        fitted = [m for m in maps if isinstance(m, Isotonic)]
        return CurveStack(
            [m.knots_ for m in fitted],
            [m.values_ for m in fitted],
            groups,
            dtype,
            steps=not self.interpolate,
            epsilon=self.epsilon if self.strict else 0.0,
        )

    @property
    def _resolution(self) -> float:
        return _CLOSEST if self.smoothing == 0 else 0.0


def _learnt(knots: Floats, values: Array) -> Learnt:
    """Return the state of a map whose losses `_fit` will tell."""
    return Learnt({"knots_": knots, "values_": values}, FitReport(0, True, "nll", np.nan, np.nan))


def knots_of(gaps: Gaps, smoothing: float) -> tuple[Floats, Array, Integers]:
    """Pool the gaps of each group into steps: first and last score of each, their answers, where groups begin."""
    sums, weights, first, last, starts = _cells(gaps)
    return steps_of(sums, weights, first, last, starts, smoothing)


def steps_of(
    sums: Array, weights: Array, first: Any, last: Any, starts: Integers, smoothing: float
) -> tuple[Floats, Array, Integers]:
    """Pool cells in order, by their outcomes, weights, first and last scores, and where the cells of a group begin."""
    levels = _core.pool_adjacent(sums, weights, starts)
    groups = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    fresh = np.ones(len(levels), dtype=bool)
    fresh[1:] = (levels[1:] != levels[:-1]) | (groups[1:] != groups[:-1])
    begin = np.flatnonzero(fresh)
    end = np.append(begin[1:], len(levels)) - 1
    groups, levels = groups[begin], levels[begin]
    if smoothing > 0:
        sums, weights = np.add.reduceat(sums, begin), np.add.reduceat(weights, begin)
        starts = np.searchsorted(groups, np.arange(len(starts)))
        levels = _core.pool_adjacent(sums + smoothing / 2, weights + smoothing, starts)
    two = last[end] > first[begin]
    ends = np.stack([first[begin], last[end]], axis=1).ravel()
    kept = np.stack([np.ones_like(two), two], axis=1).ravel()
    owners = np.repeat(groups, 2)[kept]
    return ends[kept], np.repeat(levels, 2)[kept], np.searchsorted(owners, np.arange(len(starts)))


def _cells(gaps: Gaps) -> tuple[Any, ...]:
    """Outcomes, weight, first and last score of every gap that holds anything, and where groups begin."""
    count = len(gaps.starts) - 1
    inner = np.ones(len(gaps.counts), dtype=bool)
    inner[gaps.starts[:-1] + np.arange(count)] = False
    sums, first = np.zeros(len(gaps.counts)), gaps.largest.copy()
    last = gaps.largest.copy()
    there = gaps.weights > 0  # a positive of other rows only marks a place
    sums[inner] = gaps.weights
    first[inner] = np.where(there, gaps.firsts, gaps.largest[inner])
    last[inner] = np.where(there, np.maximum(gaps.tops, gaps.largest[inner]), gaps.largest[inner])
    weights = sums + gaps.counts
    kept = weights > 0
    groups = np.repeat(np.arange(count), np.diff(gaps.starts) + 1)[kept]
    return sums[kept], weights[kept], first[kept], last[kept], np.searchsorted(groups, np.arange(count + 1))


def _fetched(data: Data) -> Data:
    """Return the rows, where they are elsewhere and few, in memory: there scores equal but for rounding are found."""
    return in_memory(data.rows()) if not data.in_memory and data.size <= _FETCHED else data
