"""Hostile small problems: finite scores that ordinary models give now and then, and that careless fits die of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.types import Array, Floats, Integers


@dataclass(frozen=True, eq=False)
class Hostile:
    """A problem with a name: scores, labels, weights or None, the number of classes, and what the scores are."""

    name: str
    scores: Floats
    labels: Integers
    weights: Array | None = None
    inputs: str = "logits"

    @property
    def n_classes(self) -> int:
        """Number of columns."""
        return self.scores.shape[1]


def hostile_problems() -> Iterator[Hostile]:
    """Yield more than sixty problems; each has two classes at least, and few enough rows to be quick."""
    generator = np.random.default_rng(0)
    for family in (_scales, _saturated, _degenerate, _classes, _weights, _probabilities):
        for found in family(generator):
            yield found
            if found.name.endswith("*"):
                yield Hostile(
                    f"{found.name[:-1]} float32", found.scores.astype(np.float32), found.labels, found.weights
                )


def _noisy(generator: np.random.Generator, z: NDArray[Any], wrong: float = 0.1) -> Integers:
    other = generator.integers(0, z.shape[1], len(z))
    return np.where(generator.random(len(z)) < wrong, other, z.argmax(axis=1)).astype(np.int64)


def _scales(generator: np.random.Generator) -> Iterator[Hostile]:
    for scale in (1e-30, 1e-12, 1e-3, 1.0, 30.0, 150.0, 600.0, 1e6, 1e12, 1e30):
        z = generator.normal(size=(120, 4)) * scale
        yield Hostile(f"normal × {scale:g}*", z, _noisy(generator, z))
        heavy = generator.standard_t(1.5, size=(120, 4)) * scale
        yield Hostile(f"heavy tails × {scale:g}", heavy, _noisy(generator, heavy))
    z = generator.normal(size=(120, 3)) * np.array([1e-20, 1.0, 1e20])
    yield Hostile("columns of unlike scales*", z, _noisy(generator, z))
    z = generator.normal(size=(120, 3)) * 10.0 ** generator.uniform(-20, 20, size=(120, 1))
    yield Hostile("rows of unlike scales*", z, _noisy(generator, z))
    z = generator.normal(size=(120, 4)) + 10.0 ** generator.uniform(0, 12, size=(120, 1))
    yield Hostile("rows shifted far", z, _noisy(generator, z))


def _saturated(generator: np.random.Generator) -> Iterator[Hostile]:
    z = generator.normal(size=(150, 6)) * 30
    y = _noisy(generator, z, 0.04)
    for name, low in (("denormal", -727.6), ("zero", -760.0), ("beyond float32", -120.0)):
        bad = z.copy()
        bad[7] = low
        bad[7, (y[7] + 1) % 6] = 0.0
        yield Hostile(f"a label of {name} probability*", bad, y)
    yield Hostile("every label right*", z * 3, z.argmax(axis=1))
    yield Hostile("every label wrong*", z, (z.argmax(axis=1) + 1) % 6)
    yield Hostile("every label last", z, z.argmin(axis=1))
    yield Hostile("separable but for one row", z, np.where(np.arange(150) == 3, z.argmin(axis=1), z.argmax(axis=1)))
    two = np.column_stack([np.zeros(100), np.r_[np.linspace(-4, -1, 50), np.linspace(1, 4, 50)]])
    yield Hostile("two classes apart*", two, np.repeat([0, 1], 50))
    yield Hostile("two classes apart and swapped", two, np.repeat([1, 0], 50))


def _degenerate(generator: np.random.Generator) -> Iterator[Hostile]:
    row = generator.normal(size=(1, 4))
    y = generator.integers(0, 4, 80)
    yield Hostile("all rows equal*", np.tile(row, (80, 1)), y)
    yield Hostile("all scores equal*", np.zeros((80, 4)), y)
    yield Hostile("all scores equal and large", np.full((80, 4), 1e20), y)
    yield Hostile("two distinct rows*", np.repeat(generator.normal(size=(2, 4)), 40, axis=0), y)
    yield Hostile("three values", generator.integers(-1, 2, size=(80, 4)).astype(float), y)
    yield Hostile("labels know nothing of the scores", generator.normal(size=(80, 4)), y)
    yield Hostile("one column constant", np.column_stack([generator.normal(size=(80, 3)), np.zeros(80)]), y)
    twin = generator.normal(size=(80, 2))
    yield Hostile("columns twice", np.column_stack([twin, twin]), y)
    for n in (2, 3, 5, 11):
        z = generator.normal(size=(n, 3))
        yield Hostile(f"{n} rows", z, np.arange(n) % 3)


def _classes(generator: np.random.Generator) -> Iterator[Hostile]:
    z = generator.normal(size=(100, 3)) * 2
    yield Hostile("a class once*", z, np.r_[2, generator.integers(0, 2, 99)])
    yield Hostile("a class never*", z, generator.integers(0, 2, 100))
    yield Hostile("a class nearly always", z, np.r_[0, 1, np.full(98, 2)])
    for k in (2, 3, 10, 33, 40, 200):
        z = generator.normal(size=(150, k)) * 3
        yield Hostile(f"{k} classes", z, _noisy(generator, z, 0.3))
    z = generator.normal(size=(40, 120)) * 3
    yield Hostile("fewer rows than classes", z, _noisy(generator, z, 0.3))


def _weights(generator: np.random.Generator) -> Iterator[Hostile]:
    z = generator.normal(size=(100, 3)) * 3
    y = _noisy(generator, z, 0.2)
    for scale in (1e-12, 1e-3, 1e12):
        yield Hostile(f"weights of {scale:g}", z, y, np.full(100, scale))
    yield Hostile("weights from 1e-12 to 1e12*", z, y, 10.0 ** generator.uniform(-12, 12, 100))
    yield Hostile("one row weighs all", z, y, np.where(np.arange(100) == 4, 1e9, 1e-9))
    yield Hostile("mostly zero weights", z, y, np.where(np.arange(100) % 10 == 0, 1.0, 0.0))


def _probabilities(generator: np.random.Generator) -> Iterator[Hostile]:
    votes = generator.multinomial(5, [0.5, 0.3, 0.2, 0.0], size=120) / 5
    y = np.where(generator.random(120) < 0.2, 3, votes.argmax(axis=1))
    yield Hostile("votes of five neighbours", votes, y, inputs="probabilities")
    yield Hostile("nothing but zeros and ones", np.eye(4)[votes.argmax(axis=1)], y, inputs="probabilities")
    tiny = 10.0 ** generator.uniform(-320, 0, size=(120, 4))
    yield Hostile("log-probabilities to -700", tiny / tiny.sum(axis=1, keepdims=True), y, inputs="probabilities")
    tenths = generator.integers(0, 11, 120) / 10
    pair = np.column_stack([1 - tenths, tenths])
    yield Hostile("tenths, 0 and 1 among them", pair, (generator.random(120) < 0.6).astype(int), inputs="probabilities")
    with np.errstate(under="ignore"):
        near = generator.normal(size=(120, 2)) * 1e-320
    away = 1e30 * (np.arange(120) == 7)[:, None]
    yield Hostile("next to nothing apart, and one row far away", near + away, near.argmin(axis=1))
