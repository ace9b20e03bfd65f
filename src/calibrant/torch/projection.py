"""Training of KCal's projection by stochastic gradients on the log-loss of a leave-batch-out kernel density."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import MissingExtra

__all__ = ["Progress", "train_projection"]

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
Progress = Callable[[int, int, float], None]
_BATCH = 256
_PER_CLASS = 20  # background rows a class (the paper's m)
_BACKGROUND = 2000  # background rows at the most
_STEPS = 3000
_RATE = 2e-3
_CHECKS = 60  # times the held-out loss is looked at, at the most
_PATIENCE = 4  # checks without a gain before the rate is halved
_HALVINGS = 3
_NOTHING = -1e4  # the logarithm of nothing: of a background row that is in the batch
_LEAST = 1e-10  # probabilities are clipped here in the loss, as in the paper's code


@dataclass(frozen=True, eq=False)
class Draw:
    """Rows to predict with their weights, background rows, and the logarithm of what each of these counts (Eq. 12)."""

    batch: Rows
    weights: Array
    background: Rows
    log_counts: Array


def train_projection(
    rows: NDArray[np.floating],
    labels: NDArray[np.int64],
    weights: Array,
    start: Array,
    hidden: bool,
    seed: int,
    progress: Progress | None = None,
) -> tuple[list[Array], list[float]]:
    """Learn u = Wx + b, and with ``hidden`` u + V·ELU(u), on standardised rows (KCal, Figure 6; App. D without).

    Standardising by the statistics of all rows is batch normalisation whose affine part W and b absorb. A step
    draws a batch to predict and up to 20 background rows a class from the rest; a class's kernel sum is rescaled by
    its size over the number drawn (Eq. 12). The kernel's width is one: W carries the scale. Stochastic gradients as
    in the paper, but with Adam's steps and from ``start`` (discriminant directions) instead of random numbers:
    plain SGD with momentum was clearly behind where there are many classes (docs/methods/kcal.md). The rate is
    halved when the loss of held-out rows has not fallen for a while, and after three halvings without a gain
    training stops; the best parameters seen are returned, with the held-out losses. It runs on CUDA where there is
    a device.
    """
    torch = _torch()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.as_tensor(rows, dtype=torch.float32, device=device)
    sides = [start, np.zeros(len(start)), *([np.zeros((len(start), len(start)))] if hidden else [])]
    parameters = [torch.tensor(a, dtype=torch.float32, device=device, requires_grad=True) for a in sides]
    sampler = Sampler(labels, weights, np.random.default_rng(seed))
    optimizer = torch.optim.Adam(parameters, lr=_RATE)
    steps = int(np.clip(2 * len(rows), 100, _STEPS))
    watch = _Watch(parameters, optimizer)
    for step in range(steps):
        if step % max(1, steps // _CHECKS) == 0:
            with torch.no_grad():
                value = float(_loss(torch, parameters, x, labels, sampler.check()))
            if progress is not None:
                progress(step, steps, value)
            if watch.looks_settled(value):
                break
        optimizer.zero_grad()
        _loss(torch, parameters, x, labels, sampler.draw()).backward()
        optimizer.step()
    if progress is not None:
        progress(steps, steps, watch.best)
    return [p.cpu().numpy().astype(np.float64) for p in watch.kept], watch.losses


class _Watch:
    """Keeps the best parameters seen, halves the rate on a plateau and says when to stop."""

    def __init__(self, parameters: list[Any], optimizer: Any) -> None:
        self.parameters, self.optimizer = parameters, optimizer
        self.best, self.bad, self.losses = math.inf, 0, list[float]()
        self.kept = [p.detach().clone() for p in parameters]

    def looks_settled(self, value: float) -> bool:
        self.losses.append(value)
        if value < self.best - 1e-4:
            self.best, self.bad = value, 0
            self.kept = [p.detach().clone() for p in self.parameters]
            return False
        self.bad += 1
        if self.bad % _PATIENCE == 0:
            self.optimizer.param_groups[0]["lr"] *= 0.5
        return self.bad >= _HALVINGS * _PATIENCE


def _loss(torch: Any, parameters: list[Any], x: Any, labels: NDArray[np.int64], draw: Draw) -> Any:
    """Mean log-loss of the batch under the class-wise kernel sums of the background."""
    a, b = _project(torch, parameters, x[draw.batch]), _project(torch, parameters, x[draw.background])
    log_counts = torch.as_tensor(draw.log_counts, dtype=torch.float32, device=x.device)
    score = a @ b.T - 0.5 * (b * b).sum(1) + log_counts
    own = torch.as_tensor(labels[draw.batch][:, None] == labels[draw.background][None, :], device=x.device)
    share = (torch.softmax(score, 1) * own).sum(1)
    weights = torch.as_tensor(draw.weights, dtype=torch.float32, device=x.device)
    return -(weights * torch.log(share.clamp(min=_LEAST))).sum()


def _project(torch: Any, parameters: list[Any], points: Any) -> Any:
    u = points @ parameters[0].T + parameters[1]
    return u + torch.nn.functional.elu(u) @ parameters[2].T if len(parameters) > 2 else u


class Sampler:
    """Draws batches and stratified backgrounds; a tenth of the rows is kept for checking."""

    def __init__(self, labels: NDArray[np.int64], weights: Array, generator: np.random.Generator) -> None:
        self.labels, self.weights, self.generator = labels, weights, generator
        order = generator.permutation(len(labels))
        cut = max(1, min(2000, len(labels) // 10))
        self.train = order[cut:]
        self.by_class = self.train[np.argsort(labels[self.train], kind="stable")]
        self.classes, self.starts, self.sizes = np.unique(labels[self.by_class], return_index=True, return_counts=True)
        self.totals = np.bincount(labels[self.train], weights[self.train])
        self.per_class = max(2, min(_PER_CLASS, _BACKGROUND // len(self.classes)))
        self.fixed = self._draw(order[:cut])

    def draw(self) -> Draw:
        """Return a batch and a background from the rest."""
        size = min(_BATCH, max(1, len(self.train) // 2))
        return self._draw(self.generator.choice(self.train, size, replace=False))

    def check(self) -> Draw:
        """Return the rows kept for checking, with one background for all checks."""
        return self.fixed

    def _draw(self, batch: Rows) -> Draw:
        many = np.minimum(self.sizes, self.per_class)
        places = np.repeat(self.starts, many) + _ranks(many)
        large = np.repeat(self.sizes > self.per_class, many)
        lucky = (self.generator.random(len(places)) * np.repeat(self.sizes, many)).astype(np.int64)
        background = self.by_class[np.where(large, np.repeat(self.starts, many) + lucky, places)]
        in_batch = np.zeros(len(self.labels), dtype=bool)
        in_batch[batch] = True
        counts = np.where(in_batch[background], 0.0, self.weights[background])
        drawn = np.bincount(self.labels[background], counts, len(self.totals))
        counts *= (self.totals / np.where(drawn > 0, drawn, 1.0))[self.labels[background]]
        weights = self.weights[batch]
        log_counts = np.log(np.maximum(counts, 1e-300))
        return Draw(batch, weights / weights.sum(), background, np.maximum(log_counts, _NOTHING))


def _ranks(counts: Rows) -> Rows:
    """0 … c-1 for each count c, one after the other."""
    ends = np.cumsum(counts)
    return np.arange(int(ends[-1])) - np.repeat(ends - counts, counts)


def _torch() -> Any:
    try:
        return import_module("torch")
    except ImportError as error:
        raise MissingExtra(
            "learning KCal's projection needs torch", hint="pip install 'calibrant[torch]', or projection=\"lda\""
        ) from error
