"""``calibrant measure``."""

from __future__ import annotations

from typing import Any

import click

from ..gates import check_gates, parse_gates
from ..main import COMMANDS
from ..options import common, data_options, read_data
from ..output import print_json, print_table, say

__all__ = ["command"]


@click.command(
    "measure",
    help=COMMANDS["measure"]
    + "\n\nJudges the test part of a split, and the only part otherwise. As a gate in a pipeline: --fail-if "
    '"ece_sweep > 0.02" ends with code 1 when it holds.',
)
@click.argument("file", metavar="FILE")
@click.option("--calibrator", metavar="MAP", help="Apply this saved map first.")
@click.option("--fail-if", "gates", multiple=True, metavar="RULE", help='Such as "ece > 0.02"; may be repeated.')
@data_options
@common
def command(
    file: str, calibrator: str | None, gates: tuple[str, ...], names: Any, as_json: bool, seed: int, quiet: bool
) -> int:
    """Measure the probabilities of a file."""
    rules = parse_gates(gates)
    from ..measuring import measured_parts

    fitted = None if calibrator is None else _load(calibrator)
    data = read_data(file, names)
    found = measured_parts(data, fitted, seed)
    failed = [
        f"{name + ': ' if name else ''}{text}" for name, part in found.items() for text in check_gates(rules, part)
    ]
    if as_json:
        print_json("measure", file=file, calibrator=calibrator, kind=data.kind, parts=found, failed=failed)
    else:
        for name, part in found.items():
            _print(file, name, part, quiet)
    if any(rows.groups is not None for rows in data.parts.values()):
        say("the intervals treat rows as independent: groups are used by compare, not here", quiet)
    for text in failed:
        say(f"gate failed: {text}")
    return 1 if failed else 0


def _load(path: str) -> Any:
    from ...loading import load

    return load(path)


def _print(file: str, name: str, part: dict[str, Any], quiet: bool) -> None:
    rows = [(metric, f["value"], f"[{f['low']:.4f}, {f['high']:.4f}]") for metric, f in part["metrics"].items()]
    where = f"{file} ({name})" if name else file
    print_table((f"{where}: {part['rows']} rows, {part['classes']} classes", "value", "95 % interval"), rows)
    say(part["verdict"], quiet)
