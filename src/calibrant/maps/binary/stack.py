"""How a lift answers: the tables of its fitted maps side by side, made once and swept over rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import _core
from ...arrays import log_odds, row_blocks
from ...threads import get_threads
from ...types import Array, Floats, Integers

__all__ = ["ColumnStack", "CurveStack", "Stack"]


class Stack:
    """Answers K columns of scores, each by the map of its class's group."""

    def answers(self, odds: Floats) -> Floats:
        """Return the probabilities of log-odds (n, K)."""
        raise NotImplementedError

    def marginals(self, logits: Floats) -> Floats:
        """Return each class's probability against the rest, for C-ordered logits (n, K)."""
        out = np.empty_like(logits)
        for rows in row_blocks(*logits.shape):
            out[rows] = self.answers(log_odds(logits[rows]))
        return out

    def normalized(self, logits: Floats) -> Floats:
        """Return the marginals divided by their sum; softmax of the logits where all are zero."""
        out = self.marginals(logits)
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
        self._starts = np.cumsum([0, *map(len, knots)])
        self._knots = (knots[0] if len(knots) == 1 else np.concatenate(knots)).astype(dtype, copy=False)
        self._values = values[0] if len(values) == 1 else np.concatenate(values)

    def answers(self, odds: Floats) -> Floats:
        """Return the probabilities of log-odds (n, K)."""
        out = np.empty_like(odds)
        _core.isotonic_apply(
            odds, self._groups, self._starts, self._knots, self._values, self._steps, self._epsilon, get_threads(), out
        )
        return out
