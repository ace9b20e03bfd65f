"""Ways to be wrong, and how much more likely each makes what was seen than the probabilities that were said."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..types import Array

# Steps on the log-odds from hardly visible to gross; a continuous normal mixture keeps too much of its mass near 0.
OFFSETS = tuple(sign * size for sign in (-1, 1) for size in (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0))
SLOPES = (-0.4, -0.2, 0.2, 0.4)  # relative change of the slope of the log-odds
CENTRES = (-3.0, 0.0, 3.0)  # where slopes turn: even odds, as a temperature does, and 1 in 20 on either side


@dataclass(frozen=True)
class Alternatives:
    """The probabilities that are betted on in place of p, with equal stakes.

    With x = log(p/(1-p)) the offset δ means σ(x + δ), the slope γ means σ(x + γ(x - c)) around each centre c.
    """

    offsets: tuple[float, ...] = OFFSETS
    slopes: tuple[float, ...] = SLOPES
    centres: tuple[float, ...] = CENTRES

    def __len__(self) -> int:
        return len(self.offsets) + len(self.slopes) * len(self.centres)

    def log_ratios(self, p: Array, happened: Array) -> Array:
        """Return log P_j(y)/P_0(y) of every row and alternative, (n, J): offsets first, then slopes by centre.

        Exact for p near 0 and 1. Rows with p of exactly 0 or 1 have 0: what is impossible is counted apart.
        """
        p = np.asarray(p, dtype=np.float64)
        inside = (p > 0) & (p < 1)
        safe = np.where(inside, p, 0.5)
        low, high = np.log1p(-safe)[:, None], np.log(safe)[:, None]
        turns = [np.outer((high - low)[:, 0] - centre, self.slopes) for centre in self.centres if self.slopes]
        moves = np.hstack([np.broadcast_to(self.offsets, (len(p), len(self.offsets))), *turns])
        # log P(y=1) moves by s - log(1 - p + p e^s), log P(y=0) by the second term alone.
        found = happened[:, None] * moves - np.logaddexp(low, high + moves)
        return np.where(inside[:, None], found, 0.0)

    def family(self, log_evidence: Array) -> tuple[str, float]:
        """Return "offset" or "slope", whichever has more evidence, and the size that has most in it."""
        cut = len(self.offsets)
        parts = {"offset": log_evidence[:cut], "slope": log_evidence[cut:]}
        known = {name: part for name, part in parts.items() if len(part)}
        name = max(known, key=lambda key: float(np.logaddexp.reduce(known[key])) - np.log(len(known[key])))
        sizes = self.offsets if name == "offset" else self.slopes * len(self.centres)
        return name, float(sizes[int(np.argmax(known[name]))])
