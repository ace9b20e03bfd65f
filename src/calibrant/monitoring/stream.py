"""One stream of (probability, outcome) pairs, watched: fixed size, exact, merged in order."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..types import Array, Integers
from .alternatives import Alternatives
from .process import Starts, advance, empty, join, log_evidence
from .sequence import closed_form_log_e, gap_bound, mixing, offset_ends
from .sums import Sums


@dataclass(eq=False)
class Stream:
    """The state of one stream.

    ``total`` sums everything seen. ``best`` is, for each alternative, the largest sum of log L over the last batches
    (any number of them), and ``since`` the batch where these begin: a drift began most likely there (Page 1954).
    """

    alternatives: Alternatives
    starts: Starts
    born: int
    total: Sums
    log_m: Array
    log_u: Array
    best: Array
    since: Integers

    @classmethod
    def new(cls, alternatives: Alternatives, starts: Starts, born: int) -> Stream:
        """Return a stream before its first batch, which has the number ``born``."""
        j = len(alternatives)
        return cls(
            alternatives, starts, born, Sums.nothing(j), *empty(starts, j), np.zeros(j), np.zeros(j, dtype=np.int64)
        )

    def add(self, batch: Sums, number: int) -> None:
        """Take the sums of a batch with this number."""
        self.log_m, self.log_u = advance(self.log_m, self.log_u, self.starts, batch.log_ratios)
        fresh = self.best <= 0
        self.since = np.where(fresh, number, self.since)
        self.best = np.where(fresh, 0.0, self.best) + batch.log_ratios
        self.total = self.total + batch

    def then(self, later: Stream, batches: int) -> Stream:
        """Return the stream that saw what this one saw, in so many batches, and then what ``later`` saw."""
        m, u = join((self.log_m, self.log_u), (later.log_m, later.log_u), later.total.log_ratios)
        reached = self.best + later.total.log_ratios
        longer = (self.best > 0) & (reached >= later.best)
        best, since = np.where(longer, reached, later.best), np.where(longer, self.since, later.since + batches)
        return replace(self, total=self.total + later.total, log_m=m, log_u=u, best=best, since=since)

    def log_e(self, closed: bool, alpha: float) -> float:
        """Return the logarithm of the evidence; infinite once an event of probability 0 happened."""
        if self.total.impossible:
            return float("inf")
        if closed:
            return closed_form_log_e(self.total.observed - self.total.expected, self.total.proxy, mixing(alpha))
        return float(log_evidence(self.log_m, self.log_u, self.starts))

    def onset(self) -> int | None:
        """Return the batch where a change began most likely, None where nothing speaks for one."""
        j = int(np.argmax(self.best))
        return int(self.since[j]) if self.best[j] > 0 else None

    def shape(self) -> tuple[str, float]:
        """Return "offset" or "slope" and the size of the change that explains the last batches best."""
        return self.alternatives.family(np.maximum(self.best, 0.0))

    def gap(self, alpha: float) -> tuple[float, float, float]:
        """Return observed - expected a row, with the ends of its confidence sequence."""
        t = self.total
        if t.weight == 0:
            return 0.0, -1.0, 1.0
        bound = gap_bound(t.squares, alpha)
        middle = t.observed - t.expected
        low, high = ((middle + side * bound) / t.weight for side in (-1, 1))
        return middle / t.weight, max(low, -1.0), min(high, 1.0)

    def offset(self, alpha: float) -> tuple[float | None, float | None]:
        """Return the ends of the confidence sequence for one offset of the log-odds; None where nothing bounds it."""
        count = len(self.alternatives.offsets)
        if not count or self.total.weight == 0:
            return None, None
        ends = offset_ends(np.asarray(self.alternatives.offsets), self.total.log_ratios[:count], alpha)
        low, high = (end if np.isfinite(end) else None for end in ends)
        return low, high
