"""Who wants to know how far a pass is: the command line's bar."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterable, Iterator
from typing import Any

Watcher = Callable[[int, int, int | None], None]
_watcher: contextvars.ContextVar[Watcher | None] = contextvars.ContextVar("calibrant_watcher", default=None)
_pass: contextvars.ContextVar[list[Any]] = contextvars.ContextVar("calibrant_pass")


@contextlib.contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Call ``watcher(number of the pass, rows so far, rows in all or None)`` as batches of a scan are read."""
    token, count = _watcher.set(watcher), _pass.set([0, None, 0])
    try:
        yield
    finally:
        _watcher.reset(token)
        _pass.reset(count)


def tell_pass(rows: int | None = None) -> None:
    """Say that a pass begins."""
    state = _pass.get(None)
    if state is not None:
        state[:] = [state[0] + 1, rows, 0]


def counted(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield batches, and tell the watcher how many rows have gone by."""
    watcher = _watcher.get()
    if watcher is None:
        yield from batches
        return
    state = _pass.get()
    for batch in batches:
        yield batch
        state[2] += len(batch.scores)
        watcher(state[0], state[2], state[1])
