"""Smooth calibration curves by name: the spline that we take, and those of other programs to compare with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.interpolate import CubicHermiteSpline
from scipy.special import expit

from ...arrays import weighted_quantiles
from ...cells.logistic import fit_logistic
from ...cells.logit_spline import _odds, logit_spline
from ...cells.pairs import Cells, Pairs
from ...errors import InvalidInput
from ...parameters import is_one_of
from ...types import Array

Curve = Callable[[Array], Array]
# Harrell's quantiles of the knots.
_RCS = {3: (0.1, 0.5, 0.9), 4: (0.05, 0.35, 0.65, 0.95), 5: (0.05, 0.275, 0.5, 0.725, 0.95)}


def smoothed(pairs: Pairs, smoother: str = "spline") -> Any:
    """Return a smooth curve of frequencies over scores, with a method ``at``.

    Parameters
    ----------
    smoother : {"spline", "lowess", "loess", "rcs"}
        "spline": our penalised spline of the log-odds. "lowess" (that of rms' val.prob) and "loess" (with its
        defaults): R's, to its digits, which may leave [0, 1]. "rcs": a restricted cubic spline of the log-odds with 4
        knots at Harrell's quantiles ("rcs3", "rcs5" for others).
    """
    if not is_one_of(smoother, SMOOTHERS):
        raise InvalidInput("no such smoother", seen=repr(smoother), allowed=", ".join(SMOOTHERS))
    return SMOOTHERS[smoother](pairs)


class _Places:
    """A curve through places, linear between."""

    def __init__(self, places: Array, values: Array) -> None:
        self.places, self.values = places, values

    def at(self, scores: Array) -> Array:
        return np.interp(scores, self.places, self.values)


class _Cubes:
    """A curve through places with given values and slopes, cubic between."""

    def __init__(self, places: Any, values: Array, slopes: Array) -> None:
        self.curve = CubicHermiteSpline(places, values, slopes)

    def at(self, scores: Array) -> Array:
        return self.curve(scores)


class _Restricted:
    """A restricted cubic spline of the log-odds."""

    def __init__(self, knots: Array, theta: Array) -> None:
        self.knots, self.theta = knots, theta

    def at(self, scores: Array) -> Array:
        return expit(_restricted_basis(_odds(scores), self.knots) @ self.theta)


def _lowess(pairs: Pairs) -> _Places:
    """R's ``lowess(iter = 0)``: local lines over ⅔ of the rows, at places a hundredth of the range apart.

    Each place is the last score within that reach of the one before, or the next where there is none.
    """
    cells = _by_score(pairs.cells)
    x, places = cells.scores, [0]
    while places[-1] < len(x) - 1:
        last = int(np.searchsorted(x, x[places[-1]] + 0.01 * (x[-1] - x[0]), side="right")) - 1
        places.append(max(places[-1] + 1, last))
    return _Places(x[places], np.array([_local(cells, at, 2 / 3, 1)[0] for at in x[places].tolist()]))


def _loess(pairs: Pairs) -> _Cubes:
    """R's ``loess``: local parabolas over ¾ of the rows at few vertices; cubes with their values and slopes between."""
    cells = _by_score(pairs.cells)
    vertices = _vertices(cells, 0.2 * 0.75)
    values, slopes = np.array([_local(cells, at, 0.75, 2) for at in vertices]).T
    return _Cubes(vertices, values, slopes)


def _vertices(cells: Cells, least: float) -> list[float]:
    """Return R's vertices: the ends, half a percent of the range beyond, and medians of parts that have many rows."""
    x, rows = cells.scores.tolist(), np.r_[0.0, np.cumsum(cells.weights)] * (cells.rows / cells.weights.sum())
    fewest, beyond = np.floor(least * rows[-1] + 1e-9), 0.005 * max(x[-1] - x[0], 1e-3)  # R's, and of one score
    found = [x[0] - beyond, x[-1] + beyond]
    parts = [(1.0, rows[-1], *found)]
    while parts:
        first, last, low, high = parts.pop()
        at = int(np.searchsorted(rows, np.floor((first + last) / 2 + 1e-9) - 1e-6)) - 1
        middle = rows[at] + 1  # the first row of those tied there
        if last - first + 1 > fewest + 1e-6 and middle >= first and low < x[at] < high:
            found.append(x[at])
            parts += [(first, middle, low, x[at]), (middle + 1, last, x[at], high)]
    return sorted(found)


