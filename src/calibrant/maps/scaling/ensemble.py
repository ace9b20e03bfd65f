"""Ensemble temperature scaling: a temperature, the identity and the uniform, mixed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ... import _core
from ...arrays import row_subsample, tempered_softmax
from ...calibrator import Calibrator
from ...fits.judge import Comparison, judged
from ...fits.report import FitReport
from ...parameters import OneOf
from ...passes import Block, in_memory, reduce
from ...simplex import best_log_mixture, best_quadratic, log_mixture
from ...threads import get_threads, one_blas_thread
from ...traits import Traits
from .temperature import best_temperature

__all__ = ["EnsembleTemperatureScaling"]

_PILOT_ROWS = 1000
_FOLDS = 5
_GRID = np.geomspace(1 / 20, 20, 11)
Array = NDArray[np.float64]


class EnsembleTemperatureScaling(Calibrator):
    """p = w₁ softmax(z / T) + w₂ softmax(z) + w₃ / K, T > 0 and w on the simplex (Mix-n-Match, §3.2, Eq. 6).

    T and w are fitted jointly. For a given T the problem in w is convex and solved exactly; what is left is one
    dimension, searched from every basin of a scan. The optimal temperature of plain temperature scaling is always
    among the candidates, so the loss on the calibration set is never above its loss.

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
    _constraints: ClassVar[Mapping[str, Any]] = {"loss": OneOf("nll", "brier")}
    temperature_: float
    weights_: Array

    def __init__(
        self, loss: str = "nll", *, inputs: str = "logits", classes: Any = None, saturated: str = "small"
    ) -> None:
        self.loss = loss
        self.inputs = inputs
        self.classes = classes
        self.saturated = saturated

    def _fit_rows(self, sample: Block) -> FitReport:
        with one_blas_thread():
            return self._fit_jointly(sample)

    def _fit_jointly(self, sample: Block) -> FitReport:
        single = best_temperature(in_memory(sample), self.loss)
        alone = single.report(self.loss)
        profile = _PROFILES[self.loss](sample)
        best = _search(profile, single.beta, alone.loss_after, single.bounds)
        self.temperature_, self.weights_ = 1.0 / best.beta, best.weights
        report = FitReport(
            alone.iterations + best.passes,
            best.converged,
            self.loss,
            alone.loss_before,
            best.value,
            details={"temperature_alone": 1.0 / single.beta, "loss_of_temperature_alone": alone.loss_after},
        )
        return profile.held_out(report, best)

    def _map(self, logits: NDArray[np.floating]) -> NDArray[np.floating]:
        w = self.weights_
        return tempered_softmax(logits, 1.0 / self.temperature_, (float(w[0]), float(w[1]), float(w[2])))


@dataclass(frozen=True)
class _Point:
    """The best mixture for one β: mean loss, weights, that loss's two derivatives in log β, and what the pass gave."""

    beta: float
    value: float
    weights: Array
    slope: float
    curvature: float
    rows: Array
    passes: int = 1
    converged: bool = True


