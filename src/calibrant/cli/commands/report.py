"""``calibrant report``."""

from __future__ import annotations

from typing import Any

import click

from ..main import COMMANDS
from ..options import command_line, common, compare_options, data_options, read_data, writable
from ..output import print_json, print_words, progress, say

__all__ = ["command"]


@click.command("report", help=COMMANDS["report"] + "\n\nThe options are those of compare.")
@click.argument("file", metavar="FILE")
@click.option(
    "-o",
    "--output",
    callback=writable,
    default="report.html",
    show_default=True,
    metavar="PATH",
    help="Where to write it.",
)
@click.option("--title", help="Headline of the page.")
@compare_options
@data_options
@common
def command(
    file: str,
    output: str,
    title: str | None,
    names: Any,
    as_json: bool,
    seed: int,
    quiet: bool,
    **settings: Any,
) -> None:
    """Measure, compare and write a page."""
    from ...reports import report
    from ..comparing import compared, report_context

    data = read_data(file, names)
    with progress("comparing", quiet) as advance:
        found = compared(data, seed, advance, settings, names)
    report(found, output, report_context(data, title, command_line()))
    if as_json:
        print_json("report", file=file, output=output, best=found.best_, reason=found.reason)
    else:
        print_words(found.reason)
        say(f"wrote {output}", quiet)
