"""``calibrant report``."""

from __future__ import annotations

from typing import Any

import click

from ..main import COMMANDS
from ..options import PROFILES, command_line, common, compare_options, data_options, read_data, writable
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
@click.option(
    "--profile",
    type=click.Choice(PROFILES),
    default="default",
    show_default=True,
    help="Other than default: measure as that reader wants it, and compare no maps.",
)
@compare_options
@data_options
@common
def command(
    file: str,
    output: str,
    title: str | None,
    profile: str,
    names: Any,
    as_json: bool,
    seed: int,
    quiet: bool,
    **settings: Any,
) -> None:
    """Measure, compare and write a page."""
    from ...reports import report
    from ..comparing import compared, report_context

    data = read_data(file, names, several=profile == "multilabel")
    if profile != "default":
        from ..measuring import measured_parts

        part = next(reversed(measured_parts(data, None, seed, profile, by_group=names["groups"] is not None).values()))
        report(part, output, report_context(data, title, command_line()))
        if as_json:
            print_json("report", file=file, output=output, verdict=part.verdict)
        else:
            print_words(part.verdict)
            say(f"wrote {output}", quiet)
        return
    with progress("comparing", quiet) as advance:
        found = compared(data, seed, advance, settings, names)
    report(found, output, report_context(data, title, command_line()))
    if as_json:
        print_json("report", file=file, output=output, best=found.best_, reason=found.reason)
    else:
        print_words(found.reason)
        say(f"wrote {output}", quiet)
