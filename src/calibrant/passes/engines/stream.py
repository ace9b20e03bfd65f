"""Rows that are read in blocks, anew for every pass; of a block nothing is kept but its statistic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..block import Block
from ..task import Task, Tasks, run_tasks
from ..view import View


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
