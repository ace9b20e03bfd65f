"""``calibrant export``."""

from __future__ import annotations

from typing import Any

import click

from ..main import COMMANDS
from ..options import Run, choice, common, load_map, output_option, words
from ..output import print_json, say

_TARGETS = ("onnx", "torch", "sql", "json", "vllm")


@click.command("export", help=COMMANDS["export"])
@click.argument("map_file", metavar="MAP")
@click.option("--to", type=click.Choice(_TARGETS), help="What to write; by default what --output ends in.")
@output_option("Where to write: .onnx, .pt2, .sql, .json.", required=True)
@click.option("--model", metavar="FILE", help="ONNX model to append the map to.")
@click.option("--scores-output", metavar="NAME", help="Which output of the model holds the scores, if it is not plain.")
@choice("--dtype", ["float32", "float64"], "float32", "For ONNX and JSON: the precision of the scores.")
@choice("--precision", ["double", "single"], "double", "In between; single for runtimes without double precision.")
@click.option("--opset", type=click.IntRange(min=13), default=17, show_default=True, help="Of ONNX.")
@click.option("--one-score/--column-a-class", default=None, help="What a row of two classes is; as fitted.")
@click.option("--columns", callback=words, metavar="A,B,C", help="For SQL: the columns of the scores.")
@choice("--dialect", ["duckdb", "postgres", "bigquery"], "duckdb", "Of SQL.")
@click.option("--table", metavar="NAME", help="For SQL: the table to select from.")
@click.option("--keep", callback=words, metavar="A,B", help="For SQL: the columns to keep.")
@common
def command(
    map_file: str,
    to: str | None,
    output: str,
    scores_output: str | None,
    columns: list[str],
    run: Run,
    **options: Any,
) -> None:
    """Export a saved map."""
    from ...exports import export

    query = options["table"] is not None or len(columns) != 1
    wanted = (columns if query else columns[0]) if columns else None
    export(load_map(map_file), output, to, output=scores_output, columns=wanted, **options)
    if run.as_json:
        print_json("export", map=map_file, output=output)
    else:
        say(f"saved to {output}", run.quiet)
