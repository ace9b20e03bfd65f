"""The page of benchmarks/coverage.py: tables of percent, a verdict, and where coverage is not 93 to 97 %."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

from scipy.stats import binom

TITLES = {"plain": "", "ties": ", tied scores", "weights": ", weighted rows", "clusters": ", clusters of five"}
CHANCE = 0.025  # of a count as far beyond a limit, were the share at the limit itself
FEWEST = 40  # intervals or tests of a cell below which nothing is said of it
PARTS = {"slow": " (resampled figures)", "groups": ", in five groups"}
LAWS = {"true": "calibrated", "bent": "miscalibrated"}
NOTED = {  # what the figure itself says of intervals that are short
    "ece": "its note says how many of the rows lie in one bin, and that what cancels there is not seen",
}
RARE = "Fewer than five rows with the rarer outcome are expected: too few to tell how skewed their losses are"
INFINITE = "The true loss is infinite, as what has probability 0 may happen"


def _percent(count: list[int]) -> str:
    samples, offered, hit = count
    if not samples:
        return "–"
    if _withheld(count):
        return "none"
    shown = f"{100 * hit / offered:.0f}"
    return shown if offered > 0.99 * samples else f"{shown} (of {100 * offered / samples:.0f})"


def _column(cell: dict[str, Any]) -> str:
    what = f"K = {cell['k']}" if "k" in cell else f"{100 * cell['prevalence']:g} %"
    return f"{what}, n = {cell['n']:,}"


def _withheld(count: list[int]) -> bool:
    """Whether an interval was hardly ever offered: in one of a hundred samples at most, so that there is no share."""
    return count[0] >= FEWEST and count[1] <= 0.01 * count[0]


def _outside(count: list[int], low: float, high: float) -> int:
    """-1 or 1 where a share lies below or above a range by more than chance explains (one in forty), else 0."""
    _, offered, hit = count
    if offered < FEWEST:
        return 0
    return -1 if binom.cdf(hit, offered, low) < CHANCE else 1 if binom.sf(hit - 1, offered, high) < CHANCE else 0


def _when(days: dict[str, list[str]]) -> list[str]:
    """Say from which day to which each figure was counted."""
    spans = defaultdict(list)
    for name, (first, last) in sorted(days.items()):
        spans[first if first == last else f"{first} to {last}"].append(f"`{name}`")
    return [f"- {span}: {', '.join(names)}." for span, names in sorted(spans.items())]


def page(record: dict[str, Any], days: dict[str, list[str]]) -> str:
    groups: dict[Any, list[tuple[dict[str, Any], dict[str, Any]]]] = defaultdict(list)
    for key, kept in record.items():
        cell = json.loads(key)
        if kept:
            groups[(cell["law"], cell["kind"], cell["part"], cell.get("prevalence", 0))].append((cell, kept))
    short, loud, wide, lines = defaultdict(list), defaultdict(list), defaultdict(int), []
    withheld = defaultdict(lambda: defaultdict(list))
    sizes: list[int] = []
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
                if _withheld(count):
                    why = INFINITE if name == "nll" and kind == "ties" else RARE
                    withheld[why][f"{_column(cell)}{TITLES.get(kind, '')}, {LAWS[law]}"].append(f"`{name}`")
                    continue
                sizes.append(count[1])
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
    return "\n".join([*_head(short, loud, wide, withheld, sizes, days), *lines]) + "\n"


WORDS = """\
`python benchmarks/coverage.py` (record: coverage.json; a run that was stopped goes on): percent of 95 %
intervals that cover the truth, and of tests at 5 % that reject; in brackets, in how many percent of the
samples an interval was offered, where not in all. `none`: in one of a hundred at most. Calibrated outcomes are drawn
from the scores, so true calibration errors are 0, and a test should reject 5 %; on miscalibrated samples
the rows of tests are their power. The bent law has log-odds 0.7 times as far from the middle and 0.2
higher; the truth of figures is that of the law itself, without the noise of outcomes;
that of `mce`, which is the largest gap of the rows at hand, is the law's at these rows. A cell of 400
samples knows a share of 95 % to 1.1 points, one of 100 to 2.2, one of 20 to 4.9.

