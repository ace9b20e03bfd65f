"""What vector, matrix and Dirichlet scaling share: a penalised linear map around temperature scaling."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ...arrays import softmax
from ...declared import attribute, declared
from ...fits.evidence import Fitted, fit_by_evidence, fit_with, only_start
from ...fits.judge import estimate
from ...fits.path import Choice, choose, with_choice
from ...fits.priors import Prior, structured
from ...fits.problem import Point
from ...fits.report import FitReport
from ...invariants import TEMPERATURE, Values
from ...parameters import AMOUNT, AnyOf, Number, OneOf
from ...passes import Data
from ...types import Array
from ._frame import Frame
from ._linear_stack import LinearMap
from ._problem import LinearProblem, small_products
from .temperature import best_temperature

STRENGTH = AnyOf(OneOf("evidence", "cv"), AMOUNT)
_PARTS = 3  # slopes, weights between classes, intercepts


@declared
class LinearScaling(LinearMap):
    """p = softmax(u + D x + b) with u = log softmax(z / T): D = 0 and b = 0 is temperature scaling.

    T is fitted first. Then (D, b) minimise the summed log-loss + ½ Σ s · θ², a Gaussian prior of precision s on each
    parameter around temperature scaling; as u has no unit, s means the same for any scale of the logits. The features
    x are u, floored at -log(K (n + 1)): smaller probabilities cannot be told from zero by n rows. For a full
    D the prior on an intercept is by default on what its class gets at an average row, b + D x̄ of it.
    """

    _full: ClassVar[bool]
    _centred: ClassVar[bool]
    strength = "evidence"
    intercepts = "average"
    temperature_: float = attribute(TEMPERATURE, counted=True)
    floor_: float = attribute(Number(-1e4, 0))
    strength_: Array = attribute(Values("parts", low=0, high=np.inf, finite=False))
    weights_: Array = attribute(Values("K", "K"), counted=True)
    intercept_: Array = attribute(Values("K"), counted=True)

    @property
    def _steep(self) -> bool:
        return True

    def _prior(self, k: int) -> Prior:
        """What is believed of the parameters at strength one."""
        raise NotImplementedError

    @property
    def frame(self) -> Frame:
        """How logits become features."""
        return Frame(1.0 / self.temperature_, self.floor_, self._centred)

    def _fit(self, data: Data) -> FitReport:
        with small_products(data.n_classes):
            return self._fit_parts(data)

    def _fit_parts(self, data: Data) -> FitReport:
        first = best_temperature(data)
        self.temperature_ = 1.0 / first.beta
        self.floor_ = -float(np.log(data.n_classes * (data.total_weight + 1.0)))
        problem = LinearProblem.of(data, self.frame, self._full, at_average=self.intercepts == "average")
        prior = self._prior(data.n_classes)
        chosen = choose(problem, prior.shape) if self.strength == "cv" else None
        fitted = self._fitted(problem, prior, chosen)
        self.strength_ = fitted.precisions
        self.weights_, self.intercept_ = problem.plain(fitted.point.theta)
        report = fitted.report(first.report("nll"), data.total_weight)
        effective = fitted.effective + 1.0  # the temperature
        report.details["effective_parameters"] = effective
        if chosen is not None:
            return with_choice(report, chosen, problem.answer)
        return estimate(report, data, softmax, self._map, effective)

    def _fitted(self, problem: LinearProblem, prior: Prior, chosen: Choice | None) -> Fitted:
        if self.strength == "evidence":
            return fit_by_evidence(problem, prior, structured(problem.k)[:_PARTS])
        strength = float(self.strength) if chosen is None else chosen.strength
        if np.isfinite(strength):
            return fit_with(problem, prior, np.full(_PARTS, strength))
        return only_start(Point.zero(problem), _PARTS)
