"""The first look at all rows of a scan: what they are, a survey of them, and all of them where they are few."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput, blamed
from ..files.event import event_named, happened, labels_known, refuse_unknown_event
from ..passes.batch import Batch
from ..passes.data import every_row
from ..passes.room import Room
from ..passes.statistic import Rows, added, merged
from ..passes.survey import SampleSize, Survey, judged_rows, survey_of
from ..validation import as_labels, is_one_score
from ..validation.arrays import as_matrix
from ..validation.labels import refuse_missing
from ..validation.saturation import ZeroCounts, count_zeros, rows_without_zeros, smallest_log, zero_level
from .reading import Reading, label_values, named, naming_rows
from .watching import counted

SAMPLES = "its samples of the rows"

_PILOT, _LEAST_PILOT, _MOST_PILOT = 1 << 20, 4096, 1 << 15  # scores of a pilot; its rows at least and at most
_COPIES, _A_ROW = 15, 450  # of scores that are held, and bytes a row besides: what fits make of them at most
_UNEVEN = 1.5  # times its share of the samples that a partition sends: some hold more rows than others
_BOTH = 2.2  # times the rows that judge: half of the first of five folds is the first of ten, more or less


class Source(Protocol):
    """Where batches come from."""

    @property
    def words(self) -> str:
        """What to call it."""
        ...

    def reduce(self, function: Callable[[Iterable[Batch]], Any]) -> Any:
        """Make one pass: apply the function to the batches (of each partition), and merge what it returns."""
        ...

    def head(self) -> Batch | None:
        """Return a few rows where that takes no pass; None where the first batch of a pass must do."""
        ...

    @property
    def is_cluster(self) -> bool:
        """Whether partitions are elsewhere, and what they give is sent."""
        ...

    @property
    def n_partitions(self) -> int:
        """How many of them there are; 0 where nobody knows."""
        ...


@dataclass(frozen=True, eq=False)
class Wanted:
    """What a look is to keep: how many scores are few enough to keep them all, and samples of the others.

    ``sends``: the rows are elsewhere, in so many partitions (0: nobody knows), and what is kept of them is sent.
    ``rows``: of the sample, at least. ``survey``: whether anything is to be fitted, which asks for samples. ``room``:
    the memory that the user allowed. ``memory``: bytes that all rows may take, with what fits make of them.
    """

    held: int
    sends: int | None = None
    rows: int = 0
    survey: bool = True
    room: Room | None = None
    memory: int | None = None

    def few_rows(self, reading: Reading) -> int:
        """Return how many rows are few enough to keep them all."""
        rows = self.held // reading.columns
        a_row = _COPIES * reading.columns * np.dtype(reading.dtype).itemsize + _A_ROW
        return rows if self.memory is None else min(rows, self.memory // a_row)

    def size(self, columns: int) -> SampleSize:
        """Return the sizes of the samples of scores of so many columns."""
        rows = max(int(np.clip(_PILOT // columns, _LEAST_PILOT, _MOST_PILOT)), self.rows)
        return SampleSize(rows, int(_BOTH * judged_rows(columns)))

    def sent(self, seen: Seen, number: int) -> Seen:
        """Return what a partition sends: of the samples its share, with room for chance.

        Where nobody knows how many partitions there are, the one of this number (from 0) sends the share of one more
        than its number: the last its due, and the others more. All together send ln of their number times as much.
        """
        if self.sends is None or self.rows or seen.survey is None:
            return seen
        size = self.size(seen.reading.columns)
        shares = (_UNEVEN * rows / (self.sends or 1 + number) for rows in (size.rows, size.held))
        own = SampleSize(*(int(share + 5 * share**0.5 + 10) for share in shares))
        return replace(seen, survey=seen.survey.sent(own))


@dataclass(frozen=True, eq=False)
class Seen:
    """What was seen: how rows were read, rows, labels, widest dtype, zeros, a survey, and the rows where they are few.

    ``fits`` says whether all were as the reading expected; where not, the survey and the rows mean nothing. ``held``
    is how many rows are few.
    """

    reading: Reading
    rows: int
    labels: NDArray[Any]
    dtype: Any
    zeros: ZeroCounts
    fits: bool
    survey: Survey | None
    few: Rows | None
    held: int
    smallest: float = np.inf

    def zero(self, k: int) -> float:
        """Return what a zero is read as, a logarithm: at most the smallest probability where that was looked for."""
        return min(zero_level(self.zeros, k), self.smallest)

    def __add__(self, other: Seen) -> Seen:
        if self.reading.columns != other.reading.columns:
            seen = f"{self.reading.columns} and {other.reading.columns}"
            raise InvalidInput("the batches of a scan differ in columns", seen=seen)
        fits = self.fits and other.fits
        few = self.few + other.few if self.few is not None and other.few is not None else None
        return added(
            self,
            other,
            *("rows", "zeros"),
            labels=_union(self.labels, other.labels),
            dtype=np.promote_types(self.dtype, other.dtype),
            fits=fits,
            survey=merged(self.survey, other.survey) if fits else None,
            few=few if self.rows + other.rows <= self.held else None,
            smallest=min(self.smallest, other.smallest),
        )


def _union(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    if (one.dtype.kind in "OUS") != (other.dtype.kind in "OUS"):
        words, number = (one, other) if one.dtype.kind in "OUS" else (other, one)
        raise InvalidInput(
            "the batches of a scan have labels of different kinds", seen=f"{words[0]!r} and {number[0]!r}"
        )
    return np.union1d(one, other)


def looked_at(source: Source, start: Reading, wanted: Wanted) -> tuple[Reading, Seen]:
    """Look at all rows until they are as the reading expects: once, or once more where the first look knew too little.

    ``start`` has no columns yet; the classes in it are those that the user gave.
    """
    head = source.head()
    reading = None if head is None else _guess(head, start)
    for _ in range(3):
        seen = source.reduce(partial(look, start=start, reading=reading, wanted=wanted))
        if seen is None or not seen.rows:
            raise InvalidInput("the scan has no rows", seen=source.words, allowed="at least one batch with rows")
        if seen.fits:
            classes = seen.reading.classes
            if seen.reading.event_told and seen.reading.named_event is not None:
                refuse_unknown_event("the scan", seen.labels, seen.reading.named_event)
            zero = np.nan if start.embedded or classes is None else seen.zero(len(classes))
            return replace(seen.reading, zero=zero), seen
        reading = _as_seen(seen, start)
    raise InvalidInput("a scan must start the same batches anew each time", seen=f"{source.words} changes")


def _as_seen(seen: Seen, start: Reading) -> Reading:
    """Return the reading that all rows ask for."""
    known, width, labels = seen.reading, None if start.embedded else seen.reading.columns, seen.labels
    own = start.classes
    if own is None:
        known, own = _as_named(known, labels, start)
        labels = labels if known.event is None else np.unique(happened(labels, known.event))
    _, classes = as_labels(labels, width, len(labels), own, known.names)
    zero = np.nan if start.embedded or not seen.zeros[1] else seen.zero(len(classes))
    return replace(known, classes=classes, dtype=seen.dtype, zero=zero)


def _guess(batch: Batch, start: Reading) -> Reading:
    """Return how a first batch asks to be read; without classes where it cannot know them."""
    with naming_rows(batch.origin):
        matrix, names = as_matrix(named(batch), "scores")
        one = is_one_score(matrix.shape) and not start.embedded
        columns = 2 if one else matrix.shape[1]
        labels = label_values(batch)
    names = names if one or matrix.shape[1] == columns else None
    dtype, own = np.promote_types(matrix.dtype, np.float32), start.classes
    guess = replace(start, columns=columns, names=names, dtype=dtype, one_score=one)
    guess = replace(guess, named_event=batch.event, event_told=batch.event_told)
    if own is None:
        guess, own = _as_named(guess, labels, start)
        labels = labels if guess.event is None else happened(labels, guess.event)
    if own is None and (start.embedded or labels.dtype.kind == "b"):
        return guess
    try:
        _, classes = as_labels(labels, None if start.embedded else columns, len(labels), own, names)
    except InvalidInput:
        if start.classes is not None:
            raise
        return guess
    positions = classes.dtype.kind in "iu" and np.array_equal(classes, np.arange(columns))
    return replace(guess, classes=classes) if positions or names is not None or start.classes is not None else guess


def _as_named(reading: Reading, labels: NDArray[Any], start: Reading) -> tuple[Reading, NDArray[Any] | None]:
    """Return with the event, where it is one label against several others, and the classes that a map knows, if these.

    Of two labels the name of the column says which comes second; a single one may be the other than the user names.
    """
    if not (reading.one_score or start.known):
        return reading, None
    seen = sorted({label for label in labels.tolist() if label is not None}, key=str)
    if known := labels_known(seen, start.known):
        own = event_named(reading.named_event, known) if reading.one_score else None
        return replace(reading, event=None), np.asarray(known[::-1] if own == str(known[0]) else known)
    if not reading.one_score:
        return reading, None
    event = event_named(reading.named_event, seen) if len(seen) > 2 else None
    alone = len(seen) == 1 and reading.event_told and isinstance(seen[0], str)
    return replace(reading, event=reading.named_event if alone else event), None


def look(batches: Iterable[Batch], start: Reading, reading: Reading | None, wanted: Wanted) -> Seen | None:
    """One pass: look at every batch."""
    total, number = None, 0
    for batch in _with_rows(counted(batches)):
        number = batch.origin.part
        reading = _guess(batch, start) if reading is None else reading
        with naming_rows(batch.origin):
            seen = _look_at(batch, start, reading, wanted, None if total is None else total.survey)
            total = seen if total is None else total + seen
        if wanted.room is not None and total.survey is not None:
            wanted.room.refuse_much(total.survey.need, SAMPLES)
    return None if total is None else wanted.sent(total, number)


def _with_rows(batches: Iterable[Batch]) -> Iterator[Batch]:
    for batch in batches:
        labels = label_values(batch)
        if len(labels):
            yield batch


def _look_at(batch: Batch, start: Reading, reading: Reading, wanted: Wanted, before: Survey | None) -> Seen:
    valid = reading.scores(batch)
    labels = label_values(batch)
    refuse_missing(labels, "labels")
    outcomes = reading.outcomes(batch)
    with blamed("labels of a batch cannot be put into an order", TypeError, problem=InvalidInput, most=80):
        distinct = np.unique(labels)
    dtype = np.promote_types(valid.logits.dtype, np.float32)
    block, zeros, smallest = None, np.zeros(4), np.inf
    if reading.classes is not None and _known(np.unique(outcomes), reading, start):
        block = replace(reading, dtype=valid.logits.dtype, floors=False).block_of(batch, valid)
        zeros = rows_without_zeros(block.weights, block.n)
        if valid.has_minus_infinity and not reading.embedded:
            zeros = count_zeros(block.logits, block.labels, block.weights)
        if reading.ordered or (reading.columns == 2 and not reading.embedded):
            smallest = smallest_log(block.logits)
    odd = valid.has_minus_infinity and reading.floors and not reading.exact and np.isnan(reading.zero)
    fits = block is not None and np.promote_types(dtype, reading.dtype) == reading.dtype and not odd
    survey, few, most = None, None, wanted.few_rows(reading)
    if fits and block is not None:
        block = reading.block_of(batch, valid) if valid.has_minus_infinity else block
        if wanted.survey and block.n:
            survey = survey_of(block, wanted.size(reading.columns), before)
        few = every_row(block) if block.n <= most else None
    return Seen(reading, len(labels), distinct, dtype, zeros, fits, survey, few, most, smallest)


def _known(distinct: NDArray[Any], reading: Reading, start: Reading) -> bool:
    """Tell whether labels are among the classes; those that the user gave are not doubted."""
    if start.classes is not None:
        return True
    try:
        _, found = as_labels(distinct, None if reading.embedded else reading.columns, len(distinct), reading.classes)
    except InvalidInput:
        return False
    return len(found) > 0
