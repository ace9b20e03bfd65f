"""``calibrant report``."""

from __future__ import annotations

from typing import Any

import click

from ..main import COMMANDS
from ..options import (
    PROFILES,
    Run,
    choice,
    command_line,
    common,
    compare_options,
    data_options,
    output_option,
    read_data,
)
from ..output import print_json, print_words, progress, say


@click.command("report", help=COMMANDS["report"] + "\n\nThe options are those of compare.")
@click.argument("file", metavar="FILE")
@output_option("Where to write it.", default="report.html", show_default=True)
@click.option("--title", help="Headline of the page.")
@choice("--profile", PROFILES, "default", "Other than default: measure as that reader wants it, and compare no maps.")
@compare_options
@data_options
@common
def command(file: str, output: str, title: str | None, profile: str, names: Any, run: Run, **settings: Any) -> None:
    """Measure, compare and write a page."""
    from ...reports import report
    from ..comparing import compared, report_context

    data = read_data(file, names, several=profile == "multilabel")
    by_group = profile != "default" and names["groups"] is not None
    if profile != "default":
        from ..measuring import measured_parts

        found: Any = next(reversed(measured_parts(data, None, run.seed, profile, by_group=by_group).values()))
        words, told = found.verdict, {"verdict": found.verdict}
    else:
        with progress("comparing", run.quiet) as advance:
            found = compared(data, run.seed, advance, settings, names)
        words, told = found.reason, {"best": found.best_, "reason": found.reason}
    report(found, output, report_context(data, title, command_line(), by_group=by_group))
    if run.as_json:
        print_json("report", file=file, output=output, **told)
    else:
        print_words(words)
        say(f"wrote {output}", run.quiet)
