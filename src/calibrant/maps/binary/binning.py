"""Histogram binning with any edges and any representatives, I-Max among them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np
from scipy.special import expit, logit

from ... import _core
from ...calibrator import Calibrator
from ...cells.edges import equal_width, given, kmeans, mass_bounds
from ...cells.fine import FineCells
from ...cells.imax import IMax, imax_of_groups
from ...cells.information import partition_information
from ...cells.partition import optimal_partition
from ...declared import attribute, declared, parameter
from ...fits.report import FitReport
from ...invariants import Values
from ...parameters import AMOUNT, AnyOf, Instance, Integer, OneOf, count_from
from ...passes import Data
from ...traits import Traits, most_of
from ...types import Array, Integers
from .base import BinaryMap, Learnt
from .lending import fitted_lender, sums_of_groups
from .table import TableMap, table_losses

_KMEANS_CELLS = 1 << 14  # enough for edges that are right to a thousandth of a bin
_IMAX_CELLS = 1 << 13  # of distinct scores, for I-Max: with more it loses no less
_TOGETHER = 16  # groups whose fine cells are in memory at once


# A mean of probabilities that were rounded to 0 or 1 counts as the nearest float32 inside: nothing is impossible.
_SURELY = (float(np.finfo(np.float32).tiny), 1.0 - 2.0**-24)


@declared
class Binning(TableMap):
    """Answers every score of a bin alike: where the edges lie and what a bin answers are two choices.

    Parameters
    ----------
    edges : {"equal_mass", "equal_width", "imax", "mi", "kmeans"} or array-like
        "equal_mass": bins of the same weight, tied scores together. "equal_width": equal steps of probability.
        "imax": the edges that lose least of what the score says about the outcome under a sigmoid model (Patel et al.
        2021). "mi": the edges of greatest empirical mutual information, by dynamic programming. "kmeans": least
        squared error in probability. An array holds edges in probability.
    bins : int
        Number of bins; fewer where there are fewer distinct scores. Ignored for an array of edges.
    representatives : {"frequency", "mean_score"} or Calibrator
        "frequency": the share of positives in the bin, smoothed. "mean_score": the mean raw probability. A calibrator
        is fitted on the same rows and lends its mean answer in the bin ("I-Max w. TS", scaling-binning); a binary map
        is fitted on the pairs of the same classes.
    smoothing : float
        Pseudo-count s of the frequencies: (positives + s · prior) / (weight + s), the prior being the share of
        positives among all pairs, itself smoothed by s at ½. 0 gives the plain frequency of the papers, which may be
        exactly 0 or 1.
    monotone : bool
        Pool neighbouring bins whose smoothed frequencies fall, so that a larger score never gets a smaller answer and a
        map shared by all classes keeps every row's order but for ties. Plain frequencies (``smoothing=0``) are
        left as they are.
    affine : bool
        For "imax": fit the sigmoid model to the outcomes first (App. A3.5) instead of taking the scores' word.
    random_state : int
        For "imax": seed of the k-means++ start.
    inputs, classes, saturated
        See `Calibrator`.

    Attributes
    ----------
    edges_ : array of shape (bins - 1,)
        Inner edges, in log-odds.
    representatives_ : array of shape (bins,)
    counts_ : array of shape (bins,)
        The weight of the calibration scores in each bin.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import Binning
    >>> scores, happened = np.repeat([-3.0, 3.0], 100), np.repeat([1, 0, 1, 0], [25, 75, 75, 25])
    >>> map_ = Binning(edges=[0.5], smoothing=0).fit(scores, happened)  # the scores say 0.05 and 0.95
    >>> map_.representatives_
    array([0.25, 0.75])
    """

    _identifier = "binning"
    _traits = Traits("binary", "nothing", "each class", "bins", sees="cells")
    edges: Any = parameter(
        AnyOf(
            OneOf("equal_mass", "equal_width", "imax", "mi", "kmeans"),
            Instance((list, tuple, np.ndarray), "an array of edges in [0, 1]"),
        ),
        default="equal_mass",
    )
    bins: int = parameter(count_from(1), default=15)
    representatives: Any = parameter(
        AnyOf(OneOf("frequency", "mean_score"), Instance((Calibrator,), "a calibrator")), default="frequency"
    )
    smoothing: float = parameter(AMOUNT, default=1.0)
    monotone: bool = parameter(OneOf(True, False), default=True)
    affine: bool = parameter(OneOf(True, False), default=True)
    random_state: int = parameter(Integer(0), default=0)
    counts_: Array = attribute(Values("bins", low=0))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not isinstance(self.edges, str):
            given(self.edges)

    @property
    def traits(self) -> Traits:
        """Those of bins; a map that lends its answers may see more of the rows."""
        lender = self.representatives
        if not isinstance(lender, Calibrator):
            return self._traits
        return replace(self._traits, sees=most_of([self._traits.sees, lender.traits.sees]))

    @property
    def _fixed(self) -> bool:
        """Whether the edges are known before any row is seen."""
        return not isinstance(self.edges, str) or self.edges == "equal_width"

    def _fit_groups_apart(self, data: Data, groups: Integers) -> tuple[list[BinaryMap], list[BinaryMap]]:
        if data.in_memory or not self._fixed:
            return super()._fit_groups_apart(data, groups)
        return self._learnt_apart(data, iter(()), iter(()), groups)

    def _learn_cells(self, cells: Iterator[FineCells], data: Data, groups: Integers) -> list[Learnt]:
        lends = isinstance(self.representatives, Calibrator)
        lender = fitted_lender(self.representatives, data, groups) if lends else None
        found = list(self._found(cells)) or [self._at_fixed_edges()] * (int(groups.max()) + 1)
        sums = [one.sums for one in found if one.sums is not None]
        if len(sums) < len(found):
            sums = sums_of_groups(data, groups, [one.edges for one in found], lender)
        return [self._told(one, own) for one, own in zip(found, sums, strict=True)]

    def _told(self, found: _Found, sums: Array) -> Learnt:
        answers = self._answers(sums, found.edges)
        before, after = table_losses(found.raw_loss, sums[:, 0], sums[:, 1], answers)
        report = FitReport(found.iterations, found.converged, "nll", before, after, details=found.details)
        return Learnt({"edges_": found.edges, "representatives_": answers, "counts_": sums[:, 0]}, report)

    def _found(self, groups: Iterator[FineCells]) -> Iterator[_Found]:
        """Find the edges of each group, a few groups at a time."""
        informed = isinstance(self.edges, str) and self.edges in ("imax", "mi")
        while some := list(islice(groups, _TOGETHER)):
            few = [cells.thinned(_IMAX_CELLS) if cells.exact else cells for cells in some]
            starts = self._imax(few) if informed else [None] * len(some)
            for cells, fewer, start in zip(some, few, starts, strict=True):
                yield self._with_sums(self._placed(cells, fewer, start), cells)

    def _placed(self, cells: FineCells, few: FineCells, start: IMax | None) -> _Found:
        if start is not None:
            return self._informed(few, start)
        if not isinstance(self.edges, str):
            return _Found(logit(given(self.edges)[1:-1]), between=False)
        if self.edges == "equal_width":
            return _Found(logit(equal_width(self.bins)[1:-1]), between=False)
        if self.edges == "equal_mass":
            mass = np.cumsum(cells.weights)
            return _Found(cells.cuts[mass_bounds(np.append(0.0, mass[:-1]), mass[-1], self.bins) - 1])
        thin = cells.thinned(_KMEANS_CELLS)
        inner = logit(kmeans(expit(thin.scores), self.bins, thin.weights)[1:-1])
        return _Found(cells.cuts[cells.bounds(inner) - 1])

    def _at_fixed_edges(self) -> _Found:
        edges = equal_width(self.bins) if isinstance(self.edges, str) else given(self.edges)
        return _Found(logit(edges[1:-1]), between=False, raw_loss=np.nan)

    def _with_sums(self, found: _Found, cells: FineCells) -> _Found:
        """Add what the cells say; sums by bin only where no pass over the rows would say more."""
        known = cells.exact or (found.between and self.representatives == "frequency")
        lends = isinstance(self.representatives, Calibrator)
        return replace(found, raw_loss=cells.raw_loss, sums=cells.sums(found.edges) if known and not lends else None)

    def _imax(self, groups: list[FineCells]) -> list[IMax]:
        return imax_of_groups(groups, self.bins, affine=self.affine, seed=self.random_state)

    def _informed(self, cells: FineCells, start: IMax) -> _Found:
        bounds = start.bounds
        details: dict[str, Any] = {"loss": start.losses[-1], "slope": start.slope, "offset": start.offset}
        if self.edges == "mi":
            bounds, details = optimal_partition(cells, self.bins, start.bounds), {}
        details["information"] = partition_information(cells, bounds)
        return _Found(cells.cuts[bounds - 1], iterations=len(start.losses), converged=start.converged, details=details)

    def _answers(self, sums: Array, edges: Array) -> Array:
        weights, positives, scores, values = sums.T
        filled = weights > 0
        answers = _middles(edges)
        if isinstance(self.representatives, Calibrator):
            answers[filled] = np.clip(values[filled] / weights[filled], *_SURELY)
        elif self.representatives == "mean_score":
            answers[filled] = np.clip(scores[filled] / weights[filled], *_SURELY)
        else:
            answers[filled] = self._frequencies(weights[filled], positives[filled])
        return np.clip(answers, 0.0, 1.0)

    def _frequencies(self, weights: Array, positives: Array) -> Array:
        s = self.smoothing
        counts = weights + s
        prior = (positives.sum() + s / 2) / (weights.sum() + s)  # never 0: a class may be missing from the rows
        answers = (positives + s * prior) / counts
        if not self.monotone or s == 0:
            return answers
        return _core.pool_adjacent(answers * counts, counts, np.array([0, len(counts)]))


@dataclass(frozen=True, eq=False)
class _Found:
    """Edges and how they were found, whether they lie between cells, and what the cells say of their bins."""

    edges: Array
    between: bool = True
    sums: Array | None = None
    raw_loss: float = 0.0
    iterations: int = 0
    converged: bool = True
    details: dict[str, Any] = field(default_factory=dict)


def _middles(edges: Array) -> Array:
    """The middle of each bin in probability: what a bin without rows answers."""
    stops = np.concatenate([[0.0], expit(edges), [1.0]])
    return 0.5 * (stops[1:] + stops[:-1])
