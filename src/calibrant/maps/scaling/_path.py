"""Penalised fits of the linear maps, and the strength of the penalty by cross-validation along a path."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...passes import Sample
from ._problem import Problem
from ._solver import Solution, minimise

__all__ = ["Choice", "choose", "fold_numbers", "solve"]

_FOLDS = 5
_ONE_FOLD = 2_000_000  # above this many scores one held-out fold is as telling as five
_TOLERANCE = 1e-7  # of the loss of a row
_STEP = 10**0.5
_PATIENCE = 1


@dataclass(frozen=True, eq=False)
class Choice:
    """The chosen strength, with the rows that were held out to find it and their losses."""

    strength: float
    strengths: list[float]
    curve: list[float]
    rows: NDArray[np.int64]
    losses: NDArray[np.float64]
    passes: int


def solve(
    problem: Problem, penalty: NDArray[np.float64], start: NDArray[np.float64], tolerance: float = 1.0
) -> Solution:
    """Minimise the summed log-loss + ½ Σ penalty · θ² from a start."""
    curvature = problem.sums(start, curvature=True).curvature
    assert curvature is not None

    def objective(theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        sums = problem.sums(theta)
        return sums.loss + 0.5 * float(penalty @ theta**2), sums.gradient + penalty * theta

    unit = _TOLERANCE * problem.sample.total_weight
    return minimise(objective, start, 1.0 / (curvature + penalty + 1e-12 * unit), tolerance * unit)


def fold_numbers(sample: Sample, count: int) -> NDArray[np.int64]:
    """Return a fold for each row that depends on the row alone.

    So the folds know neither the order of the rows nor a shift of their logits, and a row given twice is in one fold
    like a row of weight two.
    """
    z, y = sample.logits, sample.labels
    mean = z.mean(axis=1, dtype=np.float64)
    marks = np.stack([z[np.arange(sample.n), y] - mean, z.max(axis=1) - mean, z[:, 0] - mean])
    scale = float(np.average(np.abs(marks).mean(axis=0), weights=sample.weights)) or 1.0
    cells = np.round(marks / scale * 4096.0).astype(np.int64).astype(np.uint64)
    mixed = y.astype(np.uint64)
    for cell in cells:
        mixed = (mixed ^ cell) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return (mixed % np.uint64(count)).astype(np.int64)


def choose(problem: Problem, shape: NDArray[np.float64]) -> Choice:
    """Choose the strength s of the penalty s · shape by cross-validation.

    The path falls from a strength that leaves temperature scaling alone; each fit starts at the one before, and the
    path ends when the held-out loss has risen.
    """
    weights = problem.sample.weight_array
    fold = fold_numbers(problem.sample, _FOLDS)
    folds = range(1 if problem.sample.logits.size > _ONE_FOLD else _FOLDS)
    groups = [
        g for f in folds if len(g := np.flatnonzero((fold == f) & (weights > 0))) and len(g) < (weights > 0).sum()
    ]
    if not groups:
        return Choice(np.inf, [np.inf], [np.nan], np.empty(0, np.int64), np.empty(0), 0)
    parts = [problem.weighted(_without(weights, rows)) for rows in groups]
    return _walk(problem, shape, parts, groups)


def _walk(
    problem: Problem,
    shape: NDArray[np.float64],
    parts: list[Problem],
    groups: list[NDArray[np.int64]],
) -> Choice:
    rows = np.concatenate(groups)
    thetas = [np.zeros(problem.size) for _ in parts]
    losses = np.concatenate([problem.losses(t, g) for t, g in zip(thetas, groups, strict=True)])
    weights = problem.sample.weight_array[rows]
    strengths, curve, kept, passes = [np.inf], [float(weights @ losses / weights.sum())], [losses], 0
    strength = _strongest(problem, shape)
    while strength > 1e-2 and int(np.argmin(curve)) >= len(curve) - 1 - _PATIENCE:
        solutions = [solve(p, strength * shape, t, 10.0) for p, t in zip(parts, thetas, strict=True)]
        thetas = [s.theta for s in solutions]
        passes += sum(s.passes + 1 for s in solutions)
        losses = np.concatenate([problem.losses(t, g) for t, g in zip(thetas, groups, strict=True)])
        strengths.append(strength)
        curve.append(float(weights @ losses / weights.sum()))
        kept.append(losses)
        strength /= _STEP
    best = int(np.argmin(curve))
    return Choice(strengths[best], strengths, curve, rows, kept[best], passes)


def _without(weights: NDArray[np.float64], rows: NDArray[np.int64]) -> NDArray[np.float64]:
    rest = weights.copy()
    rest[rows] = 0.0
    return rest


def _strongest(problem: Problem, shape: NDArray[np.float64]) -> float:
    """Return a strength at which the penalty outweighs the data a hundredfold for the average parameter."""
    curvature = problem.sums(np.zeros(problem.size), curvature=True).curvature
    assert curvature is not None
    held = shape > 0
    return 100.0 * float(np.mean(curvature[held] / shape[held]))
