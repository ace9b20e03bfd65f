"""Fine cells: scores and outcomes as quantisers see them, however many scores there are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import expit

from .. import _core
from ..types import Array, Floats, Integers, Mask
from .pairs import Cells


@dataclass(frozen=True, eq=False)
class FineCells(Cells):
    """A histogram of log-odds so fine that no edge needs to cut one of its cells."""

    cuts: Array  # (C - 1,): the edge between a cell and the next: scores at or above it belong to the next
    exact: bool = True  # whether every cell is one score

    @property
    def count(self) -> int:
        """Number of cells."""
        return len(self.scores)

    def bounds(self, edges: Floats) -> Integers:
        """Return the first cell at or above each edge, without those that part nothing."""
        found = np.unique(np.searchsorted(self.scores, edges, side="left"))
        return found[(found > 0) & (found < self.count)]

    @cached_property
    def raw_loss(self) -> float:
        """Summed log-loss of the scores as they are."""
        return _core.cell_loss(self.scores, self.weights, self.outcomes)

    def sums(self, edges: Array) -> Array:
        """Return by bin of increasing edges: weight, weight of the positives, Σ σ(score), and a zero; (bins, 4)."""
        place = np.searchsorted(edges, self.scores, side="right")
        columns = (self.weights, self.outcomes, self.weights * expit(self.scores), np.zeros(self.count))
        found = [np.bincount(place, column, minlength=len(edges) + 1) for column in columns]
        return np.stack(found, axis=1).astype(np.float64, copy=False)

    def thinned(self, most: int) -> FineCells:
        """Return at most about ``most`` cells, neighbours merged at equal steps of the share of either outcome."""
        if self.count <= most:
            return self
        shares = [part.cumsum() / max(part.sum(), 1e-300) for part in (self.outcomes, self.weights - self.outcomes)]
        steps = np.floor((shares[0] + shares[1]) * (most / 2))
        return self.merged(np.flatnonzero(np.diff(steps) > 0) + 1)

    def merged(self, bounds: Integers) -> FineCells:
        """Return the cells that begin at cell 0 and at ``bounds``; their scores are the mean scores."""
        starts = np.concatenate([[0], bounds]).astype(np.int64)
        weights, outcomes, sums = (
            np.add.reduceat(values, starts) for values in (self.weights, self.outcomes, self.weights * self.scores)
        )
        return FineCells(sums / weights, weights, outcomes, self.cuts[starts[1:] - 1], exact=False)


def cells_of_scores(
    scores: Floats,
    outcomes: Floats | Mask,
    weights: Array | None = None,
) -> FineCells:
    """Return one cell for each distinct score, of log-odds or any finite scores; rows of weight zero are left out."""
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


def _cells_of_rows(scores: Floats, outcomes: Mask) -> FineCells:
    """Cells of rows that weigh one each: the scores alone are sorted, many times faster than their places."""
    ordered = np.sort(scores)
    starts = _starts(ordered)
    values = ordered[starts]
    positives = np.bincount(np.searchsorted(values, scores[outcomes]), minlength=len(values)).astype(np.float64)
    counts = np.diff(starts, append=len(scores)).astype(np.float64)
    values = values.astype(np.float64)
    return FineCells(values, counts, positives, _between(values))


def _starts(ordered: Floats) -> Integers:
    """Places at which a value begins."""
    return np.concatenate([[0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1])


def _between(values: Array) -> Array:
    """The middle between neighbours, or the upper one where nothing lies between them."""
    middle = 0.5 * values[:-1] + 0.5 * values[1:]
    return np.where(middle > values[:-1], middle, values[1:])


def cells_within(
    low: Array,
    high: Array,
    weights: Array,
    outcomes: Array,
) -> FineCells:
    """Return the cells that hold anything, from the limits and sums of all."""
    kept = np.flatnonzero(weights > 0)
    low, high = low[kept], high[kept]
    return FineCells(0.5 * (low + high), weights[kept], outcomes[kept], 0.5 * (high[:-1] + low[1:]), exact=False)
