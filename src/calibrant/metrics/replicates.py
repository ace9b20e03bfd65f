"""Binned estimators over many samples at once: simulations, bootstrap resamples, outcomes redrawn under a null.

A replicate is one sample, sorted by score and reduced to prefix sums, so that a bin costs two look-ups whatever its
size and a sweep over bins costs O(b) for each b. Bins follow the conventions of `calibrant.metrics.edges`: tied scores
are one group, a group belongs to bin ⌊C·b/N⌋ with C the weight before it (equal mass), or to [k/b, (k+1)/b) (equal
width). Tests compare every estimator here with its plain counterpart, replicate by replicate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput

__all__ = ["Replicates", "from_rows"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Replicates:
    """R sorted samples of m groups as prefix sums. A first axis of length 1 is shared by all replicates.

    Attributes
    ----------
    scores : array of shape (1 or R, m)
        Ascending in each row.
    mass : int64 array of shape (1 or R, m + 1)
        Weight before each group; the last entry is the total.
    events : array of shape (R, m + 1)
        Weighted outcomes before each group.
    excess : array of shape (R, m + 1)
        Weighted Σ(score - outcome) before each group.
    """

    scores: Floats
    mass: NDArray[np.int64]
    events: Floats
    excess: Floats

    @property
    def count(self) -> int:
        """Number of replicates."""
        return len(self.excess)

    def take(self, rows: NDArray[np.int64]) -> Replicates:
        """Return some of the replicates."""
        scores = self.scores if len(self.scores) == 1 else self.scores[rows]
        mass = self.mass if len(self.mass) == 1 else self.mass[rows]
        return Replicates(scores, mass, self.events[rows], self.excess[rows])

    def starts(self, bins: int, edges: str) -> NDArray[np.int64]:
        """Return the first group of each bin and the end: shape (1 or R, bins + 1)."""
        if edges == "equal_mass":
            share = -(-np.arange(bins + 1) * self.mass[:, -1:] // bins)  # ceil(k N / b)
            return np.stack([np.searchsorted(m[:-1], s) for m, s in zip(self.mass, share, strict=True)])
        if edges == "equal_width":
            inner = np.arange(1, bins) / bins
            places = np.stack([np.searchsorted(s, inner) for s in self.scores])
            ends = np.zeros((len(places), 1), np.int64)
            return np.hstack([ends, places, ends + self.scores.shape[1]])
        raise InvalidInput("no such edges for many samples", seen=repr(edges), allowed="'equal_mass', 'equal_width'")

    def sums(self, bins: int, edges: str) -> tuple[Floats, Floats, Floats]:
        """Return weight, events and excess of each bin: shapes (1 or R, bins), (R, bins), (R, bins)."""
        starts = self.starts(bins, edges)
        weight = np.diff(_look_up(self.mass, starts), axis=1).astype(np.float64)
        return weight, np.diff(_look_up(self.events, starts), axis=1), np.diff(_look_up(self.excess, starts), axis=1)

    def binned(self, bins: int, edges: str = "equal_width", norm: int | str = 1) -> Floats:
        """Binned calibration error of each replicate (paper 003, Eq. 4)."""
        weight, _, excess = self.sums(bins, edges)
        return _norm(weight, excess, norm)

    def debiased(self, bins: int, edges: str = "equal_mass") -> Floats:
        """Debiased error of norm 2: each bin less ȳ(1-ȳ)/(n-1), root of the positive part (Kumar et al. 2019)."""
        weight, events, excess = self.sums(bins, edges)
        enough = weight > 1
        size = np.where(enough, weight, 2.0)
        rate = events / size
        squares = np.where(enough, excess**2 / size - rate * (1 - rate) * size / (size - 1), 0.0)
        return np.sqrt(np.maximum(squares.sum(axis=1), 0.0) / self.mass[:, -1])

    def sweep(self, edges: str = "equal_mass", norm: int | str = 1) -> tuple[Floats, NDArray[np.int64]]:
        """Monotone sweep: the error with the largest number of bins up to which heights never fall, and that number.

        Paper 003, Algorithm 1: b = 2, 3, … up to the number of rows; empty bins are skipped, equal heights allowed.
        """
        values, chosen = self.binned(1, edges, norm), np.ones(self.count, np.int64)
        alive, rows, bins = self, np.arange(self.count), 1
        largest = int(self.mass[:, -1].max())
        while len(rows) and bins < largest:
            bins += 1
            weight, events, excess = alive.sums(bins, edges)
            keep = _monotone(weight, events)
            if not keep.any():
                break
            rows, kept = rows[keep], np.flatnonzero(keep)
            if len(kept) < alive.count:
                alive = alive.take(kept)
            weight = weight if len(weight) == 1 else weight[kept]
            values[rows], chosen[rows] = _norm(weight, excess[kept], norm), bins
        return values, chosen

    def ks(self) -> Floats:
        """Kolmogorov-Smirnov error: the largest |Σ(score - outcome)| over the lowest scores, over the total."""
        return np.abs(self.excess).max(axis=1) / self.mass[:, -1]


def from_rows(scores: Floats, outcomes: NDArray[np.bool_], complements: Floats | None = None) -> Replicates:
    """Return replicates of samples without ties, shape (R, n); complements 1 - s order scores that round to 1."""
    order = np.argsort(scores if complements is None else -complements, axis=1)
    ordered = np.take_along_axis(scores, order, axis=1)
    y = np.take_along_axis(outcomes, order, axis=1)
    excess = ordered - y if complements is None else ~y - np.take_along_axis(complements, order, axis=1)
    mass = np.arange(scores.shape[1] + 1)[None, :]
    return Replicates(ordered, mass, prefix(y.astype(np.float64)), prefix(excess))


def prefix(values: Floats) -> Floats:
    """Return sums of the entries before each place, along rows."""
    out = np.zeros((len(values), values.shape[1] + 1))
    np.cumsum(values, axis=1, out=out[:, 1:])
    return out


def _look_up(prefix_sums: NDArray[Any], starts: NDArray[np.int64]) -> NDArray[Any]:
    if len(starts) == 1:
        return prefix_sums[:, starts[0]]
    return np.take_along_axis(np.broadcast_to(prefix_sums, (len(starts), prefix_sums.shape[1])), starts, axis=1)


def _norm(weight: Floats, excess: Floats, norm: int | str) -> Floats:
    filled = np.where(weight > 0, weight, 1.0)
    if norm == "max":
        return np.abs(excess / filled).max(axis=1)
    total = weight.sum(axis=1)
    if norm == 1:
        return np.abs(excess).sum(axis=1) / total
    return np.sqrt((excess**2 / filled).sum(axis=1) / total)


def _monotone(weight: Floats, events: Floats) -> NDArray[np.bool_]:
    # An empty bin is skipped: it neither falls nor lets a later bin fall.
    rate = np.where(weight > 0, events / np.where(weight > 0, weight, 1.0), -1.0)
    highest = np.maximum.accumulate(rate, axis=1)
    return np.all((rate >= highest) | (weight <= 0), axis=1)
