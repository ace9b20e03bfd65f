"""The rows a comparison works on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..calibrator import Calibrator
from ..errors import InvalidInput
from ..passes import Block, Data, in_memory
from ..passes.folds import alike_limit, row_keys
from ..passes.sample import bit_hash
from ..scanning import Scan
from ..types import Array, Floats, Integers
from ..validation import as_groups, as_labels, as_matrix, as_scores, as_second, as_weights
from ..validation.saturation import count_zeros, floored, read_zeros, smallest_log, zero_level

_COMPARED, _COMPARED_ROWS = 5_000_000, (10_000, 100_000)  # scores of a scan that maps are compared on; rows


@dataclass(frozen=True, eq=False)
class Problem:
    """Validated rows.

    Attributes
    ----------
    logits : array of shape (n, K)
        As they came: -inf where a probability was zero.
    labels : int64 array of shape (n,)
    weights : float64 array of shape (n,) or None
    classes : array of shape (K,)
    embeddings : array of shape (n, d) or None
        The same rows for maps on embeddings.
    groups : array of shape (n,) or None
        The number of each row's group: rows of one group are not independent.
    exact : bool
        Whether a zero stays a zero (``saturated="exact"``).
    is_event : bool
        Whether the scores came as the probability of one event: figures are then of the event, not of a top label.
    """

    logits: Floats
    labels: Integers
    weights: Array | None
    classes: NDArray[Any]
    embeddings: Floats | None = None
    groups: Integers | None = None
    exact: bool = False
    is_event: bool = False

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.labels)

    @property
    def k(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def weight_array(self) -> Array:
        """The weights, as ones where none were given."""
        return np.ones(self.n) if self.weights is None else self.weights

    def take(self, rows: Integers) -> Problem:
        """Return the given rows."""
        return Problem(
            np.ascontiguousarray(self.logits[rows]),
            self.labels[rows],
            None if self.weights is None else self.weights[rows],
            self.classes,
            None if self.embeddings is None else np.ascontiguousarray(self.embeddings[rows]),
            None if self.groups is None else np.unique(self.groups[rows], return_inverse=True)[1],
            self.exact,
            self.is_event,
        )

    def content_order(self) -> Integers:
        """Return the rows in an order that their content settles: what is dealt and drawn goes by place."""
        content = [row_keys(Block(floored(self.logits), self.labels, None, self.k)), *self._hashes()]
        content += [column for column in (self.weights, self.groups) if column is not None]
        return np.lexsort(content[::-1])

    def units(self) -> Integers:
        """Return the number of what each row goes into a fold with: with its copies, as a row of weight two does.

        Otherwise maps are judged on copies of rows that they have learnt, and what memorises looks best. Rows of the
        same scores go together whatever their labels: a fold of those of one label would leave the others to be learnt
        alone. Scores so frequent that they take few values go row by row, as in `passes.folds`.
        """
        hashes = np.stack(self._hashes(), axis=1)
        _, first, place, times = np.unique(hashes, axis=0, return_index=True, return_inverse=True, return_counts=True)
        alone = times[place] > alike_limit(self.n)
        return np.unique(np.where(alone, np.arange(self.n), first[place]), return_inverse=True)[1]

    def _hashes(self) -> list[Any]:
        known = [bit_hash(self.logits)]
        return known if self.embeddings is None else [*known, bit_hash(self.embeddings)]


def read_split(
    calibrator: Calibrator, fit_on: Problem, fit: Integers, judge_on: Problem, judge: Integers
) -> tuple[Data, Floats]:
    """Return rows to fit on, and what the map is to answer then: as its `fit` and `predict_proba` read them.

    What a zero is read as is learnt from the rows to fit on alone (see `calibrant.validation.saturation`).
    """
    labels = fit_on.labels[fit]
    weights = None if fit_on.weights is None else fit_on.weights[fit]
    if calibrator.traits.needs == "embeddings":
        if fit_on.embeddings is None or judge_on.embeddings is None:
            raise InvalidInput(f"{type(calibrator).__name__} needs embeddings, and none were given")
        known, asked = fit_on.embeddings[fit], judge_on.embeddings[judge]
    else:
        known, asked = fit_on.logits[fit], judge_on.logits[judge]
        if fit_on.exact:
            known = floored(known)
        elif np.isneginf(known).any() or np.isneginf(asked).any():
            level = zero_level(count_zeros(known, labels, weights), fit_on.k)
            if calibrator._orders_zeros(fit_on.k):
                level = min(level, smallest_log(known))
            known, asked = read_zeros(known, level), read_zeros(asked, level)
    block = Block(np.ascontiguousarray(known), labels, weights, fit_on.k)
    return replace(in_memory(block), classes=fit_on.classes), np.ascontiguousarray(asked)


def make_problem(
    scores: Any,
    y: Any,
    inputs: str,
    classes: Any,
    sample_weight: Any = None,
    embeddings: Any = None,
    groups: Any = None,
    *,
    name: str = "",
    exact: bool = False,
) -> Problem:
    """Check what a user gives to `compare`."""
    valid = as_second(as_scores(scores, inputs, f"{name}scores"), inputs, classes)
    n, k = valid.logits.shape
    labels, known = as_labels(y, k, n, classes, valid.columns, f"{name}y")
    weights = as_weights(sample_weight, n)
    vectors = None if embeddings is None else _vectors(embeddings, n, name)
    of_group = None if groups is None else as_groups(groups, n, f"{name}groups")[0]
    is_event = k == 2 and as_matrix(scores, f"{name}scores")[0].size == n
    found = Problem(valid.logits, labels, weights, known, vectors, of_group, exact, is_event)
    return found if weights is None or weights.all() else found.take(np.flatnonzero(weights))


def scan_problem(scan: Scan, inputs: str, classes: Any, *, exact: bool = False) -> tuple[Problem, str]:
    """Return rows of a scan to compare maps on, and what sample they are in words; none where they are all rows."""
    given, block, words = scan.sampled(inputs, classes, _compared_rows)
    logits, labels, weights = block.logits, block.labels, block.weights
    return Problem(logits, labels, weights, given.classes, exact=exact, is_event=given.one_score), words


def _compared_rows(columns: int) -> int:
    return int(np.clip(_COMPARED // columns, *_COMPARED_ROWS))


def _vectors(embeddings: Any, n: int, name: str) -> Floats:
    matrix, _ = as_matrix(embeddings, f"{name}embeddings")
    if len(matrix) != n or not np.isfinite(matrix).all():
        raise InvalidInput(f"{name}embeddings must be finite, one row each", seen=f"shape {matrix.shape} for {n} rows")
    return matrix
