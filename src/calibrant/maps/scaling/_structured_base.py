"""Where structured scaling begins: a temperature or an ensemble temperature that no label can surprise without end."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ... import _core
from ...arrays import tempered_softmax
from ...calibrator import Calibrator
from ...fit_report import FitReport
from ...passes import Sample, reduce
from ...threads import get_threads
from ...traits import Traits
from .ensemble import EnsembleTemperatureScaling
from .temperature import TemperatureScaling

__all__ = ["FlooredTemperature", "with_least"]


class FlooredTemperature(Calibrator):
    """p₀ = w₁ softmax(z / T) + w₂ softmax(z) + w₃ / K with w₃ ≥ 1 / (n + 1).

    The ensemble temperature where its two more parameters pay for themselves (BIC), else one temperature (w₂ = 0). What
    n rows cannot tell from zero stays off zero.

    Attributes
    ----------
    temperature_ : float
    weights_ : array of shape (3,)
    least_ : float
        1 / (n + 1).
    """

    _traits = Traits("scaling", "ranking", "top label", "3")
    temperature_: float
    weights_: NDArray[np.float64]
    least_: float

    def _fit(self, sample: Sample) -> FitReport:
        self.least_ = 1.0 / (sample.total_weight + 1.0)
        single, ensemble = TemperatureScaling(), EnsembleTemperatureScaling()
        reports = [single.fit_sample(sample), ensemble.fit_sample(sample)]
        temperatures = [single.temperature_, ensemble.temperature_]
        mixtures = [_at_least(np.array([1.0, 0.0, 0.0]), self.least_), _at_least(ensemble.weights_, self.least_)]
        losses = [_loss(sample, t, w) for t, w in zip(temperatures, mixtures, strict=True)]
        better = int(losses[0] - losses[1] > np.log(sample.total_weight + 1.0))
        self.temperature_, self.weights_ = temperatures[better], mixtures[better]
        told = reports[better]
        return FitReport(
            told.iterations,
            told.converged,
            "nll",
            told.loss_before,
            losses[better] / sample.total_weight,
            at_bound=told.at_bound,
            messages=told.messages,
        )

    def _map(self, logits: NDArray[np.floating]) -> NDArray[np.floating]:
        first, second, third = self.weights_.tolist()
        return tempered_softmax(logits, 1.0 / self.temperature_, (first, second, third))


def with_least(p: NDArray[np.floating], least: float) -> NDArray[np.floating]:
    """Return log-probabilities of what has at least such a share of the uniform distribution; overwrites ``p``."""
    p *= 1.0 - least
    p += least / p.shape[1]
    return np.log(p, out=p)


def _at_least(weights: NDArray[np.float64], uniform: float) -> NDArray[np.float64]:
    """Return mixture weights with at least so much of the uniform distribution."""
    if weights[2] >= uniform:
        return weights
    rest = weights[:2] * (1.0 - uniform) / max(weights[:2].sum(), 1e-300)
    return np.append(rest, uniform)


def _loss(sample: Sample, temperature: float, weights: NDArray[np.float64]) -> float:
    """Return the summed log-loss of w₁ softmax(z / T) + w₂ softmax(z) + w₃ / K."""

    def one_pass(rows: Sample) -> float:
        scaled, plain = (
            _core.temperature_rows(rows.logits, rows.labels, beta, get_threads())[:, 0]
            for beta in (1.0 / temperature, 1.0)
        )
        p = weights[0] * scaled + weights[1] * plain + weights[2] / rows.n_classes
        return float(-rows.weight_array @ np.log(p))

    return reduce(one_pass, sample)
