"""The trail of a monitor as points to draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .sequence import gap_bound
from .trail import Segment


@dataclass(frozen=True)
class Point:
    """Where a monitor stood after some batches.

    Attributes
    ----------
    batch, label, first : int, str, str
        The last of these batches, and the label of the first.
    batches, rows : int
        How many batches and rows the point sums: one batch, or several where watching was long.
    log_e : float or None
        The evidence after them.
    gap, error : float
        Observed - expected a row in these batches alone, and its standard error if the probabilities are true.
    mean, low, high : float
        Observed - expected a row over all batches so far, with its confidence sequence.
    """

    batch: int
    label: str
    batches: int
    rows: int
    log_e: float | None
    gap: float
    error: float
    mean: float
    low: float
    high: float
    first: str = ""


def points_of(segments: Sequence[Segment], alpha: float) -> list[Point]:
    """Return the points of a trail, oldest first; batches without rows are left out."""
    found, batch, weight, gap, squares = [], 0, 0.0, 0.0, 0.0
    for one in segments:
        batch += one.batches
        weight += one.weight
        gap += one.observed - one.expected
        squares += one.squares
        if one.weight == 0:
            continue
        bound = gap_bound(squares, alpha)
        ends = max((gap - bound) / weight, -1.0), min((gap + bound) / weight, 1.0)
        own = (one.observed - one.expected) / one.weight, one.variance**0.5 / one.weight
        found.append(Point(batch, one.last, one.batches, one.rows, one.log_e, *own, gap / weight, *ends, one.first))
    return found
