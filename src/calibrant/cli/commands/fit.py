"""``calibrant fit``."""

from __future__ import annotations

import sys
from typing import Any

import click

from ...errors import count_of
from ..main import COMMANDS
from ..options import Run, common, method_names, output_option, parse_parameters, read_data, scan_options
from ..output import print_json, print_table, print_words, say


@click.command("fit", help=COMMANDS["fit"] + "\n\nFits on the validation part of a split, and judges on its test part.")
@click.argument("file", metavar="FILE")
@click.option(
    "--method",
    metavar="NAME",
    shell_complete=method_names,
    help='A map; "a > b" chains two. By default auto, the choice of compare, or ets where rows come in batches.',
)
@output_option("Where to save the map, such as map.calibrant; - for standard output.", required=True)
@click.option("--set", "pairs", multiple=True, metavar="NAME=VALUE", help="A parameter of the map; may be repeated.")
@scan_options
@common
def command(
    file: str,
    method: str | None,
    output: str,
    pairs: tuple[str, ...],
    names: Any,
    memory: str | None,
    run: Run,
) -> None:
    """Fit a map and save it."""
    from ...registry import make_seeded
    from ..fitting import fit as fit_rows
    from ..fitting import judge
    from ..scans import fit_scan, scan_data

    if output == "-" and run.as_json:
        raise click.UsageError("--json and --output - both claim standard output; hint: name a file for the map")
    found = scan_data(file, names, memory)
    method = method or ("auto" if found is None else "ets")
    calibrator = make_seeded(method, run.seed, **parse_parameters(pairs))
    data: Any = read_data(file, names) if found is None else None
    fitted = fit_rows(calibrator, data) if found is None else fit_scan(calibrator, found, run.quiet)
    save(fitted, output)
    report = fitted.fit_report_
    if output == "-":
        return
    table = {"rows": fitted.n_samples_, "classes": len(fitted.classes_), "converged": report.converged}
    losses = {"before": report.loss_before, "after": report.loss_after}
    chosen = {"chosen": getattr(fitted, "best_", method), "reason": getattr(fitted, "reason_", "")}
    judged = None if data is None or data.test is None else judge(fitted, data, data.test)
    if run.as_json:
        loss = {"name": report.loss, **losses, "held_out_before": report.held_out_before}
        loss["held_out_after"] = report.held_out_after
        print_json("fit", method=method, **chosen, output=output, **table, loss=loss, test=judged)
        return
    if judged is not None:
        before, after = judged["before"], judged["after"]
        print_table(("on the test rows", "before", "after"), [(name, before[name], after[name]) for name in before])
    else:
        rows: list[Any] = [(f"{report.loss} on the rows fitted", losses["before"], losses["after"])]
        if report.held_out_after is not None:
            rows.append((f"{report.loss} held out", report.held_out_before, report.held_out_after))
        print_table(("", "before", "after"), rows)
    if method == "auto":
        print_words(f"{chosen['chosen']}: {chosen['reason']}")
    say(f"fitted {method} on {count_of(fitted.n_samples_, 'row')}; saved to {output}", run.quiet)


def save(fitted: Any, output: str) -> None:
    """Save to a path, or to standard output for ``-``."""
    if output != "-":
        fitted.save(output)
        return
    from ...files.saving import to_bytes

    sys.stdout.buffer.write(to_bytes(fitted))
