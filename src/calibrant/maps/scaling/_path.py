"""Penalised fits of the linear maps, and the strength of the penalty by cross-validation along a path."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...passes import Sample
from ._problem import Problem
from ._solver import Metric, Solution, minimise

__all__ = ["Choice", "choose", "fold_numbers", "solve"]

_FOLDS = 5
_ONE_FOLD, _TWO_FOLDS = 2_000_000, 300_000  # above so many scores one held-out fold, or two, tell as much as all
_TOLERANCE = 3e-7  # of the loss of a row
_STEP = 10**0.5
_LOOSE = 30.0  # times the tolerance, along the path: what is compared there differs in the fourth digit
_SHORTEST, _LONGEST = 2, 14  # points of the path


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

    def objective(theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        sums = problem.sums(theta)
        return sums.loss + 0.5 * float(penalty @ theta**2), sums.gradient + penalty * theta

    unit = _TOLERANCE * problem.sample.total_weight
    metric = _by_class if problem.few else _by_parameter
    return minimise(objective, start, metric(problem, penalty + 1e-12 * unit, start), tolerance * unit)


def _by_parameter(problem: Problem, penalty: NDArray[np.float64], theta: NDArray[np.float64]) -> Metric:
    curvature = problem.sums(theta, curvature=True).curvature
    assert curvature is not None
    inverse = 1.0 / (curvature + penalty)
    return lambda vector: inverse * vector


def _by_class(problem: Problem, penalty: NDArray[np.float64], theta: NDArray[np.float64]) -> Metric:
    k = problem.k

    def rows(vector: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.column_stack([vector[:-k].reshape(k, -1), vector[-k:]])

    blocks = np.stack(list(problem.blocks(theta, np.arange(k))))
    diagonal = np.arange(blocks.shape[1])
    blocks[:, diagonal, diagonal] += rows(penalty) + 1e-9 * blocks[:, diagonal, diagonal]
    inverses = np.linalg.inv(blocks)

    def apply(vector: NDArray[np.float64]) -> NDArray[np.float64]:
        found = (inverses @ rows(vector)[:, :, None])[:, :, 0]
        return np.concatenate([found[:, :-1].ravel(), found[:, -1]])

    return apply


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


def choose(
    problem: Problem, shape: NDArray[np.float64], start: float | None = None, step: float = _STEP, folds: int = _FOLDS
) -> Choice:
    """Choose the strength s of the penalty s · shape by cross-validation.

    The path falls from a strength that leaves temperature scaling alone; each fit starts at the one before, and the
    path ends when the held-out loss has risen.
    """
    weights = problem.sample.weight_array
    size = problem.sample.logits.size
    used = 1 if size > _ONE_FOLD else min(2, folds) if size > _TWO_FOLDS else folds
    fold = fold_numbers(problem.sample, folds)
    groups = [np.flatnonzero((fold == f) & (weights > 0)) for f in range(used)]
    groups = [rows for rows in groups if 0 < len(rows) < np.count_nonzero(weights)]
    if not groups:
        return Choice(np.inf, [np.inf], [np.nan], np.empty(0, np.int64), np.empty(0), 0)
    parts = [problem.without(rows) for rows in groups]
    return _walk(problem, shape, parts, groups, start or _strongest(problem, shape), step)


def _walk(
    problem: Problem,
    shape: NDArray[np.float64],
    parts: list[Problem],
    groups: list[NDArray[np.int64]],
    strength: float,
    step: float,
) -> Choice:
    rows = np.concatenate(groups)
    thetas = [np.zeros(problem.size) for _ in parts]
    losses = np.concatenate([problem.losses(t, g) for t, g in zip(thetas, groups, strict=True)])
    weights = problem.sample.weight_array[rows]
    strengths, curve, kept, passes = [np.inf], [float(weights @ losses / weights.sum())], [losses], 0
    while len(curve) < _LONGEST and (len(curve) <= _SHORTEST or np.argmin(curve) == len(curve) - 1):
        solutions = [solve(p, strength * shape, t, _LOOSE) for p, t in zip(parts, thetas, strict=True)]
        thetas = [s.theta for s in solutions]
        passes += sum(s.passes + 1 for s in solutions)
        losses = np.concatenate([problem.losses(t, g) for t, g in zip(thetas, groups, strict=True)])
        strengths.append(strength)
        curve.append(float(weights @ losses / weights.sum()))
        kept.append(losses)
        strength /= step
    best = int(np.argmin(curve))
    return Choice(strengths[best], strengths, curve, rows, kept[best], passes)


def _strongest(problem: Problem, shape: NDArray[np.float64]) -> float:
    """Return a strength at which the penalty outweighs the data a hundredfold for the average parameter."""
    curvature = problem.sums(np.zeros(problem.size), curvature=True).curvature
    assert curvature is not None
    held = shape > 0
    return 100.0 * float(np.mean(curvature[held] / shape[held]))
