"""Several labels a row: events that need not exclude each other, some of which may not be known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...cells.pairs import Pairs
from ...errors import InvalidInput
from ...types import Array, Integers, Mask
from ...validation import Probabilities, as_groups, as_matrix, as_weights, order_alike
from .forecasts import Forecasts


@dataclass(frozen=True, eq=False)
class MultiLabel:
    """Probabilities of L events a row, and whether each happened; NaN where that is not known."""

    probabilities: Array
    outcomes: Array
    weights: Array | None
    clusters: Integers | None
    names: tuple[str, ...]

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.outcomes)

    @property
    def known(self) -> Mask:
        """Which outcomes are known."""
        return ~np.isnan(self.outcomes)

    def label(self, place: int) -> Pairs:
        """Return the rows of one label whose outcome is known."""
        rows = self.known[:, place]
        weights = None if self.weights is None else self.weights[rows]
        clusters = None if self.clusters is None else self.clusters[rows]
        return Pairs(self.probabilities[rows, place], self.outcomes[rows, place], weights, clusters=clusters)

    def pooled(self) -> Forecasts:
        """Return all known entries as one event; a row, or what was said to be a cluster, is a cluster."""
        known = self.known
        rows = np.broadcast_to(np.arange(self.n)[:, None], known.shape)[known]
        values, outcomes = self.probabilities[known], self.outcomes[known].astype(np.int64)
        given = Probabilities(values, None, values, np.zeros(len(values), np.int64), values**2)
        weights = None if self.weights is None else self.weights[rows]
        clusters = rows if self.clusters is None else self.clusters[rows]
        return Forecasts(given, outcomes, weights, np.array([0, 1]), clusters)

    def counts(self) -> tuple[Array, Array]:
        """Return of each row how many known labels it has, and how many were expected."""
        known = self.known
        return np.where(known, self.outcomes, 0.0).sum(axis=1), np.where(known, self.probabilities, 0.0).sum(axis=1)


def read_labels_of(y_true: Any, y_prob: Any, sample_weight: Any, clusters: Any, classes: Any) -> MultiLabel:
    """Check outcomes and probabilities of several labels a row."""
    p, columns = as_matrix(y_prob, "y_prob")
    y, named = as_matrix(y_true, "y_true")
    if p.ndim != 2 or y.shape != p.shape:
        raise InvalidInput(
            "several labels a row need outcomes and probabilities of one shape (n, L)",
            seen=f"{y.shape} and {p.shape}",
            allowed="a column for each label, outcomes 0, 1, or NaN where not known",
        )
    order = order_alike(columns, named)
    y, p = (y if order is None else y[:, order]).astype(np.float64), p.astype(np.float64)
    known = ~np.isnan(y)
    strange = known & (y != 0) & (y != 1)
    if strange.any():
        row, column = np.argwhere(strange)[0]
        raise InvalidInput(
            "y_true holds what is no outcome", seen=f"{y[row, column]:g} in row {row}", allowed="0, 1 or NaN"
        )
    wrong = known & ~((p >= 0) & (p <= 1))
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise InvalidInput(
            "y_prob holds what is no probability", seen=f"{p[row, column]:g} in row {row}", allowed="numbers in [0, 1]"
        )
    if not known.any():
        raise InvalidInput("y_true has no known outcome", seen="NaN everywhere")
    names = columns if classes is None else classes
    names = tuple(map(str, range(p.shape[1]) if names is None else np.asarray(names).tolist()))
    if len(names) != p.shape[1]:
        raise InvalidInput("classes must name each label once", seen=str(len(names)), allowed=str(p.shape[1]))
    own = None if clusters is None else as_groups(clusters, len(p), "clusters")[0]
    return MultiLabel(p, y, as_weights(sample_weight, len(p)), own, names)
