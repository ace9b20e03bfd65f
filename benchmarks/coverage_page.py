"""The page of benchmarks/coverage.py: tables of percent, a verdict, and where coverage is not 93 to 97 %."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from typing import Any

TITLES = {"plain": "", "ties": ", tied scores", "weights": ", weighted rows", "clusters": ", clusters of five"}
FEWEST = 40  # intervals or tests of a cell below which nothing is said of it
PARTS = {"slow": " (resampled figures)", "groups": ", in five groups"}
LAWS = {"true": "calibrated", "bent": "miscalibrated"}
NOTED = {  # what the figure itself says of intervals that are short
    "ece": "its note says how many of the rows lie in one bin, and that what cancels there is not seen",
}


def _percent(count: list[int]) -> str:
    samples, offered, hit = count
    if offered < 0.01 * samples or not offered:
        return "none"
    shown = f"{100 * hit / offered:.0f}"
    return shown if offered > 0.99 * samples else f"{shown} (of {100 * offered / samples:.0f})"


def _column(cell: dict[str, Any]) -> str:
    what = f"K = {cell['k']}" if "k" in cell else f"{100 * cell['prevalence']:g} %"
    return f"{what}, n = {cell['n']:,}"


def _outside(count: list[int], low: float, high: float) -> int:
    """-1 or 1 where a share lies below or above a range by more than two standard errors, else 0."""
    _, offered, hit = count
    if offered < FEWEST:
        return 0
    share = hit / offered
    error = 2 * math.sqrt(max(share * (1 - share), 0.25 / offered) / offered)
    return -1 if share + error < low else 1 if share - error > high else 0


def page(record: dict[str, Any]) -> str:
    groups: dict[Any, list[tuple[dict[str, Any], dict[str, Any]]]] = defaultdict(list)
    for key, kept in record.items():
        cell = json.loads(key)
        if kept:
            groups[(cell["law"], cell["kind"], cell["part"], cell.get("prevalence", 0))].append((cell, kept))
    short, loud, wide, lines = defaultdict(list), defaultdict(list), defaultdict(int), []
    judged = all_cells = 0
    for (law, kind, part, _), members in groups.items():
        members.sort(key=lambda pair: (pair[0].get("k", 0), pair[0]["n"]))
        names = list(dict.fromkeys(name for _, kept in members for name in kept))
        words = f"{kind}, calibrated".capitalize() if part == "classes" else f"Events, {LAWS[law]}{TITLES[kind]}"
        lines += ["", f"### {words}{PARTS.get(part, '')}", ""]
        lines += [f"| | {' | '.join(_column(cell) for cell, _ in members)} |", "| --- |" + " --- |" * len(members)]
        for name in names:
            row = [_percent(kept.get(name, [0, 0, 0])) for _, kept in members]
            lines.append(f"| {name} | {' | '.join(row)} |")
            for cell, kept in members:
                count = kept.get(name, [0, 0, 0])
                test = name.startswith("test ")
                if test and law != "true":
                    continue
                judged += count[1] >= FEWEST
                all_cells += 1
                side = _outside(count, *((0.04, 0.06) if test else (0.93, 0.97)))
                where = f"{_column(cell)}{TITLES.get(kind, '')}, {LAWS[law]}: {_percent(count)}"
                if test and side:
                    loud[name].append(where)
                elif side < 0:
                    short[name].append(where)
                elif side > 0:
                    wide[name] += 1
        lines.append(
            f"| samples | {' | '.join(str(max(count[0] for count in kept.values())) for _, kept in members)} |"
        )
    return "\n".join([*_head(short, loud, wide, judged, all_cells), *lines]) + "\n"


WORDS = """\
`python benchmarks/coverage.py` (record: coverage.json; a run that was stopped goes on): percent of 95 %
intervals that cover the truth, and of tests at 5 % that reject; in brackets, in how many percent of the
samples an interval was offered, where not in all. `none`: hardly ever. Calibrated outcomes are drawn
from the scores, so true calibration errors are 0, and a test should reject 5 %; on miscalibrated samples
the rows of tests are their power. The bent law has log-odds 0.7 times as far from the middle and 0.2
higher; the truth of figures is that of the law itself, without the noise of outcomes;
that of `emax` and `mce`, which are the largest gap of the rows at hand, is the law's at these rows. A cell of 400
samples knows a share of 95 % to 1.1 points, one of 100 to 2.2, one of 20 to 4.9.

Intervals of errors that cannot be negative cover more than 97 % where the truth is 0: the lower end is 0
unless the test rejects, and the upper end is honest about what remains possible. That is by design, as
is the width of the usual interval of observed over expected, which treats the sum of the scores as
fixed. `variational_error` and its two sides estimate what a cross-fitted curve can show, less than the error on
average; their interval is of the error. `emax` has the ends of the smooth curve's band.

Where fewer than 20 rows have the rarer outcome, the note of a figure says that its interval may be short;
where fewer than five do, losses, areas and net benefit have none. An interval that is offered in few of the
samples only is offered where more events were seen than usual, and covers less than it says.

Tests that raise less than 4 % err on the side of calibration: with one event expected or fewer (1 % of 50 rows) or
scores that are tied, few sets of outcomes are possible, p-values are coarse, and drawn outcomes that equal what was
seen count against rejecting. Among hundreds of cells some stray by chance: on 400 other samples Spiegelhalter's test at
1 %, n = 1,000 and Cox's at 5 %, n = 1,000, tied scores, raised 5.0 % each.

Clusters of five rows: each has one normal number that is half of what decides its rows (a Gaussian copula with a
correlation of one half). Tests draw clusters by another law than that: rows share one uniform number with a chance
that the residuals tell. A plain sandwich with random signs raised 18 % (Cox) and 10 % (ECCE) at 40 clusters of 5 %
events, and its slope covered 84 %. Where the dependence itself changes with the score (rows of low scores depend,
others do not; 200 clusters, 5 % events), Cox's test still raised 9 %.
"""


def _head(short: Any, loud: Any, wide: Any, judged: int, cells: int) -> list[str]:
    few, many = sum(map(len, short.values())), sum(map(len, loud.values()))
    claim = 'the claim "95 % intervals cover 93 to 97 %, tests at 5 % raise 4 to 6 %"'
    holds = "was not refuted in any cell" if few + many == 0 else "does not hold everywhere"
    if judged < cells / 2:
        holds = "is not shown yet"
    verdict = (
        f"**Verdict: {claim} {holds}.** Of {cells} cells begun {judged} have samples enough to be judged ({FEWEST}); "
        f"of these {few} intervals cover less than 93 % and {many} tests raise another share than 4 to 6 %, by more "
        "than two standard errors of the count; they are listed first."
    )
    lines = ["# Do intervals cover, and do tests keep their level?", "", verdict, "", WORDS]
    lines += ["## Intervals that cover less than 93 %", ""]
    told = {name: f" ({NOTED[name]})" if name in NOTED else "" for name in short}
    lines += [f"- `{name}`{told[name]}: {'; '.join(cells)}." for name, cells in sorted(short.items())] or ["None."]
    lines += ["", "## Tests whose level is not 4 to 6 %", ""]
    lines += [f"- `{name}`: {'; '.join(cells)}." for name, cells in sorted(loud.items())] or ["None."]
    lines += ["", "## Intervals that cover more than 97 %: number of cells", ""]
    lines += [", ".join(f"`{name}` {count}" for name, count in sorted(wide.items())) + ".", "", "## All figures"]
    return lines
