"""Fine cells: scores and outcomes as quantisers see them, however many scores there are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..passes import Block, reduce
from ..threads import get_threads

__all__ = ["FineCells", "cells_of_classes", "cells_of_scores"]

_EXACT = 1 << 18  # up to this many scores every distinct score is a cell
_COARSE = 1 << 16  # coarse cells: the upper half of a float32's bits
_FINE = 1 << 15  # fine cells for each of two measures: the mass of all scores, and of the positives

Columns = NDArray[np.bool_] | None


@dataclass(frozen=True, eq=False)
class FineCells:
    """A histogram of scores so fine that no edge needs to cut one of its cells.

    Attributes
    ----------
    scores : array of shape (C,)
        The score each cell stands for, increasing.
    weights, outcomes : arrays of shape (C,)
        Weight of all its scores (positive), and of those whose event happened.
    cuts : array of shape (C - 1,)
        The edge between a cell and the next: scores at or above it belong to the next.
    """

    scores: NDArray[np.float64]
    weights: NDArray[np.float64]
    outcomes: NDArray[np.float64]
    cuts: NDArray[np.float64]

    @property
    def count(self) -> int:
        """Number of cells."""
        return len(self.scores)

    def bounds(self, edges: NDArray[np.floating]) -> NDArray[np.int64]:
        """Return the first cell at or above each edge, without those that part nothing."""
        found = np.unique(np.searchsorted(self.scores, edges, side="left"))
        return found[(found > 0) & (found < self.count)]

    def thinned(self, most: int) -> FineCells:
        """Return at most about ``most`` cells, neighbours merged at equal steps of the share of either outcome."""
        if self.count <= most:
            return self
        shares = [part.cumsum() / max(part.sum(), 1e-300) for part in (self.outcomes, self.weights - self.outcomes)]
        steps = np.floor((shares[0] + shares[1]) * (most / 2))
        return self.merged(np.flatnonzero(np.diff(steps) > 0) + 1)

    def merged(self, bounds: NDArray[np.int64]) -> FineCells:
        """Return the cells that begin at cell 0 and at ``bounds``; their scores are the mean scores."""
        starts = np.concatenate([[0], bounds]).astype(np.int64)
        weights, outcomes, sums = (
            np.add.reduceat(values, starts) for values in (self.weights, self.outcomes, self.weights * self.scores)
        )
        return FineCells(sums / weights, weights, outcomes, self.cuts[starts[1:] - 1])


def cells_of_scores(
    scores: NDArray[np.floating],
    outcomes: NDArray[np.floating] | NDArray[np.bool_],
    weights: NDArray[np.float64] | None = None,
) -> FineCells:
    """Return one cell for each distinct score; rows of weight zero are left out.

    Parameters
    ----------
    scores : array of shape (n,)
        Log-odds, or any finite score.
    outcomes : array of shape (n,)
        0 or 1.
    weights : array of shape (n,), optional
    """
    if weights is not None and not weights.all():
        kept = weights > 0
        scores, outcomes, weights = scores[kept], outcomes[kept], weights[kept]
    alike = weights is None or bool((weights == 1).all())
    if alike and outcomes.dtype == np.bool_:
        return _cells_of_rows(scores, outcomes.astype(np.bool_, copy=False))
    order = np.argsort(scores, kind="stable")
    ordered, w = scores[order], np.ones(len(order)) if weights is None else weights[order]
    starts = _starts(ordered)
    values = ordered[starts].astype(np.float64)
    return FineCells(values, np.add.reduceat(w, starts), np.add.reduceat(outcomes[order] * w, starts), _between(values))


def _cells_of_rows(scores: NDArray[np.floating], outcomes: NDArray[np.bool_]) -> FineCells:
    """Cells of rows that weigh one each: the scores alone are sorted, many times faster than their places."""
    ordered = np.sort(scores)
    starts = _starts(ordered)
    values = ordered[starts]
    positives = np.bincount(np.searchsorted(values, scores[outcomes]), minlength=len(values)).astype(np.float64)
    counts = np.diff(starts, append=len(scores)).astype(np.float64)
    values = values.astype(np.float64)
    return FineCells(values, counts, positives, _between(values))


def _starts(ordered: NDArray[np.floating]) -> NDArray[np.int64]:
    """Places at which a value begins."""
    return np.concatenate([[0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1])


def _between(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The middle between neighbours, or the upper one where nothing lies between them."""
    middle = values[:-1] + 0.5 * (values[1:] - values[:-1])
    return np.where(middle > values[:-1], middle, values[1:])


