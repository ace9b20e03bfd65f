"""What vector, matrix and Dirichlet scaling share: a penalised linear map around temperature scaling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...calibrator import Calibrator
from ...fit_report import FitReport
from ...parameters import AnyOf, Number, OneOf
from ...passes import Sample
from ._path import choose, solve, with_choice
from ._problem import Frame, Problem
from .temperature import fit_temperature

__all__ = ["LinearScaling"]

STRENGTH = AnyOf(OneOf("cv"), Number(0.0))


class LinearScaling(Calibrator):
    """p = softmax(u + D x + b) with u = log softmax(z / T): D = 0 and b = 0 is temperature scaling.

    T is fitted first. Then (D, b) minimise the summed log-loss + ½ Σ s · θ², a Gaussian prior of precision s on each
    parameter around temperature scaling; as u has no unit, s means the same for any scale of the logits. The features
    x are u, floored at -log(K (n + 1)): smaller probabilities cannot be told from zero by n rows.
    """

    _full: ClassVar[bool]
    _centred: ClassVar[bool]
    _constraints: ClassVar[Mapping[str, Any]] = {"strength": STRENGTH}
    strength: Any
    temperature_: float
    floor_: float
    weights_: NDArray[np.float64]
    intercept_: NDArray[np.float64]
    strength_: float

    def _penalty(self, k: int) -> NDArray[np.float64]:
        """Precision of each parameter, in the order (D, b), at strength one."""
        raise NotImplementedError

    def _frame(self) -> Frame:
        return Frame(1.0 / self.temperature_, self.floor_, self._centred)

    def _fit(self, sample: Sample) -> FitReport:
        first = fit_temperature(sample, "nll")
        self.temperature_ = 1.0 / first.beta
        self.floor_ = -float(np.log(sample.n_classes * (sample.total_weight + 1.0)))
        problem = Problem.of(sample, self._frame(), self._full)
        shape = self._penalty(sample.n_classes)
        chosen = choose(problem, shape) if self.strength == "cv" else None
        self.strength_ = float(self.strength) if chosen is None else chosen.strength
        theta, passes, converged = np.zeros(problem.size), 1, True
        if np.isfinite(self.strength_):
            start = theta if chosen is None else chosen.theta
            found = solve(problem, self.strength_ * shape + _LEAST, start)
            theta, passes, converged = found.theta, found.passes, found.converged
        weights, intercept = problem.split(theta)
        self.weights_, self.intercept_ = weights.copy(), intercept.copy()
        before = first.report("nll")
        report = FitReport(
            before.iterations + passes + (0 if chosen is None else chosen.passes),
            (before.converged or bool(before.at_bound)) and converged,
            "nll",
            before.loss_before,
            problem.sums(theta).loss / first.total,
            at_bound=before.at_bound,
            messages=before.messages,
        )
        return report if chosen is None else with_choice(report, chosen, sample)

    def _map(self, logits: NDArray[np.floating]) -> NDArray[np.floating]:
        return self._frame().apply(logits, self.weights_, self.intercept_)


_LEAST = 1e-3  # keeps what no row speaks about (a class that never occurs) finite where the strength is zero
