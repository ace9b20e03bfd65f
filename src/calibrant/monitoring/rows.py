"""From what users have to named streams of (probability, outcome) pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput, caution, count_of
from ..types import Array, Integers
from ..validation import as_array, as_groups, as_labels, as_probabilities_of, as_weights, ordered_like, refuse_swapped

MAIN = "all rows"  # the stream of everything: the event, or the most probable class


@dataclass(frozen=True, eq=False)
class Rows:
    """Checked rows of a batch."""

    p: Array  # (n,) or (n, K): the probability of the event, or of every class
    labels: Integers  # (n,): 1 where the event happened, or the column of the class that came
    weights: Array | None  # (n,): how much of each row counts
    groups: NDArray[np.str_] | None  # (n,): the name of each row's group
    classes: NDArray[Any]  # (K,)

    @property
    def main(self) -> tuple[Array, Array]:
        """Probability and outcome of the event, or of the most probable class."""
        if self.p.ndim == 1:
            return self.p, self.labels.astype(np.float64)
        top = self.p.argmax(axis=1)
        return self.p[np.arange(len(self.p)), top], (top == self.labels).astype(np.float64)

    def of_classes(self) -> Iterator[tuple[str, Array, Array]]:
        """Yield the stream of every class: its name, probabilities and outcomes."""
        for column, name in enumerate(self.classes.tolist()):
            yield f"class {name}", self.p[:, column], (self.labels == column).astype(np.float64)

    def of_groups(self) -> Iterator[tuple[str, NDArray[np.intp]]]:
        """Yield the rows of every group there is."""
        if self.groups is not None:
            for name in np.unique(self.groups):
                yield f"group {name}", np.flatnonzero(self.groups == name)


def has_no_rows(y: Any) -> bool:
    """Tell whether a batch is empty: a day without rows is no mistake."""
    labels, _ = as_array(y, "y")
    return labels.ndim == 1 and len(labels) == 0


def read_rows(
    y: Any, p: Any, groups: Any, sample_weight: Any, *, classes: Any, clip: float, unit: float, counts: bool
) -> Rows:
    """Check the rows of a batch. Two columns are the probability of an event: the second one's."""
    refuse_swapped(y, p)
    if classes is not None:
        p = ordered_like(p, None, classes)
    read = as_probabilities_of(p, classes, "p")
    values = np.asarray(read.values, dtype=np.float64)
    columns = 2 if values.ndim == 1 else values.shape[1]
    labels, known = as_labels(y, columns, len(values), classes, read.columns)
    if values.ndim == 2 and columns == 2:
        values = values[:, 1]
    if clip:
        values = np.clip(values, clip, 1 - clip)
    weights = as_weights(sample_weight, len(values), whole=False) if sample_weight is not None else None
    names = None
    if groups is not None:
        places, distinct = as_groups(groups, len(values))
        names = np.asarray([str(name) for name in distinct.tolist()])[places]
    return Rows(values, labels, _exponents(weights, unit, counts), names, known)


def _exponents(weights: Array | None, unit: float, counts: bool) -> Array | None:
    """Return how much of each row counts."""
    if weights is None:
        return None
    if counts:
        if (weights != np.floor(weights)).any():
            raise InvalidInput(
                "sample_weight holds fractions where it should count rows",
                seen=f"{weights[weights != np.floor(weights)][0]:g}",
                allowed="whole numbers",
                hint='pass weights="importance"',
            )
        return weights
    above = weights > unit
    if above.any():
        caution(
            f"{count_of(above.sum(), 'weight')} above weight_unit={unit:g} taken for it, a row each: evidence cannot "
            'count a row more than once. Pass weight_unit=<the largest weight>, or weights="counts" where a row stands '
            "for several that were seen"
        )
    return np.minimum(weights / unit, 1.0)