class _NllProfile:
    """From β to the best mixture with it, by log-loss; each call is one pass, `value` one that needs no derivatives."""

    def __init__(self, sample: Block) -> None:
        self.sample = sample
        self.uniform = np.full(sample.n, 1.0 / sample.n_classes)
        self.identity = self._rows(1.0)[:, 0]
        self.start = np.full(3, 1.0 / 3)  # the weights of the last call: neighbouring β have similar ones

    def _rows(self, beta: float) -> Array:
        """One pass: each row's softmax(β z)_y and its two derivatives in β."""
        return reduce(lambda s: _core.temperature_rows(s.logits, s.labels, beta, get_threads()), self.sample)

    def pilot(self, rows: int) -> _NllProfile:
        return _NllProfile(self.sample.take(row_subsample(self.sample.n, rows)))

    def _best(self, rows: Array) -> tuple[Array, float, Array]:
        """Return the best weights for a pass's rows, their loss, and its Hessian."""
        columns = np.column_stack([rows[:, 0], self.identity, self.uniform])
        self.start = best_log_mixture(columns, self.sample.weights, self.start)
        value, _, hessian = log_mixture(columns, self.sample.weights, self.start)
        return self.start, value, hessian

    def value(self, beta: float) -> float:
        return self._best(self._rows(beta))[1] / self.sample.total_weight

    def __call__(self, beta: float) -> _Point:
        weights, total, rows = self.sample.weights, self.sample.total_weight, self._rows(beta)
        a, first, second = rows.T
        w, value, hessian = self._best(rows)
        mixed = w[0] * a + w[1] * self.identity + w[2] * self.uniform
        share = (1.0 if weights is None else weights) / mixed
        pull = share * first
        slope, bend = -w[0] * pull.sum(), w[0] ** 2 * (pull * first / mixed).sum() - w[0] * (share * second).sum()
        cross = w[0] * np.array([(pull * c / mixed).sum() for c in (a, self.identity, self.uniform)])
        cross[0] -= pull.sum()
        return _point(beta, value / total, w, slope / total, bend / total, cross / total, hessian / total, rows)

    def held_out(self, report: FitReport, best: _Point) -> FitReport:
        """Five-fold held-out loss without another pass: w is refitted on each rest, β moved by one Newton step."""
        a, first, second = best.rows.T
        weights, fold = self.sample.weight_array, np.arange(self.sample.n) % _FOLDS
        mixed = best.weights[0] * a + best.weights[1] * self.identity + best.weights[2] * self.uniform
        slopes = -weights * best.weights[0] * first / mixed
        bend = max(best.curvature / best.beta**2, 1e-12) * self.sample.total_weight
        after = np.empty(self.sample.n)
        for f in range(_FOLDS):
            held, rest = fold == f, (fold != f) & (weights > 0)
            step = slopes[held].sum() / bend
            moved = np.clip(a + first * step + 0.5 * second * step**2, 1e-300, 1.0)
            columns = np.column_stack([moved, self.identity, self.uniform])
            w = best_log_mixture(columns[rest], weights[rest], best.weights) if rest.any() else best.weights
            after[held] = -np.log(np.maximum(columns[held] @ w, 1e-300))
        with np.errstate(divide="ignore"):
            return judged(report, Comparison.of(-np.log(self.identity), after, weights))


class _BrierProfile:
    """From β to the best mixture with it, by Brier score; as `_NllProfile`."""

    def __init__(self, sample: Block) -> None:
        self.sample = sample

    def pilot(self, rows: int) -> _BrierProfile:
        return _BrierProfile(self.sample.take(row_subsample(self.sample.n, rows)))

    def _best(self, sums: Array) -> tuple[Array, float, Array]:
        """Return the best weights for a pass's sums, their loss, and half its Hessian."""
        gram, linear = _quadratic(sums, self.sample.n_classes, self.sample.total_weight)
        w = best_quadratic(gram, linear)
        return w, float(w @ gram @ w - 2 * linear @ w + 1), gram

    def value(self, beta: float) -> float:
        return self._best(_ensemble_sums(self.sample, beta))[1]

    def __call__(self, beta: float) -> _Point:
        sums = _ensemble_sums(self.sample, beta)
        _, aa1, _, ab1, _, ay1, _, _, aa2, ab2, ay2 = sums / self.sample.total_weight
        w, value, gram = self._best(sums)
        cross = 2 * np.array([2 * w[0] * aa1 + w[1] * ab1 - ay1, w[0] * ab1, 0.0])
        slope = 2 * w[0] * (w[0] * aa1 + w[1] * ab1 - ay1)
        bend = 2 * w[0] * (w[0] * aa2 + w[1] * ab2 - ay2)
        return _point(beta, value, w, slope, bend, cross, 2 * gram, sums)

    def held_out(self, report: FitReport, best: _Point) -> FitReport:
        """Five-fold held-out loss from one pass split by fold: the sums of a rest are the total less the fold's."""
        sample, k = self.sample, self.sample.n_classes
        folds = [sample.take(slice(f, None, _FOLDS)) for f in range(min(_FOLDS, sample.n))]
        parts, masses = [], []
        for fold in folds:
            if fold.total_weight > 0:
                parts.append(_ensemble_sums(fold, best.beta))
                masses.append(fold.total_weight)
        if len(parts) < 2:
            return report
        after, before, whole = np.zeros(len(parts)), np.zeros(len(parts)), np.sum(parts, axis=0)
        for f, part in enumerate(parts):
            w = best_quadratic(*_quadratic(whole - part, k, sum(masses) - masses[f]))
            gram, linear = _quadratic(part, k, masses[f])
            after[f] = w @ gram @ w - 2 * linear @ w + 1
            before[f] = gram[1, 1] - 2 * linear[1] + 1
        return judged(report, Comparison.of(before, after, np.array(masses)))


