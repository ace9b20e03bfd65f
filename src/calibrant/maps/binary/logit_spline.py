"""A penalised natural cubic spline of the log-odds, its smoothness chosen by the evidence."""

from __future__ import annotations

import numpy as np

from ...cells.fine import FineCells
from ...declared import attribute, declared, parameter
from ...parameters import SCALE, AnyOf, Number, OneOf, count_from
from ...traits import Traits
from ...types import Array
from ._natural_spline import NaturalSpline
from ._regression import SMOOTH, SMOOTHING, CellRegression, smooth_outcomes
from .pieces import SATURATED, Curve, PieceMap, one_outcome

_CELLS = 2000  # of a histogram that a smooth curve cannot tell from a finer one
_STRENGTHS = 10.0 ** np.arange(-4.0, 7.0)  # from hardly any penalty to a straight line
_OUTER = 0.005  # share of either outcome beyond the outer knots
_APART = 1e-3  # standard deviations that knots are apart at least


@declared
class LogitSpline(PieceMap):
    """q = σ(f(λ)), f a natural cubic spline with few knots and the penalty κ ∫f''² (after Lucena 2018).

    A straight line costs nothing, so that much smoothing ends at Platt scaling. κ maximises the evidence (the Laplace
    approximation of the marginal likelihood; Wood 2011), so no rows are spared for choosing it. f' is a sum of
    quadratic B-splines; with coefficients that are not negative f never falls. Beyond the outer knots f is straight.

    Parameters
    ----------
    knots : int
        Placed at equal steps of the share of either outcome, so that rare events have knots too.
    strength : "evidence" or float
        κ, in units of the standard deviation of λ.
    monotone : bool
    clip : float
        Log-odds beyond ± this are answered as this is: where a float64 probability saturates, by default.
    smooth_targets : float
        s: outcomes 1 and 0 become (n₊ + s)/(n₊ + 2s) and s/(n₋ + 2s), as in Platt scaling.
    inputs, classes, saturated
        See `Calibrator`.

    Attributes
    ----------
    strength_ : float
        The κ used; infinite for a straight line.
    knots_, pieces_ : arrays
        f as a piecewise polynomial; see `PieceMap`.
    """

    _identifier = "logit-spline"
    _traits = Traits("binary", "nothing", "each class", "knots", sees="cells")
    knots: int = parameter(count_from(3), default=10)
    strength: str | float = parameter(AnyOf(OneOf("evidence"), SCALE), default="evidence")
    monotone: bool = parameter(OneOf(True, False), default=True)
    clip: float = parameter(Number(0, 700, open_low=True), default=SATURATED)
    smooth_targets: float = parameter(SMOOTHING, default=SMOOTH)
    strength_: float = attribute(AnyOf(OneOf(np.inf), Number(0)))

    def _curve(self, cells: FineCells, low: float, high: float) -> Curve:
        alone = one_outcome(cells, low, high)
        if alone is not None:
            return alone._replace(state={"strength_": np.inf})
        few = cells.thinned(_CELLS)
        w = few.weights
        centre = float(w @ few.scores / w.sum())
        scale = float(np.sqrt(w @ (few.scores - centre) ** 2 / w.sum()))
        if scale <= 1e-9 * max(abs(centre), 1e-300):
            return self._fitted(few, None, (centre, 1.0), (low, high))
        return self._fitted(few, NaturalSpline(spread(few, self.knots, centre, scale)), (centre, scale), (low, high))

    def _fitted(
        self, cells: FineCells, spline: NaturalSpline | None, unit: tuple[float, float], reach: tuple[float, float]
    ) -> Curve:
        """Fit the spline, or without one a constant, and write it as polynomials of λ."""
        t = (cells.scores - unit[0]) / unit[1]
        features = np.ones((cells.count, 1)) if spline is None else spline(t)
        penalty = np.zeros((1, 1)) if spline is None else spline.penalty
        outcomes = smooth_outcomes(cells, self.smooth_targets)
        passes, strength = 0, np.inf
        if features.shape[1] > 2:
            strength = self.strength
            if strength == "evidence":
                many = CellRegression(features, cells.weights, outcomes, penalty, _STRENGTHS)
                strength, passes = most_evident(many)
        bounds = np.full(features.shape[1], -np.inf)
        if self.monotone:
            bounds[1:] = 0.0
        used = np.array([float(strength) if np.isfinite(strength) else 0.0])
        found = CellRegression(features, cells.weights, outcomes, penalty, used).solve(bounds)
        knots, pieces = _written(spline, found.theta[0], unit, reach)
        passes += found.passes
        return Curve(knots, pieces, passes, bool(found.converged[0]), {"strength_": float(strength)})

    def _count_parameters(self) -> float:
        """The coefficients of the spline: the pieces follow from them."""
        return float(self.knots)


