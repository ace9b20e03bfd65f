"""Batches and backgrounds for the training of KCal's projection."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..types import Array, Integers

_BATCH = 256
_PER_CLASS = 20  # background rows a class (the paper's m)
_BACKGROUND = 1000  # background rows at the most
_NOTHING = -1e4  # the logarithm of nothing: of a background row that is in the batch


@dataclass(frozen=True, eq=False)
class Draw:
    """Rows to predict with their weights, background rows, and the logarithm of what each of these counts (Eq. 12)."""

    batch: Integers
    weights: Array
    background: Integers
    log_counts: Array


class Sampler:
    """Draws batches and stratified backgrounds; a tenth of the rows is kept for checking."""

    def __init__(self, labels: Integers, weights: Array, generator: np.random.Generator, batch: int = _BATCH) -> None:
        self.labels, self.weights, self.generator = labels, weights, generator
        order = generator.permutation(len(labels))
        cut = max(1, min(2000, len(labels) // 10))
        self.train = order[cut:]
        self.by_class = self.train[np.argsort(labels[self.train], kind="stable")]
        self.classes, self.starts, self.sizes = np.unique(labels[self.by_class], return_index=True, return_counts=True)
        self.totals = np.bincount(labels[self.train], weights[self.train])
        self.per_class = max(2, min(_PER_CLASS, _BACKGROUND // len(self.classes)))
        self.fixed = self._draw(order[:cut])
        self.left, self.size = self.train[:0], min(batch, max(1, len(self.train) // 2))

    def draw(self) -> Draw:
        """Return a batch, of rows in a new order each time they have all had their turn, and a background."""
        if len(self.left) < self.size:
            self.left = self.generator.permutation(self.train)
        batch, self.left = self.left[: self.size], self.left[self.size :]
        return self._draw(batch)

    def check(self) -> Draw:
        """Return the rows kept for checking, with one background for all checks."""
        return self.fixed

    def _draw(self, batch: Integers) -> Draw:
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


def _ranks(counts: Integers) -> Integers:
    """0 … c-1 for each count c, one after the other."""
    ends = np.cumsum(counts)
    return np.arange(int(ends[-1])) - np.repeat(ends - counts, counts)
