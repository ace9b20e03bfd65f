"""``calibrant demo``."""

from __future__ import annotations

import click

from ..main import COMMANDS
from ..options import Run, common, output_option
from ..output import print_json, print_words, progress, say
from .compare import print_comparison


@click.command(
    "demo", help=COMMANDS["demo"] + "\n\nUses scikit-learn's digits; takes a few seconds and needs no network."
)
@output_option("The report.", default="calibrant-demo.html", show_default=True)
@common
def command(output: str, run: Run) -> None:
    """Train, compare, report."""
    from ...reports import Context, report
    from ...selection import compare
    from ..digits import digits_outputs

    say("training a small network on 150 of scikit-learn's digits …", run.quiet)
    data = digits_outputs(run.seed)
    with progress("comparing", run.quiet) as advance:
        found = compare(
            *data.held_out,
            test=data.test,
            inputs="probabilities",
            methods="fast",
            random_state=run.seed,
            progress=advance,
        )
    facts = {"rows to fit on": len(data.held_out[1]), "rows to judge on": len(data.test[1]), "classes": 10}
    context = Context("calibrant demo: a small network on digits", facts, f"calibrant demo --seed {run.seed}")
    report(found, output, context)
    if run.as_json:
        print_json("demo", output=output, **found.to_dict())
        return
    print_comparison(found)
    print_words(f"\n{found.reason}")
    say(f"The report is in {output}: open it in a browser.", run.quiet)
