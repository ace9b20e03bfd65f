"""How a lift answers: the tables of its fitted maps side by side, made once and swept over rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import expit

from ... import _core
from ...arrays import in_precision, log_odds, row_blocks
from ...formulas import Term, sigmoid
from ...formulas.functions import absolute, one_minus_exp
from ...threads import get_threads
from ...types import Array, Floats, Integers

_FAR = -600.0  # log-odds below which σ has few digits left, and from -745 on none


class Stack:
    """Answers K columns of scores, each by the map of its class's group."""

    def answers(self, odds: Floats) -> Floats:
        """Return the probabilities of log-odds (n, K)."""
        raise NotImplementedError

    def formula(self, odds: Term) -> Term | None:
        """Return what `answers` computes, as a formula; None where there is none."""
        return None

    def marginals(self, logits: Floats) -> Floats:
        """Return each class's probability against the rest, for C-ordered logits (n, K)."""
        return self._swept(logits, False)

    def normalized(self, logits: Floats) -> Floats:
        """Return the marginals divided by their sum; softmax of the logits where all are zero."""
        return self._swept(logits, True)

    def _swept(self, logits: Floats, normalize: bool) -> Floats:
        out = np.empty_like(logits)
        for rows in row_blocks(*logits.shape):
            out[rows] = self.answers(log_odds(logits[rows]))
        if normalize:
            _core.normalize_rows(logits, False, get_threads(), out)
        return out


class ColumnStack(Stack):
    """Maps that know nothing of one another: each answers the columns of its group."""

    def __init__(self, maps: Sequence[Callable[[Floats], Floats]], groups: Integers) -> None:
        self._maps = maps
        self._columns = [np.flatnonzero(groups == g) for g in range(len(maps))]

    def answers(self, odds: Floats) -> Floats:
        """Return the probabilities of log-odds (n, K)."""
        if len(self._maps) == 1:
            return self._maps[0](odds)
        out = np.empty_like(odds)
        for columns, answer in zip(self._columns, self._maps, strict=True):
            out[:, columns] = answer(np.ascontiguousarray(odds[:, columns]))
        return out


class CurveStack(Stack):
    """Curves through knots, one a group: linear in the raw probability between knots and constant beyond, or steps.

    Parameters
    ----------
    knots, values : sequences of arrays
        Of each curve: log-odds, in order, and the answer at each. With ``steps`` an answer holds until the next knot.
    groups : int array of shape (K,)
    dtype : dtype of the scores
    epsilon : float
        Part of the raw probability that is mixed in.
    """

    def __init__(
        self,
        knots: Sequence[Floats],
        values: Sequence[Array],
        groups: Integers,
        dtype: Any,
        *,
        steps: bool = False,
        epsilon: float = 0.0,
    ) -> None:
        self._groups, self._steps, self._epsilon = groups, steps, epsilon
        self._curves = list(zip(knots, values, strict=True))
        self._starts = np.cumsum([0, *map(len, knots)])
        with np.errstate(over="ignore"):  # a knot beyond single precision is infinite in it
            self._knots = (knots[0] if len(knots) == 1 else np.concatenate(knots)).astype(dtype, copy=False)
        self._values = values[0] if len(values) == 1 else np.concatenate(values)

    def answers(self, odds: Floats) -> Floats:
        """Return the probabilities of log-odds (n, K)."""
        out = np.empty_like(odds)
        _core.isotonic_apply(
            odds, self._groups, self._starts, self._knots, self._values, self._steps, self._epsilon, get_threads(), out
        )
        return out

    def formula(self, odds: Term) -> Term:
        """Return what `answers` computes, as a formula.

        Between knots a and b, with x a log-odds and values v to w, the answer is v + c σ(x) (1 - e^(a - x)) where
        c = (w - v) / (σ(b) (1 - e^(a - b))): linear in σ(x), and no digits are lost where σ saturates. Where knots are
        rounded to the precision of the scores, or are so far down that σ is nearly zero, c is made of a and b in place.
        """
        curves = [(np.asarray(knots, dtype=np.float64), values) for knots, values in self._curves]
        rounds = not odds.formula.double and any(
            (in_precision(knots, np.float32) != knots).any() for knots, _ in curves
        )
        place = odds.locate([knots for knots, _ in curves], self._groups, as_scores=rounds)
        apart = rounds or any((knots[np.isfinite(knots)] < _FAR).any() for knots, _ in curves)
        tables = [self._table(knots, values, as_they_are=apart) for knots, values in curves]
        base, rise, start, *end = (place.pick([table[i] for table in tables], self._groups) for i in range(3 + apart))
        answer = base
        if apart and not self._steps:
            answer = base + rise * _share_of_rise(odds, start.rounded(), end[0].rounded())
        elif not self._steps:
            answer = base + rise * sigmoid(odds) * one_minus_exp((odds - start).clip(0.0, 1e3))
        if self._epsilon > 0:
            answer = (1.0 - self._epsilon) * answer + self._epsilon * sigmoid(odds)
        return answer.rounded()

    @staticmethod
    def _table(knots: Array, values: Array, *, as_they_are: bool = False) -> Array:
        """Return for each number of knots at or below a score: v, c and a; ``as_they_are``: v, w - v, a and b."""
        table = np.zeros((4 if as_they_are else 3, len(knots) + 1))
        table[0] = np.concatenate([values[:1], values])
        inner = np.isfinite(knots[:-1]) & np.isfinite(knots[1:]) & (knots[1:] > knots[:-1])
        a, b = np.where(inner, knots[:-1], 0.0), np.where(inner, knots[1:], 1.0)
        if as_they_are:
            table[1, 1:-1] = np.where(inner, np.diff(values), 0.0)
            table[2:, 1:-1] = a, b
            return table
        with np.errstate(over="ignore"):
            table[1, 1:-1] = np.where(inner, np.diff(values) / (expit(b) * -np.expm1(a - b)), 0.0)
        table[2, 1:-1] = a
        return table


def _share_of_rise(x: Term, a: Term, b: Term) -> Term:
    """Return σ(x) (1 - e^(a - x)) over σ(b) (1 - e^(a - b)), which is between 0 and 1 from a to b."""
    width = one_minus_exp((b - a).clip(0.0, 1e3))
    some = width > 0.0
    ratio = (x.at_most(0.0) - b.at_most(0.0)).exp() * (1.0 + (-absolute(b)).exp()) / (1.0 + (-absolute(x)).exp())
    return some.where(one_minus_exp((x - a).clip(0.0, 1e3)) / some.where(width, 1.0) * ratio, 0.0)
