"""Penalised fits of the linear maps, and the strength of the penalty by cross-validation along a path."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...arrays import softmax
from ...fit_report import FitReport, label_losses, with_held_out
from ...passes import Sample
from ._problem import Problem, Sums
from ._solver import Metric, Solution, minimise

__all__ = ["Choice", "choose", "fold_numbers", "solve", "with_choice"]

_FOLDS = 5
_ONE_FOLD, _TWO_FOLDS = 2_000_000, 300_000  # above so many scores one held-out fold, or two, tell as much as all
_TOLERANCE = 3e-7  # of the loss of a row
_STEP = 10**0.7
_LOOSE = 30.0  # times the tolerance, along the path: what is compared there differs in the fourth digit
_SHORTEST, _LONGEST = 2, 14  # points of the path


@dataclass(frozen=True, eq=False)
class Choice:
    """The chosen strength, the rows that were held out to find it, their losses, and parameters to start from."""

    strength: float
    strengths: list[float]
    curve: list[float]
    rows: NDArray[np.int64]
    losses: NDArray[np.float64]
    theta: NDArray[np.float64]
    passes: int


def solve(
    problem: Problem, penalty: NDArray[np.float64], start: NDArray[np.float64], tolerance: float = 1.0
) -> Solution:
    """Minimise the summed log-loss + ½ Σ penalty · θ² from a start."""

    def penalised(theta: NDArray[np.float64], sums: Sums) -> tuple[float, NDArray[np.float64]]:
        return sums.loss + 0.5 * float(penalty @ theta**2), sums.gradient + penalty * theta

    unit = _TOLERANCE * problem.sample.total_weight
    at_start = problem.sums(start, curvature=not problem.few)
    if at_start.curvature is None:
        metric = _by_class(problem, penalty + 1e-12 * unit, start)
    else:
        metric = _by_parameter(1.0 / (at_start.curvature + penalty + 1e-12 * unit))
    return minimise(
        lambda theta: penalised(theta, problem.sums(theta)),
        start,
        penalised(start, at_start),
        metric,
        tolerance * unit,
    )


def _by_parameter(inverse: NDArray[np.float64]) -> Metric:
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
    problem: Problem,
    shape: NDArray[np.float64],
    start: float | None = None,
    step: float = _STEP,
    folds: int = _FOLDS,
    favoured: float | None = None,
) -> Choice:
    """Choose the strength s of the penalty s · shape by cross-validation.

    The path falls from a strength that leaves temperature scaling alone; each fit starts at the one before, and the
    path ends when the held-out loss has risen. A ``favoured`` strength on the path gives way only to one that is better
    by more than the standard error of the difference.
    """
    weights = problem.sample.weight_array
    size = problem.sample.logits.size
    used = 1 if size > _ONE_FOLD else min(2, folds) if size > _TWO_FOLDS else folds
    fold = fold_numbers(problem.sample, folds)
    groups = [np.flatnonzero((fold == f) & (weights > 0)) for f in range(used)]
    groups = [rows for rows in groups if 0 < len(rows) < np.count_nonzero(weights)]
    if not groups:
        return Choice(np.inf, [np.inf], [np.nan], np.empty(0, np.int64), np.empty(0), np.zeros(problem.size), 0)
    parts = [problem.without(rows) for rows in groups]
    return _walk(problem, shape, parts, groups, start or _strongest(problem, shape), step, favoured)


def _walk(
    problem: Problem,
    shape: NDArray[np.float64],
    parts: list[Problem],
    groups: list[NDArray[np.int64]],
    strength: float,
    step: float,
    favoured: float | None,
) -> Choice:
    rows = np.concatenate(groups)
    thetas = [np.zeros(problem.size) for _ in parts]
    losses = np.concatenate([problem.losses(t, g) for t, g in zip(thetas, groups, strict=True)])
    weights = problem.sample.weight_array[rows]
    strengths, curve, kept, passes = [np.inf], [float(weights @ losses / weights.sum())], [losses], 0
    starts = [thetas[0]]
    while len(curve) < _LONGEST and (len(curve) <= _SHORTEST or np.argmin(curve) == len(curve) - 1):
        solutions = [solve(p, strength * shape, t, _LOOSE) for p, t in zip(parts, thetas, strict=True)]
        thetas = [s.theta for s in solutions]
        passes += sum(s.passes for s in solutions)
        losses = np.concatenate([problem.losses(t, g) for t, g in zip(thetas, groups, strict=True)])
        strengths.append(strength)
        curve.append(float(weights @ losses / weights.sum()))
        kept.append(losses)
        starts.append(thetas[0])
        strength /= step
    best = int(np.argmin(curve))
    if favoured in strengths and not _clearly_better(kept[best], kept[strengths.index(favoured)], weights):
        best = strengths.index(favoured)
    return Choice(strengths[best], strengths, curve, rows, kept[best], starts[best], passes)


def _clearly_better(losses: NDArray[np.float64], others: NDArray[np.float64], weights: NDArray[np.float64]) -> bool:
    """Tell whether losses are below others on average by more than the standard error of the difference."""
    gain = others - losses
    mean = float(np.average(gain, weights=weights))
    return mean > float(np.sqrt(weights @ (gain - mean) ** 2)) / float(weights.sum())


def _losses_before(sample: Sample, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the log-losses of some rows as their scores came."""
    parts = np.array_split(rows, max(1, len(rows) * sample.n_classes // 1_000_000))
    return np.concatenate([label_losses(softmax(sample.logits[part]), sample.labels[part]) for part in parts])


def with_choice(report: FitReport, chosen: Choice, sample: Sample) -> FitReport:
    """Fill in the held-out losses that choosing the strength has measured already."""
    report.details.update(strengths=chosen.strengths, held_out=chosen.curve)
    if not len(chosen.rows):
        return report
    before = _losses_before(sample, chosen.rows)
    return with_held_out(report, before, chosen.losses, sample.weight_array[chosen.rows])


def _strongest(problem: Problem, shape: NDArray[np.float64]) -> float:
    """Return a strength at which the penalty outweighs the data a hundredfold for the average parameter."""
    curvature = problem.sums(np.zeros(problem.size), curvature=True).curvature
    assert curvature is not None
    held = shape > 0
    return 100.0 * float(np.mean(curvature[held] / shape[held]))
