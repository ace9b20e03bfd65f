"""Tables and pictures of maps side by side: win rate, change of proper scores, and how far behind the best."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from field_tasks import Task
from frame import Study, mean_and_error, table

from calibrant.plots import comparison

GROUPS = {"two classes": (2, 2), "3 to 26 classes": (3, 26), "100 classes and more": (100, 10**6)}
Scores = dict[Task, dict[str, dict[str, float]]]


def of_group(scores: Scores, group: str) -> Scores:
    """Return the tasks with so many classes."""
    low, high = GROUPS[group]
    return {t: found for t, found in scores.items() if low <= t.classes <= high}


def names_in(scores: Scores) -> list[str]:
    return list(dict.fromkeys(name for found in scores.values() for name in found))


def by_source(scores: Scores, value: Any) -> np.ndarray:
    """Return the means of a value by source, as draws and sizes of one model are no independent tasks."""
    found: dict[str, list[float]] = {}
    for task, own in scores.items():
        one = value(own)
        if one is not None:
            found.setdefault(task.source, []).append(one)
    return np.array([np.mean(values) for values in found.values()])


def _less(one: float, other: float) -> float:
    """Return other - one, 0 where both are infinite."""
    return 0.0 if one == other else other - one


def win_rate(name: str, figure: str = "nll") -> Any:
    """Return a function: the share of the other maps that a map beats on a task; a difference of 1e-6 is a tie."""

    def value(found: dict[str, dict[str, float]]) -> float | None:
        if name not in found:
            return None
        gaps = np.array([_less(found[name][figure], f[figure]) for other, f in found.items() if other != name])
        return float(np.where(np.abs(gaps) < 1e-6, 0.5, gaps > 0).mean())

    return value


def improvement(name: str, figure: str) -> Any:
    """Return a function: by how much a map lowers a score of the raw probabilities, as the logarithm of the ratio."""

    def value(found: dict[str, dict[str, float]]) -> float | None:
        if name not in found or not np.isfinite(found["identity"][figure]):
            return None
        return float(np.log(found[name][figure] / found["identity"][figure]))

    return value


def behind(name: str) -> Any:
    """Return a function: log-loss relative to that of the best map, known only afterwards, as a logarithm."""

    def value(found: dict[str, dict[str, float]]) -> float | None:
        return float(np.log(found[name]["nll"] / min(f["nll"] for f in found.values()))) if name in found else None

    return value


def shown_percent(values: np.ndarray) -> str:
    """Return the mean of log ratios as a change in per cent, with its standard error over models."""
    if not len(values):
        return ""
    if not np.isfinite(values).all():
        return "∞"
    if len(values) == 1:
        return f"{100 * np.expm1(values[0]):+.1f}"
    mean, error = mean_and_error(values)
    return f"{100 * np.expm1(mean):+.1f} ± {100 * error * np.exp(mean):.1f}"


def complete(scores: Scores) -> list[str]:
    """Return the maps that answered nine tasks in ten: a mean over fewer cannot stand beside the others."""
    return [n for n in names_in(scores) if sum(n in found for found in scores.values()) >= 0.9 * len(scores)]


def standings(own: Scores) -> str:
    """Return the table of a group, highest win rate first."""
    rows = []
    rates = {name: by_source(own, win_rate(name)) for name in complete(own)}
    for name in sorted(rates, key=lambda n: -rates[n].mean()):
        mean, error = mean_and_error(rates[name])
        rate = f"{100 * mean:.0f} ± {100 * error:.0f} %" if np.isfinite(error) else f"{100 * mean:.0f} %"
        changes = [shown_percent(by_source(own, improvement(name, f))) for f in ("nll", "brier")]
        harm = by_source(own, lambda f, n=name: float(f[n]["nll"] > f["identity"]["nll"] + 1e-6) if n in f else None)
        last = shown_percent(by_source(own, behind(name)))
        rows.append([name, rate, *changes, last, f"{100 * harm.mean():.0f} %"])
    head = ["map", "win rate", "log-loss, change %", "Brier score, change %", "behind the best, %", "harm"]
    return table(head, rows)


def picture(study: Study, own: Scores, group: str, marked: str, name_of: str) -> str:
    """Draw the change of the log-loss by map, best first, the marked one with a ring."""
    pairs = []
    for name in complete(own):
        changes = by_source(own, improvement(name, "nll"))
        if not len(changes) or not np.isfinite(changes).all():
            continue
        mean, error = mean_and_error(changes)
        pairs.append((SimpleNamespace(name=name), SimpleNamespace(value=100 * mean, error=100 * error)))
    pairs = [(row, SimpleNamespace(value=g.value, error=np.nan_to_num(g.error))) for row, g in pairs]  # one set alone
    pairs.sort(key=lambda pair: pair[1].value)
    found = SimpleNamespace(best_=marked, differences=lambda metric: ("identity", pairs))
    ax = comparison(found)
    ax.set_xlabel("change of the log-loss, logarithm × 100 (95 % interval)")
    ax.set_xlim(left=min(p[1].value - 2 * p[1].error for p in pairs) - 5, right=60)
    return study.picture(f"{name_of}-{group.split()[0]}", ax, f"Change of the log-loss by map, {group}")
