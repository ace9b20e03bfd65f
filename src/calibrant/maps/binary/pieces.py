"""Maps whose answer is the sigmoid of a piecewise cubic curve of the log-odds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logit

from ... import _core
from ...cells.fine import FineCells
from ...declared import attribute, declared
from ...errors import InvalidInput
from ...fits.report import FitReport
from ...formulas import Term, sigmoid
from ...invariants import Values
from ...passes import Data
from ...threads import get_threads
from ...types import Array, Floats, Integers
from .base import BinaryMap, Learnt
from .stack import Stack
from .table import CellMap, cell_losses

SATURATED = 36.7  # log-odds at which the probability is the last float64 below one


class Curve(NamedTuple):
    """A fitted curve: its knots, a cubic from each to the next, how the solver ended, and what else to remember."""

    knots: Array
    pieces: Array
    iterations: int
    converged: bool
    state: dict[str, Any]


@declared
class PieceMap(CellMap):
    """q = σ(c₀ + c₁ t + c₂ t² + c₃ t³) with t = λ - knot, the knot being the last at or below λ.

    Log-odds beyond the first and the last knot are answered as these are. The knots reach as far as the rows do, and at
    least to probabilities of 1/(2nK) and 1 - 1/(2nK): n rows of K classes cannot tell what is beyond from that, and an
    exact zero is read as no more than that (see `calibrant.validation.saturation`), so the answer never falls.

    Attributes
    ----------
    knots_ : float64 array of shape (m,)
        Log-odds, increasing.
    pieces_ : float64 array of shape (m, 4)
        c₀ … c₃ from each knot on; the last is the value at the last knot.
    """

    _zeros_lowest = True
    clip = SATURATED
    knots_: Array = attribute(Values("knots", low=-710, high=710, order="rising"))
    pieces_: Array = attribute(Values("knots", 4))

    def _curve(self, cells: FineCells, low: float, high: float) -> Curve:
        """Fit to cells within ± ``clip``; the curve is to reach from ``low`` to ``high``."""
        raise NotImplementedError

    def _learn_cells(self, cells: Iterator[FineCells], data: Data, groups: Integers) -> list[Learnt]:
        reach = _reach(data)
        return [self._learnt_within(own, reach) for own in cells]

    def _learnt_within(self, cells: FineCells, reach: float) -> Learnt:
        held = clipped(cells, self.clip)
        low = max(min(reach, float(held.scores[0])), -self.clip)
        high = min(max(-reach, float(held.scores[-1])), self.clip)
        found = self._curve(held, low, high)
        if not np.isfinite(found.pieces).all():  # what no solver step can leave, but a user must never get
            raise InvalidInput(f"{type(self).__name__} found no finite curve", seen=f"{cells.count} distinct scores")
        stack = PieceStack([found.knots], [found.pieces], np.zeros(1, dtype=np.int64))
        losses = cell_losses(cells, stack.answers(cells.scores[:, None])[:, 0])
        state = {"knots_": found.knots, "pieces_": found.pieces, **found.state}
        return Learnt(state, FitReport(found.iterations, found.converged, "nll", *losses))

    def _stacked(self, maps: list[BinaryMap], groups: Integers, dtype: Any) -> PieceStack:
        fitted = [m for m in maps if isinstance(m, PieceMap)]
        return PieceStack([m.knots_ for m in fitted], [m.pieces_ for m in fitted], groups)


class PieceStack(Stack):
    """Curves of several groups of classes side by side."""

    def __init__(self, knots: Sequence[Array], pieces: Sequence[Array], groups: Integers) -> None:
        self._groups = groups
        self._starts = np.cumsum([0, *map(len, knots)])
        self._knots = np.concatenate(knots)
        self._pieces = np.ascontiguousarray(np.concatenate(pieces))

    def answers(self, odds: Floats) -> Floats:
        """Return the probabilities of log-odds (n, K)."""
        out = np.empty_like(odds)
        one = len(self._starts) == 2
        groups = np.zeros(odds.shape[1], dtype=np.int64) if one else self._groups
        _core.pieces_apply(odds, groups, self._starts, self._knots, self._pieces, get_threads(), out)
        return out

    def formula(self, odds: Term) -> Term:
        """Return what `answers` computes, as a formula."""
        bounds = list(pairwise(self._starts))
        knots = [self._knots[a:b] for a, b in bounds]
        pieces = [self._pieces[a:b] for a, b in bounds]
        first, last = (np.array([own[end] for own in knots])[self._groups] for end in (0, -1))
        x = odds.clip(first, last)
        place = x.locate([own[1:] for own in knots], self._groups)
        t = x - place.pick(knots, self._groups)
        c = [place.pick([own[:, power] for own in pieces], self._groups) for power in range(4)]
        return sigmoid(c[0] + t * (c[1] + t * (c[2] + t * c[3]))).rounded()


def _reach(data: Data) -> float:
    """Return the log-odds of 1/(2nK), which the rows cannot tell from what is beyond."""
    return float(-np.log(2.0 * data.n_classes * max(data.total_weight, data.n)))


def clipped(cells: FineCells, clip: float) -> FineCells:
    """Return the cells with their scores held within ± ``clip``; those beyond become one cell at either end."""
    if cells.scores[0] >= -clip and cells.scores[-1] <= clip:
        return cells
    scores = np.clip(cells.scores, -clip, clip)
    starts = np.flatnonzero(np.append(True, np.diff(scores) > 0))
    weights, outcomes = (np.add.reduceat(part, starts) for part in (cells.weights, cells.outcomes))
    return FineCells(scores[starts], weights, outcomes, cells.cuts[starts[1:] - 1], exact=False)


def one_outcome(cells: FineCells, low: float, high: float) -> Curve | None:
    """Return η = λ + b where the event always or never happened, with the answer (y + ½)/(n + 1) at the mean of λ."""
    total, happened = float(cells.weights.sum()), float(cells.outcomes.sum())
    if 0 < happened < total:
        return None
    target = (happened + 0.5) / (total + 1)
    shift = float(logit(target)) - float(cells.weights @ cells.scores) / total
    pieces = np.array([[low + shift, 1.0, 0, 0], [high + shift, 0, 0, 0]])
    return Curve(np.array([low, high]), pieces, 0, True, {})
