"""``calibrant watch``."""

from __future__ import annotations

import os
from typing import Any

import click

from ...errors import count_of
from ..gates import check_gates, parse_gates
from ..main import COMMANDS
from ..options import Run, choice, command_line, common, data_options, load_map, read_data, was_given, writable
from ..output import print_json, print_wide_table, print_words, say

_SETTINGS = ("alpha", "question", "promise", "clip")
_PICTURES = (".png", ".svg", ".pdf")


def _drawable(ctx: click.Context, parameter: click.Parameter, path: str | None) -> str | None:
    """Refuse a picture of another kind, before the work begins."""
    if path is not None and not path.lower().endswith(_PICTURES):
        raise click.UsageError(f"--picture {path}: a picture ends in {', '.join(_PICTURES)}")
    return writable(ctx, parameter, path)


@click.command(
    "watch",
    help=COMMANDS["watch"]
    + "\n\nMakes STATE, a small JSON file, if it is not there, and resumes it otherwise. FILE is one batch, or several "
    "by --batch or --batch-rows; without FILE the state is told. Classes and the groups named by --groups are watched "
    "one by one too, at one false-alarm rate for all, which holds over the monitor's whole life. As a gate: --fail-if "
    'alarm, or "impossible > 0", "gap.high < -0.01", "p < 0.001", ends with code 1 when it holds.',
)
@click.argument("state", metavar="STATE", callback=writable)
@click.argument("file", metavar="[FILE]", required=False)
@click.option("--alpha", type=float, default=0.05, show_default=True, help="False-alarm rate over all time.")
@choice("--question", ["calibrated", "changed"], "calibrated", "Are the probabilities true, or has anything changed?")
@choice(
    "--promise",
    ["lifetime", "run_length"],
    "lifetime",
    "What alpha is: the chance of ever a false alarm, or 1 / batches to one on average.",
)
@click.option("--clip", type=float, default=0.0, show_default=True, help="Move probabilities into [clip, 1 - clip].")
@click.option("--counts", is_flag=True, help="Weights count rows; else each is a part of one row.")
@click.option("--calibrator", metavar="MAP", help="Watch what this saved map makes of the scores.")
@click.option("--batch", metavar="NAME", help="Column that names the batch of each row.")
@click.option("--batch-rows", type=click.IntRange(min=1), metavar="N", help="Cut the file into batches of N rows.")
@click.option("--label", metavar="TEXT", help="Name of the batch; else that of the file.")
@click.option("--again", is_flag=True, help="Take a file that was fed before.")
@click.option("--restart", is_flag=True, help="Begin anew with the same settings, as after a refit.")
@click.option(
    "--fail-if",
    "gates",
    multiple=True,
    metavar="RULE",
    help='alarm, or a rule such as "gap.low > 0.01"; may be repeated.',
)
@click.option("--report", "page", callback=writable, metavar="PATH", help="Write an HTML page.")
@click.option("--picture", callback=_drawable, metavar="PATH", help="Write a picture (.png, .svg or .pdf).")
@data_options
@common
def command(
    state: str,
    file: str | None,
    counts: bool,
    calibrator: str | None,
    restart: bool,
    gates: tuple[str, ...],
    page: str | None,
    picture: str | None,
    names: Any,
    run: Run,
    **how: Any,
) -> int:
    """Feed a monitor with a file, and tell what it found."""
    asked = tuple("alarm > 0" if rule.strip() == "alarm" else rule for rule in gates)
    rules = parse_gates(asked, 'alarm, "gap.low > 0.01" or "p < 0.001"')
    if how["batch"] is not None and how["batch_rows"] is not None:
        raise click.UsageError("--batch and --batch-rows exclude each other")
    if names["clusters"] is not None:
        raise click.UsageError("watch takes no --clusters: to a monitor all rows are independent of each other")
    from ..watching import State, feed, figures

    kept = State(state, _settings(how, counts, run.seed), restart)
    if file is None and kept.created:
        raise click.UsageError(f"{state} is not there, and no FILE to begin it with")
    check_gates(rules, figures(kept.monitor.findings()))  # a rule about nothing is refused before anything is written
    added = 0
    if file is not None:
        how["groups"] = names["groups"]
        fitted, seen = load_map(calibrator), kept.monitor.classes
        known = {"known": () if seen is None else tuple(seen.tolist()), "whose": state}
        added = feed(kept.monitor, read_data(file, names, fitted, **known), fitted, how)
    if file is not None or restart:
        kept.save()
    found = kept.monitor.findings()
    failed = check_gates(rules, figures(found))
    _write(kept.monitor, page, picture)
    if run.as_json:
        told = {"state": state, "file": file, "created": kept.created, "batches_added": added, "failed": failed}
        print_json("watch", **told, **found.to_dict())
    else:
        _print(found)
        done = f"{'made' if kept.created else 'went on with'} {state}, {count_of(added, 'batch')} from {file}"
        say(done if file else state, run.quiet)
    for text in failed:
        say(f"gate failed: {text}")
    return 1 if failed else 0


def _settings(how: dict[str, Any], counts: bool, seed: int) -> dict[str, Any]:
    """Return the settings of a new state; for one that is there, those that were named must agree."""
    told = {name: how.pop(name) for name in _SETTINGS}
    told |= {"weights": "counts" if counts else "importance", "random_state": seed}
    ctx = click.get_current_context()
    if not os.path.isfile(ctx.params["state"]):
        return told
    options = {"weights": "counts", "random_state": "seed"}
    return {name: value for name, value in told.items() if was_given(ctx, options.get(name, name))}


def _write(monitor: Any, page: str | None, picture: str | None) -> None:
    if page is not None:
        from ...reports import Context, report

        report(monitor, page, Context(title="Calibration watch", command=command_line()))
    if picture is not None:
        from matplotlib.figure import Figure

        from ...files.atomic import replacing
        from ...plots import monitor as draw

        several = len(monitor.findings().streams) > 1
        size = (7.2, 7.0 if several else 5.2)
        drawn = draw(monitor, figure=Figure(size, layout="constrained"))
        with replacing(picture) as out:
            drawn.savefig(out, dpi=120, format=picture[-3:].lower())


def _print(found: Any) -> None:
    print_words(found.verdict)
    print_words(found.advice)
    if len(found.streams) > 1:
        head = ("", "rows", "observed", "expected", "gap", "at all times", "log-odds off by", "log E")
        body = [
            (
                one.name,
                f"{one.rows:,}",
                f"{one.observed:,.6g}",
                f"{one.expected:,.6g}",
                f"{one.gap:+.4f}",
                f"[{one.low:+.4f}, {one.high:+.4f}]",
                one.offset_words,
                f"{'alarm ' if one.blamed else ''}{one.log_e:+.2f}",
            )
            for one in found.streams
        ]
        print_words("")
        print_wide_table(head, body)
        print_words("intervals hold at all times at once, each for itself, and so more often at any one time")
