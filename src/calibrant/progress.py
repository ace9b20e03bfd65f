"""A progress bar with the time left, on a terminal only, for work that takes longer than a moment."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec

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
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
    bar = Bar(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
    task, begun = bar.add_task(words, total=None), time.monotonic()

    def advance(done: int, total: int, note: str = "") -> None:
        if not bar.live.is_started and time.monotonic() - begun > after and done < total:
            bar.start()
        bar.update(task, completed=done, total=total, description=f"{words} {note}".rstrip())

    try:
        yield advance
    finally:
        if bar.live.is_started:
            bar.stop()


@contextlib.contextmanager
def pass_bar(words: str, quiet: bool = False, after: float = 1.0) -> Iterator[Callable[[int, int, int | None], None]]:
    """Yield ``advance(number of the pass, rows so far, rows in all or None)``, which draws a bar likewise.

    How many rows there are in all is known after the first pass.
    """
    if quiet or not sys.stderr.isatty() or find_spec("rich") is None:
        yield lambda number, rows, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    text = TextColumn("{task.description}: pass {task.fields[number]}, {task.fields[rows]:,} rows")
    bar = Bar(text, BarColumn(), TimeElapsedColumn(), console=Console(stderr=True), transient=True)
    task, begun = bar.add_task(words, total=None, number=1, rows=0), time.monotonic()

    def advance(number: int, rows: int, total: int | None) -> None:
        if not bar.live.is_started and time.monotonic() - begun > after:
            bar.start()
        bar.update(task, number=number, rows=rows, completed=rows, total=total)

    try:
        yield advance
    finally:
        if bar.live.is_started:
            bar.stop()


@contextlib.contextmanager
def reporting(progress: Progress | bool, words: str) -> Iterator[Progress]:
    """Yield what a ``progress`` argument asks for: a bar (True), nothing (False), or the caller's own function."""
    if callable(progress):
        yield progress
    elif progress:
        with progress_bar(words) as advance:
            yield advance
    else:
        yield lambda done, total: None
