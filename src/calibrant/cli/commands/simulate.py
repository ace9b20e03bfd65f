"""``calibrant simulate``."""

from __future__ import annotations

import click

from ..main import COMMANDS
from ..options import Run, common, whole_numbers
from ..output import print_json, print_table, print_wide_table, print_words, progress


@click.command(
    "simulate",
    help=COMMANDS["simulate"]
    + "\n\nWithout SCENARIO the scenarios are listed, with their true errors. With one, samples are drawn from it and "
    "the bias of the estimator is printed for each number of rows and bins, in percentage points.",
)
@click.argument("scenario", required=False)
@click.option("--rows", callback=whole_numbers, default="200,1000,5000", show_default=True, help="Rows of a sample.")
@click.option("--bins", callback=whole_numbers, default="15", show_default=True, help="Bins, for binned estimators.")
@click.option("--estimator", default="binned", show_default=True, help="Such as binned, sweep, debiased, kde, smooth.")
@click.option("--edges", type=click.Choice(["equal_width", "equal_mass"]), help="Where the bins lie.")
@click.option("--norm", type=click.Choice(["1", "2"]), default="2", show_default=True)
@click.option("--repeats", type=click.IntRange(min=2), default=300, show_default=True, help="Samples of each size.")
@common
def command(
    scenario: str | None,
    rows: list[int],
    bins: list[int],
    estimator: str,
    edges: str | None,
    norm: str,
    repeats: int,
    run: Run,
) -> None:
    """List the scenarios, or run an estimator on one."""
    from ...simulation import experiments, scenarios

    if scenario is None:
        listed = {name: float(s.true_error(int(norm))) for name, s in scenarios.items()}
        if run.as_json:
            print_json("simulate", norm=int(norm), scenarios=listed)
        else:
            print_table(("scenario", f"true error, norm {norm}"), list(listed.items()))
        return
    if scenario not in scenarios:
        raise click.BadParameter(f"no scenario {scenario!r}; allowed: {', '.join(scenarios)}", param_hint="SCENARIO")
    with progress("simulating", run.quiet) as advance:
        found = experiments.run(
            scenarios[scenario],
            n=rows,
            bins=bins,
            estimator=estimator,
            edges=edges,
            norm=int(norm),
            repeats=repeats,
            random_state=run.seed,
            progress=advance,
        )
    bias, error, spread = found.bias(), found.standard_error(), found.variance() ** 0.5
    if run.as_json:
        figures = {"bias": bias, "bias_error": error, "deviation": spread}
        print_json(
            "simulate", scenario=scenario, truth=found.truth, rows=rows, bins=bins, estimator=estimator, **figures
        )
        return
    cells = [
        [f"{100 * b:+.2f} ±{196 * e:.2f}" for b, e in zip(*pair, strict=True)] for pair in zip(bias, error, strict=True)
    ]
    print_words(f"bias in percentage points, by bins and rows; the true error is {100 * found.truth:.2f} %\n")
    print_wide_table(("bins", *map(str, rows)), [(str(b), *line) for b, line in zip(bins, cells, strict=True)])
