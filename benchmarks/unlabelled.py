"""Is what `estimate_performance` says of rows without labels true? ``python benchmarks/unlabelled.py``; a minute.

Real outputs: a map fitted on calibration rows, then draws of other rows whose inputs or labels have shifted, and the
estimates beside the truth. Writes docs/evidence/unlabelled.md.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

import numpy as np

import calibrant
from shifts import ROOT, SHARED, loss, rows_of

PAGE = ROOT / "docs" / "evidence" / "unlabelled.md"
SETS = ("imdb", "cifar10_resnet110", "cifar100_resnet50", "newsgroups20")
DRAWS, ROWS = 20, 1000
Weights = Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray]


def harder(p: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows that the model is less sure of, more often."""
    return np.exp(4 * (1 - p.max(axis=1)))


def others(p: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows of other predicted classes: Dirichlet frequencies."""
    return rng.dirichlet(np.ones(p.shape[1]))[p.argmax(axis=1)]


def labels(p: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows of other classes: P(label | scores) changes too."""
    return rng.dirichlet(np.ones(p.shape[1]))[y]


def none(p: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.ones(len(y))


SHIFTS: dict[str, Weights] = {"none": none, "harder inputs": harder, "other inputs": others, "labels": labels}


def figures(map_: calibrant.Calibrator, scores: np.ndarray, y: np.ndarray) -> list[tuple[float, float, bool]]:
    """Return estimate, truth and whether the interval holds it, for accuracy, log-loss and, of two classes, AUROC."""
    said = calibrant.estimate_performance(map_, scores)
    p = map_.predict_proba(scores)
    truths = [float((p.argmax(axis=1) == y).mean()), loss(p, y)]
    found = [said.accuracy, said.log_loss]
    if said.auroc is not None:
        found.append(said.auroc)
        truths.append(float(calibrant.metrics.auroc(y, p[:, 1])))
    return [(f.value, t, f.low <= t <= f.high) for f, t in zip(found, truths, strict=True)]


def judge(name: str, shift: str, *, adapted: bool) -> str:
    z, y, pool, truth = rows_of(name)
    base = calibrant.make("svs").fit(z, y)
    if adapted:
        base = calibrant.PriorShift(calibrant.make("svs")).fit(z, y)
    p = calibrant.make("svs").fit(z, y).predict_proba(pool)
    found = []
    for draw in range(DRAWS):
        rng = np.random.default_rng([draw, len(shift)])
        weights = SHIFTS[shift](p, truth, rng) + 1e-9
        rows = rng.choice(len(truth), min(ROWS, len(truth) // 4), replace=False, p=weights / weights.sum())
        if adapted:
            base.adapt(pool[rows], check=False)
        found.append(figures(base, pool[rows], truth[rows]))
    a = np.array(found, dtype=np.float64)
    cells = []
    for i in range(3):
        if i >= a.shape[1]:
            cells.append("– | – | –")
            continue
        said, true, held = a[:, i].T
        cells.append(f"{true.mean():.3f} | {np.abs(said - true).mean():.3f} | {held.mean():.0%}")
    title = f"{shift}, `PriorShift`" if adapted else shift
    return f"| {name} | {title} | " + " | ".join(cells) + " |"


def main() -> None:
    warnings.simplefilter("ignore")
    lines = []
    for name in SETS:
        if (SHARED / f"{name}.npz").exists():
            lines += [judge(name, shift, adapted=False) for shift in SHIFTS]
            lines.append(judge(name, "labels", adapted=True))
    PAGE.write_text(page(lines), encoding="utf-8")
    sys.stdout.write("\n".join(lines) + "\n")


def page(lines: list[str]) -> str:
    split = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    inputs = [row for row in split if row[1] in ("none", "harder inputs", "other inputs")]
    shifted = [row for row in split if row[1] == "labels"]
    mended = [row for row in split if "PriorShift" in row[1]]
    off = [max(float(row[3]) for row in rows) for rows in (inputs, shifted, mended)]
    covered = min(int(row[4][:-1]) for row in inputs)
    worst = max(mended, key=lambda row: float(row[3]))
    return "\n".join([
        "# Performance estimated without labels, beside the truth", "",
        f"**Verdict.** Where inputs alone shift, the estimated accuracy is off by {off[0]:.3f} at most (mean over",
        f"draws), and the 95 % interval holds the truth in {covered} % of draws at worst. Where labels shift it",
        f"is off by up to {off[1]:.3f}. `PriorShift` mends that where classes are few; with 100 of them and 1,000 rows",
        f"the frequencies that it finds are so uncertain that the estimates are worse ({worst[0]}: {worst[3]}, held in",
        f"{worst[4]}): the interval counts the chance of labels, not the error of a map.", "",
        f"`svs` fitted on calibration rows of real outputs; {DRAWS} draws of up to {ROWS:,} other rows each. Harder",
        "inputs: rows that the model is unsure of are drawn up to 50 times as often; other inputs: other frequencies",
        "of predicted classes; labels: other frequencies of true ones, with nothing else changed. The error is the",
        "mean over draws of |estimate - truth|; held is how often the interval has the truth in it.",
        "`python benchmarks/unlabelled.py`.", "",
        "| set | shift | accuracy | error | held | log-loss | error | held | AUROC | error | held |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |", *lines, "",
    ])  # fmt: skip


if __name__ == "__main__":
    main()
