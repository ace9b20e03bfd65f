"""Sums by cell: what is kept of scores and outcomes that come in blocks, and adds up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..errors import FileProblem, reading_state
from ..parameters import Integer
from ..threads import get_threads
from ..types import Integers
from .pairs import Pairs

__all__ = ["CELLS", "SummedCells", "binned_classes", "grid", "summed", "summed_classes"]

Floats = NDArray[np.float64]
CELLS = 512  # distinct scores that are kept as they are, and steps of the grid beyond: some 10 KB of JSON
_GLANCE = 2048  # scores that show whether there are more distinct ones


_WEIGHT = 1e100  # of a cell, or one over it: beyond, products overflow
_ROWS = 1e15  # of a cell: more than can be counted
_ROUNDED = 1e-6  # by which sums may contradict each other: they are rounded in another order


@lru_cache(maxsize=16)
def grid(cells: int, bins: int) -> Floats:
    """Return edges of cells that are equally wide in arcsin √p, and all edges of ``bins`` bins of equal width.

    In arcsin √p a frequency has the same standard error everywhere, so that cells are narrow where events are rare.
    """
    steps = np.sin(np.arange(cells + 1) * (np.pi / (2 * cells))) ** 2
    edges = np.union1d(steps, np.arange(bins + 1) / bins)
    edges[[0, -1]] = 0.0, 1.0
    edges.flags.writeable = False
    return edges


@dataclass(frozen=True, eq=False)
class SummedCells:
    """Sums of rows by cell: every distinct score is a cell up to ``CELLS`` of them, and a grid holds the rest.

    The grid keeps mean scores, so what is linear in a score is exact, and so are bins of equal width (``bins`` of
    them). What it holds depends on the set of rows alone: not on their order, nor on which blocks met first.

    Attributes
    ----------
    table : float64 array of shape (4, m)
        Mean score, weight, weight of those whose event happened, and Σw², of each cell that has rows; by score.
    exact : bool
        Whether every cell is one score.
    bins : int
    """

    table: Floats
    exact: bool = True
    bins: int = 15

    def __add__(self, other: SummedCells) -> SummedCells:
        both = np.concatenate([self.table, other.table], axis=1)
        return _joined(both, self.exact and other.exact, self.bins)

    @cached_property
    def pairs(self) -> Pairs:
        """The cells as pairs: an entry for what happened in each, and one for what did not."""
        score, weight, happened, squares = self.table
        ones = np.repeat([1.0, 0.0], len(score))
        weights = np.r_[happened, np.maximum(weight - happened, 0.0)]
        kept = weights > 0
        draws = weights * np.tile(weight / squares, 2)
        return Pairs(np.tile(np.clip(score, 0, 1), 2)[kept], ones[kept], weights[kept], draws[kept])

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and numbers."""
        return {"table": [_short(row) for row in self.table.tolist()], "exact": self.exact, "bins": self.bins}

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> SummedCells:
        """Return what `to_dict` told; what it cannot have told is refused."""
        with reading_state("table of summed cells"):
            table = np.array(given["table"], dtype=np.float64).reshape(4, -1)
            score, weight, happened, squares = table
            good = bool(np.isfinite(table).all() and (np.diff(score) >= 0).all())
            good &= bool(((score >= -_ROUNDED) & (score <= 1 + _ROUNDED)).all())
            good &= bool(((weight > 1 / _WEIGHT) & (weight < _WEIGHT)).all())
            with np.errstate(all="ignore"):
                rows = weight * weight / squares  # as many as the weights of a cell are worth: one at least
            good &= bool(((rows > 1 - _ROUNDED) & (rows < _ROWS)).all())
            good &= bool(((happened >= 0) & (happened <= weight * (1 + _ROUNDED))).all())
            good &= Integer(1).accepts(given["bins"]) and given["bins"] <= 10**6 and type(given["exact"]) is bool
            if not good:
                raise FileProblem("this is no table of summed cells", seen="numbers that contradict each other")
            return SummedCells(table, given["exact"], given["bins"])


class _OnGrid(SummedCells):
    """Sums in every cell of the grid, which add up as they are; the table is made when it is asked for.

    ``sums``, of shape (4, cells), are those of weights, scores, events and squares of weights.
    """

    sums: NDArray[Any]

    def __init__(self, sums: NDArray[Any], bins: int) -> None:
        self.__dict__.update(sums=sums, exact=False, bins=bins)

    @cached_property
    def table(self) -> Floats:  # pyright: ignore[reportIncompatibleVariableOverride]
        weights, scored, happened, squares = self.sums[:, self.sums[0] > 0]
        return np.stack([scored / weights, weights, happened, squares])

    def __add__(self, other: SummedCells) -> SummedCells:
        if isinstance(other, _OnGrid) and other.bins == self.bins:
            return _OnGrid(self.sums + other.sums, self.bins)
        return super().__add__(other)


