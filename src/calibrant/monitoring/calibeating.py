"""Calibeating: answers that are calibrated whatever comes, from the bins of another forecaster (Foster & Hart 2023)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..types import Array, Integers


@dataclass(eq=False)
class Tally:
    """What came in each bin of the forecaster, by the grid point that was answered: (m, m) sums and counts.

    TOPS answers the mean outcome of the bin so far, its middle while it is empty. HOPS runs Foster's hedge (1999) in
    each bin: it answers a grid point whose own record is calibrated; where none is, it draws one of two neighbours of
    which the lower one was too low and the upper one too high, so that no sequence of outcomes can miscalibrate it.
    """

    came: Array
    seen: Array

    @classmethod
    def new(cls, width: float) -> Tally:
        """Return an empty tally with bins of this width."""
        m = max(2, round(1 / width))
        return cls(np.zeros((m, m)), np.zeros((m, m)))

    @property
    def middles(self) -> Array:
        """The grid points: the middles of the bins."""
        m = len(self.seen)
        return (np.arange(m) + 0.5) / m

    def bins(self, q: Array) -> Integers:
        """Return the bin of each forecast."""
        m = len(self.seen)
        return np.minimum((np.asarray(q) * m).astype(np.int64), m - 1)

    def tops(self, q: Array) -> Array:
        """Return the mean outcome so far in the bin of each forecast."""
        came, seen = self.came.sum(axis=1), self.seen.sum(axis=1)
        means = np.where(seen > 0, came / np.where(seen > 0, seen, 1), self.middles)
        return means[self.bins(q)]

    def hops(self, q: Array, draws: Array) -> Array:
        """Return a grid point for each forecast; ``draws`` are uniform."""
        return np.array([self._hedged(int(b), float(u)) for b, u in zip(self.bins(q), draws, strict=True)])

    def _hedged(self, row: int, draw: float) -> float:
        middles, half = self.middles, 0.5 / len(self.seen) + 1e-12  # rounding of means at 0 and 1
        seen = self.seen[row]
        means = np.where(seen > 0, self.came[row] / np.where(seen > 0, seen, 1), middles)
        too_high, too_low = middles - half - means, means - middles - half
        good = np.flatnonzero((too_high <= 0) & (too_low <= 0))
        if len(good):
            whole = seen.sum()
            level = self.came[row].sum() / whole if whole else middles[row]
            return float(middles[good[np.argmin(np.abs(middles[good] - level))]])
        # The first point cannot be too high, nor the last too low: somewhere between them the sign turns.
        i = int(np.flatnonzero((too_low[:-1] > 0) & (too_high[1:] > 0))[0])
        return float(middles[i] if draw < too_high[i + 1] / (too_high[i + 1] + too_low[i]) else middles[i + 1])

    def add(self, base: float, answered: float, happened: float, weight: float) -> None:
        """Take an outcome: the bin of the forecaster, and the grid point nearest to what was answered."""
        row, column = int(self.bins(np.array([base]))[0]), int(self.bins(np.array([answered]))[0])
        self.came[row, column] += weight * happened
        self.seen[row, column] += weight
