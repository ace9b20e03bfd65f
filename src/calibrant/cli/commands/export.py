"""``calibrant export``."""

from __future__ import annotations

from typing import Any

import click

from ..main import COMMANDS
from ..options import common, writable
from ..output import print_json, say

__all__ = ["command"]

_TARGETS = ("onnx", "torch", "sql", "json", "vllm")


def _names(_ctx: click.Context, _parameter: click.Parameter, text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


@click.command("export", help=COMMANDS["export"])
@click.argument("map_file", metavar="MAP")
@click.option("--to", type=click.Choice(_TARGETS), help="What to write; by default what --output ends in.")
@click.option(
    "-o",
    "--output",
    callback=writable,
    metavar="PATH",
    required=True,
    help="Where to write: .onnx, .pt2, .sql, .json.",
)
@click.option("--model", metavar="FILE", help="ONNX model to append the map to.")
@click.option("--scores-output", metavar="NAME", help="Which output of the model holds the scores, if it is not plain.")
@click.option(
    "--dtype",
    type=click.Choice(["float32", "float64"]),
    default="float32",
    show_default=True,
    help="For ONNX and JSON: the precision of the scores.",
)
@click.option(
    "--precision",
    type=click.Choice(["double", "single"]),
    default="double",
    show_default=True,
    help="What is computed in between; single for runtimes without double precision.",
)
@click.option("--opset", type=click.IntRange(min=13), default=17, show_default=True, help="Of ONNX.")
@click.option("--one-score/--column-a-class", default=None, help="What a row of two classes is; as fitted.")
@click.option("--columns", callback=_names, metavar="A,B,C", help="For SQL: the columns of the scores.")
@click.option(
    "--dialect",
    type=click.Choice(["duckdb", "postgres", "bigquery"]),
    default="duckdb",
    show_default=True,
    help="Of SQL.",
)
@click.option("--table", metavar="NAME", help="For SQL: the table to select from.")
@click.option("--keep", callback=_names, metavar="A,B", help="For SQL: the columns to keep.")
@common
def command(
    map_file: str,
    to: str | None,
    output: str,
    scores_output: str | None,
    columns: list[str],
    as_json: bool,
    seed: int,
    quiet: bool,
    **options: Any,
) -> None:
    """Export a saved map."""
    from ...exports import export
    from ...loading import load

    fitted = load(map_file)
    query = options["table"] is not None or len(columns) != 1
    wanted = (columns if query else columns[0]) if columns else None
    export(fitted, output, to, output=scores_output, columns=wanted, **options)
    if as_json:
        print_json("export", map=map_file, output=output)
    else:
        say(f"saved to {output}", quiet)
