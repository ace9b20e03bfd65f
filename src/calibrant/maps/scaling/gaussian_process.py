"""Gaussian-process calibration: one latent function, shared by all classes, inferred rather than chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.special import logsumexp

from ...arrays import row_blocks
from ...calibrator import Calibrator
from ...fits.report import FitReport
from ...parameters import AnyOf, Integer, Number, OneOf
from ...passes import Block, in_memory
from ...traits import Traits
from ._curve import Array, Curves, Optimum, apply_curves, climb, minimise
from .temperature import best_temperature

__all__ = ["GaussianProcessCalibration"]

_VARIANCES = tuple(10.0 ** np.arange(-3.0, 2.5, 0.5))
_LENGTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
_FINEST = 0.02  # first inducing point after 0, in units of the temperature
_JITTER = 1e-8


class GaussianProcessCalibration(Calibrator):
    """p = softmax(g(log softmax(z))), with g a Gaussian process shared by all classes (Wenger et al. 2020).

    The latent function acts on t = -log softmax(z), so a shift of a row changes nothing. Its prior mean is the identity
    (g = -t: the scores as they came) and its covariance is

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
    """

    _identifier = "gaussian-process-calibration"
    _traits = Traits("scaling", "nothing", "full", "points")
    _constraints: ClassVar[Mapping[str, Any]] = {
        "variance": AnyOf(OneOf(None), Number(0.0, open_low=True)),
        "length": AnyOf(OneOf(None), Number(0.0, open_low=True)),
        "points": Integer(3),
    }
    points_: NDArray[np.float64]
    values_: NDArray[np.float64]
    kernel_: tuple[float, ...]

    def __init__(
        self,
        variance: float | None = None,
        length: float | None = None,
        points: int = 24,
        *,
        inputs: str = "logits",
        classes: Any = None,
        saturated: str = "small",
    ) -> None:
        self.variance = variance
        self.length = length
        self.points = points
        self.inputs = inputs
        self.classes = classes
        self.saturated = saturated

    def _fit_rows(self, sample: Block) -> FitReport:
        shared = best_temperature(in_memory(sample))
        unit = float(np.clip(1.0 / shared.beta, 1e-3, 1e6))
        points = _inducing_points(unit, _largest_surprise(sample.logits), self.points)
        self.points_ = np.append(points, points[-1] + unit)
        self.kernel_, found, passes = self._search(sample, unit)
        self.values_ = found.curves.values(found.theta)
        total = sample.total_weight
        before = shared.before
        return FitReport(
            shared.passes + passes,
            found.converged,
            "nll",
            before,
            found.loss / total,
            held_out_before=before,
            held_out_after=found.held_out_loss() / total,
            held_out_error=found.effective_parameters / total,
            details={"evidence": found.evidence, "temperature": 1.0 / shared.beta},
        )

    def _map(self, logits: NDArray[np.floating]) -> NDArray[np.floating]:
        return apply_curves(logits, np.zeros(len(logits)), self.points_, self.values_, 1.0)

    def _search(self, sample: Block, unit: float) -> tuple[tuple[float, ...], Optimum, int]:
        def fit(kernel: tuple[float, ...], best: Optimum | None) -> Optimum:
            curves = _family(sample, self.points_, unit, *kernel)
            zero = np.zeros(self.points)
            return minimise(curves, zero if best is None else _carry_over(best, curves), zero, np.eye(len(zero)))

        variances = _VARIANCES if self.variance is None else (self.variance,)
        lengths = _LENGTHS if self.length is None else (self.length,)
        return climb(fit, (variances, lengths), (len(variances) // 2, len(lengths) // 2))


def _family(sample: Block, knots: Array, unit: float, variance: float, length: float) -> Curves:
    """Curves g = -t + L θ with L Lᵀ the covariance: a priori θ is standard normal."""
    t = knots[:-1]
    w = np.log1p(t / unit)
    r = np.sqrt(5.0) * np.abs(w[:, None] - w[None, :]) / length
    covariance = np.outer(t, t) + (1 + r + r**2 / 3) * np.exp(-r)
    factor = cholesky(variance * (covariance + _JITTER * np.diag(1 + t**2)), lower=True)
    basis = np.vstack([factor, factor[-1:]])  # the last knot moves with the one before: parallel to the identity
    return Curves(sample, np.zeros(sample.n), knots, 1.0, -knots[None, :], basis)


def _carry_over(best: Optimum, curves: Curves) -> Array:
    """Return the θ that gives the same curve under another kernel."""
    bend = (best.curves.basis @ best.theta)[:-1]
    return np.asarray(solve_triangular(curves.basis[:-1], bend, lower=True))


def _inducing_points(unit: float, largest: float, count: int) -> Array:
    """Return points from 0 to the largest t, even on a logarithmic scale."""
    scale = _FINEST * unit
    return scale * np.expm1(np.linspace(0.0, np.log1p(max(largest, unit) / scale), count))


def _largest_surprise(logits: NDArray[np.floating]) -> float:
    largest = 0.0
    for rows in row_blocks(*logits.shape):
        z = logits[rows].astype(np.float64)
        largest = max(largest, float((logsumexp(z, axis=1) - z.min(axis=1)).max()))
    return largest
