"""What one batch adds to a stream: sums, so that shards of a batch add up to the batch."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from ..passes.statistic import added
from ..types import Array
from .alternatives import Alternatives
from .sequence import sub_gaussian_variance


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over rows of a stream."""

    rows: int  # rows with a weight above 0
    # Σw, Σw·y, Σw·p.
    weight: float
    observed: float
    expected: float
    variance: float  # Σw²p(1-p): how far observed - expected strays if the probabilities are true
    squares: float  # Σw²(y-p)², the clock of the confidence sequence
    proxy: float  # Σw²v(p), Kearns and Saul's bound on the variance
    impossible: int  # events of probability 0 that happened
    log_ratios: Array  # (J,): Σw·log L of each alternative

    def __add__(self, other: Sums) -> Sums:
        return added(self, other, *(part.name for part in fields(Sums)))

    @classmethod
    def nothing(cls, alternatives: int) -> Sums:
        """Return the sums of no rows."""
        return cls(0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, np.zeros(alternatives))


def sums_of(
    p: Array, happened: Array, exponents: Array | None, alternatives: Alternatives, counts: bool = False
) -> Sums:
    """Return the sums of some rows: the probability of the event, and 1.0 where it happened.

    Exponents say how much of a row counts: 0 to 1, by which E[L^w] ≤ 1 stays true (Jensen); or, with ``counts``, how
    many equal rows it stands for.
    """
    p = np.asarray(p, dtype=np.float64)
    happened = np.asarray(happened, dtype=np.float64)
    w = np.ones(len(p)) if exponents is None else exponents
    used = w > 0
    twice = w if counts else w**2
    impossible = used & (((p == 0) & (happened == 1)) | ((p == 1) & (happened == 0)))
    return Sums(
        int(np.sum(w)) if counts else int(used.sum()),
        float(w.sum()),
        float((w * happened).sum()),
        float((w * p).sum()),
        float((twice * p * (1 - p)).sum()),
        float((twice * (happened - p) ** 2).sum()),
        float((twice * sub_gaussian_variance(p)).sum()),
        int(np.sum(w[impossible])) if counts else int(impossible.sum()),
        (w[:, None] * alternatives.log_ratios(p, happened)).sum(axis=0),
    )
