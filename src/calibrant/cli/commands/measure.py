"""``calibrant measure``."""

from __future__ import annotations

import math
from typing import Any

import click

from ...errors import count_of
from ..gates import check_gates, parse_gates
from ..main import COMMANDS
from ..options import PROFILES, Run, choice, common, load_map, read_data, scan_options
from ..output import number, print_json, print_table, print_wide_table, print_words, say


@click.command(
    "measure",
    help=COMMANDS["measure"]
    + "\n\nJudges the test part of a split, and the only part otherwise. --profile risk tells what a risk model is "
    "reported with, --profile multilabel events that need not exclude each other (--labels names a column for "
    "each, empty where not known), --groups every figure by group, --clusters which rows depend on each other. As a "
    "gate in a pipeline: --fail-if "
    '"ece_sweep > 0.02" ends with code 1 when it holds. A rule may also be about an end of an interval ("ece.high > '
    '0.05") or the p-value of the test ("p < 0.01").',
)
@click.argument("file", metavar="FILE")
@click.option("--calibrator", metavar="MAP", help="Apply this saved map first.")
@click.option("--fail-if", "gates", multiple=True, metavar="RULE", help='Such as "ece.high > 0.05"; may be repeated.')
@choice("--profile", PROFILES, "default", "Whose figures.")
@scan_options
@common
def command(
    file: str,
    calibrator: str | None,
    gates: tuple[str, ...],
    profile: str,
    names: Any,
    memory: str | None,
    run: Run,
) -> int:
    """Measure the probabilities of a file."""
    rules = parse_gates(gates)
    from ..measuring import measured_parts, plain_figures
    from ..scans import scan_data

    fitted, scanned = load_map(calibrator), scan_data(file, names, memory)
    data = read_data(file, names, fitted, several=profile == "multilabel") if scanned is None else None
    by_group = names["groups"] is not None
    if data is None:
        kind, measured = _measured_scan(scanned, fitted, profile, run)
    else:
        kind, measured = data.kind, measured_parts(data, fitted, run.seed, profile, by_group=by_group)
    found = {name: plain_figures(part) for name, part in measured.items()}
    failed = [
        f"{name + ': ' if name else ''}{text}" for name, part in found.items() for text in check_gates(rules, part)
    ]
    if run.as_json:
        print_json("measure", file=file, calibrator=calibrator, kind=kind, parts=found, failed=failed)
    else:
        for name, part in found.items():
            _print(file, name, part, None if data is None else data.event)
    if data is not None and not by_group and any(rows.groups is not None for rows in data.parts.values()):
        say("rows of one group are taken as dependent on each other; --groups NAME tells figures by group", run.quiet)
    for text in failed:
        say(f"gate failed: {text}")
    return 1 if failed else 0


def _measured_scan(data: Any, fitted: Any, profile: str, run: Run) -> tuple[str, dict[str, Any]]:
    """Measure a scan by passes, through a map or as it is."""
    from ...metrics.measuring import measure
    from ..scans import counting, set_kind

    kind = data.kind_of()
    if fitted is not None:
        set_kind(fitted, data)
        data = data.mapped(fitted)
    with counting("measuring", run.quiet):
        return kind, {"": measure(data, inputs=data.kind_of(kind), random_state=run.seed, profile=profile)}


def _print(file: str, name: str, part: dict[str, Any], event: str | None) -> None:
    figures = part["metrics"]
    notes = list(dict.fromkeys(f["note"] for f in figures.values() if f["note"]))
    rows = [
        (metric, f["norm"] or "", number(f["value"]), _interval(f) + _stars(f, notes)) for metric, f in figures.items()
    ]
    where = f"{file} ({name})" if name else file
    what = f"one event{'' if event is None else f': {event}'}" if part["event"] else f"{part['classes']} classes"
    what = f"{part['classes']} labels" if "labels" in part else what
    print_words(f"{where}: {count_of(part['rows'], 'row')}, {what}\n")
    print_table(("", "norm", "value", "95 % interval"), rows)
    for note in notes:
        print_words(f"{_stars({'note': note}, notes).strip()} {note}")
    if part["wide"]:
        print_words(part["wide"])
    print_words(f"\n{part['verdict']}")
    if "labels" in part:
        _print_labels(part["labels"])
    if "groups" in part:
        print_words("")
        of = "entries" if "labels" in part else part["groups"]["counted"]
        head = ("group", of, "seen - said", "interval of all together", "strays, sd", "p")
        print_wide_table(head, [_group(row) for row in part["groups"]["rows"]])
        if any(row["small"] for row in part["groups"]["rows"]):
            print_words(f"* too few {of} to judge; such intervals hold more often than 95 %")
        print_words(f"\n{part['groups']['verdict']}")


def _print_labels(found: dict[str, Any]) -> None:
    head = list(next(iter(found["labels"].values())))
    by_label = {name: [number(f["estimate"]) for f in told.values()] for name, told in found["labels"].items()}
    mean = [number(found["macro"][name]["estimate"]) if name in found["macro"] else "" for name in head]
    print_words("")
    print_wide_table(
        ("label", *head), [(name, *told) for name, told in by_label.items()] + [("mean over labels", *mean)]
    )
    words = [f"{found['missing']:,} outcomes are not known and left out."] if found["missing"] else []
    words += [f"Not in the mean, as they have one outcome only: {', '.join(found['left_out'])}."] * bool(
        found["left_out"]
    )
    if words:
        print_words("\n" + " ".join(words))


def _group(row: dict[str, Any]) -> tuple[str, ...]:
    few = " *" if row["small"] else ""
    ends = f"[{row['low']:+.4f}, {row['high']:+.4f}]"
    return (
        row["name"] + few,
        f"{row['rows']:,.0f}",
        f"{row['gap']:+.4f}",
        ends,
        f"{row['strayed']:.2f}",
        f"{'≤ ' if row['pvalue'] <= row['floor'] else ''}{row['pvalue']:.2g}",
    )


def _interval(figure: dict[str, Any]) -> str:
    known = all(figure[end] is not None and math.isfinite(figure[end]) for end in ("low", "high"))
    return f"[{number(figure['low'])}, {number(figure['high'])}]" if known else "–"


def _stars(figure: dict[str, Any], notes: list[str]) -> str:
    return f" {'*' * (1 + notes.index(figure['note']))}" if figure["note"] else ""