Intervals of errors that cannot be negative cover more than 97 % where the truth is 0: the lower end is 0
unless the test rejects, and the upper end is honest about what remains possible. That is by design, and so is it with
small errors in few rows, with `mce`, whose ends hold at all places at once, with `ici`, `e50` and `e90`, whose ends
hold for true frequencies of any shape, and with exact intervals of few events. Such intervals are marked `wide`, and
text, command line, JSON and pages say so. By design, too, is the width of the usual interval of observed over
expected, which treats the sum of the scores as fixed: where scores differ much it is marked `wide`, too.
`variational_error` and its two sides estimate what a cross-fitted curve can show, less than the error on
average; their interval is of the error. `emax` has no interval, and is not counted.

Where fewer than 20 rows have the rarer outcome, the note of a figure says that its interval may be short, or wide;
where fewer than five do, or were expected to by the scores while fewer than ten do, losses, areas and net benefit
have none. While five that were seen were enough, intervals were offered in 12 % of samples of 50 rows with 2.5 events
expected, those that showed more than usual, and covered 76 % there.

How a cell is judged was changed after these counts were seen. It is now outside where a count as far beyond the limit
has a chance below 2.5 %, were the share at the limit. Before, it was two standard errors of the share itself, which
calls 0 rejections of 40 too few, though a test at 5 % has none in one of eight such cells. By that rule, on the counts
before anything was counted again, no interval was too short, 650 were too wide (most of them errors whose truth is 0),
and 8 tests were outside: ECCE's at 50 %, n = 1,000, tied scores (2.2 % of 400), the sweep at 1 %, n = 50 (1 of 100) and
at K = 10, n = 200 (0 of 40), Cox's at 50 %, n = 10,000 and the groups' at 1 %, n = 10,000 (0 of 40 each), and three of
the four that follow.

Four cells that strayed, and only those, were counted again on fresh samples, and both counts are in the tables: to add
samples only where a cell fails helps it to pass, so the fresh ones should be read alone. Cox's test at 5 %, n = 1,000,
tied scores: 10.2 % of 400, then 5.2 % of 800 fresh ones. Spiegelhalter's at 1 %, n = 1,000: 9 % of 400, then 4.8 % of
800. The groups' at 50 %, n = 1,000, weighted rows: 9 % of 400, then 4.2 % of 1,200. The slope's interval at 50 %,
n = 1,000, weighted rows, miscalibrated: 87 % of 100, then 95 % of 400.

Since then the laws of what follows were changed, and all counts of them begun anew, whether they had strayed or not:
tests up to 200 rows, of tied scores and of clusters; the cross-fitted, binned and variational errors; losses, areas
and net benefit up to 1,000 rows.

With one event expected or fewer (1 % of 50 rows) or tied scores few sets of outcomes are possible. Drawn outcomes that
equal what was seen count half; while they counted whole, the sweep raised 2.5 % at 1 %, n = 50. Brownian motion strays
further than a walk of few places: by it ECCE raised 2.6 and 2.8 % of tied scores (50 %, n = 200 and 1,000), which are
now drawn.

The cross-fitted error varies the more the larger it is, so its standard error is small where the estimate is. By that
alone it covered 90 % in clusters (50 %, n = 1,000, miscalibrated); its ends are now those whose own spread reaches the
estimate.

Bins hide what cancels within them, which 100,000 rows show: by bins alone `ece` covered 80 % and `ece_debiased` 68 % at
5 %, miscalibrated (of 40). From 10,000 rows on their upper end is now at least the cross-fitted error's, and they were
counted anew there where rows are miscalibrated; where they are not, a higher end can only add to the counts.

