"""Logistic regression in few features: the solver of Platt scaling and of beta calibration."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ...fit_report import FitReport
from .base import Pairs

__all__ = ["Logistic", "fit_logistic", "sigmoid"]

_STEPS = 100


@dataclass(frozen=True)
class Logistic:
    """Fitted coefficients, the mean loss they reach, and how the solver went."""

    coefficients: NDArray[np.float64]
    loss: float
    steps: int
    converged: bool

    def report(self, pairs: Pairs, answers: NDArray[np.floating]) -> FitReport:
        """Return the report on this fit, whose map answers its own pairs with ``answers``."""
        return FitReport(self.steps, self.converged, "nll", pairs.raw_nll(), pairs.mean_nll(answers))


def sigmoid(values: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return 1 / (1 + exp(-x)) in the dtype of x."""
    return expit(values)


def fit_logistic(
    features: NDArray[np.floating],
    pairs: Pairs,
    start: NDArray[np.float64],
    *,
    smooth_targets: bool,
    nonnegative: tuple[int, ...] = (),
) -> Logistic:
    """Minimise the mean log-loss of σ(features · c).

    The problem is convex. Where coefficients listed in ``nonnegative`` would turn negative, the best solution with some
    of them at zero is taken, which is the constrained optimum.
    """
    x, weights = features.astype(np.float64), pairs.weight_array
    targets = _targets(pairs, smooth_targets)
    best = _newton(x, targets, weights, start)
    if all(best.coefficients[i] >= 0 for i in nonnegative):
        return best
    feasible: list[Logistic] = []
    for count in range(1, len(nonnegative) + 1):
        for fixed in combinations(nonnegative, count):
            free = [i for i in range(x.shape[1]) if i not in fixed]
            part = _newton(x[:, free], targets, weights, start[free])
            full = np.zeros(x.shape[1])
            full[free] = part.coefficients
            if all(full[i] >= 0 for i in nonnegative):
                feasible.append(Logistic(full, part.loss, part.steps, part.converged))
    return min(feasible, key=lambda found: found.loss)


def _targets(pairs: Pairs, smooth: bool) -> NDArray[np.float64]:
    y = pairs.outcomes.astype(np.float64)
    if not smooth:
        return y
    weights = pairs.weight_array
    positives = float(weights @ y)
    negatives = float(weights.sum()) - positives
    return np.where(pairs.outcomes, (positives + 1) / (positives + 2), 1 / (negatives + 2))


def _newton(
    x: NDArray[np.float64], targets: NDArray[np.float64], weights: NDArray[np.float64], start: NDArray[np.float64]
) -> Logistic:
    """Newton steps, halved until the loss falls."""
    total = weights.sum()
    c = start.copy()
    loss = _loss(x @ c, targets, weights, total)
    for step_count in range(1, _STEPS + 1):
        q = expit(x @ c)
        gradient = x.T @ (weights * (q - targets)) / total
        hessian = (x * (weights * q * (1 - q) / total)[:, None]).T @ x
        scale = np.sqrt(np.maximum(np.diag(hessian), 1e-300))
        step = -np.linalg.lstsq(hessian / np.outer(scale, scale), gradient / scale, rcond=1e-12)[0] / scale
        decrease = float(-gradient @ step)
        if not np.isfinite(step).all() or decrease <= 1e-14 * (1 + abs(loss)):
            return Logistic(c, loss, step_count, True)
        for halving in range(40):
            trial = c + step * 0.5**halving
            value = _loss(x @ trial, targets, weights, total)
            if value <= loss - 1e-4 * 0.5**halving * decrease:
                break
        else:
            return Logistic(c, loss, step_count, True)  # no direction improves within rounding
        c, loss = trial, value
    return Logistic(c, loss, _STEPS, False)


def _loss(
    margins: NDArray[np.float64], targets: NDArray[np.float64], weights: NDArray[np.float64], total: float
) -> float:
    return float(weights @ (np.logaddexp(0.0, margins) - targets * margins) / total)
