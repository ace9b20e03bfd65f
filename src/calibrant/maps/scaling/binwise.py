"""Bin-wise temperature scaling: one temperature for each range of the top confidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from ...arrays import keep_top, row_blocks, softmax
from ...calibrator import Calibrator
from ...fits.report import FitReport
from ...parameters import Integer
from ...passes import Block, in_memory
from ...traits import Traits
from .temperature import best_temperature, temperature_sums

__all__ = ["BinwiseTemperatureScaling", "top_log_odds"]

_LEAST_WEIGHT = 20.0  # rows a bin must hold on average, or there are fewer bins
_LARGEST_STEP = 1.0  # in log T, for one Newton step
_WIDEST = 9.0  # the prior's variance of log T between bins is searched up to this
_BLOCK_SCORES = 100_000  # stays in the cache


class BinwiseTemperatureScaling(Calibrator):
    """p = softmax(z / T_b), with b the bin of the row's top confidence (Ji et al. 2019).

    Rows are sorted by the log-odds of their top class (the top probability on a scale that does not saturate) and cut
    into bins of equal weight; equal values stay together. Each bin's temperature minimises the log-loss of its rows
    plus (log T_b - log T)² / 2τ², with T the temperature of all rows: a bin of few rows, or one that says little,
    stays near T. The spread τ between bins is not tuned but estimated: it maximises the Laplace approximation of the
    marginal likelihood of the bins' temperatures, and τ = 0 (plain temperature scaling) where the bins agree within
    noise. Every Newton step on all bins is one pass.

    The ranking of every row is kept. Across rows the map is a step function of the confidence: two rows on either
    side of an edge get different temperatures, so of two rows the one with the higher raw confidence may end lower.

    Parameters
    ----------
    bins : int
        The most bins used; there are fewer where a bin would hold less than 20 rows, or the confidences tie.
    inputs, classes, saturated
        See `Calibrator`.

    Attributes
    ----------
    temperatures_ : array of shape (bins,)
    edges_ : array of shape (bins - 1,)
        Log-odds of the top class between the bins; a row on an edge belongs above it.
    spread_ : float
        τ, the estimated spread of log T between bins.
    """

    _identifier = "binwise-temperature-scaling"
    _traits = Traits("scaling", "ranking", "top label", "bins")
    _constraints: ClassVar[Mapping[str, Any]] = {"bins": Integer(1)}
    temperatures_: NDArray[np.float64]
    edges_: NDArray[np.float64]
    spread_: float

    def __init__(
        self, bins: int = 15, *, inputs: str = "logits", classes: Any = None, saturated: str = "small"
    ) -> None:
        self.bins = bins
        self.inputs = inputs
        self.classes = classes
        self.saturated = saturated

    def _fit_rows(self, sample: Block) -> FitReport:
        shared = best_temperature(in_memory(sample))
        position = top_log_odds(sample.logits)
        self.edges_ = equal_weight_edges(position, sample.weight_array, self.bins)
        bins = _split(sample, np.searchsorted(self.edges_, position, side="right"), len(self.edges_) + 1)
        found = _fit_bins(bins, np.log(shared.beta))
        self.temperatures_ = np.exp(-found.log_betas)
        self.spread_ = found.spread
        report = shared.report("nll")
        return FitReport(
            report.iterations + found.passes,
            report.converged and found.converged,
            "nll",
            report.loss_before,
            found.loss / sample.total_weight,
            at_bound=report.at_bound,
            messages=report.messages,
            details={"temperature": 1.0 / shared.beta, "spread": found.spread},
        )

    def _map(self, logits: NDArray[np.floating]) -> NDArray[np.floating]:
        bins = np.searchsorted(self.edges_, top_log_odds(logits), side="right")
        beta = (1.0 / self.temperatures_)[bins].astype(logits.dtype)
        answer = softmax((logits - logits.max(axis=1, keepdims=True)) * beta[:, None])
        return keep_top(answer, logits)


def top_log_odds(logits: NDArray[np.floating], beta: float = 1.0) -> NDArray[np.float64]:
    """Return log p/(1-p) of the largest p of softmax(β z), from the logits, so that p = 1 has its own size too."""
    out = np.empty(len(logits))
    for block in row_blocks(*logits.shape, most=_BLOCK_SCORES):
        z = logits[block].astype(np.float64) * beta
        top = z.argmax(axis=1)
        rows = np.arange(len(z))
        largest = z[rows, top]
        z[rows, top] = -np.inf
        second = z.max(axis=1, keepdims=True)
        reference = np.where(np.isneginf(second), 0.0, second)
        with np.errstate(divide="ignore"):
            rest = reference[:, 0] + np.log(np.exp(z - reference).sum(axis=1))
        out[block] = largest - rest
    return out


def equal_weight_edges(position: NDArray[np.float64], weights: NDArray[np.float64], bins: int) -> NDArray[np.float64]:
    """Return edges halfway between neighbours that cut the positions into bins of about equal weight.

    A weight of two counts as the row twice and zero as none at all; equal positions are never parted.
    """
    present = weights > 0
    values, inverse = np.unique(position[present], return_inverse=True)
    mass = np.bincount(inverse, weights=weights[present])
    count = int(min(bins, max(1.0, mass.sum() // _LEAST_WEIGHT)))
    below = np.cumsum(mass)[:-1] / mass.sum()
    cuts = np.unique(np.searchsorted(below, np.arange(1, count) / count - 1e-12))
    cuts = cuts[cuts < len(below)]
    return 0.5 * (values[cuts] + values[cuts + 1])


def _split(sample: Block, bins: NDArray[np.int64], count: int) -> list[Block]:
    order = np.argsort(bins, kind="stable")
    ends = np.cumsum(np.bincount(bins, minlength=count))
    return [sample.take(rows) for rows in np.split(order, ends[:-1])]


@dataclass(frozen=True)
class _Bins:
    log_betas: NDArray[np.float64]
    spread: float
    loss: float
    passes: int
    converged: bool


def _fit_bins(bins: list[Block], centre: float, most: int = 100) -> _Bins:
    """Newton on every bin's log β at once, under a Gaussian prior around ``centre`` whose variance is re-estimated.

    At each point the log-loss of a bin is replaced by the parabola of its gradient and (Fisher) curvature in log β.
    """
    away, variance, loss = np.zeros(len(bins)), 0.0, 0.0
    for passes in range(1, most + 1):
        beta = np.exp(centre + away)
        sums = np.array([temperature_sums(s, np.array([b]))[0] for s, b in zip(bins, beta, strict=True)])
        loss, slope, curvature = sums[:, 0].sum(), sums[:, 1] * beta, sums[:, 2] * beta**2
        informed = curvature > 0
        free = away - np.divide(slope, curvature, out=np.zeros(len(bins)), where=informed)
        free = np.clip(free, away - _LARGEST_STEP, away + _LARGEST_STEP)
        if len(bins) == 1:
            return _Bins(away + centre, 0.0, float(loss), passes, True)
        variance = _between_variance(free[informed], curvature[informed])
        target = np.where(informed, free * variance * curvature / (1.0 + variance * curvature), 0.0)
        if np.abs(target - away).max() < 1e-7:
            return _Bins(away + centre, float(np.sqrt(variance)), float(loss), passes, True)
        away = target if passes < most // 2 else 0.5 * (away + target)
    return _Bins(away + centre, float(np.sqrt(variance)), float(loss), most, False)


def _between_variance(free: NDArray[np.float64], curvature: NDArray[np.float64]) -> float:
    """Return the variance v that maximises the likelihood of estimates ``free`` ~ N(0, v + 1/curvature)."""
    if not len(free):
        return 0.0

    def loss(root: float) -> float:
        total = root**2 + 1.0 / curvature
        return float(np.sum(np.log(total) + free**2 / total))

    found: Any = minimize_scalar(loss, bounds=(0.0, np.sqrt(_WIDEST)), method="bounded", options={"xatol": 1e-10})
    root = float(found.x)
    return root**2 if loss(root) < loss(0.0) else 0.0
