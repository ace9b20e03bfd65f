"""Training of KCal's projection by stochastic gradients on the log-loss of a leave-batch-out kernel density."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import MissingExtra

__all__ = ["Progress", "train_projection"]

Array = NDArray[np.float64]
Progress = Callable[[int, int, float], None]
_BATCH = 256
_BACKGROUND = 2000  # points of the stratified background at the most
_CHECK_EVERY = 50
_PATIENCE = 4


def train_projection(
    rows: NDArray[np.floating],
    labels: NDArray[np.int64],
    start: Array,
    hidden: bool,
    seed: int,
    steps: int = 3000,
    progress: Progress | None = None,
) -> tuple[list[Array], list[float]]:
    """Learn u = Wx + b, and with ``hidden`` u + V·ELU(u), on standardised rows (KCal, Figure 6; App. D without).

    A step draws a batch to predict and, for each class, up to 20 background rows from the rest; a class's kernel sum is
    rescaled by its size over the number drawn (Eq. 12). The kernel's width is one: W carries the scale. Adam instead of
    the paper's plain SGD, from ``start`` (discriminant directions) instead of random numbers: the same loss in seconds.
    The rate is halved when the held-out loss stops falling; the best parameters seen are returned, with the losses.
    """
    torch = _torch()
    torch.manual_seed(seed)
    generator = np.random.default_rng(seed)
    x, y = torch.as_tensor(rows, dtype=torch.float32), torch.as_tensor(labels)
    weight = torch.tensor(start, dtype=torch.float32, requires_grad=True)
    bias = torch.zeros(start.shape[0], requires_grad=True)
    mix = torch.zeros(start.shape[0], start.shape[0], requires_grad=hidden)
    parameters = [weight, bias, *([mix] if hidden else [])]

    def project(points: Any) -> Any:
        u = points @ weight.T + bias
        return u + torch.nn.functional.elu(u) @ mix.T if hidden else u

    sampler = _Sampler(labels, generator)
    optimizer = torch.optim.Adam(parameters, lr=2e-3)
    best, kept, bad, losses = math.inf, [p.detach().clone() for p in parameters], 0, []
    for step in range(steps):
        if step % _CHECK_EVERY == 0:
            with torch.no_grad():
                value = float(_loss(torch, project, x, y, *sampler.check()))
            losses.append(value)
            if progress is not None:
                progress(step, steps, value)
            if value < best - 1e-4:
                best, kept, bad = value, [p.detach().clone() for p in parameters], 0
            else:
                bad += 1
            if bad and bad % _PATIENCE == 0:
                optimizer.param_groups[0]["lr"] *= 0.5
            if bad >= 3 * _PATIENCE:
                break
        optimizer.zero_grad()
        loss = _loss(torch, project, x, y, *sampler.draw())
        loss.backward()
        optimizer.step()
    return [p.numpy().astype(np.float64) for p in kept], losses


def _loss(torch: Any, project: Any, x: Any, y: Any, batch: Any, background: Any, log_scale: Any) -> Any:
    """Mean log-loss of the batch under the class-wise kernel sums of the background."""
    a, b = project(x[batch]), project(x[background])
    distance = (a * a).sum(1)[:, None] - 2 * a @ b.T + (b * b).sum(1)[None, :]
    score = -0.5 * distance + torch.as_tensor(log_scale, dtype=torch.float32)[None, :]
    own = y[batch][:, None] == y[background][None, :]
    right = torch.logsumexp(torch.where(own, score, torch.full_like(score, -1e30)), 1)
    return (torch.logsumexp(score, 1) - right).clamp(max=23.0).mean()  # 23 is -log of 1e-10


class _Sampler:
    """Draws batches and stratified backgrounds; a tenth of the rows is kept for checking."""

    def __init__(self, labels: NDArray[np.int64], generator: np.random.Generator) -> None:
        self.labels, self.generator = labels, generator
        order = generator.permutation(len(labels))
        cut = max(1, min(2000, len(labels) // 10))
        self.held, self.train = order[:cut], order[cut:]
        self.by_class = [self.train[labels[self.train] == c] for c in range(int(labels.max()) + 1)]
        self.by_class = [rows for rows in self.by_class if len(rows)]
        self.per_class = max(2, min(20, _BACKGROUND // len(self.by_class)))
        self.fixed = self._background(np.empty(0, dtype=np.int64))

    def _background(self, avoid: NDArray[np.int64]) -> tuple[NDArray[np.int64], Array]:
        taken, scale = [], []
        for rows in self.by_class:
            free = np.setdiff1d(rows, avoid, assume_unique=True) if len(avoid) else rows
            pool = free if len(free) else rows
            chosen = self.generator.choice(pool, min(self.per_class, len(pool)), replace=False)
            taken.append(chosen)
            scale.append(np.full(len(chosen), np.log(len(rows) / len(chosen))))
        return np.concatenate(taken), np.concatenate(scale)

    def draw(self) -> tuple[Any, Any, Any]:
        batch = self.generator.choice(self.train, min(_BATCH, max(1, len(self.train) // 2)), replace=False)
        return batch, *self._background(np.sort(batch))

    def check(self) -> tuple[Any, Any, Any]:
        return self.held, *self.fixed


def _torch() -> Any:
    try:
        return import_module("torch")
    except ImportError as error:
        raise MissingExtra(
            "learning KCal's projection needs torch", hint="pip install 'calibrant[torch]', or projection=\"lda\""
        ) from error
