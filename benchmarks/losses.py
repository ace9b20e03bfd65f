"""Training losses on scikit-learn's digits: ``python benchmarks/losses.py``. Needs the torch extra; takes minutes.

A network of 64-128-128-10 units is trained with each loss, for several seeds that draw the split, the start and the
batches, and judged on 900 others as it is and after temperature scaling on 297 more. Once it trains long on 200 rows
and is over-confident; once shortly on 600. Writes docs/evidence/losses.md and the tables of docs/training.md.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

import calibrant
from calibrant.arrays import softmax
from calibrant.metrics import accuracy, ece, nll, smece
from calibrant.torch import losses

ROOT = Path(__file__).resolve().parents[1]
TRAIN, TEST, BATCH = 600, 900, 150
REGIMES = {"200 rows, 400 epochs": (200, 400), "600 rows, 100 epochs": (600, 100)}
START, END = "<!-- tables: written by benchmarks/losses.py -->", "<!-- end of tables -->"
Found = dict[str, dict[str, np.ndarray]]  # the values of each seed, by loss and figure
Loss = Callable[[Tensor, Tensor], Tensor]
LOSSES: dict[str, tuple[Loss, float | None]] = {  # the loss, and α of mixup where it is used
    "cross-entropy": (nn.functional.cross_entropy, None),
    "focal, γ = 1": (losses.FocalLoss(1.0), None),
    "focal, γ = 3": (losses.FocalLoss(3.0), None),
    "focal, FLSD-53": (losses.FocalLoss(losses.flsd53), None),
    "MMCE, λ = 2": (losses.MMCELoss(2.0), None),
    "MMCE weighted, λ = 0.5": (losses.MMCELoss(0.5, weighted=True), None),
    "entropy, β = 0.1": (losses.EntropyRegularizedLoss(0.1), None),
    "entropy, β = 0.3": (losses.EntropyRegularizedLoss(0.3), None),
    "smoothing, s = 0.02": (losses.LabelSmoothingLoss(0.02), None),
    "smoothing, s = 0.1": (losses.LabelSmoothingLoss(0.1), None),
    "mixup, α = 0.2": (nn.functional.cross_entropy, 0.2),
    "soft-binned ECE, λ = 1": (losses.SoftBinnedECELoss(1.0), None),
}
FIGURES = {
    "ece": "ECE-15",
    "smece": "smECE",
    "nll": "NLL",
    "accuracy": "accuracy",
    "ts ece": "ECE-15, then ts",
    "ts nll": "NLL, then ts",
}


def train(loss: Loss, alpha: float | None, x: Tensor, y: Tensor, seed: int, epochs: int) -> nn.Module:
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(BATCH):
            batch, targets = x[rows], y[rows]
            if alpha is not None:
                batch, targets = losses.mixup(batch, targets, 10, alpha)
            optimizer.zero_grad()
            loss(net(batch), targets).backward()
            optimizer.step()
    return net


def judge(net: nn.Module, parts: list[tuple[Tensor, Tensor]]) -> dict[str, float]:
    with torch.no_grad():
        (z, y), (held, labels) = ((net(x).double().numpy(), t.numpy()) for x, t in parts)
    p = softmax(z)
    scaled = calibrant.make("ts").fit(held, labels).predict_proba(z)
    return {
        "ece": ece(y, p),
        "smece": smece(y, p),
        "nll": nll(y, p),
        "accuracy": accuracy(y, p),
        "ts ece": ece(y, scaled),
        "ts nll": nll(y, scaled),
    }


def run(seeds: int, size: int, epochs: int) -> Found:
    pixels, digits = load_digits(return_X_y=True)
    x, y = torch.tensor(pixels / 16, dtype=torch.float32), torch.tensor(digits)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in LOSSES}
    for seed in range(seeds):
        order = torch.as_tensor(np.random.default_rng(seed).permutation(len(x)))
        rows, test, held = order[:size], order[TRAIN : TRAIN + TEST], order[TRAIN + TEST :]
        for name, (loss, alpha) in LOSSES.items():
            net = train(loss, alpha, x[rows], y[rows], seed, epochs)
            found[name].append(judge(net, [(x[test], y[test]), (x[held], y[held])]))
        print(f"{size} rows: seed {seed + 1} of {seeds}", file=sys.stderr, flush=True)
    return {name: {f: np.array([one[f] for one in each]) for f in FIGURES} for name, each in found.items()}


def mark(own: np.ndarray, plain: np.ndarray, higher: bool) -> str:
    """+ or - where the mean differs from cross-entropy's by more than two standard errors of the paired difference."""
    gap = (own - plain) * (1 if higher else -1)
    error = gap.std(ddof=1) / np.sqrt(len(gap))
    return "" if abs(gap.mean()) <= 2 * error else " +" if gap.mean() > 0 else " -"


def table(found: Found, figures: list[str], spread: bool) -> list[str]:
    lines = ["| loss | " + " | ".join(FIGURES[f] for f in figures) + " |", "| --- " * (len(figures) + 1) + "|"]
    for name, each in found.items():
        cells = []
        for figure in figures:
            values = each[figure]
            sign = mark(values, found["cross-entropy"][figure], figure == "accuracy")
            cells.append(f"{values.mean():.4f}" + (f" ± {values.std(ddof=1):.4f}" if spread else "") + sign)
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def evidence(found: dict[str, Found], seeds: int) -> list[str]:
    lines = [
        "# Training losses on digits",
        "",
        f"`python benchmarks/losses.py`: mean ± standard deviation over {seeds} seeds, {TEST} rows to judge.",
        "`+` and `-`: better and worse than cross-entropy by more than two standard errors of the paired difference.",
    ]
    for title, each in found.items():
        lines += ["", f"## {title}", "", *table(each, list(FIGURES), spread=True)]
    return [*lines, ""]


def with_tables(text: str, found: dict[str, Found], seeds: int) -> str:
    """The text with what is between its marks replaced by the means."""
    lines = [f"Means of {seeds} seeds, judged on {TEST} rows."]
    for title, each in found.items():
        lines += ["", f"{title}:", "", *table(each, [f for f in FIGURES if f != "smece"], spread=False)]
    before, rest = text.split(START)
    return "\n".join([f"{before}{START}", "", *lines, "", f"{END}{rest.split(END)[1]}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--out", type=Path, default=ROOT / "docs/evidence/losses.md")
    parser.add_argument("--guide", type=Path, default=ROOT / "docs/training.md")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", calibrant.CalibrationWarning)
    found = {title: run(options.seeds, size, epochs) for title, (size, epochs) in REGIMES.items()}
    lines = evidence(found, options.seeds)
    print("\n".join(lines))
    options.out.write_text("\n".join(lines), encoding="utf-8")
    guide = options.guide.read_text(encoding="utf-8")
    options.guide.write_text(with_tables(guide, found, options.seeds), encoding="utf-8")


if __name__ == "__main__":
    main()
