"""Where structured scaling begins: a temperature or an ensemble temperature that no label can surprise without end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import root_scalar

from ... import _core
from ...arrays import inner, tempered_softmax
from ...calibrator import Calibrator
from ...fits.report import FitReport
from ...passes import Block, reduce
from ...threads import get_threads
from ...traits import Traits
from ...validation import floored
from ...validation.saturation import ZERO_LOG
from .ensemble import EnsembleTemperatureScaling
from .temperature import TemperatureScaling, temperature_sums

__all__ = ["FlooredTemperature", "with_least"]

_NODES = 32  # shares of the uniform distribution that are weighed
_PRECISION = 2.0  # of log T: a temperature is off by a factor of two, e^(1/√2)
_NEAR, _CLOSE = 0.03, 1e-3  # a step in log T that Newton may take alone, and one that changes nothing


class FlooredTemperature(Calibrator):
    """p₀ = w₁ softmax(z / T) + w₂ softmax(z) + w₃ / K with w₃ ≥ ε.

    The ensemble temperature where its two more parameters pay for themselves (BIC), else one temperature (w₂ = 0), with
    a prior: it is off by a factor of two (log T has the precision 2). Rows that the scores tell apart without an error
    say only that T is not large.

    What n rows cannot tell from zero stays off zero: ε is the share of labels that the scores all but exclude, the mean
    of its posterior under the prior of Jeffreys, ε^(-1/2), but at most 1 / (n + 1). Without such a label it is about
    1 / (2 n): where scores are good, a row's worth would be much of the loss.

    Scores further below the top of their row than a float32 softmax can tell from zero count as that far below, where
    that is the better description: a few enormous gaps say nothing about the others.

    Attributes
    ----------
    temperature_ : float
    weights_ : array of shape (3,)
    least_ : float
        ε.
    lowest_ : float
        Least score relative to the top of its row: log of the smallest float32, or -inf.
    """

    _identifier = "floored-temperature"
    _traits = Traits("scaling", "ranking", "top label", "3")
    temperature_: float
    weights_: NDArray[np.float64]
    least_: float
    lowest_: float

    def _fit_rows(self, sample: Block) -> FitReport:
        found, self.lowest_ = _mixture_of(sample), -np.inf
        before = found.told.loss_before
        if (sample.logits.min(axis=1) < sample.logits.max(axis=1) + ZERO_LOG).any():
            raised = _mixture_of(sample.with_logits(_raised(sample.logits, ZERO_LOG)))
            if raised.loss < found.loss:
                found, self.lowest_ = raised, ZERO_LOG
        self.temperature_, self.weights_, self.least_ = found.temperature, found.weights, found.least
        return FitReport(
            found.told.iterations,
            found.told.converged or bool(found.told.at_bound),
            "nll",
            before,
            found.loss / sample.total_weight,
            details={"effective_parameters": found.parameters},
        )

    def _map(self, logits: NDArray[np.floating]) -> NDArray[np.floating]:
        first, second, third = self.weights_.tolist()
        logits = floored(logits)  # as in fit: T is made for the floor
        if self.lowest_ > -np.inf:
            logits = _raised(logits, self.lowest_)
        return tempered_softmax(logits, 1.0 / self.temperature_, (first, second, third))


def with_least(p: NDArray[np.floating], least: float) -> NDArray[np.floating]:
    """Return log-probabilities of what has at least such a share of the uniform distribution; overwrites ``p``."""
    p *= 1.0 - least
    p += least / p.shape[1]
    return np.log(p, out=p)


class _Mixture(NamedTuple):
    """A mixture, its summed log-loss, the number of its parameters, and the report of the map it comes from."""

    temperature: float
    weights: NDArray[np.float64]
    least: float
    loss: float
    parameters: float
    told: FitReport


def _mixture_of(sample: Block) -> _Mixture:
    """Return the temperature with its prior, or the ensemble temperature where that pays."""
    single, ensemble = TemperatureScaling(), EnsembleTemperatureScaling()
    reports = [single.fit_sample(sample), ensemble.fit_sample(sample)]
    least = _least(sample, single.temperature_)
    alone, mixed = _at_least(np.array([1.0, 0.0, 0.0]), least), _at_least(ensemble.weights_, least)
    loss = _loss(sample, ensemble.temperature_, mixed)
    if _loss(sample, single.temperature_, alone) - loss > np.log(sample.total_weight + 1.0):
        return _Mixture(ensemble.temperature_, mixed, least, loss, 3.0, reports[1])
    temperature = 1.0 / _believed(sample, 1.0 / single.temperature_)
    return _Mixture(temperature, alone, least, _loss(sample, temperature, alone), 1.0, reports[0])


def _raised(logits: NDArray[np.floating], lowest: float) -> NDArray[np.floating]:
    """Return logits that are at least ``lowest`` more than the largest of their row."""
    return np.maximum(logits, logits.max(axis=1, keepdims=True) + logits.dtype.type(lowest))


def _at_least(weights: NDArray[np.float64], uniform: float) -> NDArray[np.float64]:
    """Return mixture weights with at least so much of the uniform distribution."""
    if weights[2] >= uniform:
        return weights
    rest = weights[:2] * (1.0 - uniform) / max(weights[:2].sum(), 1e-300)
    return np.append(rest, uniform)


def _loss(sample: Block, temperature: float, weights: NDArray[np.float64]) -> float:
    """Return the summed log-loss of w₁ softmax(z / T) + w₂ softmax(z) + w₃ / K."""

    def one_pass(rows: Block) -> float:
        scaled, plain = (_of_labels(rows, beta) for beta in (1.0 / temperature, 1.0))
        p = weights[0] * scaled + weights[1] * plain + weights[2] / rows.n_classes
        return float(-rows.weight_array @ np.log(p))

    return reduce(one_pass, sample)


def _of_labels(rows: Block, beta: float) -> NDArray[np.float64]:
    """Return softmax(β z) of each row's label."""
    return _core.temperature_rows(rows.logits, rows.labels, beta, get_threads())[:, 0]


def _least(sample: Block, temperature: float) -> float:
    """Return ε for the scores at a temperature."""
    row = 1.0 / (sample.total_weight + 1.0)
    shares = np.geomspace(row**2, 1.0, _NODES)

    def one_pass(rows: Block) -> NDArray[np.float64]:
        p, uniform = _of_labels(rows, 1.0 / temperature), 1.0 / rows.n_classes
        return np.array([-inner(rows.weight_array, np.log(p + share * (uniform - p))) for share in shares])

    losses = reduce(one_pass, sample)
    likely = np.exp(losses.min() - losses) * np.sqrt(shares)  # ε^(-1/2) dε on a grid of equal steps in log ε
    return min(float(likely @ shares / likely.sum()), row)


def _believed(sample: Block, beta: float) -> float:
    """Return the β of maximal posterior, which lies between 1 and that of maximal likelihood, which is given."""
    at = float(np.log(beta))
    _, first, second = temperature_sums(sample, np.array([beta]))[0]
    step = -_PRECISION * at / (max(beta * first + beta**2 * second, 0.0) + _PRECISION)
    if abs(step) < _NEAR:
        return float(np.exp(at + step))

    def slope(x: float) -> float:
        b = float(np.exp(x))
        return b * float(temperature_sums(sample, np.array([b]))[0, 1]) + _PRECISION * x

    if slope(0.0) * at >= 0.0:
        return 1.0
    return float(np.exp(root_scalar(slope, bracket=(0.0, at), xtol=_CLOSE).root))
