"""What vector, matrix and Dirichlet scaling share: a penalised linear map around temperature scaling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...arrays import softmax
from ...calibrator import Calibrator
from ...fit_report import FitReport, label_losses, with_held_out
from ...parameters import AnyOf, Number, OneOf
from ...passes import Sample
from ._path import Choice, choose, solve
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
            found = solve(problem, self.strength_ * shape + _LEAST, theta)
            theta, passes, converged = found.theta, found.passes, found.converged
        weights, intercept = problem.split(theta)
        self.weights_, self.intercept_ = weights.copy(), intercept.copy()
        start = first.report("nll")
        report = FitReport(
            start.iterations + passes + (0 if chosen is None else chosen.passes),
            (start.converged or bool(start.at_bound)) and converged,
            "nll",
            start.loss_before,
            problem.sums(theta).loss / first.total,
            at_bound=start.at_bound,
            messages=start.messages,
        )
        return report if chosen is None else _with_choice(report, chosen, sample)

    def _map(self, logits: NDArray[np.floating]) -> NDArray[np.floating]:
        return self._frame().apply(logits, self.weights_, self.intercept_)


_LEAST = 1e-3  # keeps what no row speaks about (a class that never occurs) finite where the strength is zero


def _with_choice(report: FitReport, chosen: Choice, sample: Sample) -> FitReport:
    """Fill in the held-out losses that choosing the strength has measured already."""
    report.details.update(strengths=chosen.strengths, held_out=chosen.curve)
    if not len(chosen.rows):
        return report
    before = label_losses(softmax(sample.logits[chosen.rows]), sample.labels[chosen.rows])
    return with_held_out(report, before, chosen.losses, sample.weight_array[chosen.rows])
