"""Sums by cell: what is kept of scores and outcomes that come in blocks, and adds up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..errors import FileProblem, InvalidInput, reading_state
from ..parameters import Integer
from ..plain import short
from ..threads import get_threads
from ..types import Array, Floats, Integers
from .grid import grid, spans
from .pairs import Pairs, is_whole

CELLS = 192  # steps of the grid of one view: 4 KB of JSON, and 8 KB with fractional weights
FEWEST, MOST = 16, 1 << 16  # fewer say less than a picture's bins, more are no less than many rows
_GLANCE = 2048  # scores that show whether there are more distinct ones
_PLACES = 100_000  # steps of a cell in which its mean score is written
_NARROW = 2.0**-60  # less than any cell is wide: the last may hold one number
_DIGITS = 7  # that fractional weights, and as how many rows they count, are written with

_WEIGHT = 1e100  # of a cell, or one over it: beyond, products overflow
_ROWS = 1e15  # of a cell: more than can be counted
_ROUNDED = 1e-6  # by which sums may contradict each other: they are rounded in another order


def check_cells(cells: Any) -> None:
    """Refuse what is no number of cells that a user may ask for."""
    if not Integer(FEWEST).accepts(cells) or cells > MOST:
        raise InvalidInput(
            "no such number of cells", seen=repr(cells)[:80], allowed=f"a whole number from {FEWEST} to {MOST}"
        )


def distinct(cells: int) -> int:
    """Return how many distinct scores are kept as they are: 256 beside 192 cells, as large when written in full."""
    return cells * 4 // 3


@dataclass(frozen=True, eq=False)
class SummedCells:
    """Sums of rows by cell: distinct scores are cells as long as they are few (`distinct`), and a grid holds the rest.

    The grid keeps mean scores, so what is linear in a score is exact, and so are bins of equal width (``bins`` of
    them). What it holds depends on the set of rows alone: not on their order, nor on which blocks met first.
    """

    # (4, m): mean score, weight, weight of those whose event happened, and Σw², of each cell that has rows; by score.
    table: Array
    exact: bool = True  # whether every cell is one score
    # Of the grid.
    bins: int = 15
    cells: int = CELLS
    counts: bool = True  # whether all weights are whole numbers, which count rows

    def __add__(self, other: SummedCells) -> SummedCells:
        counts = self.counts and other.counts
        if self.exact and other.exact:
            return _joined(np.concatenate([self.table, other.table], axis=1), self.bins, self.cells, counts)
        return _OnGrid(_sums_of(self) + _sums_of(other), self.bins, self.cells, counts)

    @property
    def unit(self) -> Array:
        """The weight of one row of each cell: Σw²/Σw, or one where weights count rows."""
        return np.ones(self.table.shape[1]) if self.counts else self.table[3] / self.table[1]

    @cached_property
    def pairs(self) -> Pairs:
        """The cells as pairs: an entry for what happened in each, and one for what did not."""
        score, weight, happened, _ = self.table
        ones = np.repeat([1.0, 0.0], len(score))
        weights = np.r_[happened, np.maximum(weight - happened, 0.0)]
        kept = weights > 0
        draws = weights / np.tile(self.unit, 2)
        return Pairs(np.tile(np.clip(score, 0, 1), 2)[kept], ones[kept], weights[kept], draws[kept])

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and numbers: distinct scores as they are, or places in hundred-thousandths of a cell.

        Weights that are numbers of rows are written in full, others with 7 digits. ``rows``, (Σw)²/Σw² of a cell, is
        left out where that is its weight, and ``counts`` with it.
        """
        told: dict[str, Any] = {"grid": [self.cells, self.bins]}
        if self.exact:
            scores, weight, happened, squares = self.table
            told["scores"] = scores.tolist()
        else:
            sums = _sums_of(self)
            filled = np.flatnonzero(sums[0])
            first, end = int(filled[0]), int(filled[-1]) + 1
            weight, scored, happened, squares = sums[:, first:end]
            low, high = (side[first:end] for side in spans(self.cells, self.bins))
            mean = np.divide(scored, weight, out=low.copy(), where=weight > 0)
            inside = (np.clip(mean, low, high) - low) / np.maximum(high - low, _NARROW)
            told |= {"first": first, "places": np.rint(inside * _PLACES).astype(np.int64).tolist()}
        told |= {"weights": short_list(weight, _DIGITS), "happened": short_list(happened, _DIGITS)}
        if not np.array_equal(weight, squares):
            rows = np.divide(weight * weight, squares, out=np.zeros(len(weight)), where=weight > 0)
            told |= {"rows": short_list(rows, _DIGITS), "counts": self.counts}
        return told

    @classmethod
    def from_dict(cls, given: dict[str, Any], bins: int | None = None, cells: int = CELLS) -> SummedCells:
        """Return what `to_dict` told, on this grid; what it cannot have told is refused."""
        with reading_state("table of summed cells"):
            return _from_lists(given, bins, cells)


