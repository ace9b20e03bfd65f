"""Order-preserving scaling: bends the scores without letting one class overtake another."""

from __future__ import annotations

from functools import cache

import numpy as np

from ...arrays import keep_top, softmax
from ...calibrator import Calibrator
from ...declared import attribute, declared, parameter
from ...fits.judge import estimate
from ...fits.report import FitReport
from ...formulas import Term
from ...invariants import TEMPERATURE, Numbers, Values
from ...parameters import AMOUNT, SCALE, AnyOf, OneOf
from ...passes import Data
from ...traits import Traits
from ...types import Floats
from ._curve import Array, Curves, Family, apply_curve, curve_formula
from ._curve_search import fit_curve
from .temperature import best_temperature, given_temperature

# t = -log p: fine where p is large, coarse in the tail; the last segment has no end.
_KNOTS = np.array([0.0, 0.1, 0.3, 0.7, 1.5, 3.0, 6.0, 12.0, 24.0])
_STATIONS = np.array([-1.0, 1.0, 3.0, 6.0])  # log-odds of the top class, at the shared temperature
_SMOOTHNESS = tuple(10.0 ** np.arange(-1.0, 5.0))  # from slopes that hardly know their neighbours to equal ones
_LEAST_SLOPE = 0.02  # no two classes are merged: their gap keeps a fiftieth of what the temperature gives it
_TO_ONE = 1.0  # precision of the slopes' own prior around 1: a slope of 2 is as far as one expects


@declared
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
    form: str = parameter(OneOf("order-invariant", "diagonal"), default="order-invariant")
    smoothness: float | None = parameter(AnyOf(OneOf(None), AMOUNT), default=None)
    temperature: float | None = parameter(AnyOf(OneOf(None), SCALE), default=None)
    temperature_: float = attribute(TEMPERATURE)
    slopes_: Array = attribute(Values("stations", "knots-1", low=0))
    values_: Array = attribute(Values("stations", "knots", order="falling"))
    smoothness_: tuple[float, ...] = attribute(Numbers(2))

    def _fit(self, data: Data) -> FitReport:
        given = self.temperature
        shared = best_temperature(data) if given is None else given_temperature(data, given)
        self.temperature_ = 1.0 / shared.beta
        curves = Curves(data, _KNOTS, self._stations, shared.beta)
        along = _SMOOTHNESS if self.smoothness is None else (self.smoothness,)
        across = along if self.form == "order-invariant" or self.smoothness is not None else (1.0,)
        found = fit_curve(curves, self._family, (along, across), (min(1, len(along) - 1), len(across) // 3))
        self.smoothness_ = found.chosen
        self.slopes_ = found.optimum.theta.reshape(len(self._stations), -1)
        self.values_ = found.values
        effective = found.optimum.effective_parameters
        if given is None and shared.after < shared.before:  # else the rows have not determined T
            effective += 1.0
        details = {"temperature": self.temperature_, "evidence": found.optimum.evidence}
        loss = found.optimum.loss / data.total_weight
        report = shared.report("nll").gone_on(found.passes, found.converged, loss, **details)
        return estimate(report, data, softmax, self._map, effective)

    def _map(self, logits: Floats) -> Floats:
        answer = apply_curve(logits, _KNOTS, self._stations, self.values_, 1.0 / self.temperature_)
        return keep_top(answer, logits)

    def _formula(self, z: Term) -> Term:
        return curve_formula(z, _KNOTS, self._stations, self.values_, 1.0 / self.temperature_)

    def _count_parameters(self) -> float:
        return self.slopes_.size + (self.temperature is None)

    def _sizes(self) -> dict[str, int]:
        return {"stations": len(self._stations), "knots": len(_KNOTS)}

    @property
    def _stations(self) -> Array:
        return _STATIONS[:1] if self.form == "diagonal" else _STATIONS

    def _family(self, along: float, across: float) -> Family:
        """Curves that fall by their slopes, each slope a priori like its neighbours and like one."""
        stations = len(self._stations)
        falls, rough_along, rough_across = _shapes(stations)
        one = np.ones(falls.shape[1])
        precision = along * rough_along + across * rough_across + _TO_ONE * np.eye(len(one))
        return Family(np.zeros((stations, len(_KNOTS))), falls, one, precision, one, _LEAST_SLOPE)


@cache
def _shapes(stations: int) -> tuple[Array, Array, Array]:
    """Return how the values fall with the slopes, and the squares of differences along log p and along the log-odds.

    Slopes are (stations, segments) in a row, values (stations, knots).
    """
    segments = len(_KNOTS) - 1
    falls = -np.tril(np.ones((segments + 1, segments)), -1) * np.diff(_KNOTS)
    along, across = (np.diff(np.eye(count), axis=0) for count in (segments, stations))
    parts = (
        np.kron(np.eye(stations), falls),
        np.kron(np.eye(stations), along.T @ along),
        np.kron(across.T @ across, np.eye(segments)),
    )
    return parts[0].astype(np.float64), parts[1].astype(np.float64), parts[2].astype(np.float64)
