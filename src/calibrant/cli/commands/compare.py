"""``calibrant compare``."""

from __future__ import annotations

from typing import Any

import click

from ..main import COMMANDS
from ..options import common, compare_options, data_options, read_data, writable
from ..output import print_json, print_table, progress, say

__all__ = ["command"]


@click.command(
    "compare",
    help=COMMANDS["compare"]
    + "\n\nA file with a validation and a test part is judged on its test part, unless --cv is given. The choice is "
    "the simplest map within one standard error of the lowest loss.",
)
@click.argument("file", metavar="FILE")
@compare_options
@click.option(
    "-o", "--output", callback=writable, metavar="PATH", help="Fit the chosen map on all rows and save it here."
)
@data_options
@common
def command(file: str, output: str | None, names: Any, as_json: bool, seed: int, quiet: bool, **settings: Any) -> None:
    """Compare maps on a file."""
    from ..comparing import compared

    data = read_data(file, names)
    with progress("comparing", quiet) as advance:
        found = compared(data, seed, advance, settings, names)
    if output is not None:
        found.refit_.save(output)
    if as_json:
        print_json("compare", file=file, output=output, **found.to_dict())
        return
    print_comparison(found)
    if found.settings["left_out"]:
        say(f"left out, as {file} has no embeddings: {', '.join(found.settings['left_out'])}", quiet)
    say(found.reason, quiet)
    if output is not None:
        say(f"saved {found.best_} to {output}", quiet)


def print_comparison(found: Any) -> None:
    """Print the table of a comparison, the chosen map marked."""
    shown = list(found.rows[0].metrics)
    rows = []
    for row in found.rows:
        mark = "→ " if row.name == found.best_ else "  "
        if row.error:
            rows.append((mark + row.name, *(["failed"] + [""] * (len(shown) + 2))))
            say(f"{row.name} failed: {row.error}")
            continue
        figures = [str(row.metrics[name]) for name in shown]
        rows.append((mark + row.name, *figures, row.keeps, f"{row.parameters:g}", f"{row.fit_seconds:.3f}"))
    print_table(("  map", *shown, "keeps", "parameters", "fit s"), rows)
    for curve in found.curves:
        points = [f"{e.value:.4f}" for e in curve.estimates]
        print_table((f"  {curve.metric} at rows", *map(str, curve.sizes)), [(f"  {curve.name}", *points)])
