"""Quadratic scaling: a sigmoid of the log-odds and their square."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays import weighted_quantiles
from ...cells.fine import FineCells
from ...declared import attribute, declared, parameter
from ...invariants import Values
from ...parameters import AMOUNT, Number, OneOf
from ...traits import Traits
from ...types import Array
from ._regression import SMOOTH, SMOOTHING, CellRegression, smooth_outcomes
from .pieces import SATURATED, Curve, PieceMap, one_outcome

_TAILS = (0.005, 0.995)  # quantiles of the log-odds beyond which the parabola goes on along its tangents


@declared
class QuadraticScaling(PieceMap):
    """q = σ(b + a λ + c q(λ)), q the square between two quantiles of the log-odds and its tangent beyond them.

    Platt scaling with one more bend: the "quadratic" of CalArena (2026), which found it among the best maps for two
    classes, here kept from turning back: the curve rises where both end slopes, a + 2cl and a + 2cu at the 0.5 and
    99.5 % quantiles l and u, are not negative. In these slopes the problem is convex with two bounds. The penalty
    κ (c s²)², s the standard deviation of λ, has no unit, and pulls towards Platt scaling.

    Parameters
    ----------
    strength : float
        κ; one observation's worth by default.
    monotone : bool
        False lets the curve turn back, as other implementations do.
    clip : float
        Log-odds beyond ± this are answered as this is: where a float64 probability saturates, by default.
    smooth_targets : float
        s: outcomes 1 and 0 become (n₊ + s)/(n₊ + 2s) and s/(n₋ + 2s), as in Platt scaling, so that classes that
        can be separated have a finite answer.
    inputs, classes, saturated
        See `Calibrator`.

    Attributes
    ----------
    coefficients_ : array of shape (3,)
        (b, a, c).
    knots_, pieces_ : arrays
        The same as a piecewise polynomial; see `PieceMap`.
    """

    _identifier = "quadratic-scaling"
    _traits = Traits("binary", "nothing", "each class", "3", sees="cells")
    strength: float = parameter(AMOUNT, default=1.0)
    monotone: bool = parameter(OneOf(True, False), default=True)
    clip: float = parameter(Number(0, 700, open_low=True), default=SATURATED)
    smooth_targets: float = parameter(SMOOTHING, default=SMOOTH)
    coefficients_: Array = attribute(Values(3), counted=True)

    def _curve(self, cells: FineCells, low: float, high: float) -> Curve:
        alone = one_outcome(cells, low, high)
        if alone is not None:
            return alone._replace(state={"coefficients_": np.array([alone.pieces[0, 0] - low, 1.0, 0.0])})
        x, w = cells.scores, cells.weights
        centre = float(w @ x / w.sum())
        scale = float(np.sqrt(w @ (x - centre) ** 2 / w.sum()))
        if scale <= 1e-9 * max(abs(centre), 1e-300):
            return self._solved(cells, np.ones((cells.count, 1)), np.array([low, high]), (centre, 1.0))
        t = (x - centre) / scale
        left, right = weighted_quantiles(t, w, np.array(_TAILS))
        if right - left <= 1e-6:
            features = np.stack([np.ones_like(t), t], axis=1)
            return self._solved(cells, features, np.array([low, high]), (centre, scale))
        inner = np.clip(centre + scale * np.array([left, right]), low, high)
        knots = np.unique(np.array([low, *inner, high]))
        return self._solved(cells, bends(t, left, right), knots, (centre, scale), (left, right))

    def _solved(
        self, cells: FineCells, features: Array, knots: Array, unit: tuple[float, float], ends: Any = None
    ) -> Curve:
        """Fit the coefficients of the features, and write the curve as polynomials from knot to knot."""
        size = features.shape[1]
        penalty, bounds = np.zeros((size, size)), np.full(size, -np.inf)
        if self.monotone:
            bounds[1:] = 0.0
        if ends is not None:
            bend = np.array([0.0, -1.0, 1.0]) / (ends[1] - ends[0])  # 2c in units of the standard deviation
            penalty = 0.5 * np.outer(bend, bend)
        outcomes = smooth_outcomes(cells, self.smooth_targets)
        problem = CellRegression(features, cells.weights, outcomes, penalty, np.array([float(self.strength)]))
        found = problem.solve(bounds)
        pieces = _pieces(knots, found.theta[0], unit, ends)
        state = {"coefficients_": _in_log_odds(found.theta[0], unit, ends)}
        return Curve(knots, pieces, found.passes, bool(found.converged[0]), state)


def bends(t: Array, left: float, right: float) -> Array:
    """Return columns 1 and those of the slopes at ``left`` and at ``right``: a parabola between, straight beyond."""
    inside = np.clip(t, left, right)
    square = inside**2 + 2 * inside * (t - inside)
    width = right - left
    return np.stack([np.ones_like(t), (right * t - square / 2) / width, (square / 2 - left * t) / width], axis=1)


def _pieces(knots: Array, theta: Array, unit: tuple[float, float], ends: Any) -> Array:
    """Return value, slope and bend of the curve at each knot, in log-odds."""
    centre, scale = unit
    t = (knots - centre) / scale
    pieces = np.zeros((len(knots), 4))
    if ends is None:
        pieces[:, 0] = theta[0] + (theta[1] * t if len(theta) > 1 else 0.0)
        pieces[:-1, 1] = theta[1] / scale if len(theta) > 1 else 0.0
        return pieces
    left, right = ends
    pieces[:, 0] = bends(t, left, right) @ theta
    share = (np.clip(t, left, right) - left) / (right - left)
    pieces[:-1, 1] = ((1 - share) * theta[1] + share * theta[2])[:-1] / scale
    middle = 0.5 * (t[:-1] + t[1:])
    curved = (middle > left) & (middle < right)
    pieces[:-1, 2] = np.where(curved, 0.5 * (theta[2] - theta[1]) / (right - left), 0.0) / scale**2
    return pieces


def _in_log_odds(theta: Array, unit: tuple[float, float], ends: Any) -> Array:
    """Return (b, a, c) of b + a λ + c λ², as the curve is between the ends."""
    centre, scale = unit
    linear = theta[1] if len(theta) > 1 else 0.0
    square = 0.0
    if ends is not None:
        width = ends[1] - ends[0]
        linear, square = (ends[1] * theta[1] - ends[0] * theta[2]) / width, 0.5 * (theta[2] - theta[1]) / width
    slope = linear / scale - 2 * centre * square / scale**2
    return np.array([theta[0] - linear * centre / scale + square * (centre / scale) ** 2, slope, square / scale**2])
