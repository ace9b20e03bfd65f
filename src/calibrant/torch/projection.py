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
from ..types import Array, Floats, Integers
from .adam import Adam
from .sampling import Draw, Sampler

Progress = Callable[[int, int, float], None]
_STEPS = 300, 5000  # at the least and at the most; in between twice the rows
_RATE = 1e-2  # at the most; of few rows less, by the root of their number over
_MANY = 10_000
_NOISE = 0.1  # standard deviation of what is added to standardised rows in training
_AVERAGE = 0.98  # share of the running average of the parameters that a step leaves
_BETWEEN = 25  # steps from one look at the held-out loss to the next
# steps without a gain before the end is brought near: so many, or such a share of all, or of those made
_PATIENCE = 75, 0.0375, 0.3
_LAST = 50, 0.025, 0.33  # steps from there to the end, likewise
_GAIN = 1e-4
_LARGE = 10_000  # weights of Π from which threads share a step with gain


def train_projection(
    rows: Floats,
    labels: Integers,
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
    in the paper, but by Adam, from ``start`` (discriminant directions) instead of random numbers, with a little noise
    on the rows against fitting them too closely, and what is judged and returned is a running average of the
    parameters: docs/evidence/projection.md has it beside the paper's schedule. The rate falls by half a cosine, and
    sooner when the loss of held-out rows, which is returned too, has not fallen for a while. What had the lowest such
    loss is returned, so that a training never ends behind its own start. It runs on CUDA where there is a device.
    """
    torch = _torch()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    sides = [start, np.zeros(len(start)), *([np.zeros((len(start), len(start)))] if hidden else [])]
    parameters = [torch.tensor(a, dtype=torch.float32, device=device, requires_grad=True) for a in sides]
    sampler = Sampler(labels, weights, np.random.default_rng(seed))
    loss = _Loss(torch.as_tensor(rows, dtype=torch.float32, device=device), labels, seed)
    steps = int(np.clip(2 * len(rows), *_STEPS))
    watch = Watch(parameters, Adam(parameters, _RATE * min(1.0, len(rows) / _MANY) ** 0.5), steps)
    with _threads_for(torch, start.size):
        for step in range(steps):
            if step % _BETWEEN == 0:
                watch.note(step, loss.of_average(watch.average, sampler.check()))
                if progress is not None:
                    progress(step, steps, watch.losses[-1])
            if watch.done >= 1.0:
                break
            loss(parameters, sampler.draw(), _NOISE).backward()
            watch.optimizer.step()
            watch.follow(step)
        watch.note(steps, loss.of_average(watch.average, sampler.check()))
    if progress is not None:
        progress(steps, steps, watch.losses[-1])
    return [p.cpu().numpy().astype(np.float64) for p in watch.lowest], watch.losses


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
    """Averages the parameters, lets the rate fall by half a cosine, and brings the end near when no gain is left."""

    def __init__(self, parameters: list[Any], optimizer: Adam, steps: int) -> None:
        self.parameters, self.optimizer, self.rate, self.steps = parameters, optimizer, optimizer.rate, steps
        self.average = [p.detach().clone() for p in parameters]
        self.done, self.speed, self.settled = 0.0, 1.0 / steps, False
        self.best, self.since, self.losses = math.inf, 0, list[float]()
        self.lowest = self.average

    def follow(self, step: int) -> None:
        """Draw the average towards the parameters: more so in the first steps, whose start would linger in it."""
        share = min(_AVERAGE, (step + 1) / (step + 10))
        for average, parameter in zip(self.average, self.parameters, strict=True):
            average.lerp_(parameter.detach(), 1.0 - share)
        self.done += self.speed
        self.optimizer.rate = self.rate * (0.5 + 0.5 * math.cos(math.pi * min(1.0, self.done)))

    def note(self, step: int, value: float) -> None:
        """Take note of a held-out loss: has it stopped falling?"""
        self.losses.append(value)
        if value <= min(self.losses):
            self.lowest = [average.clone() for average in self.average]
        if value < self.best - _GAIN * max(0.1, value):
            self.best, self.since = value, step
        elif not self.settled and step - self.since >= self._many(_PATIENCE, step):
            self.settled = True
            self.speed = max(self.speed, (1.0 - self.done) / self._many(_LAST, step))

    def _many(self, rule: tuple[int, float, float], step: int) -> float:
        return max(rule[0], rule[1] * self.steps, rule[2] * step)


class _Loss:
    """Mean log-loss of a batch under the class-wise kernel sums of its background."""

    def __init__(self, rows: Any, labels: Integers, seed: int) -> None:
        self.rows, self.labels = rows, labels
        self.generator = import_module("torch").Generator(rows.device).manual_seed(seed)
        self.of = import_module(".kernel_loss", __package__).kernel_log_loss

    def __call__(self, parameters: list[Any], draw: Draw, noise: float = 0.0) -> Any:
        rows = self.rows[self._tensor(np.concatenate([draw.batch, draw.background]))]
        if noise:
            rows += noise * rows.new_empty(rows.shape).normal_(generator=self.generator)
        points = project(parameters, rows)
        batch, background = points[: len(draw.batch)], points[len(draw.batch) :]
        classes, own = self.labels[draw.background], self.labels[draw.batch]
        borders = [self._tensor(np.searchsorted(classes, own, side)) for side in ("left", "right")]
        log_counts, weights = (self._tensor(a.astype(np.float32)) for a in (draw.log_counts, draw.weights))
        return self.of(batch, background, log_counts, borders, weights)

    def of_average(self, parameters: list[Any], draw: Draw) -> float:
        """Return the loss without noise, as a number."""
        with import_module("torch").no_grad():
            return float(self(parameters, draw))

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
