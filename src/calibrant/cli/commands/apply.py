"""``calibrant apply``."""

from __future__ import annotations

from typing import Any

import click

from ...errors import count_of
from ..main import COMMANDS
from ..options import Run, common, load_map, read_data, scan_options
from ..output import print_json, say


@click.command(
    "apply",
    help=COMMANDS["apply"]
    + "\n\nNames decide which column is which class; files without names go by position. A table (.csv, .tsv, .jsonl, "
    ".parquet, .arrow) keeps its columns, and has new ones behind them: calibrated_CLASS, or calibrated_COLUMN for "
    "the probability of one event: fractions, also where FILE has percentages. From .npz, .npy and the like the output "
    "holds the probabilities, and the labels where FILE has some. A pattern of files, a directory or what is larger "
    "than --memory is written file by file, to the directory PATH where these are several.",
)
@click.argument("calibrator", metavar="MAP")
@click.argument("file", metavar="FILE")
@click.option("-o", "--output", required=True, metavar="PATH", help="Where to write; - for standard output.")
@click.option("--prefix", default="calibrated_", show_default=True, help="What the names of new columns begin with.")
@scan_options
@common
def command(calibrator: str, file: str, output: str, prefix: str, names: Any, memory: str | None, run: Run) -> None:
    """Apply a saved map to the scores of a file."""
    from ...files.atomic import check_target
    from ...files.writing import write_probabilities
    from ..measuring import predict
    from ..scans import scan_data

    if output == "-" and run.as_json:
        raise click.UsageError("--json and --output - both claim standard output; hint: name a file")
    fitted, scanned = load_map(calibrator), scan_data(file, names, memory, every_part=True)
    if scanned is not None:
        rows = {"all": _applied(fitted, scanned, output, prefix, run.quiet)}
        _tell(calibrator, file, output, rows, run)
        return
    if output != "-":
        check_target(output)
    data = read_data(file, names, fitted, every_part=True, unlabelled=True)
    parts = {name: predict(fitted, data, rows) for name, rows in data.parts.items()}
    write_probabilities(output, data, parts, prefix)
    if formulas := [name for name in data.class_names if _is_formula(name)] if _is_text(output) else []:
        say(f"note: to a spreadsheet a name like {formulas[0][:40]} is a formula: import its column as text", run.quiet)
    if names["percent"]:
        say("note: the calibrated probabilities are fractions from 0 to 1", run.quiet)
    _tell(calibrator, file, output, {name or "all": len(p) for name, p in parts.items()}, run)


def _applied(fitted: Any, data: Any, output: str, prefix: str, quiet: bool) -> int:
    """Write files from files, and return how many rows there were."""
    from ...scanning.applying import apply
    from ..scans import counting, set_kind

    if output == "-":
        raise click.UsageError("what is read in batches is written to files; hint: name a directory")
    set_kind(fitted, data)
    with counting("correcting", quiet) as rows:
        apply(fitted, data, output, column=prefix)
    return rows[0]


def _tell(calibrator: str, file: str, output: str, rows: dict[str, int], run: Run) -> None:
    if run.as_json:
        print_json("apply", calibrator=calibrator, file=file, output=output, rows=rows)
    elif output != "-":
        say(f"{count_of(sum(rows.values()), 'row')} corrected; saved to {output}", run.quiet)


def _is_text(output: str) -> bool:
    return output.lower().removesuffix(".gz").endswith((".csv", ".tsv"))


def _is_formula(name: str) -> bool:
    """Whether a spreadsheet computes a cell with this text: it begins with a sign of one, and is no number."""
    try:
        float(name)
    except ValueError:
        return name.startswith(("=", "+", "-", "@", "\t", "\r"))
    return False
