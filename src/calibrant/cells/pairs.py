"""Pairs: scores and outcomes of one event, as views make them of K classes; and cells: tied scores as one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import inner
from ..types import Array, Integers


@dataclass(frozen=True, eq=False)
class Cells:
    """Distinct scores with what happened at them: what every estimator that sorts works on.

    Working on cells makes a result a function of the set of rows: rows with the same score cannot be told apart.
    """

    scores: Array  # (m,): increasing
    weights: Array  # (m,): the weight of the rows with this score, positive
    outcomes: Array  # (m,): the weight of those whose event happened
    # As how many rows a weight of one counts; None where weights are numbers of rows, or each cell is one row.
    unit: float | None = field(default=None, kw_only=True)

    @property
    def frequencies(self) -> Array:
        """The share of each cell's weight whose event happened."""
        return self.outcomes / self.weights

    @property
    def rows(self) -> float:
        """As how many rows these count."""
        return rows_of(len(self.weights), self.weights) if self.unit is None else self.unit * float(self.weights.sum())

    @property
    def share(self) -> Array:
        """Each cell's share of the total weight."""
        return self.weights / self.weights.sum()

    @property
    def residuals(self) -> Array:
        """The weight of what happened less what was said, in each cell."""
        return self.outcomes - self.weights * self.scores


def order_ties(order: Integers, keys: NDArray[Any], *further: NDArray[Any] | None) -> Integers:
    """Return an order by keys with rows of equal keys ordered by what else is known of them, the first first."""
    ordered = keys[order]
    equal = ordered[1:] == ordered[:-1]
    if not equal.any():
        return order
    tied = np.flatnonzero(np.r_[equal, False] | np.r_[False, equal])
    rows = order[tied]
    columns = [column[rows] for column in (keys, *further) if column is not None]
    order[tied] = rows[np.lexsort(columns[::-1])]
    return order


@dataclass(frozen=True, eq=False)
class Pairs:
    """Scores in [0, 1], whether the event of each happened, and how much each row counts."""

    scores: Array  # (n,)
    outcomes: Array  # (n,): 0 or 1
    weights: Array | None = None  # (n,): None means one each. A weight of 2 is the row twice
    # (n,): as how many independent rows each entry counts where entries are sums over rows; None means one each.
    draws: Array | None = None
    # (n,): the number of each row's cluster (a patient, a prompt), 0 … G-1: rows of one cluster need not be
    # independent.
    clusters: Integers | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.scores)

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.n) if self.weights is None else float(self.weights.sum())

    @property
    def rows(self) -> float:
        """As how many rows these count: (Σw)²/Σw² where entries are sums of rows, whose Σw² is w²/draws each."""
        return float(self.total if self.counts else self.total**2 / inner(self.weight_array, self.unit))

    @property
    def counts(self) -> bool:
        """Whether weights are numbers of rows."""
        if self.weights is None or not is_whole(self.weights):
            return self.weights is None
        return self.draws is None or np.array_equal(self.weights, self.draws)

    @property
    def unit(self) -> Array:
        """The weight of one row of each entry: one where weights are numbers of rows. Σw·unit is Σw² of all rows."""
        if self.weights is None or self.counts:
            return np.ones(self.n)
        one = np.ones(self.n) if self.draws is None else self.draws
        return np.divide(self.weights, one, out=np.zeros(self.n), where=one > 0)

    @property
    def weight_array(self) -> Array:
        """The weights, as ones where none were given."""
        return np.ones(self.n) if self.weights is None else self.weights

    def take(self, rows: NDArray[Any]) -> Pairs:
        """Return the given rows (indices or a mask)."""
        weights, draws = (None if part is None else part[rows] for part in (self.weights, self.draws))
        clusters = None if self.clusters is None else self.clusters[rows]
        return Pairs(self.scores[rows], self.outcomes[rows], weights, draws, clusters)

    def counted(self) -> Pairs:
        """Return the pairs without rows of weight zero."""
        return self if self.weights is None or self.weights.all() else self.take(self.weights > 0)

    def weighted(self, weights: Array | None) -> Pairs:
        """Return the same pairs with other weights, each entry one row."""
        made = replace(self, weights=weights, draws=None)
        made.__dict__["order"] = self.order  # that of the same scores
        return made

    @cached_property
    def order(self) -> Integers:
        """The rows by increasing score, ties by what else is known of them: draws must not depend on how rows came."""
        order = np.argsort(self.scores, kind="stable")
        return order_ties(order, self.scores, self.outcomes, self.weights, self.draws, self.clusters)

    @property
    def known_order(self) -> Integers | None:
        """The order, or None where nothing has needed it yet."""
        return self.__dict__.get("order")

    @cached_property
    def cells(self) -> Cells:
        """The pairs sorted, and tied scores joined; rows of weight zero are left out."""
        order = self.order
        if self.weights is not None and not self.weights.all():
            order = order[self.weights[order] > 0]
        scores, outcomes = self.scores[order], self.outcomes[order]
        weights = np.ones(len(scores)) if self.weights is None else self.weights[order]
        outcomes = outcomes if self.weights is None else outcomes * weights
        unit = None if self.counts else self.rows / self.total
        changes = scores[1:] != scores[:-1]
        if changes.all():
            return Cells(scores, weights, outcomes, unit=unit)
        first = np.flatnonzero(np.r_[True, changes])
        return Cells(scores[first], np.add.reduceat(weights, first), np.add.reduceat(outcomes, first), unit=unit)


def rows_of(n: int, weights: Array | None) -> float:
    """Return as how many rows weights count, where a rule depends on their number.

    Whole weights are numbers of rows. Fractional ones count as many rows as give a mean the same variance, (Σw)²/Σw²,
    whatever their scale.
    """
    if weights is None:
        return float(n)
    total = float(weights.sum())
    return total if is_whole(weights) else total**2 / float((weights**2).sum())


_MOST_ROWS = 1e8  # that whole weights may stand for


def is_whole(weights: Array) -> bool:
    """Tell whether weights are numbers of rows: whole, and of no more rows than could be written out."""
    return bool((weights == np.floor(weights)).all()) and float(weights.sum()) <= _MOST_ROWS


def standard_error(values: Array, pairs: Pairs) -> tuple[float, float]:
    """Return the standard error of a weighted mean of rows, and as how many independent draws they count.

    Rows of a cluster are added up first, as they need not be independent: G/(G-1)·Σ_g (Σ_{i∈g} w(x - mean))²/(Σw)².
    """
    w = pairs.weight_array
    share = w / w.sum()
    d = np.where(w > 0, values - inner(share[w > 0], values[w > 0]), 0.0)
    if pairs.clusters is None:
        rows = pairs.rows
        return (float(np.sqrt(inner(share, d**2) / (rows - 1))) if rows > 1 else np.inf), rows
    sums = np.bincount(pairs.clusters, share * d).astype(np.float64)
    count = len(np.unique(pairs.clusters[w > 0]))
    return (float(np.sqrt(count / (count - 1) * inner(sums, sums))) if count > 1 else np.inf), float(count)
