"""Smooth calibration curves by name: the spline that we take, and those of other programs to compare with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ...cells.logistic import fit_logistic
from ...cells.logit_spline import LogitSpline, _odds, grouped, logit_spline
from ...cells.pairs import Cells, Pairs
from ...errors import InvalidInput
from ...parameters import is_one_of

__all__ = ["SMOOTHERS", "smoothed"]

Floats = NDArray[np.float64]
Curve = Callable[[Floats], Floats]
_PLACES = 200  # at which a local fit is made; linear between
# Harrell's quantiles of the knots.
_RCS = {3: (0.1, 0.5, 0.9), 4: (0.05, 0.35, 0.65, 0.95), 5: (0.05, 0.275, 0.5, 0.725, 0.95)}


def smoothed(pairs: Pairs, smoother: str = "spline", like: Any = None) -> Any:
    """Return a smooth curve of frequencies over scores, with a method ``at``.

    Parameters
    ----------
    smoother : {"spline", "lowess", "loess", "rcs"}
        "spline": our penalised spline of the log-odds. "lowess": local lines over ⅔ of the rows, without robustness
        steps (rms' val.prob). "loess": local parabolas over ¾ of the rows (R's default). "rcs": a restricted cubic
        spline of the log-odds with 4 knots at Harrell's quantiles ("rcs3", "rcs5" for others).
    like : curve, optional
        An earlier curve of the same rows, whose choices are taken over.
    """
    if not is_one_of(smoother, SMOOTHERS):
        raise InvalidInput("no such smoother", seen=repr(smoother), allowed=", ".join(SMOOTHERS))
    return SMOOTHERS[smoother](pairs, like)


class _Places:
    """A curve through places, linear between."""

    def __init__(self, places: Floats, values: Floats) -> None:
        self.places, self.values = places, np.clip(values, 0.0, 1.0)

    def at(self, scores: Floats) -> Floats:
        return np.interp(scores, self.places, self.values)


class _Restricted:
    """A restricted cubic spline of the log-odds."""

    def __init__(self, knots: Floats, theta: Floats) -> None:
        self.knots, self.theta = knots, theta

    def at(self, scores: Floats) -> Floats:
        return expit(_restricted_basis(_odds(scores), self.knots) @ self.theta)


def _spline(pairs: Pairs, like: LogitSpline | None) -> LogitSpline:
    return logit_spline(pairs, like=like)


def _local(span: float, degree: int) -> Callable[[Pairs, Any], _Places]:
    """Local polynomials of scores with tricube weights over the nearest share of the rows."""

    def fit(pairs: Pairs, like: Any) -> _Places:
        cells = _by_score(pairs.cells)
        steps = np.linspace(0, len(cells.scores) - 1, min(_PLACES, len(cells.scores))).round().astype(int)
        even = np.searchsorted(cells.scores, np.linspace(cells.scores[0], cells.scores[-1], _PLACES))
        places = cells.scores[np.unique(np.r_[steps, even])]
        return _Places(places, np.array([_at(cells, x, span, degree) for x in places.tolist()]))

    return fit


def _by_score(cells: Cells, most: int = 3000) -> Cells:
    """Join neighbours where there are many, at their mean score."""
    if len(cells.scores) <= most:
        return cells
    place = np.floor((np.cumsum(cells.weights) - cells.weights) * (most / cells.weights.sum()))
    first = np.flatnonzero(np.r_[True, place[1:] != place[:-1]])
    weights = np.add.reduceat(cells.weights, first)
    scores = np.add.reduceat(cells.weights * cells.scores, first) / weights
    return Cells(scores, weights, np.add.reduceat(cells.outcomes, first))


def _at(cells: Cells, x: float, span: float, degree: int) -> float:
    distance = np.abs(cells.scores - x)
    order = np.argsort(distance, kind="stable")
    within = np.cumsum(cells.weights[order])
    unit = within[-1] / max(1.0, cells.rows)
    wanted = np.floor(span * cells.rows + 1e-5) * unit
    reach = float(distance[order[min(np.searchsorted(within, wanted - 1e-9 * unit), len(order) - 1)]])
    if reach <= 0:
        same = distance <= 0
        return float(cells.outcomes[same].sum() / cells.weights[same].sum())
    kernel = np.clip(1 - (distance / reach) ** 3, 0.0, None) ** 3 * (distance < reach)
    w = kernel * cells.weights
    if np.count_nonzero(w) <= degree:
        return float((w @ cells.frequencies) / w.sum()) if w.sum() > 0 else float(cells.frequencies[order[0]])
    design = ((cells.scores - x) / reach)[:, None] ** np.arange(degree + 1)
    normal = (design * w[:, None]).T @ design
    right = design.T @ (kernel * cells.outcomes)
    return float(np.linalg.lstsq(normal, right, rcond=1e-10)[0][0])


def _rcs(count: int) -> Callable[[Pairs, Any], _Restricted]:
    def fit(pairs: Pairs, like: Any) -> _Restricted:
        cells = grouped(pairs.cells, pairs.rows)
        x = _odds(cells.scores)
        knots = _weighted_quantiles(x, cells.weights, np.array(_RCS[count])) if like is None else like.knots
        basis = _restricted_basis(x, knots)
        ridge = np.diag(np.r_[0.0, 0.0, np.full(basis.shape[1] - 2, 1e-4)])  # separable rows end finite
        fit = fit_logistic(basis, cells.outcomes, cells.weights, penalty=ridge)
        return _Restricted(knots, fit.theta)

    return fit


def _weighted_quantiles(x: Floats, w: Floats, at: Floats) -> Floats:
    """Quantiles of type 7: rank (n - 1)·q among the rows."""
    ends = np.cumsum(w)
    rank = at * (ends[-1] - 1)
    low, high = (x[np.searchsorted(ends, np.floor(rank) + step, side="right").clip(0, len(x) - 1)] for step in (0, 1))
    return low + (rank - np.floor(rank)) * (high - low)


def _restricted_basis(x: Floats, knots: Floats) -> Floats:
    """1, x and Harrell's truncated cubes, scaled by the square of the knots' range."""
    last, before = knots[-1], knots[-2]
    scale = max((last - knots[0]) ** 2, 1e-12)
    apart = max(last - before, 1e-12)

    def cube(t: float) -> Floats:
        return np.maximum(x - t, 0.0) ** 3

    bends = [
        (cube(t) - cube(before) * (last - t) / apart + cube(last) * (before - t) / apart) / scale
        for t in knots[:-2].tolist()
    ]
    return np.column_stack([np.ones_like(x), x, *bends])


SMOOTHERS: dict[str, Callable[[Pairs, Any], Any]] = {
    "spline": _spline,
    "lowess": _local(2 / 3, 1),
    "loess": _local(0.75, 2),
    "rcs": _rcs(4),
    "rcs3": _rcs(3),
    "rcs5": _rcs(5),
}
