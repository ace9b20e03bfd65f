"""``calibrant apply``."""

from __future__ import annotations

from typing import Any

import click

from ..main import COMMANDS
from ..options import common, data_options, read_data, writable
from ..output import print_json, say

__all__ = ["command"]


@click.command(
    "apply",
    help=COMMANDS["apply"]
    + "\n\nNames decide which column is which class; files without names go by position. A table (.csv, .tsv, .jsonl, "
    ".parquet, .arrow) keeps its columns, and has new ones behind them: calibrated_CLASS, or calibrated_COLUMN for "
    "the probability of one event. From .npz, .npy and the like the output holds the probabilities, and the labels "
    "where FILE has some.",
)
@click.argument("calibrator", metavar="MAP")
@click.argument("file", metavar="FILE")
@click.option(
    "-o", "--output", callback=writable, required=True, metavar="PATH", help="Where to write; - for standard output."
)
@click.option(
    "--prefix", default="calibrated_", show_default=True, help="What the names of new columns of a table begin with."
)
@data_options
@common
def command(
    calibrator: str, file: str, output: str, prefix: str, names: Any, as_json: bool, seed: int, quiet: bool
) -> None:
    """Apply a saved map to the scores of a file."""
    from ...files.writing import write_probabilities
    from ...loading import load
    from ..measuring import predict, with_classes_of

    if output == "-" and as_json:
        raise click.UsageError("--json and --output - both claim standard output; hint: name a file")
    fitted = load(calibrator)
    data = with_classes_of(fitted, read_data(file, names, every_part=True))
    parts = {name: predict(fitted, data, rows) for name, rows in data.parts.items()}
    write_probabilities(output, data, parts, prefix)
    if formulas := [name for name in data.class_names if _is_formula(name)] if _is_text(output) else []:
        say(f"note: to a spreadsheet a name like {formulas[0][:40]} is a formula: import its column as text", quiet)
    rows = {name or "all": len(p) for name, p in parts.items()}
    if as_json:
        print_json("apply", calibrator=calibrator, file=file, output=output, rows=rows)
    elif output != "-":
        say(f"{sum(rows.values())} rows corrected; saved to {output}", quiet)


def _is_text(output: str) -> bool:
    return output.lower().removesuffix(".gz").endswith((".csv", ".tsv"))


def _is_formula(name: str) -> bool:
    """Whether a spreadsheet computes a cell with this text: it begins with a sign of one, and is no number."""
    try:
        float(name)
    except ValueError:
        return name.startswith(("=", "+", "-", "@", "\t", "\r"))
    return False
