"""Where rows come from: in memory, or read in blocks anew for every pass, of which only statistics are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import Any

from .block import Block
from .task import Task, Tasks, run_tasks
from .view import View, start

_HELD = 512_000_000  # bytes of scores up to which a view of them is computed once and held


class Stream:
    """Passes over blocks from a function that starts them anew."""

    def __init__(self, blocks: Callable[[], Iterator[Block]]) -> None:
        self._blocks = blocks

    def run(self, tasks: Sequence[Task]) -> list[Any]:
        """Make one pass."""
        return run_tasks(tasks, self._blocks())


class PassEngine:
    """Rows seen through views in turn, by passes that someone else makes."""

    def __init__(self, passes: Tasks, views: tuple[View, ...] = ()) -> None:
        self.passes, self.views = passes, views

    def reduce(self, function: Callable[[Block], Any]) -> Any:
        """Return the statistic of all rows; blocks without rows are passed over."""
        return self.passes.run([Task(function, self.views)])[0]

    def viewed(self, view: View) -> PassEngine:
        """Return the rows as a view shows them, computed at every pass."""
        return PassEngine(self.passes, (*self.views, view))


class MemoryEngine:
    """One block of rows, which the core splits among threads, or what a view makes of it when it is first needed."""

    def __init__(self, make: Callable[[], Block]) -> None:
        self._make = make
        self._block: Block | None = None
        self._lock = Lock()  # of its own: cached_property has one for all instances up to Python 3.11

    @property
    def block(self) -> Block:
        """All rows, made once."""
        if self._block is None:
            with self._lock:
                self._block = self._make() if self._block is None else self._block
        return self._block

    def reduce(self, function: Callable[[Block], Any]) -> Any:
        """Return the statistic of all rows."""
        return function(self.block)

    def viewed(self, view: View) -> MemoryEngine | PassEngine:
        """Return the rows as a view shows them; scores too large to hold twice are viewed a slice at a time."""
        block = self.block
        if block.logits.nbytes <= _HELD:
            return MemoryEngine(lambda: start(view)(block))
        return PassEngine(Stream(lambda: _slices(block)), (view,))


def _slices(block: Block) -> Any:
    rows = max(1, _HELD // (8 * block.logits[:1].nbytes))
    for first in range(0, block.n, rows):
        yield block.take(slice(first, first + rows))
