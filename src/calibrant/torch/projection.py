"""Training of KCal's projection by stochastic gradients on the log-loss of a leave-batch-out kernel density."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import MissingExtra
from .adam import Adam
from .sampling import Draw, Sampler

__all__ = ["Progress", "train_projection"]

Array = NDArray[np.float64]
Progress = Callable[[int, int, float], None]
_STEPS = 6000
_RATE = 3e-3
_AVERAGE = 0.98  # share of the running average of the parameters that a step leaves
_BETWEEN = 25  # steps from one look at the held-out loss to the next
_PATIENCE = 75, 0.2  # steps without a gain before the rate is halved: so many, and so large a share of those made
_HALVINGS = 2
_GAIN = 1e-4
_LARGE = 10_000  # weights of Π from which threads share a step with gain


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
    in the paper, but by Adam, from ``start`` (discriminant directions) instead of random numbers, and what is judged
    and returned is a running average of the parameters: docs/evidence/projection.md has it beside the paper's
    schedule. The rate is halved when the loss of held-out rows has not fallen for a while, and at the third such time
    training stops; the best parameters seen are returned, with the held-out losses. It runs on CUDA where there is a
    device.
    """
    torch = _torch()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    sides = [start, np.zeros(len(start)), *([np.zeros((len(start), len(start)))] if hidden else [])]
    parameters = [torch.tensor(a, dtype=torch.float32, device=device, requires_grad=True) for a in sides]
    sampler = Sampler(labels, weights, np.random.default_rng(seed))
    loss = _Loss(torch.as_tensor(rows, dtype=torch.float32, device=device), labels)
    watch = Watch(parameters, Adam(parameters, _RATE))
    steps = int(np.clip(2 * len(rows), 100, _STEPS))
    with _threads_for(torch, start.size):
        for step in range(steps):
            if step % _BETWEEN == 0:
                with torch.no_grad():
                    value = float(loss(watch.average, sampler.check()))
                if progress is not None:
                    progress(step, steps, value)
                if watch.looks_settled(step, value):
                    break
            loss(parameters, sampler.draw()).backward()
            watch.optimizer.step()
            watch.follow(step)
    if progress is not None:
        progress(steps, steps, watch.best)
    return [p.cpu().numpy().astype(np.float64) for p in watch.kept], watch.losses


@contextmanager
def _threads_for(torch: Any, weights: int) -> Iterator[None]:
    """Let a small Π train on one thread: steps of a millisecond spend more waiting for another than it saves them.

    Where other work keeps the cores busy, they waited five times as long as they worked.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1 if weights < _LARGE else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Watch:
    """Averages the parameters, keeps the best average seen, halves the rate on a plateau and says when to stop."""

    def __init__(self, parameters: list[Any], optimizer: Adam) -> None:
        self.parameters, self.optimizer = parameters, optimizer
        self.average, self.kept = _copies(parameters), _copies(parameters)
        self.best, self.since, self.halvings, self.losses = math.inf, 0, 0, list[float]()

    def follow(self, step: int) -> None:
        """Draw the average towards the parameters: more so in the first steps, whose start would linger in it."""
        share = min(_AVERAGE, (step + 1) / (step + 10))
        for average, parameter in zip(self.average, self.parameters, strict=True):
            average.lerp_(parameter.detach(), 1.0 - share)

    def looks_settled(self, step: int, value: float) -> bool:
        """Take note of a held-out loss: has it stopped falling at the last rate?"""
        self.losses.append(value)
        if value < self.best - _GAIN * max(0.1, value):
            self.best, self.since, self.kept = value, step, _copies(self.average)
        elif step - self.since >= max(_PATIENCE[0], _PATIENCE[1] * step):
            self.since, self.halvings = step, self.halvings + 1
            self._go_back()
        return self.halvings > _HALVINGS

    def _go_back(self) -> None:
        """Go on from the best parameters, at half the rate."""
        self.optimizer.rate *= 0.5
        for place, (parameter, best) in enumerate(zip(self.parameters, self.kept, strict=True)):
            parameter.data.copy_(best)
            self.average[place].copy_(best)


def _copies(parameters: list[Any]) -> list[Any]:
    return [p.detach().clone() for p in parameters]


class _Loss:
    """Mean log-loss of a batch under the class-wise kernel sums of its background."""

    def __init__(self, rows: Any, labels: NDArray[np.int64]) -> None:
        self.rows, self.labels = rows, labels
        self.of = import_module(".kernel_loss", __package__).kernel_log_loss

    def __call__(self, parameters: list[Any], draw: Draw) -> Any:
        both = np.concatenate([draw.batch, draw.background])
        points = project(parameters, self.rows[self._tensor(both)])
        batch, background = points[: len(draw.batch)], points[len(draw.batch) :]
        classes, own = self.labels[draw.background], self.labels[draw.batch]
        borders = [self._tensor(np.searchsorted(classes, own, side)) for side in ("left", "right")]
        log_counts, weights = (self._tensor(a.astype(np.float32)) for a in (draw.log_counts, draw.weights))
        return self.of(batch, background, log_counts, borders, weights)

    def _tensor(self, array: NDArray[Any]) -> Any:
        return import_module("torch").as_tensor(array, device=self.rows.device)


def project(parameters: list[Any], rows: Any) -> Any:
    """Apply Π to standardised rows."""
    torch = import_module("torch")
    u = torch.addmm(parameters[1], rows, parameters[0].T)
    return torch.addmm(u, torch.nn.functional.elu(u), parameters[2].T) if len(parameters) > 2 else u


def _torch() -> Any:
    try:
        return import_module("torch")
    except ImportError as error:
        raise MissingExtra(
            "learning KCal's projection needs torch", hint="pip install 'calibrant[torch]', or projection=\"lda\""
        ) from error
