"""The strength of a penalty by cross-validation along a path from strong to weak."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..arrays import softmax
from ..passes import Data
from ..types import Array, Floats
from .judge import FOLDS, Comparison, compare_losses, judged
from .problem import Curvature, Point, Problem, solve
from .report import FitReport

Answer = Callable[[Floats], Floats]
_ONE_FOLD, _TWO_FOLDS = 2_000_000, 300_000  # above so many scores one held-out fold, or two, tell as much as all
_STEP = 10**0.7  # from one strength to the next: the held-out loss is flat around its minimum
_LOOSE = 20.0  # times the tolerance, along the path: what is compared there differs in the fourth digit
_STRONGEST = 1.0  # a row; a parameter moves the scores by about one, so that this leaves it next to zero
_SHORTEST, _LONGEST = 2, 14  # points of the path: up to ten decades


@dataclass(frozen=True, eq=False)
class Choice:
    """The chosen strength and how it was found: the held-out loss at every strength, and the folds' maps at the best.

    Infinity stands for the map that all paths begin with. ``parameters`` belong to ``held``, the rows held out.
    """

    strength: float
    strengths: list[float]
    curve: list[float]
    held: list[Data]
    parameters: list[Array]
    trained_on: float


@dataclass(frozen=True, eq=False)
class _Part:
    """The problem without a fold and on it, where the path begins, and the curvature there."""

    fitted: Problem
    held: Problem
    start: Point
    near: Curvature


def choose(problem: Problem, shape: Array) -> Choice:
    """Choose the strength s of the penalty s · shape by cross-validation.

    The path falls from a strength that leaves the map where it begins; each fit starts at the one before, and the
    path ends when the held-out loss has risen.
    """
    data = problem.data
    used = 1 if data.size > _ONE_FOLD else 2 if data.size > _TWO_FOLDS else FOLDS
    parts = []
    for fold in range(used):
        rest, held = data.without(fold, FOLDS), data.only(fold, FOLDS)
        if rest.total_weight > 0 and held.total_weight > 0:
            fitted = problem.on(rest)
            parts.append(_Part(fitted, problem.on(held), *Point.zero_and_curvature(fitted)))
    if not parts:
        return Choice(np.inf, [np.inf], [np.nan], [], [], 0.0)
    return _walk(parts, shape, data.total_weight)


def _walk(parts: list[_Part], shape: Array, total: float) -> Choice:
    judged_on = sum(part.held.data.total_weight for part in parts)
    strength = _STRONGEST * total
    points = [part.start for part in parts]
    walked = [points]
    strengths, curve = [np.inf], [_held_out(parts, points) / judged_on]
    while len(curve) < _LONGEST and (len(curve) <= _SHORTEST or np.argmin(curve) == len(curve) - 1):
        penalty = strength * shape
        points = [
            solve(part.fitted, penalty, at, part.near.metric(penalty), _LOOSE).point
            for part, at in zip(parts, points, strict=True)
        ]
        walked.append(points)
        strengths.append(strength)
        curve.append(_held_out(parts, points) / judged_on)
        strength /= _STEP
    best = int(np.argmin(curve))
    parameters = [at.theta for at in walked[best]]
    trained_on = total - judged_on / len(parts)
    return Choice(strengths[best], strengths, curve, [part.held.data for part in parts], parameters, trained_on)


def _held_out(parts: list[_Part], points: list[Point]) -> float:
    return sum(part.held.sums(at.theta).loss for part, at in zip(parts, points, strict=True))


def with_choice(report: FitReport, chosen: Choice, answer: Callable[[Array], Answer]) -> FitReport:
    """Fill in the held-out losses of the chosen strength; ``answer`` turns parameters into a map."""
    report.details.update(strengths=chosen.strengths, held_out=chosen.curve)
    if not chosen.held:
        return report
    found = Comparison.none()
    for held, theta in zip(chosen.held, chosen.parameters, strict=True):
        found += held.reduce(partial(compare_losses, before=softmax, after=answer(theta), loss=report.loss))
    return judged(report, found, chosen.trained_on)