def summed(pairs: Pairs, bins: int = 15) -> SummedCells:
    """Return the sums of pairs by cell; rows of weight zero are left out."""
    pairs = pairs.counted()
    w = pairs.weight_array
    squares = w**2 if pairs.draws is None else w**2 / pairs.draws
    if len(np.unique(pairs.scores[:_GLANCE])) > CELLS:  # too many to keep: straight to the grid, without sorting
        edges = grid(CELLS, bins)
        sums = _core.pair_bins(pairs.scores, pairs.outcomes, w, edges)
        squared = _core.pair_bins(pairs.scores, pairs.outcomes, squares, edges)[:1]
        return _OnGrid(np.concatenate([sums, squared]), bins)
    return _joined(np.stack([pairs.scores, w, w * pairs.outcomes, squares]), True, bins)


def summed_classes(
    p: NDArray[np.floating], labels: Integers, weights: Floats | None, bins: int = 15
) -> tuple[SummedCells, ...]:
    """Return the sums of each class by cell: those that `summed` gives, of all classes in one go through the rows."""
    if len(p) <= CELLS:  # every score may be a cell
        return tuple(summed(_one_class(p, labels, weights, column), bins) for column in range(p.shape[1]))
    edges, floors = grid(CELLS, bins), np.full(p.shape[1], -np.inf)
    sums = _core.class_bins(p, labels, weights, edges, floors, get_threads())
    squares = sums[:1]
    if weights is not None:
        squares = _core.class_bins(p, labels, weights**2, edges, floors, get_threads())[:1]
    sums = np.concatenate([sums, squares])
    glance = p[:_GLANCE] if weights is None else p[np.flatnonzero(weights)[:_GLANCE]]
    glance = np.sort(np.ascontiguousarray(glance.T), axis=1)
    many = np.count_nonzero(glance[:, 1:] != glance[:, :-1], axis=1) >= CELLS
    return tuple(
        _OnGrid(sums[:, column], bins) if many[column] else summed(_one_class(p, labels, weights, column), bins)
        for column in range(p.shape[1])
    )


def binned_classes(parts: Sequence[SummedCells], edges: Floats) -> Floats:
    """Return (4, classes, bins) sums of weights, scores, outcomes and Σw², from the cells of each class."""
    score, weight, happened, squares = np.concatenate([part.table for part in parts], axis=1)
    score, bins = np.clip(score, 0.0, 1.0), len(edges) - 1
    place = np.clip(np.searchsorted(edges, score, side="right") - 1, 0, bins - 1)
    place += bins * np.repeat(np.arange(len(parts)), [part.table.shape[1] for part in parts])
    sums = [np.bincount(place, part, bins * len(parts)) for part in (weight, weight * score, happened, squares)]
    return np.asarray(sums, dtype=np.float64).reshape(4, len(parts), bins)


def _one_class(p: NDArray[np.floating], labels: Integers, weights: Floats | None, column: int) -> Pairs:
    return Pairs(p[:, column].astype(np.float64), (labels == column).astype(np.float64), weights)


def _joined(rows: Floats, exact: bool, bins: int) -> SummedCells:
    """Join columns of one cell: tied scores, or those between two edges of the grid where scores are too many."""
    rows = rows[:, np.argsort(rows[0], kind="stable")]
    key = rows[0]
    if exact:
        exact = int(np.count_nonzero(key[1:] != key[:-1])) < CELLS
    if not exact:
        key = np.searchsorted(grid(CELLS, bins)[1:-1], key, side="right")
    first = np.flatnonzero(np.r_[True, key[1:] != key[:-1]]) if len(key) else np.zeros(0, np.int64)
    if len(first) == len(key):
        return SummedCells(rows, exact, bins)
    weights, happened, squares = (np.add.reduceat(rows[i], first) for i in (1, 2, 3))
    scores = rows[0, first] if exact else np.add.reduceat(rows[0] * rows[1], first) / weights
    return SummedCells(np.stack([scores, weights, happened, squares]), exact, bins)


def _short(values: list[float]) -> list[float]:
    """Write whole numbers without a point: most weights are counts."""
    return [int(v) if v.is_integer() and abs(v) < 2**53 else v for v in values]
