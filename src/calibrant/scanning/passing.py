"""Passes over the batches of a source: each read as a block, also through fitted maps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import softmax
from ..errors import InvalidInput
from ..files.dataset import Named
from ..passes import Block
from ..passes.batch import Batch
from ..passes.task import Answers, Task, run_tasks
from ..validation import column_names, column_order, is_first_of_two, is_one_score
from .looking import Source
from .reading import Reading, named, naming_rows
from .watching import counted, tell_pass


def known_classes(reading: Reading) -> NDArray[Any]:
    """Return the classes of rows that were looked at."""
    assert reading.classes is not None  # a look ends when they are known
    return reading.classes


class SourcePasses:
    """Passes over the batches of a source, each read as a block."""

    def __init__(self, source: Source, reading: Reading, rows: int) -> None:
        self._source, self._reading, self._rows = source, reading, rows

    def run(self, tasks: Sequence[Task]) -> list[Any]:
        """Make one pass, and see to it that it has the rows that the first had."""
        tell_pass(self._rows)
        found = self._source.reduce(partial(_answers, tasks=tuple(tasks), reading=self._reading))
        found = Answers((None,) * len(tasks), 0) if found is None else found
        rows = found.rows
        if rows != self._rows:
            raise InvalidInput(
                "a scan must start the same batches anew each time",
                seen=f"{self._rows} rows at first, {rows} now",
                hint="pass a function that makes a new iterator, not one that returns an iterator used before",
            )
        return list(found.found)


def _answers(batches: Iterable[Batch], tasks: Sequence[Task], reading: Reading) -> Answers:
    """One pass over the batches of a partition: what each task found, and how many rows there were."""
    rows = 0

    def blocks() -> Iterator[Block]:
        nonlocal rows
        for batch in counted(batches):
            count = _length(batch)
            rows += count
            if count:
                yield reading.block(batch)

    found = run_tasks(tasks, blocks())
    return Answers(tuple(found), rows)


def updated(batches: Iterable[Batch], reading: Reading, make: Callable[[], Any], grouped: bool) -> Any:
    """One pass: the state of the batches of a partition."""
    total = None
    for batch in counted(batches):
        if _length(batch):
            total = make() if total is None else total
            block = replace(reading, floors=False).block(batch)
            y, p, classes = forecasts(block, reading)
            own = {"groups": _groups(batch)} if grouped else {}
            if block.n:
                total.update(y, p, sample_weight=block.weights, classes=classes, **own)
    return total


def _groups(batch: Batch) -> NDArray[Any]:
    """Return the groups of the rows that have a weight."""
    if batch.groups is None:
        raise InvalidInput("a batch of the scan has no groups", seen=batch.origin.name)
    groups = np.atleast_1d(np.asarray(batch.groups))
    return groups if batch.weights is None else groups[np.atleast_1d(np.asarray(batch.weights)) != 0]


def forecasts(block: Block, reading: Reading) -> tuple[Any, Any, Any]:
    """Return labels, probabilities and classes; of one event the outcomes 0 and 1 and its probabilities."""
    p = softmax(block.logits)
    if reading.one_score:
        return block.labels, p[:, 1], None
    return known_classes(reading)[block.labels], p, known_classes(reading)


def _length(batch: Batch) -> int:
    return len(batch.scores) if hasattr(batch.scores, "__len__") else np.shape(batch.scores)[0]


class Mapped:
    """A source read through fitted maps."""

    def __init__(self, source: Source, maps: tuple[Any, ...]) -> None:
        self._source, self._maps = source, maps
        self.words, self.is_cluster, self.n_partitions = source.words, source.is_cluster, source.n_partitions

    def reduce(self, function: Callable[[Iterable[Batch]], Any]) -> Any:
        """Make one pass."""
        return self._source.reduce(partial(_through, function=function, maps=self._maps))

    def head(self) -> Batch | None:
        """Return a few rows of the source, answered."""
        batch = self._source.head()
        return None if batch is None else answer(batch, self._maps)


def _through(batches: Iterable[Batch], function: Callable[[Iterable[Batch]], Any], maps: tuple[Any, ...]) -> Any:
    return function(_answered(batch, maps) for batch in batches)


def _answered(batch: Batch, maps: tuple[Any, ...]) -> Batch:
    """Return what maps answer to a batch whose labels are looked at."""
    by_number = np.asarray(batch.labels).dtype.kind in "iuf"  # words say themselves which class they mean
    if by_number and len(batch.scores) and not is_one_score(np.shape(batch.scores)):
        _refuse_moved_positions(maps[0], column_names(named(batch)))
    return answer(batch, maps)


def answer(batch: Batch, maps: tuple[Any, ...]) -> Batch:
    """Return a batch with a map's probabilities in place of its scores; each next map gets those of the one before.

    One score a row, of an event, gives one probability: of the class that its name says, or else of the second.
    """
    if not len(batch.scores):
        return batch
    one = is_one_score(np.shape(batch.scores)) and maps[0].traits.needs == "scores"
    given, answers, columns = named(batch), batch.scores, None
    own = 0 if one and is_first_of_two(column_names(given), maps[0].classes_) else 1
    with naming_rows(batch.origin):
        for fitted in maps:
            columns = None if one else _columns_answered(fitted, column_names(given))
            answers = fitted.predict_proba(given)
            given = answers[:, 1] if one else answers if columns is None else Named(answers, columns)
    if not one:
        return replace(batch, scores=answers, columns=columns)
    return replace(batch, scores=answers[:, own], columns=(f"p_{maps[-1].classes_[own]}",))


def _refuse_moved_positions(fitted: Any, given: tuple[Any, ...] | None) -> None:
    """Raise where labels number the columns, and these come in another order than in the fit."""
    numbers = np.arange(len(fitted.classes_))
    known = getattr(fitted, "feature_names_in_", None)
    if given is None or known is None or fitted.traits.needs != "scores":
        return
    if not np.array_equal(fitted.classes_, numbers):
        return
    order = column_order(given, known, fitted.classes_)
    if order is not None and (order != numbers).any():
        raise InvalidInput(
            "the columns have another order than in the fit, and labels number them: what 0 means is not certain",
            seen=", ".join(map(str, given[:6])),
            hint="write the labels as names, or put the columns into the order they had",
        )


def _columns_answered(fitted: Any, given: Sequence[Any] | None) -> tuple[str, ...] | None:
    """Return the names of the columns that a map answers: of its classes, or where these are places of its columns."""
    classes = fitted.classes_
    if not np.array_equal(classes, np.arange(len(classes))):
        return tuple(f"p_{c}" for c in classes.tolist())
    if given is None or fitted.traits.needs != "scores":
        return None
    return tuple(map(str, getattr(fitted, "feature_names_in_", given)))
