"""Rows that need not fit in memory: a source of batches that can be started anew for every pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import InvalidInput
from .passes import Block, Data, in_stream
from .validation import as_embeddings, as_labels, as_matrix, as_scores, as_weights
from .validation.arrays import as_array
from .validation.saturation import ZeroCounts, count_zeros, floored, read_zeros, zero_level

__all__ = ["Given", "Scan", "refuse_beside_a_scan", "scan"]

Batches = Callable[[], Iterable[tuple[Any, ...]]]


def scan(source: Batches) -> Scan:
    """Return rows to fit on that are read in batches, so that they need not fit in memory.

    Parameters
    ----------
    source : callable
        Starts the batches anew each time it is called: a function without arguments that returns an iterator of
        (scores, labels) or (scores, labels, weights). A generator function is one.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant
    >>> def batches():
    ...     for seed in range(3):
    ...         z = np.random.default_rng(seed).normal(size=(500, 4))
    ...         yield z, (z + np.random.default_rng(seed).gumbel(size=z.shape)).argmax(axis=1)
    >>> round(calibrant.make("ts").fit(calibrant.scan(batches)).temperature_, 1)
    1.0
    """
    if not callable(source):
        raise InvalidInput(
            "scan needs a function that starts the batches anew, as a fit reads them more than once",
            seen=type(source).__name__,
            hint="pass a generator function, or lambda: loader",
        )
    return Scan(source)


@dataclass(frozen=True, eq=False)
class Given:
    """What a fit is given: the data, its classes, the names of its columns, and what a zero is read as (log ε)."""

    data: Data
    classes: NDArray[Any]
    columns: tuple[Any, ...] | None
    zero: float


@dataclass(frozen=True, eq=False)
class Scan:
    """Batches of scores, labels and weights that a function starts anew."""

    batches: Batches

    def given(self, inputs: str, classes: Any, *, saturated: str | None, embedded: bool) -> Given:
        """Check all rows by one pass, and return them as data whose blocks are checked and read anew at each pass.

        ``saturated`` says what a zero means, as for `Calibrator`; None leaves it as it came.
        """
        facts = _facts(self.batches, inputs, classes, embedded)
        source = _Source(self.batches, facts, inputs, saturated, embedded)
        data = in_stream(source, len(facts.classes), facts.columns, facts.dtype)
        return Given(data, facts.classes, facts.names, facts.zero)


def refuse_beside_a_scan(y: Any, sample_weight: Any) -> None:
    """Raise where labels or weights are given twice."""
    if y is not None or sample_weight is not None:
        name = "y" if y is not None else "sample_weight"
        raise InvalidInput(f"{name} was given beside a scan, which brings its own", hint="pass the scan alone")


@dataclass(frozen=True, eq=False)
class _Facts:
    """What one pass over all batches found."""

    rows: int
    columns: int
    dtype: Any
    classes: NDArray[Any]
    names: tuple[Any, ...] | None
    zero: float


@dataclass(frozen=True, eq=False)
class _Batch:
    """One batch as it came: scores, labels, weights."""

    scores: Any
    labels: Any
    weights: Any


def _batches(source: Batches) -> Iterator[_Batch]:
    """Yield the batches that have rows; refuse what is none."""
    for number, batch in enumerate(source()):
        if not isinstance(batch, (tuple, list)) or len(batch) not in (2, 3):
            raise InvalidInput(
                f"batch {number} of the scan is not (scores, labels) or (scores, labels, weights)",
                seen=type(batch).__name__ if not isinstance(batch, (tuple, list)) else f"{len(batch)} parts",
            )
        labels, _ = as_array(batch[1], "labels")
        if len(np.atleast_1d(labels)):
            yield _Batch(batch[0], batch[1], batch[2] if len(batch) == 3 else None)


def _facts(source: Batches, inputs: str, classes: Any, embedded: bool) -> _Facts:
    rows, columns, dtype, names = 0, 0, np.dtype(np.float32), None
    seen: list[NDArray[Any]] = []
    for batch in _batches(source):
        matrix, found = as_matrix(batch.scores, "scores")
        width = 2 if matrix.ndim == 1 or matrix.shape[1] == 1 else matrix.shape[1]
        if columns and width != columns:
            raise InvalidInput("the batches of a scan differ in columns", seen=f"{columns} and {width}")
        if names is not None and found is not None and tuple(found) != tuple(names):
            raise InvalidInput(
                "the batches of a scan differ in the names or the order of their columns",
                seen=", ".join(map(str, found[:6])),
                allowed=", ".join(map(str, names[:6])),
            )
        columns, names = width, names or found
        dtype = np.promote_types(dtype, matrix.dtype)
        rows += len(matrix)
        seen.append(np.unique(as_array(batch.labels, "labels")[0]))
    if not rows:
        raise InvalidInput("the scan has no rows", allowed="at least one batch with rows")
    distinct = np.unique(np.concatenate(seen))
    _, known = as_labels(distinct, None if embedded else columns, len(distinct), classes, names)
    facts = _Facts(rows, columns, dtype, known, names, np.nan)
    return facts if embedded else _with_zero(source, facts, inputs)


def _again(source: Batches, rows: int) -> Iterator[_Batch]:
    """Yield the batches once more, and see to it that they have as many rows as before."""
    found = 0
    for batch in _batches(source):
        found += len(np.atleast_1d(as_array(batch.labels, "labels")[0]))
        yield batch
    if found != rows:
        raise InvalidInput(
            "a scan must start the same batches anew each time",
            seen=f"{rows} rows at first, {found} now",
            hint="pass a function that makes a new iterator, not one that returns an iterator used before",
        )


def _with_zero(source: Batches, facts: _Facts, inputs: str) -> _Facts:
    counts: ZeroCounts = np.zeros(4)
    for batch in _again(source, facts.rows):
        logits = as_scores(batch.scores, inputs).logits
        labels, _ = as_labels(batch.labels, facts.columns, len(logits), facts.classes)
        counts = counts + count_zeros(logits, labels, as_weights(batch.weights, len(logits)))
    zero = zero_level(counts, len(facts.classes))
    return _Facts(facts.rows, facts.columns, facts.dtype, facts.classes, facts.names, zero)


@dataclass(frozen=True, eq=False)
class _Source:
    """Starts the blocks of a pass, and sees to it that every pass has the same rows."""

    batches: Batches
    facts: _Facts
    inputs: str
    saturated: str | None
    embedded: bool

    def __call__(self) -> Iterator[Block]:
        """Yield the blocks of one pass."""
        for batch in _again(self.batches, self.facts.rows):
            yield self._block(batch)

    def _block(self, batch: _Batch) -> Block:
        known = self.facts
        valid = as_embeddings(batch.scores) if self.embedded else as_scores(batch.scores, self.inputs)
        logits = valid.logits
        if not self.embedded and self.saturated is not None:
            logits = floored(logits) if self.saturated == "exact" else read_zeros(logits, known.zero)
        width = None if self.embedded else known.columns
        labels, _ = as_labels(batch.labels, width, len(logits), known.classes)
        weights = as_weights(batch.weights, len(labels))
        block = Block(np.ascontiguousarray(logits, dtype=known.dtype), labels, weights, len(known.classes))
        return block if weights is None else block.take(np.flatnonzero(weights))
