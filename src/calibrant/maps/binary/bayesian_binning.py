"""Bayesian binning into quantiles: many equal-mass binnings, averaged by how well each explains the outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaln, expit, softmax

from ...cells.fine import FineCells
from ...declared import attribute, declared, parameter
from ...fits.report import FitReport
from ...invariants import Values
from ...parameters import SCALE, count_from
from ...traits import Traits
from ...types import Array, Integers
from .base import Learnt
from .table import TableMap, table_losses

_SPREAD = 10.0  # binnings have n^(1/3) / 10 to 10 n^(1/3) bins
_LEAST_ROWS = 5  # rows a bin should have on average
_MOST_BINS = 1000  # or as many as there are cells: weights of any size ask for no more
_COUNTED = 2.0**62  # products of whole weights and ranks below this are exact in integers
_NEGLIGIBLE = 1e-4  # models of less weight are left out of the table


@declared
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
    inputs, classes, saturated
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

    _identifier = "bayesian-binning"
    _traits = Traits("binary", "nothing", "each class", "bins", sees="cells")
    strength: float = parameter(SCALE, default=2.0)
    models: int = parameter(count_from(1), default=32)
    bins_: Integers = attribute(Values("models", kind="i", low=1))
    weights_: Array = attribute(Values("models", low=0, high=1))

    def _learnt_from(self, cells: FineCells, dtype: Any) -> Learnt:
        models = _fit_models(cells, _numbers(cells, self.models), self.strength)
        weights = softmax([m.evidence for m in models])
        kept = np.flatnonzero(weights >= min(_NEGLIGIBLE, weights.max()))
        bounds = np.unique(np.concatenate([models[i].starts for i in kept]))[1:]
        starts = np.concatenate([[0], bounds])
        answers = np.zeros(len(starts))
        for i in kept:
            place = np.searchsorted(models[i].starts, starts, side="right") - 1
            answers += weights[i] * models[i].answers[place]
        answers = np.minimum(answers / weights[kept].sum(), 1.0)  # with huge weights a mean of ones is a bit above
        merged = cells.merged(bounds)
        losses = table_losses(cells.raw_loss, merged.weights, merged.outcomes, answers)
        state = {
            "edges_": cells.cuts[bounds - 1],
            "representatives_": answers,
            "bins_": np.array([len(m.answers) for m in models]),
            "weights_": weights,
        }
        return Learnt(state, FitReport(0, True, "nll", *losses, details={"models": len(models)}))


@dataclass(frozen=True, eq=False)
class _Model:
    """A binning: the first cell of each bin, what each answers, and the logarithm of its marginal likelihood."""

    starts: Integers
    answers: Array
    evidence: float


def _numbers(cells: FineCells, most: int) -> Integers:
    """Numbers of bins to try for the weight of these cells.

    More than there are cells are needed where cells are unequal: two bins keep .0 and .1 together if more than half of
    the rows have .1.
    """
    total = cells.weights.sum()
    root = np.cbrt(total)
    high = max(1.0, min(_SPREAD * root, total / _LEAST_ROWS, max(cells.count, _MOST_BINS)))
    low = min(max(1.0, root / _SPREAD), high)
    return np.unique(np.round(np.geomspace(low, high, most)).astype(np.int64))


def _fit_models(cells: FineCells, numbers: Integers, strength: float) -> list[_Model]:
    """Fit binnings of all numbers of bins together: their bins lie one after the other in one array.

    Numbers of bins that divide the cells alike are one model.
    """
    starts, owners = _starts(cells, numbers)
    last = np.append(owners[1:] != owners[:-1], True)
    stops = np.where(last, cells.count, np.roll(starts, -1))
    mass, positive = (np.append(0.0, np.cumsum(part)) for part in (cells.weights, cells.outcomes))
    weights, positives = mass[stops] - mass[starts], positive[stops] - positive[starts]
    cuts = np.concatenate([[0.0], expit(cells.cuts), [1.0]])
    middle = np.clip(0.5 * (cuts[starts] + cuts[stops]), 1e-12, 1 - 1e-12)
    share = (strength / np.bincount(owners))[owners]
    alpha, beta = share * middle, share * (1 - middle)
    negatives = np.maximum(weights - positives, 0.0)
    terms = betaln(positives + alpha, negatives + beta) - betaln(alpha, beta)
    evidence, answers = np.bincount(owners, terms), (positives + alpha) / (weights + share)
    ends = (np.flatnonzero(last) + 1).tolist()
    found = zip([0, *ends[:-1]], ends, evidence.tolist(), strict=True)
    models = [_Model(starts[a:b], answers[a:b], value) for a, b, value in found]
    return list({model.starts.tobytes(): model for model in models}.values())


def _starts(cells: FineCells, numbers: Integers) -> tuple[Integers, Integers]:
    """First cells of the bins of equal mass, for each number of bins, and the number each belongs to.

    A cell lies in bin ⌊C·b/n⌋ of b, C being the weight below it (`cells.edges.equal_mass`).
    """
    owners = np.repeat(np.arange(len(numbers)), numbers)
    rank = np.arange(len(owners)) - np.repeat(np.cumsum(numbers) - numbers, numbers)
    steps = np.cumsum(cells.weights)
    below, total = np.append(0.0, steps[:-1]), steps[-1]
    floor = rank * total / numbers[owners]
    if total * numbers[-1] < _COUNTED and (steps == np.floor(steps)).all():
        floor = -(-rank * int(total) // numbers[owners])
    starts = np.searchsorted(below, floor, side="left")
    kept = starts < cells.count
    kept[1:] &= (starts[1:] != starts[:-1]) | (owners[1:] != owners[:-1])
    return starts[kept], owners[kept]
