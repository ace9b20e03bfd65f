"""Fine cells of rows that have one score each: two goes through the rows count all of them, and a fold apart.

The same cells as `calibrant.cells.counted` makes, and the folds of `calibrant.passes.folds`. A row's key
has eleven digits of its log-odds, and the upper 20 bits of their float32 value settle these. So the rows are counted by
label and by those bits first. From these counts follow the coarse cells, how they are split, which counts are of the
first fold, and whether keys are so crowded that more digits decide (then nothing is counted here). The second go counts
fine cells.
"""

from __future__ import annotations

from mmap import mmap

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..passes import Data, OneScore
from ..passes.folds import alike_limit
from .counted import MOST_FINE, Apart, Split, split_of_sums
from .fine import FineCells, cells_within

_GLANCES = 1 << 20  # upper bits of a float32 that settle a key: sign, exponent and twelve digits, to round to eleven
_BITS = 16  # of them name a coarse cell
_ROWS = 1 << 14  # whose log-odds are made in one go, so that they stay in the second-level cache
_COUNTED = 1 << 31  # rows that 32 bits can count


def cells_of_one_score(data: Data, folds: int) -> Apart | None:
    """Return the cells of all rows and of the first of so many folds; None where that takes passes over logits."""
    return None if data.one_score is None else data.one_score.kept(_apart, folds)


def _apart(rows: OneScore, folds: int) -> Apart | None:
    found = _counted(rows, folds) if rows.n < _COUNTED else None
    if found is None:
        return None
    split, counts = found
    rest, held = counts[:, :2], counts[:, 2:]
    whole, without, inside = (_cells(split, part) for part in (rest + held, rest, held))
    if not without.count or not inside.count:
        return None
    return Apart(whole, without, inside, np.stack([inside.weights, inside.outcomes], axis=1))  # every weight is one


def _counted(rows: OneScore, folds: int) -> tuple[Split, NDArray[np.int32]] | None:
    """Return how cells are split, and rows by cell: of either label outside the fold, and of either inside."""
    keys, glances, there = _glanced(rows)
    coarse, held, most = _core.split_glances(glances, there, folds)
    if most > alike_limit(rows.n):
        return None
    split = split_of_sums(coarse, 1, _BITS, MOST_FINE)
    counts = np.zeros((split.count, 4), dtype=np.int32)
    _core.fold_cells(keys, rows.labels, split.first, split.shift, held, counts)
    return split, counts


def _glanced(rows: OneScore) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint8]]:
    """Return the cell key of each row, how many rows of either label have its upper bits, and marks of coarse cells."""
    keys, glances = np.empty(rows.n, dtype=np.int32), _zeros_where_touched(_GLANCES, 2)
    there = np.zeros(1 << _BITS, dtype=np.uint8)
    for some, odds in rows.log_odds(_ROWS):
        _core.score_cells(odds, rows.labels[some], keys[some], glances, there)
    return keys, glances, there


def _zeros_where_touched(*shape: int) -> NDArray[np.int32]:
    """Return zeros of the system's: only pages that are touched take memory and time; the heap's are all written."""
    return np.frombuffer(mmap(-1, 4 * int(np.prod(shape))), dtype=np.int32).reshape(shape)


def _cells(split: Split, counts: NDArray[np.int32]) -> FineCells:
    """Return the cells from how many rows of either label they have."""
    weights = np.add(counts[:, 0], counts[:, 1], dtype=np.float64)
    return cells_within(*split.limits_of_one, weights, counts[:, 1].astype(np.float64))
