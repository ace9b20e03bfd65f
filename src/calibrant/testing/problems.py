"""Data the checks share: scores whose truth is known, the worst scores, and the input that must be refused."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..calibrator import Calibrator
from ..errors import CalibrationWarning, InvalidInput
from ..threads import get_threads, set_threads
from ..types import Floats


def require(holds: Any, message: str) -> None:
    """Raise an AssertionError with the message unless the condition holds; unlike assert, never compiled away."""
    if not holds:
        raise AssertionError(message)


def require_close(a: NDArray[Any], b: NDArray[Any], most: float, what: str) -> None:
    """Raise unless probabilities are equal but for so much."""
    difference = float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max())
    require(difference <= most, f"{what}: probabilities differ by up to {difference:.3g}")


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let the core use so many threads."""
    before = get_threads()
    set_threads(count)
    try:
        yield
    finally:
        set_threads(before)


@dataclass(frozen=True)
class Problem:
    """Scores, labels and scores to predict for."""

    scores: Floats
    labels: NDArray[Any]
    other: Floats

    def as_type(self, dtype: Any) -> Problem:
        """Return the same with scores of another precision."""
        return replace(self, scores=self.scores.astype(dtype), other=self.other.astype(dtype))


def problem(n: int, k: int, seed: int = 0) -> Problem:
    """Over-confident logits: labels are drawn from softmax(z) and the model reports 2.5 z. Every class occurs."""
    generator = np.random.default_rng(seed)
    z = generator.normal(size=(2 * n, k)) * 1.5
    labels = (z[:n] + generator.gumbel(size=(n, k))).argmax(axis=1)
    if n >= k:
        labels[:k] = np.arange(k)
    return Problem(2.5 * z[:n], labels, 2.5 * z[n:])


def cloud(n: int, k: int, d: int, seed: int = 0) -> Problem:
    """Clouds of points that overlap, one a class, in d dimensions. Every class occurs."""
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(k, d)) * 1.5
    labels = generator.integers(k, size=n)
    labels[:k] = np.arange(k)
    other = centres[generator.integers(k, size=n)] + generator.normal(size=(n, d))
    return Problem(centres[labels] + generator.normal(size=(n, d)), labels, other)


def samples(calibrator: Calibrator) -> list[Problem]:
    """Return small problems of what the map takes: scores, or embeddings of some numbers of classes and dimensions."""
    if calibrator.traits.needs == "embeddings":
        return [cloud(120, k, d, seed=k) for k, d in ((2, 1), (2, 5), (4, 3), (10, 6))]
    return [problem(250, k, seed=k) for k in sizes(calibrator, (2, 4))]


def distinct_rows(k: int) -> Floats:
    """Return rows without ties for which every sensible map has a clear answer."""
    generator = np.random.default_rng(7)
    return generator.permuted(np.tile(np.linspace(-3.0, 3.0, k), (40, 1)), axis=1)


def worst_rows(k: int) -> Floats:
    """Return the scores that break careless arithmetic: huge, tied, constant, impossible classes."""
    generator = np.random.default_rng(1)
    rows = [
        np.full(k, 0.0),
        np.full(k, 1e4),
        np.full(k, -1e4),
        np.where(np.arange(k) == 0, 1e4, -1e4),
        np.where(np.arange(k) == k - 1, -1e4, 1e4),
        np.linspace(-1e4, 1e4, k),
        generator.normal(size=k) * 1e-30,
        np.repeat(generator.normal(size=k), 2)[:k],
        np.where(np.arange(k) == k - 1, 0.0, -np.inf),
        np.where(np.arange(k) == 0, -np.inf, generator.normal(size=k)),
        generator.normal(size=k) + 1e4,
        generator.normal(size=k) * 300,
    ]
    return np.stack(rows)


def fitted(
    calibrator: Calibrator, scores: Any, labels: Any, sample_weight: Any = None, **parameters: Any
) -> Calibrator:
    """Return a fresh copy fitted on the data."""
    return fit_quietly(calibrator.unfitted().set_params(**parameters), scores, labels, sample_weight)


def fit_quietly(calibrator: Calibrator, scores: Any, labels: Any, sample_weight: Any = None) -> Calibrator:
    """Fit in place; warnings about the fit are not what the checks look at."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return calibrator.fit(scores, labels, sample_weight)


def sizes(calibrator: Calibrator, wanted: tuple[int, ...]) -> tuple[int, ...]:
    """Return the numbers of classes the map can take: a binary map that is not lifted takes two only."""
    if calibrator.traits.shape != "binary":
        return wanted
    data = problem(30, 3)
    try:
        fitted(calibrator, data.scores, data.labels)
    except InvalidInput:
        return tuple(k for k in wanted if k == 2)
    return wanted


def require_refusal(what: str, argument: str, call: Any) -> None:
    """Raise unless a call is refused with an error that names the argument."""
    try:
        call()
    except ValueError as error:
        require(argument in str(error), f"the error about {what} does not name {argument}: {error}")
    else:
        raise AssertionError(f"{what} was accepted")
