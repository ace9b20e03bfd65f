"""What a fit is given: rows that may lie in memory or elsewhere, seen by passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..types import Array, Floats
from .block import Block
from .engines import MemoryEngine, PassEngine, Stream
from .folds import FoldPlan, fold_plan
from .one_score import OneScore
from .room import Room
from .sample import bottom_rows
from .statistic import Keeper, Rows
from .survey import Known
from .task import Tasks
from .view import Counts, FoldView, MapView, View, column_weights

Statistic = TypeVar("Statistic")
_COPIES = 4  # times its size that a sample takes while it is drawn


class Engine(Protocol):
    """Reads rows: in memory, in a stream, on a cluster."""

    def reduce(self, function: Callable[[Block], Any]) -> Any:
        """Return the merged statistic of all blocks that have rows."""
        ...

    def viewed(self, view: View) -> Engine:
        """Return the rows as a view shows them."""
        ...


@dataclass(frozen=True, eq=False)
class Data(Keeper):
    """Rows behind an engine."""

    engine: Engine
    n_classes: int  # K
    columns: int  # of the scores; K but for embeddings
    dtype: Any
    known: Known | None = None  # what an earlier pass has found out
    origin: tuple[Data, Any] | None = None  # where these rows are others as a map answers them
    room: Room | None = None  # memory that the user allowed
    # The same rows as they came, where that is one score each: the engine makes a block of them when it is asked to.
    one_score: OneScore | None = None
    # What the user calls the classes, for maps whose parameters name some; None where they are numbered.
    classes: NDArray[Any] | None = None
    _plans: dict[int, FoldPlan] = field(default_factory=dict, init=False, repr=False)
    _pilots: dict[int, Data] = field(default_factory=dict, init=False, repr=False)

    # What is known of the rows, by one pass when it is first asked for ------------------------------------------

    @property
    def _counted(self) -> Counts:
        # No cached_property: up to Python 3.11 it locks all instances, while a pass may wait for other searches.
        if "_counts" not in self.__dict__:
            self.__dict__["_counts"] = self._count()
        return self.__dict__["_counts"]

    def _count(self) -> Counts:
        if self.known is not None:
            return self.known.counts
        if self.origin is not None:
            return self.origin[0]._counted
        found = self.reduce(column_weights)
        nothing = np.zeros(self.n_classes), np.zeros(self.n_classes, dtype=np.int64)
        return nothing if found is None else found

    @property
    def n(self) -> int:
        """Number of rows that have a weight."""
        return int(self._counted[1].sum())

    @property
    def class_weights(self) -> Array:
        """The weight of the rows of each class."""
        return self._counted[0]

    @property
    def total_weight(self) -> float:
        """Sum of the weights."""
        return float(self.class_weights.sum())

    @property
    def size(self) -> int:
        """Number of scores."""
        return self.n * self.columns

    @property
    def in_memory(self) -> bool:
        """Whether a pass costs no reading."""
        return not isinstance(self.engine, PassEngine)

    @property
    def block(self) -> Block | None:
        """The rows, where they are one block in memory already."""
        return self.engine.block if isinstance(self.engine, MemoryEngine) else None

    # How a fit looks at them ------------------------------------------------------------------------------------

    def reduce(self, function: Callable[[Block], Statistic]) -> Statistic:
        """Make one pass: apply a function to every block of rows and merge the statistics that it returns.

        It is a module-level function, or a ``functools.partial`` of one with its parameters: it holds no rows, so that
        it can be sent to where the rows are.
        """
        return self.engine.reduce(function)

    def mapped(self, fitted: Any) -> Data:
        """Return the rows as a fitted map answers them, as logits for the next map of a chain.

        Lazily: in a stream they are computed anew at every pass, and nothing of n × K is stored.
        """
        shown = self.viewed(MapView(fitted))
        return replace(shown, origin=(self, fitted))

    def viewed(self, view: View, n_classes: int | None = None, columns: int | None = None) -> Data:
        """Return what a view shows of the rows; see `view`."""
        shape = n_classes or self.n_classes, columns or self.columns
        names = self.classes if n_classes is None else None
        return Data(self.engine.viewed(view), *shape, self.dtype, room=self.room, classes=names)

    def takes(self, need: float, what: str) -> None:
        """Say that a pass needs so many bytes for what it finds: what exceeds the memory allowed is told or refused."""
        if self.room is not None and not self.in_memory:
            self.room.taking(need, what)

    def without(self, fold: int, count: int) -> Data:
        """Return all rows but those of one of ``count`` folds."""
        return self._fold(fold, count, inside=False)

    def only(self, fold: int, count: int) -> Data:
        """Return the rows of one of ``count`` folds."""
        return self._fold(fold, count, inside=True)

    def without_first(self, count: int, counts: Counts) -> Data:
        """Return `without` the first fold, whose counts are these; its rows are made where something asks for them."""
        made = MemoryEngine(lambda: self.without(0, count).rows())
        return Data(made, self.n_classes, self.columns, self.dtype, Known(counts))

    def _fold(self, fold: int, count: int, *, inside: bool) -> Data:
        plan = self.plan(count)
        shown = self.viewed(FoldView(plan, fold, inside))
        known = None
        if self.known is not None and plan.by_key and not fold:
            known = self.known.first_fold(count, inside=inside)
        return replace(shown, known=known)

    def plan(self, count: int) -> FoldPlan:
        """Return the plan of so many folds, made once."""
        if count not in self._plans:
            self._plans[count] = fold_plan(self, count)
        return self._plans[count]

    def pilot(self, rows: int) -> Data:
        """Return some rows in memory, all of them where there are no more than ``rows``.

        A sample drawn by the rows' keys: the same rows whatever their order, their blocks and the engine. Rows of one
        content are one row with their weight, so that a row twice is no different from a row of weight two.
        """
        if rows not in self._pilots:
            self._pilots[rows] = self._pilot(rows)
        return self._pilots[rows]

    def judging(self, rows: int) -> Data:
        """Return a `pilot` of rows held out, where rows are one only if they are equal to the last bit."""
        known = None if self.known is None else self.known.pilot(rows, self.n_classes, exact=True)
        return in_memory(bottom_rows(self, rows, exact=True) if known is None else known)

    def surveyed(self, rows: int) -> Data:
        """Return a pilot of at most so many rows, as many as are known without a pass."""
        if self.origin is not None and not self.in_memory:
            before, fitted = self.origin
            return before.surveyed(rows).mapped(fitted)
        known = None if self.known is None or self.known.sample is None else self.known.sample.count
        return self.pilot(rows if known is None else min(rows, known))

    def _pilot(self, rows: int) -> Data:
        if self.block is not None and self.n <= rows:
            return self
        if self.origin is not None:
            rows_before, fitted = self.origin
            return rows_before.pilot(rows).mapped(fitted)
        known = None if self.known is None else self.known.pilot(rows, self.n_classes)
        if known is not None and not known.n < self.n <= rows:  # of few rows those of one content are told apart
            return in_memory(known)
        self.takes(_COPIES * rows * self.columns * np.dtype(self.dtype).itemsize, f"a sample of {rows:,} rows")
        return in_memory(bottom_rows(self, rows))

    def rows(self) -> Block:
        """Return all rows in memory: for maps whose trait says that they need rows, or a sample of them."""
        if self.block is not None:
            return self.block
        logits, labels, weights = self.reduce(every_row).columns
        return Block(logits, labels, None if (weights == 1.0).all() else weights, self.n_classes)


def every_row(block: Block) -> Rows:
    """One pass: the rows themselves."""
    return Rows(block.logits, block.labels, block.weight_array)


def in_memory(block: Block) -> Data:
    """Return rows that are in memory as data."""
    return Data(MemoryEngine(lambda: block), block.n_classes, block.logits.shape[1], block.logits.dtype)


def in_column(rows: OneScore, logits: Callable[[], Floats], dtype: Any) -> Data:
    """Return rows of two classes that are one score each as data; ``logits`` makes (n, 2) of them."""
    positives = int(np.add.reduce(rows.labels))
    numbers = np.array([rows.n - positives, positives], dtype=np.int64)
    made = MemoryEngine(lambda: Block(logits(), rows.labels, None, 2))
    return Data(made, 2, 2, dtype, Known((numbers.astype(np.float64), numbers)), one_score=rows)


def in_stream(blocks: Callable[[], Iterator[Block]], n_classes: int, columns: int, dtype: Any) -> Data:
    """Return rows as data that a function starts anew, block by block."""
    return in_passes(Stream(blocks), n_classes, columns, dtype)


def in_passes(
    passes: Tasks, n_classes: int, columns: int, dtype: Any, known: Known | None = None, room: Room | None = None
) -> Data:
    """Return rows as data that someone else makes passes over."""
    return Data(PassEngine(passes), n_classes, columns, dtype, known, room=room)
