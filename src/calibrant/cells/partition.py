"""The quantiser of greatest mutual information, by dynamic programming over fine cells."""

from __future__ import annotations

import numpy as np

from .. import _core
from ..types import Integers
from .fine import FineCells
from .information import bin_information

_MOST_CELLS = 1024  # of the dynamic programme, which is quadratic in them
_SWEEPS = 100

Bounds = Integers


def optimal_partition(cells: FineCells, bins: int, include: Bounds | None = None) -> Bounds:
    """Return the first cells of the bins (without bin 0) whose mutual information with the outcome is greatest.

    An edge inside a run of cells that hold one outcome only is never better than one at an end of the run (the
    objective is convex), so runs are cells. Up to 1,024 of them the answer is the global optimum over all
    partitions into intervals. Beyond, neighbours are merged to that many first, and afterwards each edge in turn moves
    to the best of all cells between its neighbours, until none moves. There are at most so many bins. The programme may
    use the bounds ``include`` of another partition: the answer is then never worse than that one.
    """
    given = np.empty(0, dtype=np.int64) if include is None else include
    runs = _run_starts(cells)
    thinned = cells.merged(runs).thinned(_MOST_CELLS)
    starts = np.union1d(cells.bounds(thinned.cuts), given)
    merged = cells.merged(starts)
    found = starts[_core.best_partition(merged.weights, merged.outcomes, bins) - 1]
    return _refined(cells, found, np.union1d(runs, given))


def _run_starts(cells: FineCells) -> Bounds:
    """Cells (without the first) at which the outcome stops being the one of the cell before."""
    kind = np.where(cells.outcomes <= 0, 0, np.where(cells.outcomes >= cells.weights, 1, 2))
    return np.flatnonzero((kind[1:] != kind[:-1]) | (kind[1:] == 2)) + 1


def _refined(cells: FineCells, bounds: Bounds, candidates: Bounds) -> Bounds:
    """Move one edge at a time to the best place between its neighbours, until none moves."""
    mass, positive = (np.concatenate([[0.0], np.cumsum(part)]) for part in (cells.weights, cells.outcomes))
    stops = np.concatenate([[0], bounds, [cells.count]])
    for _ in range(_SWEEPS):
        before = stops.copy()
        for m in range(1, len(stops) - 1):
            low, high = stops[m - 1], stops[m + 1]
            places = candidates[np.searchsorted(candidates, low, "right") : np.searchsorted(candidates, high)]
            left = bin_information(mass[places] - mass[low], positive[places] - positive[low])
            right = bin_information(mass[high] - mass[places], positive[high] - positive[places])
            value = left + right
            here = int(np.searchsorted(places, stops[m]))
            best = int(value.argmax())
            if value[best] > value[here]:
                stops[m] = places[best]
        if np.array_equal(before, stops):
            break
    return stops[1:-1]
