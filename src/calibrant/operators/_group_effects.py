"""Deviations of groups from a common map, shrunk by as much as the evidence says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import softmax
from ..types import Array, Integers

_ROUNDS = 60  # of the search for the two variances; each is a Newton step for every group
_STEPS = 3  # Newton steps of a group in a round
_SETTLED = 1e-3  # relative change of the variances at which the search ends
_LEAST = 1e-6  # variance below which groups do not differ
_NONE = 1e-9  # of a number determined: nothing is known of the variance then
_START = 0.1  # variance to start from: a standard deviation of .3 in log-odds
_FAR = 40.0  # nats from the mean at which a score counts as no further off


@dataclass(frozen=True, eq=False)
class GroupEffects:
    """Deviations (G, K + 1) of levels and slope, their variances, γ of each group, the evidence gained, rounds."""

    values: Array
    variances: Array
    effective: Array
    gain: float
    rounds: int


def shifted(z: Array, centre: Array, effects: Array) -> Array:
    """Return z + α + β (z - z̄) for rows with effects (n, K + 1); z̄ is the mean of all rows' logits."""
    return z + effects[:, :-1] + effects[:, -1:] * np.clip(z - centre, -_FAR, _FAR)


def find_effects(z: Array, labels: Integers, weights: Array, groups: Integers, centre: Array) -> GroupEffects:
    """Minimise Σ log-loss + ½ Σ_g (u_g - m)ᵀ T⁻¹ (u_g - m), with T = diag(τ_α², …, τ_β²) of the greatest evidence.

    The variances are fixed points: τ² = Σ (u - m)² / Σ γ, γ how much of each number the rows determine (MacKay 1992).
    m is a slope that all groups share: a map fitted to all rows takes differences between groups for noise in its
    scores, and is too flat for each of them. Groups that do not differ get nothing.
    """
    count, k = int(groups.max()) + 1, z.shape[1]
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(count + 1))
    parts = [order[starts[g] : starts[g + 1]] for g in range(count)]
    values, variances, mean = np.zeros((count, k + 1)), np.array([_START, _START]), np.zeros(k + 1)
    evidence, covariance, effective, rounds = -np.inf, np.zeros((count, k + 1)), np.zeros(count), 0
    while rounds < _ROUNDS:
        rounds += 1
        evidence, held = 0.0, 0.0
        precision = 1.0 / np.append(np.full(k, variances[0]), variances[1])
        for g, own in enumerate(parts):
            values[g], covariance[g], effective[g], found = _one_group(
                z[own], labels[own], weights[own], centre, precision, mean, values[g]
            )
            evidence += found
            held += precision[k] * (1.0 - precision[k] * covariance[g, k])  # what its rows say of m
        apart = values - mean
        determined = 1.0 - covariance * precision  # of each number, by its group's rows; of a row's common level none
        numbers = (slice(0, k), slice(k, None))
        fresh = np.array([(apart[:, own] ** 2).sum() / max(determined[:, own].sum(), _NONE) for own in numbers])
        fresh = np.maximum(fresh, _LEAST)
        shift = precision[k] * apart[:, k].sum() / max(held, _NONE)
        change = max(np.abs(fresh / variances - 1).max(), abs(shift))
        variances = fresh
        mean[k] += shift
        if change < _SETTLED:
            break
    if evidence <= 0.5 * np.log(max(weights.sum(), 1.0)):  # what the shared slope costs (Schwarz 1978)
        return GroupEffects(np.zeros_like(values), np.zeros(2), np.zeros(count), 0.0, rounds)
    return GroupEffects(values, variances, effective, float(evidence), rounds)


def _one_group(
    z: Array, labels: Integers, weights: Array, centre: Array, precision: Array, mean: Array, start: Array
) -> tuple[Array, Array, float, float]:
    """Newton for one group: its deviation, posterior variances, γ, and the evidence beyond that of no deviation."""
    features = np.clip(z - centre, -_FAR, _FAR)
    u = start
    value, gradient, hessian = _sums(z, features, labels, weights, u)
    value += 0.5 * float((u - mean) @ (precision * (u - mean)))
    for _ in range(_STEPS):
        step = np.linalg.solve(hessian + np.diag(precision), -(gradient + precision * (u - mean)))
        size = 1.0
        while size > 1e-4:
            trial = u + size * step
            found = _sums(z, features, labels, weights, trial)
            total = found[0] + 0.5 * float((trial - mean) @ (precision * (trial - mean)))
            if total <= value:
                u, value, gradient, hessian = trial, total, found[1], found[2]
                break
            size *= 0.5
        if size * np.abs(step).max() < 1e-6:
            break
    inverse = np.linalg.inv(hessian + np.diag(precision))
    gamma = float(np.trace(inverse @ hessian))
    base = _sums(z, features, labels, weights, np.zeros_like(u))[0]
    logdet = np.linalg.slogdet(inverse)[1] + np.log(precision).sum()
    return u, np.diag(inverse).copy(), gamma, float(base - value + 0.5 * logdet)


def _sums(z: Array, features: Array, labels: Integers, weights: Array, u: Array) -> tuple[float, Array, Array]:
    """Summed log-loss of softmax(z + α + β f), its gradient and Hessian in (α, β)."""
    k, rows = z.shape[1], np.arange(len(z))
    p = np.asarray(softmax(z + u[:k] + u[k] * features), dtype=np.float64)
    loss = -float(weights @ np.log(np.maximum(p[rows, labels], 1e-300)))
    rest = p.copy()
    rest[rows, labels] -= 1.0
    gradient = np.append(weights @ rest, float(weights @ (rest * features).sum(axis=1)))
    mean = (p * features).sum(axis=1)
    hessian = np.zeros((k + 1, k + 1))
    hessian[:k, :k] = np.diag(weights @ p) - (p * weights[:, None]).T @ p
    hessian[:k, k] = hessian[k, :k] = (p * (features - mean[:, None]) * weights[:, None]).sum(axis=0)
    hessian[k, k] = float(weights @ ((p * features**2).sum(axis=1) - mean**2))
    return loss, gradient, hessian
