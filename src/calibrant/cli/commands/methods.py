"""``calibrant methods``."""

from __future__ import annotations

import click

from ..main import COMMANDS
from ..options import Run, common
from ..output import columns_that_fit, print_json, print_table, say


@click.command("methods", help=COMMANDS["methods"])
@common
def command(run: Run) -> None:
    """List the registry."""
    from ...registry import entries

    found = [(entry, entry.traits) for entry in entries()]
    if run.as_json:
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
    columns = ("name", "what it is", "keeps", "makes true", "needs", "parameters", "source")
    cells = [(e.name, e.summary, t.preserves, t.calibrates, t.needs, t.parameters, e.source) for e, t in found]
    shown = columns_that_fit(columns, cells, {"what it is": 36})
    print_table(columns[:shown], [row[:shown] for row in cells], left=shown)
    if shown < len(columns):
        say(f"in a wider window, or with --json: {', '.join(columns[shown:])}", run.quiet)
