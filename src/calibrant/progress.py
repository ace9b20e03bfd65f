"""A progress bar with the time left, on a terminal only, for work that takes longer than a moment."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

from .errors import InvalidInput

Progress = Callable[..., None]


@contextlib.contextmanager
def progress_bar(words: str, after: float = 2.0) -> Iterator[Progress]:
    """Yield ``advance(done, total)``, which draws a bar on standard error once ``after`` seconds have gone by.

    A third argument is shown beside the words.
    """
    # A bar is a courtesy: without rich, which comes with calibrant[cli], there is none.
    if not sys.stderr.isatty() or find_spec("rich") is None:
        yield lambda done, total, note="": None
        return
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

    text, share = TextColumn("{task.description}"), TextColumn("{task.percentage:>3.0f}%")
    with _drawn(words, after, text, BarColumn(), share, TimeRemainingColumn()) as draw:
        yield lambda done, total, note="": draw(
            done < total, completed=done, total=total, description=f"{words} {note}".rstrip()
        )


@contextlib.contextmanager
def pass_bar(words: str, quiet: bool = False, after: float = 1.0) -> Iterator[Callable[[int, int, int | None], None]]:
    """Yield ``advance(number of the pass, rows so far, rows in all or None)``, which draws a bar likewise.

    How many rows there are in all is known after the first pass.
    """
    if quiet or not sys.stderr.isatty() or find_spec("rich") is None:
        yield lambda number, rows, total: None
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

    text = TextColumn("{task.description}: pass {task.fields[number]}, {task.fields[rows]:,} rows")
    with _drawn(words, after, text, BarColumn(), TimeElapsedColumn(), number=1, rows=0) as draw:
        yield lambda number, rows, total: draw(True, number=number, rows=rows, completed=rows, total=total)


@contextlib.contextmanager
def _drawn(words: str, after: float, *columns: Any, **fields: Any) -> Iterator[Callable[..., None]]:
    """Yield what brings a bar of rich up to date, and starts it when it is late enough and work remains."""
    from rich.console import Console
    from rich.progress import Progress as Bar

    bar = Bar(*columns, console=Console(stderr=True), transient=True)
    task, begun = bar.add_task(words, total=None, **fields), time.monotonic()

    def draw(remains: bool, **told: Any) -> None:
        if not bar.live.is_started and time.monotonic() - begun > after and remains:
            bar.start()
        bar.update(task, **told)

    try:
        yield draw
    finally:
        if bar.live.is_started:
            bar.stop()


@contextlib.contextmanager
def reporting(progress: Progress | bool, words: str) -> Iterator[Progress]:
    """Yield what a ``progress`` argument asks for: a bar (True), nothing (False), or the caller's own function."""
    if callable(progress):
        yield progress
    elif not isinstance(progress, (int, type(None))):
        raise InvalidInput("progress is not valid", seen=repr(progress)[:80], allowed="True, False or a function")
    elif progress:
        with progress_bar(words) as advance:
            yield advance
    else:
        yield lambda done, total: None