The bent law is a line, and smooth. Of scores near 0 and 1 with log-odds twice too far, or that are capped, the
profile of the shift covered 75 to 87 % (of 150); it has the error of its residuals now. Of a step (.25 below one
half, .75 above, 500 rows) `ece_sweep` covered 29 % (of 200); its upper end is now at least the root mean square's,
which a curve of any shape knows as well as the isotonic one. `ece_crossfit`, `ece`, `ece_debiased`,
`variational_error` and its two sides have it too, and were counted here before they became longer by it, which can
only add to the counts. `ici`, `e50` and `e90` were those of the smooth curve, covered 83, 51 and 83 % of that step
(of 100), and were counted anew.

Groups: five of 8 to 40 % of the rows, that do not differ; `gaps of groups` is whether the intervals of all five hold
the truth at once. In clusters they held 35 % (200 rows, 5 % events) while a group without events was thought to be
sure. Classes in clusters: random signs raised 25 % at two rows a class; labels are now drawn there.

Clusters of five rows: each has one normal number that is half of what decides its rows (a Gaussian copula with a
correlation of one half). Tests draw clusters by another law than that: rows share one uniform number with a chance
that the residuals tell. A plain sandwich with random signs raised 18 % (Cox) and 10 % (ECCE) at 40 clusters of 5 %
events, and its slope covered 84 %. Where the dependence itself changes with the score (rows of low scores depend,
others do not; 200 clusters, 5 % events), Cox's test still raised 9 %.
"""


def _head(short: Any, loud: Any, wide: Any, withheld: Any, sizes: list[int], days: Any) -> list[str]:
    few, many, judged = sum(map(len, short.values())), sum(map(len, loud.values())), sum(n >= FEWEST for n in sizes)
    claim = 'The claim is "95 % intervals cover 93 to 97 %, tests at 5 % raise 4 to 6 %".'
    counts = ", ".join(f"{sum(n >= most for n in sizes)} have {most}" for most in (FEWEST, 100, 200, 400))
    holds = "the claim was not refuted" if few + many == 0 else f"the claim is refuted in {few + many} cells"
    if sum(n >= 200 for n in sizes) < len(sizes) / 2:  # which know a share of 95 % to 1.5 points
        holds = "the claim is not shown, as most cells have too few samples"
    none = sum(len(names) for cells in withheld.values() for names in cells.values())
    verdict = (
        f"**Verdict: {holds}.** {claim} In {none} cells no interval is offered, for reasons given below. Of "
        f"{len(sizes)} others {counts} samples or more, {len(sizes) - judged} cannot be judged. Of the {judged} that "
        f"can, {few} intervals are shown to cover less than 93 %, {sum(wide.values())} more than 97 %, and {many} "
        "tests to raise another share than 4 to 6 %. "
        "Cells of few samples are weak evidence: one of 100 finds an interval that covers 85 % in three of four "
        "cases and one that covers 90 % in one of five, a cell of 200 in all and in one of three."
    )
    lines = ["# Do intervals cover, and do tests keep their level?", "", verdict, "", WORDS]
    lines += ["## Intervals that cover less than 93 %", ""]
    told = {name: f" ({NOTED[name]})" if name in NOTED else "" for name in short}
    lines += [f"- `{name}`{told[name]}: {'; '.join(cells)}." for name, cells in sorted(short.items())] or ["None."]
    lines += ["", "## Tests whose level is not 4 to 6 %", ""]
    lines += [f"- `{name}`: {'; '.join(cells)}." for name, cells in sorted(loud.items())] or ["None."]
    lines += ["", "## Intervals that are not offered", ""]
    for why, cells in sorted(withheld.items()):
        where = "; ".join(f"{cell}: {', '.join(names)}" for cell, names in cells.items())
        lines.append(f"- {why}: {where}.")
    lines += ["", "## Intervals that cover more than 97 %: number of cells", ""]
    lines += [", ".join(f"`{name}` {count}" for name, count in sorted(wide.items())) + "."]
    lines += ["", "## When they were counted", "", *_when(days), "", "## All figures"]
    return lines
