"""The other question: not "are the probabilities true?" but "has anything changed?" (after Farran 2026, PITMonitor).

A row's place in its forecast, u = F(y-) + U·P(y) with U uniform, has the same distribution at all times as long as the
model errs in the same way; constant miscalibration never alarms. Among the rows so far, the rank of u with ties broken
at random is uniform and independent of the past if they are exchangeable (a conformal p-value). A histogram of earlier
ranks bets on later ones, and money is put on at every batch, so that late changes are found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..types import Array, Integers
from .process import LIFETIME, advance, empty, log_evidence
from .rows import Rows

CELLS = 100  # of the places seen so far: ranks within a cell are drawn, which costs a little power and no truth
BETS = 20  # cells of the histogram of ranks
PRIOR = 5.0  # rows that each cell of it is thought to have had before the first: bets begin cautiously


@dataclass(eq=False)
class Changes:
    """The state: how often each cell of places and of ranks was seen since each start, and the money."""

    seed: int
    rows: int
    places: Array
    ranks: Array
    log_m: Array
    log_u: Array
    best: float
    since: int

    @classmethod
    def new(cls, seed: int) -> Changes:
        """Return the state before the first batch."""
        return cls(seed, 0, np.zeros(CELLS), np.zeros(BETS), *empty(LIFETIME, 1), 0.0, 0)

    def add(self, rows: Rows, number: int) -> None:
        """Take a batch, its rows in order."""
        draws = np.random.Generator(np.random.Philox(key=self.seed, counter=[0, 0, 0, self.rows]))
        u = places_of(rows, draws.random(len(rows.labels)))
        rank, self.places = conformal_ranks(u, self.places, draws.random(len(u)))
        cell = np.minimum((rank * BETS).astype(np.int64), BETS - 1)
        bets = (self.ranks + PRIOR) / (self.ranks.sum() + PRIOR * BETS) * BETS
        log_ratio = np.array([np.log(bets)[cell].sum()])
        self.log_m, self.log_u = advance(self.log_m, self.log_u, LIFETIME, log_ratio)
        self.since = number if self.best <= 0 else self.since
        self.best = max(self.best, 0.0) + float(log_ratio[0])
        # Old ranks fade over some two thousand rows, so that a change is betted on in the shape that it has now.
        self.ranks = self.ranks * 0.9995 ** len(u) + np.bincount(cell, minlength=BETS)
        self.rows += len(u)

    @property
    def log_e(self) -> float:
        """The logarithm of the evidence for a change."""
        return float(log_evidence(self.log_m, self.log_u, LIFETIME))

    def onset(self) -> int | None:
        """Return the batch where the change began most likely."""
        return self.since if self.best > 0 else None

    def plain(self) -> dict[str, Any]:
        """Return the state as JSON has it."""
        return {
            "seed": self.seed,
            "rows": self.rows,
            "places": self.places.tolist(),
            "ranks": self.ranks.tolist(),
            "log_m": [None if v == -np.inf else v for v in self.log_m[:, 0].tolist()],
            "log_u": [None if v == -np.inf else v for v in self.log_u.tolist()],
            "best": self.best,
            "since": self.since,
        }


def places_of(rows: Rows, draws: Array) -> Array:
    """Return F(y-) + U·P(y) of every row; classes in the order of their columns."""
    if rows.p.ndim == 1:
        below = np.where(rows.labels == 1, 1 - rows.p, 0.0)
        own = np.where(rows.labels == 1, rows.p, 1 - rows.p)
        return below + draws * own
    upto = np.cumsum(rows.p, axis=1)
    at = np.arange(len(rows.labels)), rows.labels
    return np.clip(upto[at] - rows.p[at] + draws * rows.p[at], 0.0, 1.0)


def conformal_ranks(u: Array, counts: Array, draws: Array) -> tuple[Array, Array]:
    """Return each row's rank, in (0, 1), among itself and all rows before it, and the counts of cells after them."""
    cell: Integers = np.minimum((u * CELLS).astype(np.int64), CELLS - 1)
    one = np.zeros((len(u), CELLS))
    one[np.arange(len(u)), cell] = 1.0
    after = counts + np.cumsum(one, axis=0)  # each row itself included
    at = np.arange(len(u)), cell
    below = np.cumsum(after, axis=1)[at] - after[at]
    rank = (below + draws * after[at]) / after.sum(axis=1)
    return rank, after[-1] if len(u) else counts
