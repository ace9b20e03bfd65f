"""Ensemble temperature scaling: a temperature, the identity and the uniform, mixed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from ...arrays import softmax, tempered_softmax
from ...calibrator import Calibrator
from ...declared import attribute, declared, parameter
from ...fits.judge import estimate
from ...fits.mixing import ENSEMBLE, Mixing
from ...fits.mixture_search import MANY, best_mixture
from ...fits.report import FitReport
from ...formulas import Term
from ...formulas import softmax as softmax_formula
from ...invariants import TEMPERATURE, Values
from ...parameters import OneOf
from ...passes import Data, together
from ...traits import Traits
from ...types import Array, Floats
from .temperature import BestTemperature, best_temperature

_ROUNDING = 1e-7  # of a loss: sums from single precision are known no better, and one number is better than three
_PILOT_ROWS = 4000  # they tell the temperature alone to about a per cent: the mixture needs no more to begin with


@declared
class EnsembleTemperatureScaling(Calibrator):
    """p = w₁ softmax(z / T) + w₂ softmax(z) + w₃ / K, T > 0 and w on the simplex (Mix-n-Match, §3.2.2, Eq. 5).

    T and w are fitted jointly, as ``Mixture([TemperatureScaling(), Identity(), Uniform()], weights="joint")`` does. The
    optimal temperature of plain temperature scaling is always among the candidates, so the loss on the calibration set
    is never above its loss.

    Parameters
    ----------
    loss : {"nll", "brier"}
    inputs, classes, saturated
        See `Calibrator`.

    Attributes
    ----------
    temperature_ : float
    weights_ : array of shape (3,)
        Weights of the scaled scores, of the scores as they came, and of the uniform distribution.
    """

    _identifier = "ensemble-temperature-scaling"
    _traits = Traits("scaling", "ranking", "top label", "4")
    loss: str = parameter(OneOf("nll", "brier"), default="nll")
    temperature_: float = attribute(TEMPERATURE)
    weights_: Array = attribute(Values(3, low=0, total=1))

    def _fit(self, data: Data) -> FitReport:
        best = best_ensemble(data, self.loss)
        self.temperature_, self.weights_ = 1.0 / best.beta, best.weights
        report = best.report(self.loss)
        if self.loss != "nll":
            return report
        return estimate(report, data, softmax, self._map, best.parameters)

    def _count_parameters(self) -> float:
        return 3.0  # T and two of the weights, which sum to one

    def _map(self, logits: Floats) -> Floats:
        w = self.weights_
        return tempered_softmax(logits, 1.0 / self.temperature_, (float(w[0]), float(w[1]), float(w[2])))

    def _formula(self, z: Term) -> Term:
        return ensemble_formula(z, self.temperature_, self.weights_)


def ensemble_formula(z: Term, temperature: float, weights: Array) -> Term:
    """Return w₁ softmax(z / T) + w₂ softmax(z) + w₃ / K."""
    scaled, raw, uniform = weights.tolist()
    return softmax_formula(z, 1.0 / temperature) * scaled + z.softmax() * raw + uniform / z.width


@dataclass(frozen=True, eq=False)
class BestEnsemble:
    """The best β and weights, their mean loss, the passes, whether they are an optimum, and the best β alone."""

    beta: float
    weights: Array
    after: float
    passes: int
    converged: bool
    alone: BestTemperature

    @property
    def parameters(self) -> float:
        """How many numbers the rows determine: weights at zero are held there, and T counts where it has a weight."""
        return float(np.count_nonzero(self.weights) - 1 + (self.weights[0] > 0))

    def report(self, loss: str) -> FitReport:
        """Return what is to be said of the fit; nothing on rows that were held out."""
        alone = {"temperature_alone": 1.0 / self.alone.beta, "loss_of_temperature_alone": self.alone.after}
        return FitReport(self.passes, self.converged, loss, self.alone.before, self.after, details=alone)


def best_ensemble(data: Data, loss: str) -> BestEnsemble:
    """Find the best temperature and weights of w₁ softmax(z / T) + w₂ softmax(z) + w₃ / K."""
    mixing = Mixing(ENSEMBLE, loss)
    if data.in_memory and data.n <= MANY:
        alone = best_temperature(data, loss)
        found = best_mixture(data, mixing, alone.beta, alone.bounds)
    else:  # side by side, the mixture from what the pilot says of the temperature alone
        near = best_temperature(data.surveyed(_PILOT_ROWS), loss)
        alone, found = together(
            data,
            [
                partial(best_temperature, loss=loss),
                partial(best_mixture, mixing=mixing, alone=near.beta, bounds=near.bounds),
            ],
        )
    passes = alone.passes + found.passes
    if found.value < alone.after - _ROUNDING * abs(alone.after):
        beta = float(np.exp(found.beside[0]))
        return BestEnsemble(beta, found.weights, found.value, passes, found.converged, alone)
    return BestEnsemble(alone.beta, np.array([1.0, 0.0, 0.0]), alone.after, passes, alone.converged, alone)
