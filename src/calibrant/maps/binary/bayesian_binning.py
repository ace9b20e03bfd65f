"""Bayesian binning into quantiles: many equal-mass binnings, averaged by how well each explains the outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, expit, softmax

from ...fit_report import FitReport
from ...metrics.edges import equal_mass
from ...metrics.fine_cells import FineCells
from ...parameters import Integer, Number
from ...traits import Traits
from .bin_data import BinData
from .binning import table_losses
from .table import TableMap

__all__ = ["BayesianBinning"]

_SPREAD = 10.0  # binnings have n^(1/3) / 10 to 10 n^(1/3) bins
_LEAST_ROWS = 5  # rows a bin should have on average
_NEGLIGIBLE = 1e-4  # models of less weight are left out of the table


class BayesianBinning(TableMap):
    """BBQ (Naeini et al. 2015): an average of equal-mass binnings, weighted by their marginal likelihood.

    A model has B bins of equal mass. The frequency of bin b has the prior Beta(α_b, β_b), α_b = N'/B · p_b and
    β_b = N'/B · (1 - p_b), p_b being the middle of the bin in probability. The model's weight is the
    marginal likelihood Π_b B(m_b + α_b, n_b - m_b + β_b) / B(α_b, β_b) of m_b positives among n_b, its answer the
    posterior mean (m_b + α_b) / (n_b + N'/B). The average of step functions is one step function: a table.

    Parameters
    ----------
    strength : float
        N', the equivalent sample size of a model's prior.
    models : int
        At most so many numbers of bins are tried, geometrically spaced from n^(1/3)/10 to 10 n^(1/3), and no more than
        a fifth of the rows. The paper tries every one; the average hardly changes.
    inputs, classes
        See `Calibrator`.

    Attributes
    ----------
    edges_ : array
        Inner edges of all models together, in log-odds.
    representatives_ : array
    bins_ : int array
        Numbers of bins of the models.
    weights_ : array
        Their posterior weights.
    """

    _traits = Traits("binary", "nothing", "each class", "bins")
    _constraints: ClassVar[Mapping[str, Any]] = {"strength": Number(0.0, open_low=True), "models": Integer(1)}
    bins_: NDArray[np.int64]
    weights_: NDArray[np.float64]

    def __init__(self, strength: float = 2.0, models: int = 32, *, inputs: str = "logits", classes: Any = None) -> None:
        self.strength = strength
        self.models = models
        self.inputs = inputs
        self.classes = classes

    def _fit_bins(self, data: BinData) -> FitReport:
        cells = data.cells
        models = [_fit_model(cells, int(b), self.strength) for b in _numbers(cells.weights.sum(), self.models)]
        self.bins_ = np.array([len(m.answers) for m in models])
        self.weights_ = softmax([m.evidence for m in models])
        kept = np.flatnonzero(self.weights_ >= min(_NEGLIGIBLE, self.weights_.max()))
        bounds = np.unique(np.concatenate([models[i].bounds for i in kept]))
        starts = np.concatenate([[0], bounds])
        answers = np.zeros(len(starts))
        for i in kept:
            place = np.searchsorted(models[i].bounds, starts, side="right")
            answers += self.weights_[i] * models[i].answers[place]
        self.edges_ = cells.cuts[bounds - 1]
        self.representatives_ = answers / self.weights_[kept].sum()
        merged = cells.merged(bounds)
        before, after = table_losses(cells, merged.weights, merged.outcomes, self.representatives_)
        return FitReport(0, True, "nll", before, after, details={"models": len(models)})


@dataclass(frozen=True, eq=False)
class _Model:
    bounds: NDArray[np.int64]
    answers: NDArray[np.float64]
    evidence: float


def _numbers(total: float, most: int) -> NDArray[np.int64]:
    """Numbers of bins to try for so much weight."""
    root = np.cbrt(total)
    high = max(1.0, min(_SPREAD * root, total / _LEAST_ROWS))
    low = min(max(1.0, root / _SPREAD), high)
    return np.unique(np.round(np.geomspace(low, high, most)).astype(np.int64))


def _fit_model(cells: FineCells, bins: int, strength: float) -> _Model:
    bounds = cells.bounds(equal_mass(cells.scores, bins, cells.weights)[1:-1])
    merged = cells.merged(bounds)
    stops = np.concatenate([[0.0], expit(merged.cuts), [1.0]])
    middle = np.clip(0.5 * (stops[1:] + stops[:-1]), 1e-12, 1 - 1e-12)
    share = strength / merged.count
    alpha, beta = share * middle, share * (1 - middle)
    negatives = np.maximum(merged.weights - merged.outcomes, 0.0)
    evidence = (betaln(merged.outcomes + alpha, negatives + beta) - betaln(alpha, beta)).sum()
    return _Model(bounds, (merged.outcomes + alpha) / (merged.weights + share), float(evidence))