def spread(cells: FineCells, count: int, centre: float, scale: float) -> Array:
    """Return knots at equal steps of the share of either outcome, from 0.5 to 99.5 %, in standard units."""
    positives = float(cells.outcomes.sum())
    negatives = float(cells.weights.sum()) - positives
    share = 0.5 * (cells.outcomes / positives + (cells.weights - cells.outcomes) / negatives).cumsum()
    wanted = np.linspace(_OUTER, 1 - _OUTER, count) * share[-1]
    places = (cells.scores[np.minimum(np.searchsorted(share, wanted), cells.count - 1)] - centre) / scale
    kept = [places[0]]
    for place in places[1:]:
        if place - kept[-1] > _APART:
            kept.append(place)
    if len(kept) < 2:
        kept = [(cells.scores[0] - centre) / scale, (cells.scores[-1] - centre) / scale]
    return np.array(kept)


def most_evident(problem: CellRegression) -> tuple[float, int]:
    """Return the strength of the greatest evidence, the larger of two alike, and the passes that it took.

    log ∫ exp(-loss - ½ κ βᵀSβ) dβ ≈ -value + ½ r log κ - ½ log |H|, r the rank of S: all but a line (Wood 2011).
    """
    found = problem.solve()
    rank = problem.features.shape[1] - 2
    logs = np.log(problem.strengths)
    evidence = -found.sums.value + 0.5 * rank * logs - 0.5 * np.linalg.slogdet(found.sums.hessian)[1]
    evidence = np.where(np.isfinite(evidence), evidence, -np.inf)
    best = len(logs) - 1 - int(np.argmax(evidence[::-1]))
    if best in (0, len(logs) - 1) or not np.isfinite(evidence[best - 1 : best + 2]).all():
        return float(problem.strengths[best]), found.passes
    before, here, after = evidence[best - 1 : best + 2]
    shift = 0.5 * (before - after) / (before - 2 * here + after)  # the one after is less: it bends down
    return float(np.exp(logs[best] + shift * (logs[1] - logs[0]))), found.passes


def _written(
    spline: NaturalSpline | None, theta: Array, unit: tuple[float, float], reach: tuple[float, float]
) -> tuple[Array, Array]:
    """Return knots and polynomials in log-odds, from one end of the reach to the other."""
    low, high = reach
    if spline is None:
        return np.array([low, high]), np.array([[theta[0], 0, 0, 0], [theta[0], 0, 0, 0]], dtype=np.float64)
    centre, scale = unit
    knots, pieces = centre + scale * spline.knots, spline.polynomials(theta) / scale ** np.arange(4)
    slopes = pieces[0, 1], pieces[-1, 1]
    if high > knots[-1]:
        knots = np.append(knots, high)
        pieces = np.vstack([pieces, [pieces[-1, 0] + slopes[1] * (high - knots[-2]), 0, 0, 0]])
    if low < knots[0]:
        first = pieces[0, 0] - slopes[0] * (knots[0] - low)
        knots, pieces = np.append(low, knots), np.vstack([[first, slopes[0], 0, 0], pieces])
    return knots, pieces
