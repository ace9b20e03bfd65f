"""Searches that go side by side, so that what they ask of the rows costs one pass for all of them.

A fit asks for sums, thinks, and asks again. Two fits one after the other would read the rows twice as often as they
need. Here each runs in a thread of its own, one at a time; when all that are not done have asked, one pass answers
them all. Rows in memory need none of this: there the searches run one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from queue import SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

from ..threads import carried
from .engines import PassEngine
from .task import Task, Tasks

if TYPE_CHECKING:
    from .data import Data


class _Cancelled(BaseException):
    """Ends a search whose answers will not come."""


def together(data: Data, searches: Sequence[Callable[[Data], Any]]) -> list[Any]:
    """Run searches on the same rows, and return what each found.

    Each gets the rows, and must look at them by these only, for its passes to be shared.
    """
    engine = data.engine
    if not isinstance(engine, PassEngine) or len(searches) < 2:
        return [search(data) for search in searches]
    conductor = _Conductor(engine.passes, len(searches))

    def begun(number: int) -> Callable[[], Any]:
        own = replace(data, engine=PassEngine(_Asking(conductor, number), engine.views))
        own.__dict__.update(_plans=data._plans, _pilots=data._pilots, _kept=data._kept)  # what is known
        return lambda: searches[number](own)

    return conductor.conduct([begun(number) for number in range(len(searches))])


class _Asking:
    """The passes that one search asks for."""

    def __init__(self, conductor: _Conductor, number: int) -> None:
        self._conductor, self._number = conductor, number

    def run(self, tasks: Sequence[Task]) -> list[Any]:
        """Ask, and wait for the pass that answers."""
        return self._conductor.answer(self._number, tasks)


class _Conductor:
    def __init__(self, passes: Tasks, count: int) -> None:
        self._passes = passes
        self._baton = Lock()  # held by the one search that runs
        self._inbox: SimpleQueue[tuple[int, Sequence[Task] | None]] = SimpleQueue()
        self._answers: list[SimpleQueue[list[Any] | None]] = [SimpleQueue() for _ in range(count)]
        self._found: list[Any] = [None] * count
        self._failure: BaseException | None = None

    def answer(self, number: int, tasks: Sequence[Task]) -> list[Any]:
        """Called by a search: hand the tasks over, and wait."""
        self._inbox.put((number, tasks))
        self._baton.release()
        found = self._answers[number].get()
        self._baton.acquire()
        if found is None:
            raise _Cancelled
        return found

    def conduct(self, searches: Sequence[Callable[[], Any]]) -> list[Any]:
        """Start the searches, make passes until all are done, and return what they found."""
        threads = [
            Thread(target=carried(self._search), args=(number, search), daemon=True)
            for number, search in enumerate(searches)
        ]
        for thread in threads:
            thread.start()
        waiting: set[int] = set()
        try:
            live = set(range(len(searches)))
            while live:
                asked = self._gathered(live)
                waiting = set(asked)
                if self._failure is not None:
                    raise self._failure
                self._make_pass(asked)
                waiting = set()
        finally:
            for number in waiting:
                self._answers[number].put(None)
            for thread in threads:
                thread.join()
        return self._found

    def _gathered(self, live: set[int]) -> dict[int, Sequence[Task]]:
        """Wait until every search has asked or is done."""
        asked: dict[int, Sequence[Task]] = {}
        while len(asked) < len(live):
            number, tasks = self._inbox.get()
            if tasks is None:
                live.discard(number)
            else:
                asked[number] = tasks
        return asked

    def _make_pass(self, asked: dict[int, Sequence[Task]]) -> None:
        order = sorted(asked)
        found = self._passes.run([task for number in order for task in asked[number]]) if order else []
        for number in order:
            count = len(asked[number])
            self._answers[number].put(found[:count])
            found = found[count:]

    def _search(self, number: int, search: Callable[[], Any]) -> None:
        with self._baton:
            try:
                self._found[number] = search()
            except _Cancelled:
                pass
            except BaseException as error:  # it is raised where the searches were started
                self._failure = self._failure or error
            finally:
                self._inbox.put((number, None))
