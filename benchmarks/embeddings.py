"""KCal beside maps on logits, on real networks, by one command: ``python benchmarks/embeddings.py`` (torch extra).

Trains small networks on digits and on 20,000 letters (a PyPI package brings them), takes a stored Fashion-MNIST CNN
from ../shared/data where it is there, and for each draws ten splits of the held-out rows into calibration and test.
Then the same with label shift: held-out classes are thinned, the rarest to a tenth. Figures are paper 001's: class-wise
error above max(0.01, 1/K) and top-label ECE, both of 20 bins of equal mass, and the Brier score of the top label; NLL
is clipped at 1e-10. Ranks as in its Table 6. Writes docs/evidence/embeddings.md.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import rankdata

import calibrant
from calibrant.metrics import cwece, ece
from embedding_data import ROOT, Outputs, digits, fashion, letters

ON_LOGITS = ["ts", "ets", "dirichlet-odir", "imax", "irm", "spline", "gp", "hoki"]
KERNELS = ["kcal", "kcal-linear", "kcal-logits"]
NAMES = ["identity", *ON_LOGITS, *KERNELS]
FIGURES = {"accuracy": "accuracy", "class-wise": "class-wise error", "ece": "ECE", "brier": "Brier", "nll": "NLL"}
Table = dict[str, dict[str, list[float]]]


def judge(model: calibrant.Calibrator, scores: np.ndarray, y: np.ndarray) -> dict[str, float]:
    p, rows = model.predict_proba(scores).astype(np.float64), np.arange(len(y))
    label = model.predict(scores)
    right, confidence = label == y, p[rows, label]
    return {
        "accuracy": float(right.mean()),
        "class-wise": cwece(y, p, bins=20, edges="equal_mass", threshold="kcal"),
        "ece": ece(right, confidence, bins=20, edges="equal_mass"),
        "brier": float(((confidence - right) ** 2).mean()),
        "nll": float(-np.log(np.maximum(p[rows, y], 1e-10)).mean()),
    }


def kernels(outputs: Outputs) -> dict[str, Any]:
    """KCal with its projection learnt, once for all splits."""
    found = {}
    for name in KERNELS:
        start = time.perf_counter()
        rows = outputs.logits[0] if name == "kcal-logits" else outputs.embeddings[0]
        classes = np.arange(outputs.logits[0].shape[1])
        found[name] = calibrant.make(name, random_state=0, classes=classes)
        found[name].fit_projection(rows, outputs.labels[0])
        print(f"{outputs.title}: {name} learnt in {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    return found


def one_split(outputs: Outputs, learnt: dict[str, Any], seed: int) -> dict[str, dict[str, float]]:
    y = outputs.labels[1]
    order = np.random.default_rng(seed).permutation(len(y))
    fit, test = order[: outputs.calibration], order[outputs.calibration :]
    logits, labels = outputs.logits[1][fit], y[fit]
    if outputs.shared:  # the rows that taught the projections, where they are held out and follow the same law
        logits, labels = np.concatenate([outputs.logits[0], logits]), np.concatenate([outputs.labels[0], labels])
    found = {}
    for name in ["identity", *ON_LOGITS]:
        parameters = {"random_state": 0} if name == "hoki" else {}
        model = calibrant.make(name, **parameters).fit(logits, labels)
        found[name] = judge(model, outputs.logits[1][test], y[test])
    for name, model in learnt.items():
        scores = outputs.logits[1] if name == "kcal-logits" else outputs.embeddings[1]
        found[name] = judge(model.fit(scores[fit], labels[-len(fit) :]), scores[test], y[test])
    return found


def run(outputs: Outputs, learnt: dict[str, Any], splits: int) -> Table:
    table: Table = {name: {figure: [] for figure in FIGURES} for name in NAMES}
    for seed in range(splits):
        start = time.perf_counter()
        for name, figures in one_split(outputs, learnt, seed).items():
            for figure, value in figures.items():
                table[name][figure].append(value)
        seconds = time.perf_counter() - start
        print(f"{outputs.title}: split {seed + 1} of {splits}, {seconds:.1f} s", file=sys.stderr, flush=True)
    return table


def figures_table(table: Table) -> list[str]:
    lines = ["| map | " + " | ".join(FIGURES.values()) + " |", "| --- " * (len(FIGURES) + 1) + "|"]
    means = {figure: {n: np.mean(table[n][figure]) for n in NAMES} for figure in FIGURES}
    for name in NAMES:
        cells = []
        for figure, values in table[name].items():
            best = (max if figure == "accuracy" else min)(means[figure].values())
            text = f"{np.mean(values):.4f} ± {np.std(values, ddof=1):.4f}"
            cells.append(f"**{text}**" if means[figure][name] == best else text)
        lines.append(f"| {'uncalibrated' if name == 'identity' else name} | " + " | ".join(cells) + " |")
    return lines


def ranks_table(tables: list[Table]) -> list[str]:
    """The mean rank of each map (1 is best, ties shared) over sets and splits, with its standard deviation."""
    ranks = {figure: [] for figure in FIGURES}
    for table in tables:
        for figure in FIGURES:
            values = np.array([table[name][figure] for name in NAMES])
            ranks[figure] += list(rankdata(-values if figure == "accuracy" else values, axis=0).T)
    lines = ["| rank | " + " | ".join(["uncalibrated", *NAMES[1:]]) + " |", "| --- " * (len(NAMES) + 1) + "|"]
    for figure, title in FIGURES.items():
        mean, spread = np.mean(ranks[figure], axis=0), np.std(ranks[figure], axis=0, ddof=1)
        lines.append(
            f"| {title} | " + " | ".join(f"{m:.1f} ± {s:.1f}" for m, s in zip(mean, spread, strict=True)) + " |"
        )
    average = np.mean([np.mean(each, axis=0) for each in ranks.values()], axis=0)
    return [*lines, "| average | " + " | ".join(f"{m:.1f}" for m in average) + " |"]


def verdict(tables: dict[str, Table]) -> list[str]:
    """Where KCal is the best, and by how much it is not, by paired differences over splits."""
    lines = ["| set | " + " | ".join(FIGURES.values()) + " |", "| --- " * (len(FIGURES) + 1) + "|"]
    for title, table in tables.items():
        lines.append(f"| {title} | " + " | ".join(verdict_cell(table, figure) for figure in FIGURES) + " |")
    return lines


def verdict_cell(table: Table, figure: str) -> str:
    sign = -1 if figure == "accuracy" else 1
    values = {name: sign * np.array(table[name][figure]) for name in NAMES}
    others = [name for name in NAMES if name not in KERNELS]
    rival = min(others, key=lambda name: values[name].mean())
    own = min(KERNELS, key=lambda name: values[name].mean())
    gap = values[rival] - values[own]
    word = (
        "even with"
        if abs(gap.mean()) <= 2 * gap.std(ddof=1) / np.sqrt(len(gap))
        else "beats"
        if gap.mean() > 0
        else "loses to"
    )
    return f"{own} {word} {'uncalibrated' if rival == 'identity' else rival} ({abs(gap.mean()):.4f})"


SOURCES: dict[str, Callable[[Path], Outputs]] = {
    "digits": lambda data: digits(),
    "letters": lambda data: letters(ROOT / "build/data"),
    "fashion": fashion,
}


def measure(name: str, data: Path, ratio: float, splits: int) -> dict[str, Table]:
    """One network, as it is and under label shift; runs in a process of its own, on one thread."""
    torch.set_num_threads(1)
    calibrant.set_threads(1)
    warnings.simplefilter("ignore", calibrant.CalibrationWarning)
    outputs = SOURCES[name](data)
    learnt = kernels(outputs)
    return {variant.title: run(variant, learnt, splits) for variant in (outputs, outputs.shifted(ratio))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--ratio", type=float, default=10.0, help="of the shift: the rarest class is thinned by it")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/evidence/embeddings.md")
    options = parser.parse_args()
    names = [name for name in SOURCES if name != "fashion" or (options.data / "fashion_cnn.npz").exists()]
    start = time.perf_counter()
    tables: dict[str, Table] = {}
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        settings = (options.data, options.ratio, options.splits)
        longest_first = {name: pool.submit(measure, name, *settings) for name in reversed(names)}
        for name in names:
            tables.update(longest_first[name].result())
    plain = [t for title, t in tables.items() if not title.endswith("shifted")]
    moved = [t for title, t in tables.items() if title.endswith("shifted")]
    lines = [
        "# KCal beside maps on logits",
        "",
        f"`python benchmarks/embeddings.py`: {options.splits} splits, mean ± sd;",
    ]
    lines += ["its docstring says how. The best mean of a column is bold. In all",
              f"{(time.perf_counter() - start) / 60:.0f} minutes."]  # fmt: skip
    lines += ["", "## The best KCal against the best map on logits", ""]
    lines += [
        "By the paired difference over splits; even where it is within two standard errors.",
        "",
        *verdict(tables),
    ]
    lines += ["", "## Ranks", "", *ranks_table(plain), "", "## Ranks under label shift", "", *ranks_table(moved)]
    for title, table in tables.items():
        lines += ["", f"## {title[0].upper()}{title[1:]}", "", *figures_table(table)]
    print("\n".join(lines))
    options.out.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
