"""Printing: data to standard output, messages and progress to standard error."""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import sys
from collections.abc import Sequence
from typing import Any

import click

from .. import __version__
from ..plain import plain, visible
from ..progress import Progress, reporting

JSON_FORMAT = 1
_LONGEST = 400  # characters of a cell: names of classes may have thousands
_SHORTEST = 9  # characters of a name beside numbers, however narrow the terminal is


def say(text: str, quiet: bool = False) -> None:
    """Write a message to standard error."""
    if not quiet:
        click.echo(_wrapped(visible(text)) if sys.stderr.isatty() else visible(text), err=True)


def print_words(text: str) -> None:
    """Write a finding in words to standard output."""
    click.echo(_wrapped(visible(text)) if sys.stdout.isatty() else visible(text))


def cell(value: Any) -> str:
    """Return what a cell of a table shows: one line, and no more than a screen is wide."""
    text = visible(number(value), kept="")
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _wrapped(text: str) -> str:
    return "\n".join(click.wrap_text(line, _columns()) for line in text.split("\n"))


def _columns() -> int:
    return shutil.get_terminal_size().columns


def table_width() -> int:
    """Return how many characters a line of standard output may have: what fits the terminal, or plenty."""
    return _columns() if sys.stdout.isatty() else 200


def print_json(command: str, **values: Any) -> None:
    """Print one object with the version of its format; numbers that JSON lacks become null or "inf"."""
    document = {"format": JSON_FORMAT, "calibrant": __version__, "command": command, **plain(values)}
    click.echo(json.dumps(document, allow_nan=False, ensure_ascii=False, indent=2))


def number(value: Any, digits: int = 4) -> str:
    """Return a number for people."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, float) and math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if isinstance(value, float) and 0 < abs(value) < 10.0**-digits:
        return f"{value:.1e}"
    return f"{value:.{digits}f}" if isinstance(value, float) else str(value)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, left: int = 1) -> None:
    """Print a table to standard output; the first ``left`` columns are text, the others numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for i, column in enumerate(columns):
        table.add_column(Text(cell(column)), justify="left" if i < left else "right", no_wrap=i < 1)
    for row in rows:
        table.add_row(*(item if isinstance(item, Text) else Text(cell(item)) for item in row))
    Console(file=sys.stdout, width=table_width(), highlight=False, soft_wrap=False).print(table)


def columns_that_fit(columns: Sequence[str], rows: Sequence[Sequence[Any]], prose: dict[str, int] | None = None) -> int:
    """Return how many of the columns, from the left, stand side by side; only ``prose`` breaks, from this width on."""
    used, between = 0, 3  # characters between two columns
    for i, column in enumerate(columns):
        width = max(len(cell(column)), *(len(cell(row[i])) for row in rows))
        used += min(width, (prose or {}).get(column, width)) + (between if i else 0)
        if used > table_width():
            return max(i, 1)
    return len(columns)


def print_wide_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table in as many pieces, one below the other, as its columns need; each begins with the first column."""
    beside = max(len(cell(item)) for row in (columns, *rows) for item in row[1:])
    names, start = cut_names([row[0] for row in rows], [beside]), 1
    while start < len(columns):
        body = [(name, *row[start:]) for name, row in zip(names, rows, strict=True)]
        head = (columns[0], *columns[start:])
        shown = max(columns_that_fit(head, body), 2)
        print_table(head[:shown], [row[:shown] for row in body])
        start += shown - 1


def cut_names(names: Sequence[Any], beside: Sequence[int]) -> list[str]:
    """Return names that leave room for columns of these widths beside them; both ends stay, which tell them apart."""
    most = max(table_width() - sum(beside) - 3 * len(beside), _SHORTEST)
    before, behind = -(-(most - 1) // 2), (most - 1) // 2
    return [text if len(text) <= most else f"{text[:before]}…{text[-behind:]}" for text in map(cell, names)]


def progress(words: str, quiet: bool = False) -> contextlib.AbstractContextManager[Progress]:
    """Return a context that yields ``advance(done, total)``: a bar with the time left, unless it should be quiet."""
    return reporting(not quiet, words)