class _OnGrid(SummedCells):
    """Sums in every cell of the grid, which add up as they are; the table is made when it is asked for.

    ``sums``, of shape (4, cells), are those of weights, scores, events and squares of weights.
    """

    sums: NDArray[Any]

    def __init__(self, sums: NDArray[Any], bins: int, cells: int, counts: bool) -> None:
        self.__dict__.update(sums=sums, exact=False, bins=bins, cells=cells, counts=counts)

    @cached_property
    def table(self) -> Array:  # pyright: ignore[reportIncompatibleVariableOverride]
        filled = self.sums[0] > 0
        weights, scored, happened, squares = self.sums[:, filled]
        low, high = (side[filled] for side in spans(self.cells, self.bins))
        return np.stack([np.clip(scored / weights, low, high), weights, happened, squares])


def summed(pairs: Pairs, bins: int = 15, cells: int = CELLS) -> SummedCells:
    """Return the sums of pairs by cell; rows of weight zero are left out."""
    pairs = pairs.counted()
    w = pairs.weight_array
    squares = w if pairs.weights is None else w**2 if pairs.draws is None else w**2 / pairs.draws
    counts = pairs.counts
    if len(np.unique(pairs.scores[:_GLANCE])) > distinct(cells):  # too many to keep: to the grid, without sorting
        edges = grid(cells, bins)
        sums = _core.pair_bins(pairs.scores, pairs.outcomes, w, edges)
        squared = sums[:1] if squares is w else _core.pair_bins(pairs.scores, pairs.outcomes, squares, edges)[:1]
        return _OnGrid(np.concatenate([sums, squared]), bins, cells, counts)
    return _joined(np.stack([pairs.scores, w, w * pairs.outcomes, squares]), bins, cells, counts)


def summed_classes(p: Floats, labels: Integers, weights: Array | None, bins: int = 15) -> tuple[SummedCells, ...]:
    """Return the sums of each class by bin of equal width, of all classes in one go through the rows."""
    edges, floors = grid(0, bins), np.full(p.shape[1], -np.inf)
    sums = _core.class_bins(p, labels, weights, edges, floors, get_threads())
    squares = sums[:1]
    if weights is not None:
        squares = _core.class_bins(p, labels, weights**2, edges, floors, get_threads())[:1]
    sums = np.concatenate([sums, squares])
    counts = weights is None or is_whole(weights)
    return tuple(_OnGrid(sums[:, column], bins, 0, counts) for column in range(p.shape[1]))


def binned_classes(parts: Sequence[SummedCells], edges: Array) -> Array:
    """Return (4, classes, bins) sums from the cells of each class: of weights, scores, outcomes, weights times unit."""
    score, weight, happened, _ = np.concatenate([part.table for part in parts], axis=1)
    squares = weight * np.concatenate([part.unit for part in parts])
    score, bins = np.clip(score, 0.0, 1.0), len(edges) - 1
    place = np.clip(np.searchsorted(edges, score, side="right") - 1, 0, bins - 1)
    place += bins * np.repeat(np.arange(len(parts)), [part.table.shape[1] for part in parts])
    sums = [np.bincount(place, part, bins * len(parts)) for part in (weight, weight * score, happened, squares)]
    return np.asarray(sums, dtype=np.float64).reshape(4, len(parts), bins)


def short_list(values: Array, digits: int) -> list[float]:
    """Write whole numbers without a point, as most weights are counts, and others with so many digits."""
    return [short(v, digits) for v in values.tolist()]


