"""What vector, matrix and Dirichlet scaling share: a penalised linear map around temperature scaling."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...calibrator import Calibrator
from ...fits.report import FitReport
from ...parameters import AnyOf, Number, OneOf
from ...passes import Block, in_memory
from ._evidence import Fitted, fit_by_evidence, fit_with, only_start
from ._path import Choice, choose, with_choice, with_estimate
from ._prior import Prior, first_guess, parts_of
from ._problem import Frame, Problem, small_products
from .temperature import best_temperature

__all__ = ["LinearScaling"]

STRENGTH = AnyOf(OneOf("evidence", "cv"), Number(0.0))
_PARTS = 3  # slopes, weights between classes, intercepts


class LinearScaling(Calibrator):
    """p = softmax(u + D x + b) with u = log softmax(z / T): D = 0 and b = 0 is temperature scaling.

    T is fitted first. Then (D, b) minimise the summed log-loss + ½ Σ s · θ², a Gaussian prior of precision s on each
    parameter around temperature scaling; as u has no unit, s means the same for any scale of the logits. The features
    x are u, floored at -log(K (n + 1)): smaller probabilities cannot be told from zero by n rows. For a full
    D the prior on an intercept is by default on what its class gets at an average row, b + D x̄ of it.
    """

    _full: ClassVar[bool]
    _centred: ClassVar[bool]
    _constraints: ClassVar[Mapping[str, Any]] = {"strength": STRENGTH}
    strength: Any
    intercepts: str = "average"
    temperature_: float
    floor_: float
    weights_: NDArray[np.float64]
    intercept_: NDArray[np.float64]
    strength_: NDArray[np.float64]

    def _penalty(self, k: int) -> NDArray[np.float64]:
        """Precision of each parameter, class by class (its row of D, its intercept), at strength one."""
        raise NotImplementedError

    def _frame(self) -> Frame:
        return Frame(1.0 / self.temperature_, self.floor_, self._centred)

    def _fit_rows(self, sample: Block) -> FitReport:
        with small_products(sample.n_classes):
            return self._fit_parts(sample)

    def _fit_parts(self, sample: Block) -> FitReport:
        first = best_temperature(in_memory(sample))
        self.temperature_ = 1.0 / first.beta
        self.floor_ = -float(np.log(sample.n_classes * (sample.total_weight + 1.0)))
        problem = Problem.of(sample, self._frame(), self._full, at_average=self.intercepts == "average")
        prior = Prior(parts_of(sample.n_classes, problem.size), self._penalty(sample.n_classes))
        chosen = choose(problem, prior.shape) if self.strength == "cv" else None
        fitted = self._fitted(problem, prior, chosen)
        self.strength_ = fitted.precisions
        self.weights_, self.intercept_ = problem.plain(fitted.point.theta)
        report = fitted.report(first.report("nll"), sample.total_weight)
        if chosen is not None:
            return with_choice(report, chosen, sample)
        return with_estimate(report, sample, partial(problem.losses, fitted.point.theta), fitted.effective + 1.0)

    def _fitted(self, problem: Problem, prior: Prior, chosen: Choice | None) -> Fitted:
        if self.strength == "evidence":
            return fit_by_evidence(problem, prior, first_guess(problem.k)[:_PARTS])
        strength = float(self.strength) if chosen is None else chosen.strength
        if np.isfinite(strength):
            return fit_with(problem, prior, np.full(_PARTS, strength))
        return only_start(problem, _PARTS)

    def _map(self, logits: NDArray[np.floating]) -> NDArray[np.floating]:
        return self._frame().apply(logits, self.weights_, self.intercept_)