Profile = _NllProfile | _BrierProfile
_PROFILES: dict[str, type[Profile]] = {"nll": _NllProfile, "brier": _BrierProfile}


def _ensemble_sums(sample: Block, beta: float) -> Array:
    """One pass: the sums the Brier score of a mixture needs (see cpp/temperature.hpp)."""
    return reduce(lambda rows: _core.ensemble_sums(rows.logits, rows.labels, rows.weights, beta, get_threads()), sample)


def _quadratic(sums: Array, k: int, total: float) -> tuple[Array, Array]:
    """The Brier score of a mixture w is w'Gw - 2c'w + 1: G and c."""
    aa, _, ab, _, ay, _, by, bb = sums[:8] / total
    u = 1.0 / k
    return np.array([[aa, ab, u], [ab, bb, u], [u, u, u]]), np.array([ay, by, u])


def _point(
    beta: float, value: float, w: Array, slope: float, bend: float, cross: Array, hessian: Array, rows: Array
) -> _Point:
    """Derivatives of the profile: the envelope theorem for the first, a Schur complement on w's face for the second."""
    face = np.flatnonzero(w > 1e-9)
    if len(face) > 1:
        basis = np.zeros((len(w), len(face) - 1))
        basis[face[0]] = -1.0
        basis[face[1:], np.arange(len(face) - 1)] = 1.0
        pulled = basis.T @ cross
        bend -= pulled @ np.linalg.lstsq(basis.T @ hessian @ basis, pulled, rcond=None)[0]
    return _Point(beta, value, w, slope * beta, slope * beta + bend * beta * beta, rows)


def _search(profile: Profile, alone: float, loss_alone: float, bounds: tuple[float, float]) -> _Point:
    """Best point over the basins of a scan, polished on all rows; the temperature fitted alone is a candidate too."""
    small = profile.sample.n <= 2 * _PILOT_ROWS
    pilot = profile if small else profile.pilot(_PILOT_ROWS)
    grid = np.clip(alone * _GRID, *bounds)
    values = np.array([pilot.value(float(beta)) for beta in grid])
    padded = np.concatenate([[np.inf], values, [np.inf]])
    minima = np.flatnonzero((values <= padded[:-2]) & (values <= padded[2:]))
    starts = [float(grid[i]) for i in minima[np.argsort(values[minima], kind="stable")][:2]]
    found = [_descend(pilot, start, bounds, tolerance=None if small else 1e-6) for start in starts]
    if not small:
        least = min(point.value for point in found)
        close = [point for point in found if point.value <= least + 1e-3 * abs(least)]
        # where the pilot sees a temperature alone, all rows have told its optimum already
        starts = {alone if point.weights[0] > 0.999 else point.beta for point in close}
        found = [_descend(profile, start, bounds) for start in sorted(starts)]
    best = min(found, key=lambda point: point.value)
    return best if best.value <= loss_alone else min(best, profile(alone), key=lambda point: point.value)


def _descend(
    profile: Profile, beta: float, bounds: tuple[float, float], most: int = 25, tolerance: float | None = None
) -> _Point:
    """Newton in log β with step cutting, from one starting point, until the promised gain is negligible."""
    low, high = np.log(bounds[0]), np.log(bounds[1])
    if tolerance is None:
        tolerance = 1e-9 if profile.sample.logits.dtype == np.float32 else 1e-12
    here, passes = profile(beta), 1
    while passes < most:
        step = -here.slope / here.curvature if here.curvature > 0 else -np.sign(here.slope)
        x = np.log(here.beta)
        step = float(np.clip(x + np.clip(step, -1.0, 1.0), low, high)) - x
        if abs(here.slope * step) < tolerance:
            return replace(here, passes=passes)
        there, passes = profile(float(np.exp(x + step))), passes + 1
        while there.value > here.value and abs(step) > 1e-7 and passes < most:
            step *= 0.25
            there, passes = profile(float(np.exp(x + step))), passes + 1
        if there.value >= here.value:
            return replace(here, passes=passes)
        here = there
    return replace(here, passes=passes, converged=False)
