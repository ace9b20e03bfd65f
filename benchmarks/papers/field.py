"""Beyond the papers: our maps and another library's side by side on the real outputs of docs/evidence/quality.md.

Its figures are those of `benchmarks/quality.py`, which fits every map once on every set; nothing is computed anew. What
the default choice does, and other libraries on many models, is on the page of `field_models`.
"""

from __future__ import annotations

import re

import numpy as np
from field_tasks import Task
from frame import EVIDENCE, FAILS, HOLDS, PARTLY, Study, mean_and_error
from standings import GROUPS, Scores, behind, by_source, complete, of_group, picture, shown_percent, standings, win_rate

SETS: list[str] = []
PEER = "probmetrics"
ALONE = ("identity", "uniform")
CLASSES = {
    "imdb": 2,
    "soccer": 3,
    "newsgroups": 20,
    "cifar100": 100,
    "cifar10_": 10,
    "fashion": 10,
    "tiny": 202,
    "imagenet": 1000,
}


def read_page() -> Scores:
    """Read log-losses and Brier scores by set and map from the page of quality."""
    text = (EVIDENCE / "quality.md").read_text()
    scores: Scores = {}
    for title, figure in (("Log-loss", "nll"), ("Brier score", "brier")):
        part = re.search(rf"^## {title}\n\n(.*?)\n\n", text, flags=re.M | re.S)
        if part is None:
            raise ValueError(f"docs/evidence/quality.md has no table {title!r}")
        lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in part[1].splitlines()]
        names = lines[0][1:]
        for row in lines[2:]:
            for name, cell in zip(names, row[1:], strict=True):
                if re.fullmatch(r"inf|[0-9.]+", cell):
                    task = Task(name, 0, 0, next(k for start, k in CLASSES.items() if name.startswith(start)))
                    scores.setdefault(task, {}).setdefault(row[0], {})[figure] = float(cell)
    for found in scores.values():
        for name in [n for n, figures in found.items() if len(figures) < 2 or n == "uniform"]:
            del found[name]
    return scores


def run(study: Study) -> None:
    """Judge B1, and write the page."""
    scores = read_page()
    names = complete(scores)
    ours = [n for n in names if not n.startswith(PEER) and n not in ALONE]
    theirs = [n for n in names if n.startswith(PEER)]
    best = {n: by_source(scores, win_rate(n)) for n in names}
    first, rival = (max(group, key=lambda n: best[n].mean()) for group in (ours, theirs))
    gap = by_source(
        scores, lambda f: float(np.log(f[first]["nll"] / f[rival]["nll"])) if first in f and rival in f else None
    )
    mean, error = mean_and_error(gap)
    study.claim(
        code="B1", place="beyond the papers", page="field",
        verdict=HOLDS if mean < -2 * error else FAILS if mean > 2 * error else PARTLY,
        found=f"{first} beats {100 * best[first].mean():.0f} ± {100 * mean_and_error(best[first])[1]:.0f} % of "
        f"{len(names)} maps on "
        f"{len(scores)} sets, {rival} {100 * best[rival].mean():.0f} ± {100 * mean_and_error(best[rival])[1]:.0f} %; "
        "log-loss of the "
        f"first beside the second {shown_percent(gap)} %",
        says="the best of our maps is better than the best of the nearest library (probmetrics) by log-loss on rows "
        "that neither was fitted on",
        protocol="either is picked by its mean win rate over all sets; one fit a set (docs/evidence/quality.md); "
        "errors over sets",
    )  # fmt: skip
    c = study.claims[-1]
    lines = [
        "# Ours against the field",
        "",
        f"**{c.code} {c.verdict}**: {c.found}.",
        "",
        "## What a user should do",
        "",
    ]
    lines += [*advice(scores, ours), ""]
    lines += [
        "`make papers`, from the figures of [quality](quality.md): every map fitted once on each of "
        f"{len(scores)} sets of real outputs and judged on other rows. *Win rate*: the share of the other maps that "
        "have a higher "
        "log-loss, mean over the sets ± standard error. *Change*: of log-loss and Brier score against the raw "
        "probabilities "
        "(geometric mean, per cent; below zero is better; log-loss over the sets where that of the raw ones is "
        "finite). *Behind "
        "the best*: log-loss above that of the best map of each set, known only afterwards. *Harm*: share of sets "
        "with a higher "
        "log-loss than the raw ones. ∞: a probability of zero came true. Maps without a library's name are ours. "
        "What `auto` "
        "chooses from few rows, beside four libraries: [choice](choice.md) and [grid](grid.md).",
        "",
        "## All sets",
        "",
        standings(scores),
        "",
    ]
    for group in GROUPS:
        own = of_group(scores, group)
        if own:
            lines += [f"## {group[0].upper()}{group[1:]}: {', '.join(t.source for t in own)}", ""]
            lines += [picture(study, own, group, first, "field"), "", standings(own), ""]
    study.page("field", "\n".join(lines))


def counted(sets: int) -> str:
    return f"{sets} sets" if sets > 1 else "1 set"


def advice(scores: Scores, ours: list[str]) -> list[str]:
    """Say which map to take, from the figures alone."""
    lines = []
    for group in GROUPS:
        own = of_group(scores, group)
        means = {m: by_source(own, behind(m)).mean() for m in complete(own) if m in ours}
        order = sorted((m for m in means if np.isfinite(means[m])), key=lambda m: means[m])
        worst = by_source(own, behind("identity"))
        told = ", ".join(f"`{m}` ({100 * np.expm1(means[m]):.1f} %)" for m in order[:3])
        cost = (
            f"{100 * np.expm1(worst.mean()):.0f} %" if np.isfinite(worst).all() else "on some sets an infinite log-loss"
        )
        lines.append(
            f"- {group[0].upper()}{group[1:]} ({counted(len(own))}, thousands of rows): take {told}: so much behind "
            f"the best map of each set. Leaving the scores alone costs {cost}."
        )
    lines += [
        "- With a few hundred rows, or without knowing: `auto` (`calibrant compare`), which tries such maps on folds "
        "and blends "
        "them: [choice](choice.md) has what that costs.",
        "- Where labels must not change: `compare(…, preserve_accuracy=True)`; of the maps above `ts`, `ets`, `iop` "
        "and `irm` keep "
        "them.",
        "- Judge by a proper score, and quote a calibration error with its interval (`calibrant.measure`): ECE "
        "cannot tell a good "
        "map from one number for all rows ([Hoki](hoki.md)).",
    ]
    return lines
