"""Binned estimators over many samples at once: simulations, bootstrap resamples, outcomes redrawn under a null.

A replicate is one sample, sorted by score and reduced to prefix sums, so that a bin costs two look-ups whatever its
size and a sweep over bins costs O(b) for each b. Bins follow the conventions of `calibrant.cells.edges`: tied scores
are one group, a group belongs to bin ⌊C·b/N⌋ with C the weight before it (equal mass), or to [k/b, (k+1)/b) (equal
width). Tests compare every estimator here with its plain counterpart, replicate by replicate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...cells.pairs import Cells
from ...errors import InvalidInput
from ...types import Array, Integers, Mask
from ..estimators.sweep import sweep_cells

_TOGETHER = 64  # bins up to which replicates are swept at once: few go on, of them some to as many bins as rows
_MOST_ROWS = 10**7  # a weight counts as so many rows: bins up to more of these could not be waited for


@dataclass(frozen=True, eq=False)
class Replicates:
    """R sorted samples of m groups as prefix sums. A first axis of length 1 is shared by all replicates.

    Attributes
    ----------
    scores : array of shape (1 or R, m)
        Ascending in each row.
    mass : int64 array (float64 for fractional weights) of shape (1 or R, m + 1)
        Weight before each group; the last entry is the total.
    events : array of shape (R, m + 1)
        Weighted outcomes before each group.
    excess : array of shape (R, m + 1)
        Weighted Σ(score - outcome) before each group.
    joins : int64 array of shape (R, m + 1), optional
        Where entries are rows and some are tied: the first entry at or after each that no tie joins to the one before.
    """

    scores: Array
    mass: Integers | Array
    events: Array
    excess: Array
    joins: Integers | None = None

    @property
    def count(self) -> int:
        """Number of replicates."""
        return len(self.excess)

    def starts(self, bins: int, edges: str, rows: Integers) -> Integers:
        """Return the first group of each bin and the end, of some replicates: shape (1 or rows, bins + 1)."""
        if edges == "equal_mass":
            places = self._mass_starts(bins, rows if len(self.mass) > 1 else np.zeros(1, np.int64))
            if self.joins is not None:
                return np.take_along_axis(self.joins[rows], np.broadcast_to(places, (len(rows), bins + 1)), axis=1)
        elif edges == "equal_width":
            inner, m = np.arange(1, bins) / bins, self.scores.shape[1]
            chosen = rows if len(self.scores) > 1 else [0]
            places = np.stack([np.r_[0, np.searchsorted(self.scores[i], inner), m] for i in chosen])
        else:
            raise InvalidInput("no such edges for many samples", seen=repr(edges), allowed="equal_mass, equal_width")
        return places

    def _mass_starts(self, bins: int, rows: Integers) -> Integers:
        # The first group whose mass before it is at least k N / b; whole numbers are compared as such.
        if self.mass.dtype != np.int64:
            parts = ((mass[:-1], mass[-1]) for mass in self.mass[rows])
            found = [np.minimum(before * bins // total, bins - 1) for before, total in parts]
            return np.stack([np.searchsorted(place, np.arange(bins + 1)) for place in found])
        wanted = -(-np.arange(bins + 1) * self.mass[rows, -1:] // bins) + rows[:, None] * self._apart
        return np.searchsorted(self._in_a_row, wanted) - rows[:, None] * (self.mass.shape[1] - 1)

    @property
    def _apart(self) -> int:
        return int(self.mass[:, -1].max()) + 1

    @cached_property
    def _in_a_row(self) -> NDArray[Any]:
        # The masses of all replicates one after another, those of each above all before: one search serves them all.
        return (self.mass[:, :-1] + np.arange(len(self.mass))[:, None] * self._apart).ravel()

    def sums(self, bins: int, edges: str, rows: Integers | None = None) -> tuple[Array, Array, Array]:
        """Return weight, events and excess of each bin of some replicates; weight may have one row for all."""
        rows = np.arange(self.count) if rows is None else rows
        starts = self.starts(bins, edges, rows)
        weight, events, excess = (_look_up(sums, rows, starts) for sums in (self.mass, self.events, self.excess))
        return np.diff(weight, axis=1).astype(np.float64), np.diff(events, axis=1), np.diff(excess, axis=1)

    def binned(self, bins: int, edges: str = "equal_width", norm: int | str = 1) -> Array:
        """Binned calibration error of each replicate (paper 003, Eq. 4)."""
        weight, _, excess = self.sums(bins, edges)
        return _norm(weight, excess, norm)

    def debiased(self, bins: int, edges: str = "equal_mass") -> Array:
        """Debiased error of norm 2: each bin less ȳ(1-ȳ)/(n-1), root of the positive part (Kumar et al. 2019)."""
        weight, events, excess = self.sums(bins, edges)
        enough = weight > 1
        size = np.where(enough, weight, 2.0)
        rate = events / size
        squares = np.where(enough, excess**2 / size - rate * (1 - rate) * size / (size - 1), 0.0)
        return np.sqrt(np.maximum(squares.sum(axis=1), 0.0) / self.mass[:, -1])

    def sweep(self, edges: str = "equal_mass", norm: int | str = 1) -> tuple[Array, Integers]:
        """Monotone sweep: the error with the largest number of bins up to which heights never fall, and that number.

        Paper 003, Algorithm 1: b = 2, 3, … up to the number of rows; empty bins are skipped, equal heights allowed.
        """
        values, chosen = self.binned(1, edges, norm), np.ones(self.count, np.int64)
        alive, bins = np.arange(self.count), 1
        most = min(self._most_bins(edges), _TOGETHER)
        while len(alive) and bins < most:
            bins += 1
            weight, events, excess = self.sums(bins, edges, alive)
            keep = _monotone(weight, events)
            alive, excess = alive[keep], excess[keep]
            values[alive] = _norm(weight if len(weight) == 1 else weight[keep], excess, norm)
            chosen[alive] = bins
        chosen[alive] = self._rows()
        for i in alive[: 0 if most < _TOGETHER else None].tolist():
            chosen[i], values[i] = sweep_cells(self._cells(i), norm=norm, edges=edges)  # pyright: ignore[reportArgumentType]
        return values, chosen

    def _cells(self, replicate: int) -> Cells:
        scores, mass = (part[replicate if len(part) > 1 else 0] for part in (self.scores, self.mass))
        first = np.arange(len(scores))
        if self.joins is not None:
            first = first[self.joins[replicate, :-1] == first]
        weights, events = (np.diff(sums[np.r_[first, len(scores)]]) for sums in (mass, self.events[replicate]))
        drawn = weights > 0
        return Cells(scores[first][drawn], weights[drawn].astype(np.float64), events[drawn])

    def _most_bins(self, edges: str) -> int:
        # Beyond this number every group of tied scores is a bin of its own, and more bins change nothing.
        total = self._rows()
        if edges != "equal_mass" or len(self.mass) > 1:
            return total
        weights = np.diff(self.mass[0])
        return min(total, int(np.ceil(self.mass[0, -1] / weights[weights > 0].min())))

    def _rows(self) -> int:
        # Whole weights are numbers of rows; fractional ones have no such number, and a group counts once.
        rows = int(self.mass[:, -1].max()) if self.mass.dtype == np.int64 else self.scores.shape[1]
        return rows if rows <= _MOST_ROWS else self.mass.shape[1]

    def ks(self) -> Array:
        """Kolmogorov-Smirnov error: the largest |Σ(score - outcome)| over the lowest scores, over the total."""
        return np.abs(self._walks).max(axis=1) / self.mass[:, -1]

    def ecce(self) -> Array:
        """Estimated cumulative calibration error: the range of Σ(score - outcome) over the lowest scores."""
        return np.ptp(self._walks, axis=1) / self.mass[:, -1]

    @property
    def _walks(self) -> Array:
        if self.joins is None:
            return self.excess
        # Within ties a walk is not read: 0 is where it begins, and changes no extreme.
        return np.where(self.joins == np.arange(self.excess.shape[1]), self.excess, 0.0)


def from_rows(scores: Array, outcomes: Mask, complements: Array | None = None) -> Replicates:
    """Return replicates of samples, shape (R, n); complements 1 - s order scores that round to 1."""
    keys = scores if complements is None else -complements
    order = np.argsort(keys, axis=1)
    ordered = np.take_along_axis(scores, order, axis=1)
    y = np.take_along_axis(outcomes, order, axis=1)
    excess = ordered - y if complements is None else ~y - np.take_along_axis(complements, order, axis=1)
    mass = np.arange(scores.shape[1] + 1)[None, :]
    joins = _joins(np.take_along_axis(keys, order, axis=1))
    return Replicates(ordered, mass, prefix(y.astype(np.float64)), prefix(excess), joins)


def _joins(ordered: Array) -> Integers | None:
    """Return for each place of sorted rows the next one where a new score begins; None where there are no ties."""
    tied = ordered[:, 1:] == ordered[:, :-1]
    if not tied.any():
        return None
    n = ordered.shape[1]
    starts = np.broadcast_to(np.arange(n + 1), (len(ordered), n + 1)).copy()
    starts[:, 1:-1][tied] = n
    return np.minimum.accumulate(starts[:, ::-1], axis=1)[:, ::-1]


def prefix(values: Array) -> Array:
    """Return sums of the entries before each place, along rows."""
    out = np.zeros((len(values), values.shape[1] + 1))
    np.cumsum(values, axis=1, out=out[:, 1:])
    return out


def _look_up(prefix_sums: NDArray[Any], rows: Integers, starts: Integers) -> NDArray[Any]:
    if len(prefix_sums) == 1:
        return prefix_sums[0][starts]
    return prefix_sums[rows[:, None], starts]


def _norm(weight: Array, excess: Array, norm: int | str) -> Array:
    filled = np.where(weight > 0, weight, 1.0)
    if norm == "max":
        return np.abs(excess / filled).max(axis=1)
    total = weight.sum(axis=1)
    if norm == 1:
        return np.abs(excess).sum(axis=1) / total
    return np.sqrt((excess**2 / filled).sum(axis=1) / total)


def _monotone(weight: Array, events: Array) -> Mask:
    # An empty bin is skipped: it neither falls nor lets a later bin fall.
    rate = np.where(weight > 0, events / np.where(weight > 0, weight, 1.0), -1.0)
    highest = np.maximum.accumulate(rate, axis=1)
    return np.all((rate >= highest) | (weight <= 0), axis=1)