def cells_of_classes(sample: Block, columns: Columns = None) -> FineCells:
    """Return the cells of the log-odds of the chosen classes (a mask; None means all), merged.

    Few scores make exact cells. Many are counted in two passes: by the upper 16 bits of their float32 value, then
    with each of these coarse cells split by its share of all scores or of the positives, so that about 2¹⁵ cells lie
    where either of the two is. Cells depend on the set of weighted rows alone: not on their order, the number of
    threads or the scale of the scores.
    """
    used = sample.logits.shape[1] if columns is None else int(columns.sum())
    if sample.n * used <= _EXACT:
        return _exact_cells(sample, columns)
    first, shift, count = _split(_cell_sums(sample, columns, None, None, _COARSE))
    sums = _cell_sums(sample, columns, first, shift, count)
    kept = np.flatnonzero(sums[:, 0] > 0)
    low, high = _ranges(kept, first, shift)
    return FineCells(0.5 * (low + high), sums[kept, 0], sums[kept, 1], 0.5 * (high[:-1] + low[1:]))


def _exact_cells(sample: Block, columns: Columns) -> FineCells:
    odds = np.empty_like(sample.logits)
    _core.log_odds(sample.logits, get_threads(), odds)
    outcomes = np.zeros(odds.shape, dtype=bool)
    outcomes[np.arange(sample.n), sample.labels] = True
    if columns is not None:
        odds, outcomes = odds[:, columns], outcomes[:, columns]
    weights = None if sample.weights is None else np.repeat(sample.weights, odds.shape[1])
    return cells_of_scores(odds.ravel(), outcomes.ravel(), weights)


def _cell_sums(
    sample: Block,
    columns: Columns,
    first: NDArray[np.int32] | None,
    shift: NDArray[np.int32] | None,
    count: int,
) -> NDArray[np.float64]:
    """One pass: weight and positives of every cell."""
    return reduce(
        lambda rows: _core.cell_sums(
            rows.logits, rows.labels, rows.weights, columns, first, shift, count, get_threads()
        ),
        sample,
    )


def _split(coarse: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.int32], int]:
    """Split each coarse cell into a power of two of fine cells, by its larger share of mass and of positives."""
    totals = coarse.sum(axis=0)
    share = (coarse / np.where(totals > 0, totals, 1.0)).max(axis=1)
    bits = np.ceil(np.log2(np.maximum(share * _FINE, 1.0))).astype(np.int32)
    sizes = 1 << bits
    first = np.cumsum(sizes) - sizes
    return first.astype(np.int32), (16 - bits).astype(np.int32), int(sizes.sum())


def _ranges(
    cells: NDArray[np.int64], first: NDArray[np.int32], shift: NDArray[np.int32]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the smallest and the largest float32 of the given fine cells."""
    coarse = np.searchsorted(first, cells, side="right") - 1
    width = np.left_shift(1, shift[coarse].astype(np.int64))
    low = (coarse << 16) + (cells - first[coarse]) * width
    return _float_of(low), _float_of(low + width - 1)


def _float_of(keys: NDArray[np.int64]) -> NDArray[np.float64]:
    """Undo the kernel's key: the float32 whose reordered bits these are."""
    signed = (keys - (1 << 31)).astype(np.int32)
    bits = np.where(signed < 0, signed ^ np.int32(0x7FFFFFFF), signed).astype(np.int32)
    return bits.view(np.float32).astype(np.float64)
