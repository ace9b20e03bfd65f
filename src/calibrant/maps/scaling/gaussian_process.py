"""Gaussian-process calibration: one latent function, shared by all classes, inferred rather than chosen."""

from __future__ import annotations

from functools import partial

import numpy as np

from ... import _core
from ...arrays import softmax
from ...calibrator import Calibrator
from ...declared import attribute, declared, parameter
from ...fits.judge import estimate
from ...fits.report import FitReport
from ...formulas import Term
from ...invariants import TEMPERATURE, Numbers, Optional, Values
from ...parameters import SCALE, AnyOf, OneOf, count_from
from ...passes import Block, Data
from ...passes.statistic import Largest
from ...threads import get_threads
from ...traits import Traits
from ...types import Floats
from ._curve import Array, Curves, Family, apply_curve, curve_formula
from ._curve_search import fit_curve
from .temperature import best_temperature

_VARIANCES = tuple(10.0 ** np.arange(-3.0, 2.5, 0.5))  # from slopes within 3 % of 1 to slopes that may be anything
_LENGTHS = (0.25, 0.5, 1.0, 2.0, 4.0)  # of w, which runs over some five units
_FINEST = 0.02  # first inducing point after 0, in units of the temperature
_JITTER = 1e-8  # of the variance: what the Cholesky factor needs against rounding
_COLDEST, _HOTTEST = 1e-3, 1e6  # temperatures of scores that mean something: no smaller unit, no larger one unscaled
_FARTHEST = 1e6  # units of t up to which g may bend: nothing beyond has a probability
_NO_STATIONS = np.zeros(1)  # one curve for all rows


@declared
class GaussianProcessCalibration(Calibrator):
    """p = softmax(g(log softmax(z))), with g a Gaussian process shared by all classes (Wenger et al. 2020).

    The latent function acts on t = -log softmax(z), so a shift of a row changes nothing. Its prior mean is the identity
    (g = -t: the scores as they came) and its covariance is::

        variance · [ t t' + (1 + r + r²/3) e^{-r} ],   r = √5 |w - w'| / length,   w = log(1 + t/T),

    a line (temperatures live there) plus a Matérn-5/2 process on a scale that is fine near p = 1 and coarse in the
    tail; T is the temperature of all rows and serves as the unit only. g is represented by its values at inducing
    points, linear between them; beyond the last one it runs parallel to the identity, so that scores unlike any seen
    are left alone.

    Inference is Laplace's: Newton on the concave log-posterior, one pass a step; variance and length maximise the
    Laplace evidence. Answers use the posterior mode of g (no sampling), so they are deterministic. Nothing forces g to
    fall in t: the order of a row's classes may change where the data say so.

    Parameters
    ----------
    variance, length : float, optional
        Of the kernel; None: chosen by the evidence.
    points : int
        Inducing points.
    inputs, classes, saturated
        See `Calibrator`.

    Attributes
    ----------
    points_ : array
        Inducing points in t, and the end of the segment that runs on.
    values_ : array of shape (1, points + 1)
        g there.
    kernel_ : tuple of float
        The variance and length used.
    scale_ : float
        What scores are multiplied by first: 1, or 1/T where T is beyond a million and g could not hold the difference.
    """

    _identifier = "gaussian-process-calibration"
    _traits = Traits("scaling", "nothing", "full", "points")
    variance: float | None = parameter(AnyOf(OneOf(None), SCALE), default=None)
    length: float | None = parameter(AnyOf(OneOf(None), SCALE), default=None)
    points: int = parameter(count_from(3), default=24)
    points_: Array = attribute(Values("points", low=0, high=1e200, order="rising"))
    values_: Array = attribute(Values(1, "points", low=-1e200, high=1e200))
    kernel_: tuple[float, ...] = attribute(Numbers(2))
    scale_: float = attribute(Optional(TEMPERATURE), default=1.0)  # files of version 0.1.0 have none

    def _fit(self, data: Data) -> FitReport:
        shared = best_temperature(data)
        self.scale_ = shared.beta if 1.0 / shared.beta > _HOTTEST else 1.0
        beta = shared.beta / self.scale_
        unit = max(1.0 / beta, _COLDEST)
        largest = float(data.reduce(partial(_largest_surprise, beta=self.scale_)).values[0])
        points = _inducing_points(unit, largest, self.points)
        self.points_ = np.append(points, points[-1] + unit)
        variances = _VARIANCES if self.variance is None else (self.variance,)
        lengths = _LENGTHS if self.length is None else (self.length,)
        found = fit_curve(
            Curves(data, self.points_, _NO_STATIONS, self.scale_),
            partial(_family, self.points_, unit, beta),
            (variances, lengths),
            (len(variances) // 2, len(lengths) // 2),
        )
        self.kernel_ = found.chosen
        self.values_ = found.values
        report = FitReport(
            shared.passes + found.passes,
            found.converged,
            "nll",
            shared.before,
            found.optimum.loss / data.total_weight,
            details={"evidence": found.optimum.evidence, "temperature": 1.0 / shared.beta},
        )
        return estimate(report, data, softmax, self._map, found.optimum.effective_parameters)

    def _map(self, logits: Floats) -> Floats:
        return apply_curve(logits, self.points_, _NO_STATIONS, self.values_, self.scale_)

    def _formula(self, z: Term) -> Term:
        return curve_formula(z, self.points_, _NO_STATIONS, self.values_, self.scale_)

    def _count_parameters(self) -> float:
        return self.values_.size - 1  # the last value follows from the one before


def _family(knots: Array, unit: float, beta: float, variance: float, length: float) -> Family:
    """Curves g = -t + √variance·(t θ₀ + L θ), with L Lᵀ the Matérn covariance: a priori θ is standard normal.

    A search begins at the line of the shared temperature, g = -β t.
    """
    t = knots[:-1]
    w = np.log1p(t / unit)
    r = np.sqrt(5.0) * np.abs(w[:, None] - w[None, :]) / length
    bends = np.linalg.cholesky((1 + r + r**2 / 3) * np.exp(-r) + _JITTER * np.eye(len(t)))
    basis = np.sqrt(variance) * np.column_stack([t, bends])
    basis = np.vstack([basis, basis[-1:]])  # the last knot moves with the one before: parallel to the identity
    start = np.append((1.0 - beta) / np.sqrt(variance), np.zeros(len(t)))
    return Family(-knots[None, :], basis, np.zeros(len(start)), np.eye(len(start)), start)


def _inducing_points(unit: float, largest: float, count: int) -> Array:
    """Return points from 0 to the largest t, or a million units, even on a logarithmic scale."""
    scale, end = _FINEST * unit, min(max(largest, unit), _FARTHEST * unit)
    return scale * np.expm1(np.linspace(0.0, np.log1p(end / scale), count))


def _largest_surprise(block: Block, beta: float) -> Largest:
    """One pass: the largest t = -log softmax(β z) of any class of any row."""
    return Largest(np.array([_core.largest_surprise(block.logits, block.weights, beta, get_threads())]))
