"""Histogram binning with any edges and any representatives, I-Max among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, xlogy
from sklearn.isotonic import isotonic_regression

from ...arrays import log_odds
from ...calibrator import Calibrator
from ...fits.report import FitReport
from ...metrics.edges import equal_width, given, kmeans, mass_bounds
from ...metrics.fine_cells import FineCells
from ...metrics.imax import IMax, imax_of_groups
from ...metrics.information import partition_information
from ...metrics.optimal_partition import optimal_partition
from ...parameters import AnyOf, Instance, Integer, Number, OneOf
from ...passes import Block
from ...traits import Traits
from .base import BinaryMap
from .bin_data import Answer, BinData
from .table import TableMap

__all__ = ["Binning", "table_losses"]

_KMEANS_CELLS = 1 << 14
_TOGETHER = 16  # groups whose fine cells are in memory at once


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
    _traits = Traits("binary", "nothing", "each class", "bins")
    _constraints: ClassVar[Mapping[str, Any]] = {
        "edges": AnyOf(
            OneOf("equal_mass", "equal_width", "imax", "mi", "kmeans"),
            Instance((list, tuple, np.ndarray), "an array of edges in [0, 1]"),
        ),
        "bins": Integer(1),
        "representatives": AnyOf(OneOf("frequency", "mean_score"), Instance((Calibrator,), "a calibrator")),
        "smoothing": Number(0.0),
        "monotone": OneOf(True, False),
        "affine": OneOf(True, False),
        "random_state": Integer(0),
    }
    counts_: NDArray[np.float64]

    def __init__(
        self,
        edges: Any = "equal_mass",
        bins: int = 15,
        representatives: Any = "frequency",
        smoothing: float = 1.0,
        monotone: bool = True,
        affine: bool = True,
        random_state: int = 0,
        *,
        inputs: str = "logits",
        classes: Any = None,
        saturated: str = "small",
    ) -> None:
        self.edges = edges
        self.bins = bins
        self.representatives = representatives
        self.smoothing = smoothing
        self.monotone = monotone
        self.affine = affine
        self.random_state = random_state
        self.inputs = inputs
        self.classes = classes
        self.saturated = saturated

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not isinstance(self.edges, str):
            given(self.edges)
        if isinstance(self.representatives, Calibrator):
            self.representatives._check_parameters()

    def _answer(self, sample: Block, groups: NDArray[np.int64]) -> Answer | None:
        if not isinstance(self.representatives, Calibrator):
            return None
        lender = self.representatives
        if isinstance(lender, BinaryMap):
            maps = lender._fit_groups(sample, groups)
            return lambda logits: lender._map_groups(maps, log_odds(logits), groups)
        fitted = lender.unfitted()
        fitted.fit_sample(sample)
        return fitted._map

    def _fit_bins(self, data: BinData) -> FitReport:
        found = self._find_edges(data)
        sums = found.sums if found.sums is not None and self.representatives == "frequency" else data.sums(found.edges)
        self.edges_ = found.edges
        self.counts_ = sums[:, 0]
        self.representatives_ = self._answers(sums, found.edges)
        before, after = table_losses(data.raw_loss, sums[:, 0], sums[:, 1], self.representatives_)
        return FitReport(found.iterations, found.converged, "nll", before, after, details=found.details)

    def _find_edges(self, data: BinData) -> _Found:
        if not isinstance(self.edges, str):
            return _Found(_inner(given(self.edges)))
        if self.edges == "equal_width":
            return _Found(_inner(equal_width(self.bins)))
        if self.edges == "equal_mass":
            cells = data.cells
            mass = np.cumsum(cells.weights)
            return _at(cells, mass_bounds(np.append(0.0, mass[:-1]), mass[-1], self.bins))
        if self.edges == "kmeans":
            cells = data.cells
            few = cells.thinned(_KMEANS_CELLS)
            return _at(cells, cells.bounds(_inner(kmeans(expit(few.scores), self.bins, few.weights))))
        (start,) = self._imax([data.few_cells]) if data.start is None else [data.start]
        return self._informed_edges(data.few_cells, start)

    def _prepared(self, batch: Sequence[BinData]) -> Iterator[BinData]:
        if not isinstance(self.edges, str) or self.edges not in ("imax", "mi"):
            yield from batch
            return
        for begin in range(0, len(batch), _TOGETHER):
            some = batch[begin : begin + _TOGETHER]
            for data, start in zip(some, self._imax([data.few_cells for data in some]), strict=True):
                data.start = start
                yield data

    def _imax(self, groups: list[FineCells]) -> list[IMax]:
        return imax_of_groups(groups, self.bins, affine=self.affine, seed=self.random_state)

    def _informed_edges(self, cells: FineCells, start: IMax) -> _Found:
        bounds = start.bounds
        details: dict[str, Any] = {"loss": start.losses[-1], "slope": start.slope, "offset": start.offset}
        if self.edges == "mi":
            bounds, details = optimal_partition(cells, self.bins, start.bounds), {}
        details["information"] = partition_information(cells, bounds)
        return replace(_at(cells, bounds), iterations=len(start.losses), converged=start.converged, details=details)

    def _answers(self, sums: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.float64]:
        weights, positives, scores, values = sums.T
        filled = weights > 0
        answers = _middles(edges)
        if isinstance(self.representatives, Calibrator):
            answers[filled] = values[filled] / weights[filled]
        elif self.representatives == "mean_score":
            answers[filled] = scores[filled] / weights[filled]
        else:
            answers[filled] = self._frequencies(weights[filled], positives[filled])
        return np.clip(answers, 0.0, 1.0)

    def _frequencies(self, weights: NDArray[np.float64], positives: NDArray[np.float64]) -> NDArray[np.float64]:
        s = self.smoothing
        counts = weights + s
        prior = (positives.sum() + s / 2) / (weights.sum() + s)  # never 0: a class may be missing from the rows
        answers = (positives + s * prior) / counts
        return isotonic_regression(answers, sample_weight=counts) if self.monotone and s > 0 else answers


@dataclass(frozen=True, eq=False)
class _Found:
    """Edges, how they were found and, where they lie between cells, the weight and the positives of their bins."""

    edges: NDArray[np.float64]
    sums: NDArray[np.float64] | None = None
    iterations: int = 0
    converged: bool = True
    details: dict[str, Any] = field(default_factory=dict)


def _at(cells: FineCells, bounds: NDArray[np.int64]) -> _Found:
    """Bins that begin at these cells."""
    merged = cells.merged(bounds)
    nothing = np.zeros(merged.count)
    return _Found(merged.cuts, np.stack([merged.weights, merged.outcomes, nothing, nothing], axis=1))


def _inner(edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Inner edges in probability as log-odds."""
    return logit(edges[1:-1])


def _middles(edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """The middle of each bin in probability: what a bin without rows answers."""
    stops = np.concatenate([[0.0], expit(edges), [1.0]])
    return 0.5 * (stops[1:] + stops[:-1])


def table_losses(
    raw: float, weights: NDArray[np.float64], positives: NDArray[np.float64], answers: NDArray[np.float64]
) -> tuple[float, float]:
    """Return the mean log-loss of the pairs before (``raw`` is its sum), and with the answers of their bins."""
    mapped = -(xlogy(positives, answers) + xlogy(weights - positives, 1 - answers)).sum()
    return float(raw / weights.sum()), float(mapped / weights.sum())
