"""Views: how K-class probabilities become one-dimensional (score, outcome) pairs."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...cells.pairs import Pairs, order_ties, rows_of
from ...errors import InvalidInput
from ...passes.sample import bit_hash
from ...types import Array, Floats, Integers
from ...validation import (
    Probabilities,
    as_array,
    as_groups,
    as_labels,
    as_probabilities_of,
    as_weights,
    class_named,
    column_names,
    is_first_of_two,
    order_of,
    ordered_like,
    refuse_swapped,
)

_BY_ROW = ("values", "top", "top_column", "squares")  # what validated probabilities hold for each row


@dataclass(frozen=True, eq=False)
class Forecasts:
    """Validated input of a metric.

    Attributes
    ----------
    given : Probabilities
        (n, K), or (n,) for the probability of one event.
    labels : int64 array of shape (n,)
        Column indices; 0 and 1 for one event.
    weights : float64 array of shape (n,) or None
    classes : array of shape (K,)
        The label of each column.
    clusters : int64 array of shape (n,) or None
        The number of each row's cluster; rows of one cluster need not be independent.
    """

    given: Probabilities
    labels: Integers
    weights: Array | None
    classes: NDArray[Any]
    clusters: Integers | None = None

    @property
    def probabilities(self) -> Floats:
        """The probabilities as an array."""
        return self.given.values

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.labels)

    @property
    def rows(self) -> float:
        """As how many rows these count."""
        return rows_of(self.n, self.weights)

    @property
    def is_event(self) -> bool:
        """Whether the input is the probability of one event."""
        return self.probabilities.ndim == 1

    @cached_property
    def order(self) -> Integers:
        """The rows in an order that their content settles: draws go by place, and must not depend on how rows came."""
        if self.is_event:
            return self.top.order
        keys = bit_hash(self.probabilities)
        return order_ties(np.argsort(keys, kind="stable"), keys, self.labels, self.weights, self.clusters)

    def vectors(self) -> Array:
        """Return (n, K) probabilities; one event is two classes."""
        p = self.probabilities.astype(np.float64)
        return np.column_stack([1 - p, p]) if self.is_event else p

    def take(self, rows: NDArray[Any]) -> Forecasts:
        """Return the given rows (indices or a mask), which need no further check."""
        kept = replace(self.given, **{name: getattr(self.given, name)[rows] for name in _BY_ROW})
        weights = None if self.weights is None else self.weights[rows]
        clusters = None if self.clusters is None else self.clusters[rows]
        return Forecasts(kept, self.labels[rows], weights, self.classes, clusters)

    def clustered(self, clusters: Any) -> Forecasts:
        """Return the same forecasts with the cluster of each row; None leaves rows independent."""
        return self if clusters is None else replace(self, clusters=as_groups(clusters, self.n, "clusters")[0])

    @cached_property
    def top(self) -> Pairs:
        """The largest probability of each row, and whether that class is right (the first among equals)."""
        if self.is_event:
            return self._pairs(self.probabilities, self.labels)
        return self._pairs(self.given.top, self.given.top_column == self.labels)

    def one_class(self, column: int) -> Pairs:
        """Return the probability of one class and whether it is the label."""
        if self.is_event:
            return of_event(self.top, column)
        return self._pairs(self.probabilities[:, column], self.labels == column)

    def pooled(self) -> Pairs:
        """Return all n·K entries, each against whether its class is the label"""
        if self.is_event:
            return self.top
        k = self.probabilities.shape[1]
        weights = None if self.weights is None else np.repeat(self.weights, k)
        own = None if self.clusters is None else np.repeat(self.clusters, k)
        pairs = self._pairs(self.probabilities.ravel(), (self.labels[:, None] == np.arange(k)).ravel())
        return replace(pairs, weights=weights, clusters=own)

    def _pairs(self, scores: NDArray[Any], outcomes: NDArray[Any]) -> Pairs:
        scores = np.ascontiguousarray(scores, dtype=np.float64)
        return Pairs(scores, outcomes.astype(np.float64), self.weights, clusters=self.clusters)

    def each_class(self) -> Iterator[Pairs]:
        """Yield the pairs of each class; one event is its own only class."""
        if self.is_event:
            yield self.top
            return
        for start in range(0, self.probabilities.shape[1], 64):  # columns side by side share cache lines
            block = np.ascontiguousarray(self.probabilities[:, start : start + 64].T, dtype=np.float64)
            for column, scores in enumerate(block, start):
                yield self._pairs(scores, self.labels == column)


def of_event(pairs: Pairs, column: int) -> Pairs:
    """Return the pairs of an event, or those of its absence."""
    return pairs if column == 1 else replace(pairs, scores=1 - pairs.scores, outcomes=1 - pairs.outcomes)


def read(
    y_true: Any,
    y_prob: Any,
    sample_weight: Any = None,
    *,
    classes: Any = None,
    marginals: bool = False,
    whole: bool = True,
) -> Forecasts:
    """Check the arguments of a metric.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Class labels, or 0/1 outcomes where ``y_prob`` is one-dimensional.
    y_prob : array-like of shape (n, K) or (n,)
        Probabilities of the classes, or of one event.
    classes : sequence, optional
        The label of each column (for one event: of "no" and "yes").
    marginals : bool
        Whether the rows of ``y_prob`` need not sum to one.
    whole : bool
        Whether these are all rows, and not some of more to come.
    """
    refuse_swapped(y_true, y_prob)
    given = as_probabilities_of(y_prob, classes, marginals=marginals)
    labels, known = read_labels(y_true, given.values, classes, given.columns)
    return Forecasts(given, labels, as_weights(sample_weight, len(labels), whole=whole), known)


def in_known_order(y_prob: Any, classes: Any, known: Any) -> tuple[Any, Any]:
    """Return probabilities to add to what has seen these classes, and the classes; names of columns decide.

    Without names that say so, both are as they came.
    """
    columns = column_names(y_prob)
    if classes is not None or known is None or columns is None:
        return y_prob, classes
    told = np.asarray(known).tolist()
    if order_of(columns, told) is not None:
        return ordered_like(y_prob, None, told), known
    return y_prob, None if class_named(columns, told) is None else known


def read_labels(
    y_true: Any, probabilities: Floats, classes: Any, columns: tuple[Any, ...] | None
) -> tuple[Integers, NDArray[Any]]:
    """Return the labels of probabilities as column indices, and the classes."""
    labels = as_array(y_true, "y_true")[0]
    if classes is None and labels.dtype.kind == "b":  # outcomes: all may be true
        named = columns is not None and order_of(columns, (False, True)) is not None
        if named or is_first_of_two(columns, (False, True), "y_prob"):
            return as_labels(labels, 2, len(probabilities), None if named else [True, False], columns, "y_true")
        labels = labels.astype(np.int64)
    k = 2 if probabilities.ndim == 1 else probabilities.shape[1]
    return as_labels(labels, k, len(probabilities), classes, columns, name="y_true")


def select(forecasts: Forecasts, view: Any, others: tuple[str, ...] = ()) -> Pairs:
    """Return the pairs of a view that has one set of them: ``"top_label"``, ``"pooled"``, or a class by its label.

    ``others`` are views that the caller takes beside these, for the message where there is no such view.
    """
    if isinstance(view, str) and view in ("top_label", "pooled"):
        return forecasts.top if view == "top_label" else forecasts.pooled()
    place = [i for i, c in enumerate(forecasts.classes.tolist()) if isinstance(view, Hashable) and c == view]
    if not place:
        shown = ", ".join(repr(c) for c in forecasts.classes[:6].tolist())
        raise InvalidInput(
            "no such view",
            seen=repr(view),
            allowed=", ".join(map(repr, ("top_label", "pooled", *others))) + f", or a class: {shown}",
        )
    return forecasts.one_class(place[0])
