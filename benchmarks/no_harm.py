"""Does a default that harms say so? ``python benchmarks/no_harm.py [--splits 3]``.

Fits every registered map on one score (binary, lifted, binned) on a few calibration rows of real outputs, and looks at
the log-loss on other rows: a map that ends worse there than the raw probabilities must have warned, and one that
clearly helps should not have. Writes docs/evidence/no_harm.md.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibrant import make
from calibrant.arrays import softmax
from calibrant.errors import CalibrationWarning
from calibrant.fits.judge import label_losses
from calibrant.registry import entries
from papers.frame import find, load

ROOT = Path(__file__).resolve().parents[1]
LIKE_CIFAR100 = ("cifar100_resnet50", "cifar100_densenet_bc", "tinyimagenet_probe")
OTHERS = ("cifar10_resnet110", "fashion_cnn")
SIZES = (500, 1000, 5000)
JUDGED = 5000  # rows at most


@dataclass(frozen=True)
class Case:
    """One fit: what it gained in nats on rows it did not see, the standard error of that, and whether it warned."""

    name: str
    data: str
    rows: int
    gain: float
    error: float
    warned: bool

    @property
    def harms(self) -> bool:
        return self.gain < 0

    @property
    def clearly_helps(self) -> bool:
        return self.gain > max(4 * self.error, 0.01)


def fit_and_judge(name: str, data: str, z: np.ndarray, y: np.ndarray, rows: int, seed: int) -> Case:
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:rows], order[rows : rows + JUDGED]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = make(name, classes=range(z.shape[1])).fit(z[train], y[train])
    told = any(issubclass(w.category, CalibrationWarning) and "held-out" in str(w.message) for w in caught)
    gain = label_losses(softmax(z[test]), y[test]) - label_losses(fitted.predict_proba(z[test]), y[test])
    return Case(name, data, rows, float(gain.mean()), float(gain.std() / np.sqrt(len(test))), told)


def line(title: str, cases: list[Case]) -> str:
    harms, helps = [c for c in cases if c.harms], [c for c in cases if c.clearly_helps]
    silent = [c for c in harms if not c.warned]
    warned = [c for c in helps if c.warned]
    worst = f"{max(-c.gain for c in silent):.4f}" if silent else ""
    return f"| {title} | {len(cases)} | {len(harms)} | {len(silent)} | {worst} | {len(helps)} | {len(warned)} |"


def page(cases: list[Case], splits: int) -> str:
    head = [
        "| {} | fits | worse | worse in silence | by at most (nats) | clearly better | of these, warned |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    names, sets = ({getattr(c, part): None for c in cases} for part in ("name", "data"))
    silent = sorted((c for c in cases if c.harms and not c.warned), key=lambda c: c.gain)
    return "\n".join([
        "# Maps that harm say so", "",
        f"`python benchmarks/no_harm.py --splits {splits}`: every map on one score of the registry with its",
        f"defaults, on {', '.join(map(str, SIZES))} calibration rows drawn {splits} times. Worse and better: log-loss",
        f"on up to {JUDGED:,} other rows against the raw probabilities; clearly: by 0.01 nats and four standard",
        "errors.", "",
        head[0].format("set and rows"), head[1],
        *(line(f"{d}, {n}", [c for c in cases if (c.data, c.rows) == (d, n)])
          for d in sets for n in SIZES if any((c.data, c.rows) == (d, n) for c in cases)),
        line("all", cases), "",
        head[0].format("map"), head[1],
        *(line(n, [c for c in cases if c.name == n]) for n in names), "",
        "Worse in silence:" if silent else "None was worse in silence.", "",
        *(f"- {c.name} on {c.data}, {c.rows} rows: {-c.gain:.4f} ± {c.error:.4f} nats" for c in silent),
    ]).rstrip() + "\n"  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--names", nargs="*", help="only these maps; prints, and writes nothing")
    options = parser.parse_args()
    names = options.names or [e.name for e in entries() if e.traits.shape == "binary"]
    enough = max(SIZES) + 1000  # rows to fit on, and to judge by
    missing = [name for name in (*LIKE_CIFAR100, *OTHERS) if not find(name) or len(load(name).labels) < enough]
    if missing and not options.names:
        print(f"the page is left alone: {', '.join(missing)} is missing or has few rows (benchmarks/data/README.md)")
        return
    cases: list[Case] = []
    for data in (*LIKE_CIFAR100, *OTHERS):
        found = load(data)
        z, y = found.logits.astype(np.float32), found.labels
        for rows in [s for s in SIZES if s <= len(y) - 1000]:
            for seed in range(options.splits):
                cases += [fit_and_judge(name, data, z, y, rows, seed) for name in names]
            print(line(f"{data}, {rows}", [c for c in cases if (c.data, c.rows) == (data, rows)]), flush=True)
    text = page(cases, options.splits)
    if options.names:
        print(text)
    else:
        (ROOT / "docs/evidence/no_harm.md").write_text(text)


if __name__ == "__main__":
    main()
