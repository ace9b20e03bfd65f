"""What happened when, in few lines: for the picture, and for the names of batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..passes.statistic import added
from ..plain import short
from .sequence import gap_bound

MOST = 30  # lines kept; then neighbours are merged, so that the last ones are the finest


@dataclass(frozen=True)
class Segment:
    """Some batches in a row, summed: how many, the labels of the first and last, sums, and the evidence after them."""

    batches: int
    first: str
    last: str
    rows: int
    weight: float
    observed: float
    expected: float
    variance: float
    squares: float
    log_e: float | None  # None where it is not known: the inside of a monitor that was merged

    def __add__(self, later: Segment) -> Segment:
        sums = ("batches", "rows", "weight", "observed", "expected", "variance", "squares")
        return added(self, later, *sums, last=later.last, log_e=later.log_e)


@dataclass
class Trail:
    """The segments, oldest first."""

    segments: list[Segment]

    def add(self, segment: Segment) -> None:
        """Take one more batch; where there are too many lines, neighbours of the older half become one."""
        self.segments.append(segment)
        if len(self.segments) > MOST:
            self.segments = self._shorter()

    def _shorter(self) -> list[Segment]:
        """Merge the two neighbours that have the fewest batches together, the older ones among equals."""
        sizes = [a.batches + b.batches for a, b in zip(self.segments, self.segments[1:], strict=False)]
        at = sizes.index(min(sizes))
        return [*self.segments[:at], self.segments[at] + self.segments[at + 1], *self.segments[at + 2 :]]

    def then(self, later: Trail) -> Trail:
        """Return both, one behind the other; what the evidence was inside the later one is not known."""
        found = Trail(list(self.segments))
        for segment in later.segments:
            found.add(replace(segment, log_e=None))
        return found

    def plain(self) -> list[Any]:
        """Return the segments as JSON has them: batches, labels, rows, sums and evidence.

        There is one label where the first is the last, and no weight where that is the rows.
        """
        return [_plain(segment) for segment in self.segments]


def _plain(one: Segment) -> list[Any]:
    labels = [one.first] if one.first == one.last else [one.first, one.last]
    sums = one.observed, one.expected, one.variance, one.squares
    figures = [short(value, digits) for value, digits in zip(sums, (7, 7, 4, 4), strict=True)]
    weight = [] if one.weight == one.rows else [short(one.weight, 7)]
    return [one.batches, labels, one.rows, [*weight, *figures], None if one.log_e is None else short(one.log_e, 4)]


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
