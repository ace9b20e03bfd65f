"""Is what `estimate_performance` says of rows without labels true? ``python benchmarks/unlabelled.py``; ten minutes.

Real outputs: a map fitted on calibration rows, then draws of other rows whose inputs or labels have shifted, and the
estimates beside the truth. Drawn scores, whose law is known and of the map's form: how often intervals hold what the
labels show. Writes docs/evidence/unlabelled.md.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

import numpy as np
from scipy.special import expit, softmax

import calibrant
from shifts import ROOT, SHARED, loss, rows_of

PAGE = ROOT / "docs" / "evidence" / "unlabelled.md"
SETS = ("imdb", "cifar10_resnet110", "cifar100_resnet50", "newsgroups20")
DRAWS, ROWS = 20, 1000
SAMPLES = 200  # of drawn scores a line: a share of 95 % is known to 1.5 points
DRAWN = (  # kind of scores, map, rows of the fit, rows without labels, shift of the inputs
    ("event of 30 %", "platt", 500, 500, "none"),
    ("event of 30 %", "platt", 500, 5000, "none"),
    ("event of 30 %", "platt", 2000, 2000, "harder"),
    ("event of 5 %", "platt", 2000, 2000, "none"),
    ("event of 5 %", "platt", 2000, 2000, "higher"),
    ("event of 30 %", "irova", 2000, 2000, "none"),
    ("event of 30 %", "irova", 2000, 2000, "harder"),
    ("4 classes", "vector", 2000, 2000, "none"),
    ("4 classes", "vector", 2000, 2000, "harder"),
    ("4 classes", "vector", 2000, 2000, "other classes"),
    ("4 classes", "ts", 2000, 2000, "none"),
)
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
    truths = [float((map_.predict(scores) == y).mean()), loss(p, y)]
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


def drawn(rng: np.random.Generator, kind: str, n: int, shift: str, tempered: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return scores that are too extreme, and labels whose law given the scores no shift of the inputs changes."""
    if kind != "4 classes":
        x = rng.normal(-1.2 if kind == "event of 30 %" else -4.2, 2.0, n)
        x += 1.5 if shift == "higher" else 0.0
        x *= 0.5 if shift == "harder" else 1.0
        return np.column_stack([np.zeros(n), 1.6 * x + 0.3]), (rng.random(n) < expit(x)).astype(int)
    frequent = [0.55, 0.15, 0.15, 0.15] if shift == "other classes" else [0.25] * 4
    z, own = rng.normal(size=(n, 4)), rng.choice(4, n, p=frequent)
    z[np.arange(n), own] += rng.gamma(2.0, 1.0, n) * (0.8 if shift == "harder" else 2.0)
    p = softmax(z / 1.6 + (0.0 if tempered else np.linspace(-0.3, 0.3, 4)), axis=1)
    return z, (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)


def held(kind: str, name: str, fitted: int, rows: int, shift: str) -> str:
    """Return a line: how often the interval of each figure, and of the entries of the confusion matrix, held."""
    found = []
    for seed in range(SAMPLES):
        rng = np.random.default_rng([seed, fitted, rows, len(kind + shift)])
        map_ = calibrant.make(name).fit(*drawn(rng, kind, fitted, "none", name == "ts"))
        z, y = drawn(rng, kind, rows, shift, name == "ts")
        said, p = calibrant.estimate_performance(map_, z), map_.predict_proba(z)
        k = p.shape[1]
        seen = np.bincount(y * k + map_.predict(z), minlength=k * k).reshape(k, k) / rows
        inside = np.mean((said.confusion_low - 1e-12 <= seen) & (seen <= said.confusion_high + 1e-12))
        brier = float(((p - np.eye(k)[y]) ** 2).sum(axis=1).mean())
        held_brier = said.brier.low <= brier <= said.brier.high
        found.append([*(part[2] for part in figures(map_, z, y)), *([] if k == 2 else [np.nan]), held_brier, inside])
    cells = ["–" if np.isnan(share) else f"{100 * share:.0f}" for share in np.mean(found, axis=0)]
    return f"| {kind} | `{name}` | {fitted:,} | {rows:,} | {shift} | " + " | ".join(cells) + " |"


def main() -> None:
    warnings.simplefilter("ignore")
    lines = []
    for name in SETS:
        if (SHARED / f"{name}.npz").exists():
            lines += [judge(name, shift, adapted=False) for shift in SHIFTS]
            lines.append(judge(name, "labels", adapted=True))
    counted = [held(*line) for line in DRAWN]
    PAGE.write_text(page(lines, counted), encoding="utf-8")
    sys.stdout.write("\n".join([*lines, *counted]) + "\n")


def page(lines: list[str], counted: list[str]) -> str:
    split = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    inputs = [row for row in split if row[1] in ("none", "harder inputs", "other inputs")]
    shifted = [row for row in split if row[1] == "labels"]
    mended = [row for row in split if "PriorShift" in row[1]]
    off = [max(float(row[3]) for row in rows) for rows in (inputs, shifted, mended)]
    covered = min(int(row[4][:-1]) for row in inputs)
    worst = max(mended, key=lambda row: float(row[3]))
    shares = [[int(cell) for cell in line.split("|")[6:-1] if cell.strip() != "–"] for line in counted]
    entries, means = [row[-1] for row in shares], [share for row in shares for share in row[:-1]]
    return "\n".join([
        "# Performance estimated without labels, beside the truth", "",
        f"**Verdict.** Where inputs alone shift, the estimated accuracy is off by {off[0]:.3f} at most (mean over",
        f"draws), and the 95 % interval holds the truth in {covered} % of draws at worst. Where labels shift it",
        f"is off by up to {off[1]:.3f}. `PriorShift` mends that where classes are few; with 100 of them and 1,000 rows",
        f"the frequencies that it finds are so uncertain that the estimates are worse ({worst[0]}: {worst[3]}, held in",
        f"{worst[4]}): the interval counts the chance of labels, of these rows and of the map's, and not that of",
        f"frequencies found. Of drawn scores, where the map has the right form, intervals hold {min(means)} to",
        f"{max(means)} %, those of entries of the confusion matrix {min(entries)} to {max(entries)} %: fewest where",
        "the rows have moved to scores of which the map's own rows were few, and it does not keep how few.", "",
        f"`svs` fitted on calibration rows of real outputs; {DRAWS} draws of up to {ROWS:,} other rows each. Harder",
        "inputs: rows that the model is unsure of are drawn up to 50 times as often; other inputs: other frequencies",
        "of predicted classes; labels: other frequencies of true ones, with nothing else changed. The error is the",
        "mean over draws of |estimate - truth|; held is how often the interval has the truth in it.",
        "`python benchmarks/unlabelled.py`.", "",
        "| set | shift | accuracy | error | held | log-loss | error | held | AUROC | error | held |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |", *lines, "",
        "## Drawn scores", "",
        f"Percent of {SAMPLES} samples in which the 95 % interval holds what the labels show. Each sample has a map",
        "fitted anew and other rows. Log-odds are 1.6 times too extreme and shifted; harder: half as far from the",
        "middle; higher: more rows at risk; other classes: one is drawn four times as often as the others. Of the",
        "confusion matrix, the share of its entries.", "",
        "| scores | map | rows of the fit | rows | shift | accuracy | log-loss | AUROC | Brier | confusion |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |", *counted, "",
    ])  # fmt: skip


if __name__ == "__main__":
    main()
