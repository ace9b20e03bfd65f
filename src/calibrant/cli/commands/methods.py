"""``calibrant methods``."""

from __future__ import annotations

import click

from ..main import COMMANDS
from ..options import common
from ..output import print_json, print_table

__all__ = ["command"]


@click.command("methods", help=COMMANDS["methods"])
@common
def command(as_json: bool, seed: int, quiet: bool) -> None:
    """List the registry."""
    from ...registry import entries

    found = [(entry, entry.traits) for entry in entries()]
    if as_json:
        rows = [
            {
                "name": entry.name,
                "summary": entry.summary,
                "source": entry.source,
                "shape": traits.shape,
                "keeps": traits.preserves,
                "makes_true": traits.calibrates,
                "parameters": traits.parameters,
                "needs": traits.needs,
            }
            for entry, traits in found
        ]
        print_json("methods", methods=rows)
        return
    columns = ("name", "what it is", "keeps", "makes true", "parameters", "needs", "source")
    cells = [(e.name, e.summary, t.preserves, t.calibrates, t.parameters, t.needs, e.source) for e, t in found]
    print_table(columns, cells, left=7)
