"""The sweep estimator: as many bins as keep the calibration curve monotone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ... import _core
from ...cells.pairs import Cells, Pairs
from ...errors import InvalidInput
from ...parameters import is_one_of
from .norms import Norm, check_norm

_NORM_CODE = {"max": 0, 1: 1, 2: 2}


class SweepResult(NamedTuple):
    """The bins that the sweep chose, and the binned error with them."""

    bins: int
    error: float


def sweep_cells(cells: Cells, *, norm: Norm = 1, edges: str = "equal_mass") -> SweepResult:
    """Sweep over sorted cells: one pass of prefix sums, then O(b log m) for each number of bins b."""
    if not is_one_of(edges, ("equal_mass", "equal_width")):
        raise InvalidInput("no such edges for a sweep", seen=repr(edges), allowed="'equal_mass' or 'equal_width'")
    check_norm(norm)
    prefix = np.zeros((3, len(cells.scores) + 1))
    unit = cells.rows / float(cells.weights.sum())  # as many bins as rows at most, whatever the scale of the weights
    for row, values in zip(prefix, (cells.weights, cells.weights * cells.scores, cells.outcomes), strict=True):
        np.add.accumulate(values * unit, out=row[1:])
    return SweepResult(*_core.sweep(cells.scores, prefix, edges == "equal_width", _NORM_CODE[norm]))


def sweep(pairs: Pairs, *, norm: Norm = 1, edges: str = "equal_mass") -> float:
    """Monotonic sweep calibration error, ECE_sweep (paper 003, §4, Algorithm 1).

    The binned error with b bins, b being the largest number such that it and all smaller ones give bin heights that
    never decrease (equal heights are allowed, empty bins are skipped).

    Differences from the authors' code, whose default norm is 2 where ours is 1: bins follow `calibrant.cells.edges`
    (integer arithmetic, tied scores stay together) and not ⌊p·b⌋ and ⌊i/n·b⌋ in floating point with ties split by row
    order; and b goes up to n, as in the paper's text, not to n - 1.
    """
    return sweep_cells(pairs.cells, norm=norm, edges=edges).error
