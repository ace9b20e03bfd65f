"""Logistic regression of the outcomes of cells on a few columns, with a quadratic penalty or none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit

from ..types import Array

_STEPS = 60  # Newton's method needs fewer than ten unless outcomes are separable
_STEEP = 1e4  # log-odds beyond which a fit runs away: outcomes are separable


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """Coefficients, curvature of the log-likelihood and of the penalty there, log-likelihood, and how it ended."""

    theta: Array
    curvature: Array
    penalty: Array
    likelihood: float
    converged: bool

    @property
    def covariance(self) -> Array:
        """The inverse of the curvature of both; of what no row determines it is large but finite."""
        total = self.curvature + self.penalty
        ridge = 1e-12 * max(float(np.trace(total)), 1e-300) * np.eye(len(self.theta))
        return np.linalg.inv(total + ridge).astype(np.float64)


def fit_logistic(
    design: Array,
    outcomes: Array,
    weights: Array,
    *,
    offset: Array | float = 0.0,
    penalty: Array | None = None,
    start: Array | None = None,
    centre: Array | None = None,
) -> LogisticFit:
    """Maximise Σ[o·log σ(z) + (w - o)·log σ(-z)] - ½(θ - c)ᵀP(θ - c), z = Dθ + offset, by Newton with halved steps.

    D is the (m, d) design, o the weight of what happened in a cell, w that of all of it, P the (d, d) penalty and c the
    centre: zeros, where the search also starts, unless they are given.
    """
    d = design.shape[1]
    P = np.zeros((d, d)) if penalty is None else penalty
    c = np.zeros(d) if centre is None else centre
    missed = weights - outcomes

    def value(theta: Array) -> tuple[float, float]:
        z = design @ theta + offset
        likelihood = float(outcomes @ log_expit(z) + missed @ log_expit(-z))
        return likelihood, likelihood - 0.5 * float((theta - c) @ P @ (theta - c))

    theta = c.copy() if start is None else start
    likelihood, best = value(theta)
    converged = False
    curvature = np.zeros((d, d))
    for _ in range(_STEPS):
        p = expit(design @ theta + offset)
        gradient = design.T @ (outcomes - weights * p) - P @ (theta - c)
        curvature = (design * (weights * p * (1 - p))[:, None]).T @ design
        total = curvature + P
        step = np.linalg.lstsq(total, gradient, rcond=1e-13)[0]
        gain = float(gradient @ step)
        if gain <= 1e-14 * (1 + abs(best)):
            converged = True
            break
        factor = 1.0
        tried, new = value(theta + step)
        while factor > 1e-8 and not new > best:
            factor /= 2
            tried, new = value(theta + factor * step)
        if factor <= 1e-8:
            converged = gain <= 1e-8 * (1 + abs(best))
            break
        theta, likelihood, best = theta + factor * step, tried, new
        if np.abs(design @ theta).max(initial=0.0) > _STEEP:
            break
    return LogisticFit(theta, curvature, P, likelihood, converged)
