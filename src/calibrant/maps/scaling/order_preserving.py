"""Order-preserving scaling: bends the scores without letting one class overtake another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...arrays import keep_top
from ...calibrator import Calibrator
from ...fits.report import FitReport
from ...parameters import AnyOf, Number, OneOf
from ...passes import Block, in_memory
from ...traits import Traits
from ._curve import Curves, Optimum, apply_curves, climb, minimise, polish
from .binwise import top_log_odds
from .temperature import best_temperature, given_temperature

__all__ = ["OrderPreservingScaling"]

# t = -log p: fine where p is large, coarse in the tail; the last segment has no end.
_KNOTS = np.array([0.0, 0.1, 0.3, 0.7, 1.5, 3.0, 6.0, 12.0, 24.0])
_STATIONS = np.array([-1.0, 1.0, 3.0, 6.0])  # log-odds of the top class, at the shared temperature
_SMOOTHNESS = tuple(10.0 ** np.arange(-1.0, 5.0))
_LEAST_SLOPE = 0.02
_TO_ONE = 1.0  # precision of the slopes' own prior around 1


class OrderPreservingScaling(Calibrator):
    """p = softmax(v(log softmax(z / T))) with v rising: an intra order-preserving function (Rahimi et al. 2020).

    Theorem 1 there: f keeps the order of every row when the gaps of the sorted scores are multiplied by positive
    functions of the row. Here the gap between two classes is the integral of a positive slope s between their log p,
    p the row at the shared temperature T. ``form="diagonal"`` has one slope function for all rows (their diagonal
    family); ``form="order-invariant"`` lets it also vary with the row, through the log-odds of its top class, which is
    a function of the sorted scores alone. s is constant on eight segments of log p, and varies linearly between four
    log-odds.

    The slopes minimise the log-loss (convex in them) plus penalties on differences of neighbours and, weakly, on
    leaving 1; how strong they are is found by Laplace's approximation of the marginal likelihood. All slopes at 1 is
    temperature scaling. Slopes are at least 0.02, so no two classes are merged; equal scores get equal answers.

    Parameters
    ----------
    form : {"order-invariant", "diagonal"}
    smoothness : float, optional
        Precision of the differences between neighbouring slopes; by default the evidence chooses one along log p
        and one along the log-odds.
    temperature : float, optional
        T, for scores whose temperature is known; by default that of least log-loss.
    inputs, classes, saturated
        See `Calibrator`.

    Attributes
    ----------
    temperature_ : float
        T.
    slopes_ : array of shape (log-odds, segments)
    values_ : array of shape (log-odds, segments + 1)
        The curve at the knots.
    smoothness_ : tuple of float
        The precision used along log p and along the log-odds.
    """

    _identifier = "order-preserving-scaling"
    _traits = Traits("scaling", "ranking", "full", "32")
    _constraints: ClassVar[Mapping[str, Any]] = {
        "form": OneOf("order-invariant", "diagonal"),
        "smoothness": AnyOf(OneOf(None), Number(0.0)),
        "temperature": AnyOf(OneOf(None), Number(0.0, open_low=True)),
    }
    temperature_: float
    slopes_: NDArray[np.float64]
    values_: NDArray[np.float64]
    smoothness_: tuple[float, ...]

    def __init__(
        self,
        form: str = "order-invariant",
        smoothness: float | None = None,
        temperature: float | None = None,
        *,
        inputs: str = "logits",
        classes: Any = None,
        saturated: str = "small",
    ) -> None:
        self.form = form
        self.smoothness = smoothness
        self.temperature = temperature
        self.inputs = inputs
        self.classes = classes
        self.saturated = saturated

    def _fit_rows(self, sample: Block) -> FitReport:
        shared = (
            best_temperature(in_memory(sample))
            if self.temperature is None
            else given_temperature(in_memory(sample), self.temperature)
        )
        self.temperature_ = 1.0 / shared.beta
        curves = self._curves(sample)
        self.smoothness_, found, passes = self._search(curves)
        self.slopes_ = found.theta.reshape(len(curves.offset), -1)
        self.values_ = curves.values(found.theta)
        report, total, effective = shared.report("nll"), sample.total_weight, found.effective_parameters
        return FitReport(
            report.iterations + passes,
            report.converged and found.converged,
            "nll",
            report.loss_before,
            found.loss / total,
            held_out_before=report.loss_before,
            held_out_after=found.held_out_loss() / total,
            held_out_error=effective / total,
            at_bound=report.at_bound,
            messages=report.messages,
            details={"temperature": self.temperature_, "evidence": found.evidence, "effective_parameters": effective},
        )

    def _map(self, logits: NDArray[np.floating]) -> NDArray[np.floating]:
        answer = apply_curves(logits, self._places(logits), _KNOTS, self.values_, 1.0 / self.temperature_)
        return keep_top(answer, logits)

    def _places(self, logits: NDArray[np.floating]) -> NDArray[np.float64]:
        if self.form == "diagonal":
            return np.zeros(len(logits))
        odds = top_log_odds(logits, 1.0 / self.temperature_)
        return np.interp(odds, _STATIONS, np.arange(len(_STATIONS), dtype=np.float64))

    def _curves(self, sample: Block) -> Curves:
        stations, segments = (1 if self.form == "diagonal" else len(_STATIONS)), len(_KNOTS) - 1
        falls = -np.tril(np.ones((segments + 1, segments)), -1) * np.diff(_KNOTS)
        basis = np.asarray(np.kron(np.eye(stations), falls), dtype=np.float64)
        offset = np.zeros((stations, segments + 1))
        return Curves(sample, self._places(sample.logits), _KNOTS, 1.0 / self.temperature_, offset, basis)

    def _search(self, curves: Curves) -> tuple[tuple[float, ...], Optimum, int]:
        one = np.ones(curves.basis.shape[1])

        def fit(smoothness: tuple[float, ...], best: Optimum | None) -> Optimum:
            precision = _precision(len(curves.offset), *smoothness)
            if best is None:
                return minimise(curves, one, one, precision, _LEAST_SLOPE)
            return minimise(curves, best.theta, one, precision, _LEAST_SLOPE, known=best.sums)

        if self.smoothness is not None:
            found = polish(fit((self.smoothness, self.smoothness), None))
            return (self.smoothness, self.smoothness), found, found.passes
        across = _SMOOTHNESS if self.form == "order-invariant" else (1.0,)
        return climb(fit, (_SMOOTHNESS, across), (1, len(across) // 3))


def _precision(stations: int, along: float, across: float) -> NDArray[np.float64]:
    """Precision of the slopes, (stations, segments) in a row: differences of neighbours both ways, and to one."""
    segments = len(_KNOTS) - 1

    def of_differences(count: int) -> NDArray[np.float64]:
        differences = np.diff(np.eye(count), axis=0)
        return differences.T @ differences

    rough = along * np.kron(np.eye(stations), of_differences(segments))
    rough += across * np.kron(of_differences(stations), np.eye(segments))
    return rough + _TO_ONE * np.eye(stations * segments)