def _joined(rows: Array, bins: int, cells: int, counts: bool) -> SummedCells:
    """Join columns of one score; where distinct scores are too many, those of one cell of the grid."""
    rows = rows[:, np.argsort(rows[0], kind="stable")]
    scores = rows[0]
    first = np.flatnonzero(np.r_[True, scores[1:] != scores[:-1]]) if len(scores) else np.zeros(0, np.int64)
    if len(first) < len(scores):
        sums = (np.add.reduceat(rows[i], first) for i in (1, 2, 3))
        rows = np.stack([scores[first], *sums])
    found = SummedCells(rows, True, bins, cells, counts)
    return found if len(first) <= distinct(cells) else _OnGrid(_sums_of(found), bins, cells, counts)


def _sums_of(part: SummedCells) -> Array:
    """Return the sums of weights, scores, events and squares of weights in every cell of the grid."""
    if isinstance(part, _OnGrid):
        return part.sums
    score, weight, happened, squares = part.table
    edges = grid(part.cells, part.bins)
    place = np.searchsorted(edges[1:-1], score, side="right")
    sums = [np.bincount(place, part, len(edges) - 1) for part in (weight, weight * score, happened, squares)]
    return np.asarray(sums, dtype=np.float64)


def _from_lists(given: dict[str, Any], bins: int | None, cells: int) -> SummedCells:
    exact, shape = "scores" in given, given["grid"]
    good = isinstance(shape, list) and len(shape) == 2 and shape[0] == cells and _are_bins(shape[1])
    _need(good and bins in (None, shape[1]))
    bins = int(shape[1])
    edges = grid(cells, bins)
    places, weight, happened = (_list_of(given[n]) for n in ("scores" if exact else "places", "weights", "happened"))
    rows = _list_of(given["rows"]) if "rows" in given else weight
    counts = given.get("counts", "rows" not in given)
    _need(type(counts) is bool and (not counts or bool((weight == np.floor(weight)).all())))
    first = 0 if exact else given["first"]
    room = distinct(cells) if exact else len(edges) - 1
    _need(len(places) == len(weight) == len(happened) == len(rows) and Integer(0).accepts(first))
    _need(0 < len(places) <= room - first)
    filled = weight > 0
    _need(bool(filled.all() if exact else filled[0] and filled[-1]))
    _need(not (weight[~filled].any() or happened[~filled].any() or rows[~filled].any()))
    with np.errstate(all="ignore"):
        squares = np.divide(weight * weight, rows, out=np.zeros(len(weight)), where=filled)
    _check_sums(weight[filled], happened[filled], squares[filled])
    if exact:
        _need(bool((np.abs(places - 0.5) <= 0.5 + _ROUNDED).all() and (np.diff(places) > 0).all()))
        return SummedCells(np.stack([places, weight, happened, squares]), True, bins, cells, counts)
    _need(bool(((places >= 0) & (places <= _PLACES)).all()))
    low, high = (side[first : first + len(places)] for side in spans(cells, bins))
    sums = np.zeros((4, len(edges) - 1))
    sums[:, first : first + len(places)] = weight, weight * (low + places / _PLACES * (high - low)), happened, squares
    return _OnGrid(sums, bins, cells, counts)


def _check_sums(weight: Array, happened: Array, squares: Array) -> None:
    """Refuse sums that no rows have."""
    _need(bool(((weight > 1 / _WEIGHT) & (weight < _WEIGHT)).all()))
    with np.errstate(all="ignore"):
        rows = weight * weight / squares  # as many as the weights of a cell are worth: one at least
    _need(bool(((rows > 1 - _ROUNDED) & (rows < _ROWS)).all()))
    _need(bool(((happened >= 0) & (happened <= weight * (1 + _ROUNDED))).all()))


def _are_bins(bins: Any) -> bool:
    return bool(Integer(1).accepts(bins)) and bins <= 10**6


def _list_of(values: Any) -> Array:
    """Return a list of finite numbers as an array."""
    _need(isinstance(values, list) and all(type(v) in (int, float) for v in values))
    found = np.array(values, dtype=np.float64)
    _need(bool(np.isfinite(found).all()))
    return found


def _need(truth: bool) -> None:
    if not truth:
        raise FileProblem("this is no table of summed cells", seen="numbers that contradict each other")
