"""``calibrant compare``."""

from __future__ import annotations

from typing import Any

import click

from ..main import COMMANDS
from ..options import Run, common, compare_options, output_option, read_data, scan_options
from ..output import (
    cell,
    cut_names,
    number,
    print_json,
    print_table,
    print_wide_table,
    print_words,
    progress,
    say,
    table_width,
)


@click.command(
    "compare",
    help=COMMANDS["compare"]
    + "\n\nA file with a validation and a test part is judged on its test part, unless --cv is given. The choice is "
    "the lowest held-out loss, unless the scores as they are, a blend of several maps or a simpler map come near it. "
    "Patterns of files and what is larger than --memory are compared on a sample of rows, which the result states; the "
    "chosen map is then fitted on all rows.",
)
@click.argument("file", metavar="FILE")
@compare_options
@output_option("Fit the chosen map on all rows and save it here.")
@scan_options
@common
def command(file: str, output: str | None, names: Any, memory: str | None, run: Run, **settings: Any) -> None:
    """Compare maps on a file."""
    from ..comparing import compared, compared_scan
    from ..scans import counting, scan_data

    scanned = scan_data(file, names, memory)
    with progress("comparing", run.quiet) as advance:
        if scanned is None:
            found = compared(read_data(file, names), run.seed, advance, settings, names)
        else:
            found = compared_scan(scanned, run.seed, advance, settings, names, memory)
    if output is not None:
        with counting(f"fitting {found.best_}", run.quiet or scanned is None):
            found.refit_.save(output)
    if run.as_json:
        print_json("compare", file=file, output=output, **found.to_dict())
        return
    print_comparison(found)
    if found.settings["left_out"]:
        say(f"left out, as {file} has no embeddings: {', '.join(found.settings['left_out'])}", run.quiet)
    print_words(f"\n{found.reason}")
    if found.zeros_words:
        say(found.zeros_words, run.quiet)
    if output is not None:
        say(f"saved {found.best_} to {output}", run.quiet)


def print_comparison(found: Any) -> None:
    """Print the table of a comparison, the chosen map marked."""
    shown, last = _columns(found, table_width())
    rows = []
    for row in found.rows:
        mark = "→ " if row.name == found.best_ else "  "
        if row.error:
            rows.append((mark + row.name, "failed", *[""] * (len(shown) + len(last) - 1)))
            say(f"{row.name} failed: {row.error}")
            continue
        figures = [str(row.metrics[name]) if wide else row.metrics[name].value for name, wide in shown.items()]
        rest = {
            "keeps": row.keeps,
            "parameters": f"{row.parameters:,.1f}".removesuffix(".0"),
            "fit s": f"{row.fit_seconds:.3f}",
        }
        rows.append((mark + row.name, *figures, *(rest[name] for name in last)))
    columns = zip((*shown, *last), *(row[1:] for row in rows), strict=True)
    names = cut_names([row[0] for row in rows], [max(map(len, map(cell, column))) for column in columns])
    print_table(("  map", *shown, *last), [(name, *row[1:]) for name, row in zip(names, rows, strict=True)])
    if any(shown[name] for name in shown if name not in found.rows[0].against_best):  # no means of rows: errors
        print_words("± of calibration errors is that of the estimate, which chance raises")
    if found.curves:
        _print_curves(found.curves)


def _print_curves(curves: Any) -> None:
    """Print the learning curves: a line a map, a column a size."""
    sizes = curves[0].sizes
    click.echo(f"\n  held-out {curves[0].metric} by rows to fit on")
    rows = [(f"  {curve.name}", *(number(e.value) for e in curve.estimates)) for curve in curves]
    print_wide_table(("  map", *map(str, sizes)), rows)


def _columns(found: Any, width: int) -> tuple[dict[str, bool], tuple[str, ...]]:
    """The metrics to show, each with its interval or without, and the columns behind them, so that they fit."""
    names, decides = list(found.rows[0].metrics), found.settings["metric"]
    if width >= 150:
        return dict.fromkeys(names, True), ("keeps", "parameters", "fit s")
    if width < 115:
        less = ("ece_sweep", "cwece") if not found.settings["also"] else ("accuracy", "ece", "ece_sweep", "cwece")
        names = [name for name in names if name not in less or name in found.settings["also"]]
    return {name: name == decides for name in names}, ("keeps", "parameters", "fit s") if width >= 115 else ("keeps",)