def _by_score(cells: Cells, most: int = 20_000) -> Cells:
    """Join neighbours where there are many, at their mean score."""
    if len(cells.scores) <= most:
        return cells
    place = np.floor((np.cumsum(cells.weights) - cells.weights) * (most / cells.weights.sum()))
    first = np.flatnonzero(np.r_[True, place[1:] != place[:-1]])
    weights = np.add.reduceat(cells.weights, first)
    scores = np.add.reduceat(cells.weights * cells.scores, first) / weights
    return Cells(scores, weights, np.add.reduceat(cells.outcomes, first), unit=cells.rows / float(cells.weights.sum()))


def _local(cells: Cells, x: float, span: float, degree: int) -> tuple[float, float]:
    """Return value and slope at x of a local polynomial with tricube weights over the nearest share of the rows."""
    distance = np.abs(cells.scores - x)
    order = np.argsort(distance, kind="stable")
    within = np.cumsum(cells.weights[order])
    unit = within[-1] / max(1.0, cells.rows)
    wanted = np.floor(span * cells.rows + 1e-5) * unit
    reach = float(distance[order[min(np.searchsorted(within, wanted - 1e-9 * unit), len(order) - 1)]])
    if reach <= 0:
        same = distance <= 0
        return float(cells.outcomes[same].sum() / cells.weights[same].sum()), 0.0
    kernel = np.clip(1 - (distance / reach) ** 3, 0.0, None) ** 3
    if degree == 1:  # R's lowess is 1 and 0 a thousandth before the ends
        kernel = np.where(distance <= 0.001 * reach, 1.0, kernel) * (distance <= 0.999 * reach)
    w = kernel * cells.weights
    if w.sum() <= 0:
        return float(cells.frequencies[order[0]]), 0.0
    spread = np.average((cells.scores - np.average(cells.scores, weights=w)) ** 2, weights=w) ** 0.5
    crowded = degree == 1 and spread <= 0.001 * (cells.scores[-1] - cells.scores[0])  # R's lowess draws no line there
    if crowded or np.count_nonzero(w) <= degree:
        return float((w @ cells.frequencies) / w.sum()), 0.0
    design = ((cells.scores - x) / reach)[:, None] ** np.arange(degree + 1)
    normal = (design * w[:, None]).T @ design
    right = design.T @ (kernel * cells.outcomes)
    theta = np.linalg.lstsq(normal, right, rcond=1e-10)[0]
    return float(theta[0]), float(theta[1]) / reach


def _rcs(count: int) -> Callable[[Pairs], _Restricted]:
    def fit(pairs: Pairs) -> _Restricted:
        cells = _by_score(pairs.cells)
        x = _odds(cells.scores)
        knots = weighted_quantiles(x, cells.weights, np.array(_RCS[count]))
        basis = _restricted_basis(x, knots)
        ridge = np.diag(
            np.r_[0.0, 0.0, np.full(basis.shape[1] - 2, 1e-12)]
        )  # separable rows end finite, others as in R
        fit = fit_logistic(basis, cells.outcomes, cells.weights, penalty=ridge)
        return _Restricted(knots, fit.theta)

    return fit


def _restricted_basis(x: Array, knots: Array) -> Array:
    """1, x and Harrell's truncated cubes, scaled by the square of the knots' range."""
    last, before = knots[-1], knots[-2]
    scale = max((last - knots[0]) ** 2, 1e-12)
    apart = max(last - before, 1e-12)

    def cube(t: float) -> Array:
        return np.maximum(x - t, 0.0) ** 3

    bends = [
        (cube(t) - cube(before) * (last - t) / apart + cube(last) * (before - t) / apart) / scale
        for t in knots[:-2].tolist()
    ]
    return np.column_stack([np.ones_like(x), x, *bends])


SMOOTHERS: dict[str, Callable[[Pairs], Any]] = {
    "spline": logit_spline,
    "lowess": _lowess,
    "loess": _loess,
    "rcs": _rcs(4),
    "rcs3": _rcs(3),
    "rcs5": _rcs(5),
}
