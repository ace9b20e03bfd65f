"""Penalised fits of the linear maps, and the strength of the penalty by cross-validation along a path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays import row_subsample, softmax
from ...fits.judge import Comparison, judged, label_losses
from ...fits.report import FitReport
from ...passes import Block
from ._curvature import Metric, curvature
from ._problem import Problem, Sums
from ._solver import minimise

__all__ = ["Choice", "Point", "choose", "fold_numbers", "solve", "with_choice", "with_estimate"]

_FOLDS = 5
_ONE_FOLD, _TWO_FOLDS = 2_000_000, 300_000  # above so many scores one held-out fold, or two, tell as much as all
_TOLERANCE = 3e-7  # of the loss of a row
_SHARE = 3e-4  # of a nat for each parameter that the rows determine: there are many where there are many classes
_STEP = 10**0.7
_LOOSE = 20.0  # times the tolerance, along the path: what is compared there differs in the fourth digit
_STRONGEST = 1.0  # a row; a parameter moves the scores by about one, so that this leaves it next to zero
_SHORTEST, _LONGEST = 2, 14  # points of the path
_JUDGED = 1000  # rows that tell the standard error of the held-out loss


@dataclass(frozen=True, eq=False)
class Choice:
    """The chosen strength, the rows that were held out to find it, their losses, and the passes it took."""

    strength: float
    strengths: list[float]
    curve: list[float]
    rows: NDArray[np.int64]
    losses: NDArray[np.float64]
    passes: int


class Point(NamedTuple):
    """Parameters, and the sums of the pass there."""

    theta: NDArray[np.float64]
    sums: Sums

    @classmethod
    def zero(cls, problem: Problem) -> Point:
        """Return where every fit begins: all parameters zero."""
        theta = np.zeros(problem.size)
        return cls(theta, problem.sums(theta))


class Solved(NamedTuple):
    """The optimum, the passes it took, and whether the solver met its tolerance."""

    point: Point
    passes: int
    converged: bool


def solve(
    problem: Problem, penalty: NDArray[np.float64], start: Point, metric: Metric, tolerance: float = 1.0
) -> Solved:
    """Minimise the summed log-loss + ½ Σ penalty · θ² from a start, in a metric."""

    def penalised(theta: NDArray[np.float64], sums: Sums) -> tuple[float, NDArray[np.float64]]:
        return sums.loss + 0.5 * float(penalty @ theta**2), sums.gradient + penalty * theta

    unit = _TOLERANCE * problem.sample.total_weight
    if not (problem.full and problem.few):
        unit = max(unit, _SHARE * float(np.clip(1.0 - penalty * metric.diagonal(), 0.0, 1.0).sum()))
    found = minimise(
        lambda theta: penalised(theta, problem.sums(theta)),
        start.theta,
        penalised(*start),
        metric.apply,
        tolerance * unit,
    )
    value, gradient = found.value - 0.5 * float(penalty @ found.theta**2), found.gradient - penalty * found.theta
    return Solved(Point(found.theta, Sums(value, gradient)), found.passes, found.converged)


def fold_numbers(sample: Block, count: int) -> NDArray[np.int64]:
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
    size = problem.sample.logits.size
    used = 1 if size > _ONE_FOLD else 2 if size > _TWO_FOLDS else _FOLDS
    fold = fold_numbers(problem.sample, _FOLDS)
    groups = [np.flatnonzero((fold == f) & (weights > 0)) for f in range(used)]
    groups = [rows for rows in groups if 0 < len(rows) < np.count_nonzero(weights)]
    if not groups:
        return Choice(np.inf, [np.inf], [np.nan], np.empty(0, np.int64), np.empty(0), 0)
    parts = [problem.without(rows) for rows in groups]
    return _walk(problem, shape, parts, groups)


def _walk(
    problem: Problem,
    shape: NDArray[np.float64],
    parts: list[Problem],
    groups: list[NDArray[np.int64]],
) -> Choice:
    rows, strength = np.concatenate(groups), _STRONGEST * problem.sample.total_weight
    points = [Point.zero(part) for part in parts]
    bends = [curvature(part, at.theta) for part, at in zip(parts, points, strict=True)]
    losses = np.concatenate([problem.losses(at.theta, g) for at, g in zip(points, groups, strict=True)])
    weights = problem.sample.weight_array[rows]
    strengths, curve, kept, passes = [np.inf], [float(weights @ losses / weights.sum())], [losses], 0
    while len(curve) < _LONGEST and (len(curve) <= _SHORTEST or np.argmin(curve) == len(curve) - 1):
        penalty = strength * shape
        solutions = [
            solve(p, penalty, at, near.metric(penalty), _LOOSE)
            for p, at, near in zip(parts, points, bends, strict=True)
        ]
        points = [s.point for s in solutions]
        passes += sum(s.passes for s in solutions)
        losses = np.concatenate([problem.losses(at.theta, g) for at, g in zip(points, groups, strict=True)])
        strengths.append(strength)
        curve.append(float(weights @ losses / weights.sum()))
        kept.append(losses)
        strength /= _STEP
    best = int(np.argmin(curve))
    return Choice(strengths[best], strengths, curve, rows, kept[best], passes)


def _losses_before(sample: Block, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the log-losses of some rows as their scores came."""
    parts = np.array_split(rows, max(1, len(rows) * sample.n_classes // 1_000_000))
    return np.concatenate([label_losses(softmax(sample.logits[part]), sample.labels[part]) for part in parts])


def with_choice(report: FitReport, chosen: Choice, sample: Block) -> FitReport:
    """Fill in the held-out losses that choosing the strength has measured already."""
    report.details.update(strengths=chosen.strengths, held_out=chosen.curve)
    if not len(chosen.rows):
        return report
    before = _losses_before(sample, chosen.rows)
    return judged(report, Comparison.of(before, chosen.losses, sample.weight_array[chosen.rows]))


def with_estimate(
    report: FitReport,
    sample: Block,
    losses: Callable[[NDArray[np.int64]], NDArray[np.float64]],
    effective: float,
) -> FitReport:
    """Fill in the held-out losses by Akaike's estimate: what the rows determine costs as much again on other rows.

    The standard error comes from the spread of the rows' differences, on a choice of them where there are many:
    ``losses`` returns the log-losses of such rows.
    """
    rows = np.arange(sample.n)[row_subsample(sample.n, _JUDGED)]
    weights, total = sample.weight_array[rows], sample.total_weight
    spread = judged(report, Comparison.of(_losses_before(sample, rows), losses(rows), weights))
    error = (spread.held_out_error or 0.0) * float(np.sqrt(weights.sum() / total))
    return replace(
        report,
        held_out_before=report.loss_before,
        held_out_after=report.loss_after + effective / total,
        held_out_error=float(np.hypot(error, np.sqrt(effective) / total)),
    )
