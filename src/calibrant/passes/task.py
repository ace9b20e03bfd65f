"""What a pass is asked to do, and how it is done block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .block import Block
from .statistic import merge, merged
from .view import View, start


@dataclass(frozen=True, eq=False)
class Task:
    """A function from a block to a statistic, and the views it sees blocks through.

    One with a method ``add(statistic, block)`` adds further blocks to what it returned: for a large statistic.
    """

    function: Callable[[Block], Any]
    views: tuple[View, ...] = ()


class Tasks(Protocol):
    """Whatever makes passes: over a stream, over the partitions of a cluster, or together with other searches."""

    def run(self, tasks: Sequence[Task]) -> list[Any]:
        """Make one pass, and return the statistic of each task; None where none of its blocks had rows."""
        ...


@dataclass(frozen=True, eq=False)
class Answers:
    """What the tasks of a pass found in some partitions, and how many rows these have."""

    found: tuple[Any, ...]
    rows: int

    def __add__(self, other: Answers) -> Answers:
        return Answers(tuple(map(merged, self.found, other.found)), self.rows + other.rows)


class Running:
    """The tasks of one pass. Views that several tasks begin with show them each block once."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.found: list[Any] = [None] * len(tasks)
        self._tasks = tasks
        self._started: dict[tuple[int, ...], Callable[[Block], Block]] = {}

    def see(self, block: Block) -> None:
        """Add what a block gives."""
        shown: dict[tuple[int, ...], Block] = {(): block}
        for i, task in enumerate(self._tasks):
            seen = self._shown(task.views, shown)
            if seen.n:
                self.found[i] = _with(task.function, self.found[i], seen)

    def _shown(self, views: tuple[View, ...], shown: dict[tuple[int, ...], Block]) -> Block:
        key = tuple(id(getattr(view, "fitted", view)) for view in views)  # one map is one view, whoever looks through
        if key not in shown:
            if key not in self._started:
                self._started[key] = start(views[-1])
            shown[key] = self._started[key](self._shown(views[:-1], shown))
        return shown[key]


def _with(function: Callable[[Block], Any], found: Any, block: Block) -> Any:
    """Return a statistic with what a block gives."""
    if found is None:
        return function(block)
    add = getattr(function, "add", None)
    return merge(found, function(block)) if add is None else add(found, block)


def run_tasks(tasks: Sequence[Task], blocks: Iterable[Block]) -> list[Any]:
    """Make one pass over these blocks."""
    running = Running(tasks)
    for block in blocks:
        running.see(block)
        del block  # before the next is made
    return running.found
