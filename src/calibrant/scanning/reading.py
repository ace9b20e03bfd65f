"""From batches as they come to blocks that a pass is handed: everything is checked, at every pass."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput
from ..files.dataset import Named
from ..files.event import happened
from ..passes import Block
from ..passes.batch import Batch, Origin
from ..types import Array
from ..validation import as_embeddings, as_labels, as_scores, as_second, as_weights, is_one_score
from ..validation.arrays import as_array
from ..validation.saturation import floored, read_zeros
from ..validation.scores import Scores


@contextmanager
def naming_rows(origin: Origin) -> Iterator[None]:
    """Let errors about rows of a batch say where these are: file and row."""
    try:
        yield
    except InvalidInput as error:
        told: list[str] = []

        def named(found: re.Match[str]) -> str:
            told.append(found[1])
            return origin.row(int(found[1]))

        seen = re.sub(r"\brow (\d+)", named, error.seen)
        if not told and (origin.name or origin.first):
            seen = f"{seen + ', ' if seen else ''}from {origin.row(0)} on"
        kind = type(error)
        raise kind(error.what, seen=seen, allowed=error.allowed, hint=error.hint) from None


def named(batch: Batch) -> Any:
    """Return the scores with the names of their columns, where they have some of their own."""
    width = np.shape(batch.scores)[1] if np.ndim(batch.scores) == 2 else 1
    columns = batch.columns
    if width == 1 and batch.event is not None and (columns is None or batch.event_told):
        columns = (batch.event,)
    if columns is None or width != len(columns):
        return batch.scores
    return Named(np.reshape(batch.scores, (-1, width)), columns)


def label_values(batch: Batch) -> NDArray[Any]:
    """Return the labels of a batch as an array, of whatever kind."""
    if batch.labels is None:
        raise InvalidInput(
            "the scan has no labels", allowed="a column named label, labels or y", hint="name it: label=…"
        )
    return np.atleast_1d(as_array(batch.labels, "labels")[0])


@dataclass(frozen=True, eq=False)
class Reading:
    """How batches are read."""

    inputs: str  # {"logits", "probabilities"}
    embedded: bool  # whether they are embeddings, not scores
    columns: int  # of the scores; two for one score a row
    names: tuple[Any, ...] | None  # of the columns
    dtype: Any
    classes: NDArray[Any] | None  # None where they are not known yet
    zero: float = np.nan  # what a zero is read as, a logarithm; NaN where there is none
    exact: bool = False  # whether a zero stays next to nothing (``saturated="exact"``)
    floors: bool = True  # whether zeros are read at all; False for maps that read them anew
    ordered: bool = False  # whether a zero is read as no more than the smallest probability that is not zero
    one_score: bool = False  # whether a row has one score, of an event; then there are two columns
    event: str | None = None  # the label that is this event against several others: then the classes are 0 and 1
    # What names the event: the user, or else the column. The labels of all rows tell whether it is one of them.
    named_event: str | None = None
    event_told: bool = False  # whether the user did
    # The classes of the map that the scores were read through: rows of one score may have some of them only.
    known: tuple[Any, ...] = ()

    def outcomes(self, batch: Batch) -> NDArray[Any]:
        """Return the labels of a batch, or where one of several is the event whether they are it."""
        labels = label_values(batch)
        if self.event is not None and batch.event != self.named_event:
            raise InvalidInput(
                "the batches of a scan differ in the event that their column of scores names",
                seen=repr(batch.event or "none"),
                allowed=repr(self.named_event or "none"),
            )
        return labels if self.event is None else happened(labels, self.event)

    def scores(self, batch: Batch) -> Scores:
        """Return the scores of a batch, checked."""
        values = named(batch)
        valid = as_embeddings(values) if self.embedded else as_scores(values, self.inputs)
        if valid.logits.shape[1] != self.columns:
            raise InvalidInput(
                "the batches of a scan differ in columns", seen=f"{self.columns} and {valid.logits.shape[1]}"
            )
        if self.one_score != (is_one_score(valid.shape) and not self.embedded):
            raise InvalidInput("the batches of a scan differ in columns", seen="one score a row, and two columns")
        if self.one_score:  # the name of one column need not be the same, and decides whose score of two it is
            return valid if self.event is not None else as_second(valid, self.inputs, self.classes)
        if self.names is not None and valid.columns is not None and tuple(valid.columns) != tuple(self.names):
            raise InvalidInput(
                "the batches of a scan differ in the names or the order of their columns",
                seen=", ".join(map(str, valid.columns[:6])),
                allowed=", ".join(map(str, self.names[:6])),
            )
        return valid

    def block(self, batch: Batch) -> Block:
        """Return a batch as a block."""
        with naming_rows(batch.origin):
            valid = self.scores(batch)
            return self.block_of(batch, valid)

    def block_of(self, batch: Batch, valid: Scores) -> Block:
        """Return a batch whose scores are checked already."""
        logits = valid.logits
        if not self.embedded and self.floors and valid.has_minus_infinity:
            logits = floored(logits) if self.exact else read_zeros(logits, self.zero)
        width = None if self.embedded else self.columns
        labels, classes = as_labels(self.outcomes(batch), width, len(logits), self.classes)
        weights = _weights(batch, len(labels))
        logits = np.ascontiguousarray(logits, dtype=self.dtype)
        block = Block(logits, labels, weights, len(classes), part=batch.origin.part)
        return block if weights is None else block.take(np.flatnonzero(weights))


def _weights(batch: Batch, rows: int) -> Array | None:
    """Weights of a batch; all of them may be zero, as long as those of another batch are not."""
    if batch.weights is None:
        return None
    values = np.atleast_1d(as_array(batch.weights, "sample_weight")[0])
    if values.dtype.kind in "fiub" and values.shape == (rows,) and not values.any():
        return np.zeros(rows)
    return as_weights(values, rows, whole=False)
