"""Spline calibration: the derivative of a spline through the cumulative outcomes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import expit

from ...cells.fine import FineCells
from ...declared import attribute, declared, parameter
from ...fits.report import FitReport
from ...invariants import Values
from ...parameters import OneOf, count_from
from ...traits import Traits
from ...types import Array, Floats, Integers
from .base import BinaryMap, Learnt
from .stack import CurveStack
from .table import CellMap, cell_losses

_PLACES = 257  # scores at which the map is stored
_NARROW = 1e-5  # of the curve: within it a cubic is straight to 1e-10, and as much is lost by taking a difference


@declared
class SplineCalibration(CellMap):
    """q = H'(t), H a natural cubic spline through the cumulative outcomes (Gupta et al. 2021, the KS-spline).

    Sort the scores and let t run over their ranks from 0 to 1; H(t) is the share of all rows that are positive and
    lie below t. If the scores are calibrated, H grows as the scores add up; its derivative is the frequency of the
    event at that score. H is fitted by least squares with few knots and differentiated exactly.

    The paper calibrates the top label (and the r-th). Here it is each class by the lift, and most scores of a class
    among many are close to zero, so ranks say little about the few that matter. By default the curve runs along the
    standard deviation v = √(p (1 - p)) of the outcomes instead of the number of rows, and the spline is fitted to what
    the cumulative outcomes are in excess of the cumulative scores: q = p + v·D'(u). ``along="rank"`` is the paper's.

    Parameters
    ----------
    knots : int
        Of the spline, evenly spaced along the curve.
    along : {"deviation", "rank"}
    inputs, classes, saturated
        See `Calibrator`.

    Attributes
    ----------
    scores_ : array
        Log-odds, from the lowest to the highest seen.
    values_ : float64 array
        The answer at each, linear in the raw probability between them.
    """

    _identifier = "spline-calibration"
    _traits = Traits("binary", "nothing", "each class", "knots", sees="cells")
    knots: int = parameter(count_from(2), default=6)
    along: str = parameter(OneOf("deviation", "rank"), default="deviation")
    values_: Array = attribute(Values("scores", low=0, high=1))
    scores_: Floats = attribute(Values("scores", low=-np.inf, high=np.inf, order="rising", finite=False))

    def _learnt_from(self, cells: FineCells, dtype: Any) -> Learnt:
        scores, weights = cells.scores, cells.weights
        p = expit(scores)
        ranks = self.along == "rank"
        density = np.ones_like(p) if ranks else np.sqrt(p * expit(-scores)) + 1e-9
        excess = cells.outcomes / weights - (0.0 if ranks else p)
        places = np.append(0.0, np.cumsum(weights * density))
        curve = np.append(0.0, np.cumsum(weights * excess))
        heights = _spline(places / places[-1], curve / places[-1], weights, self.knots)
        chosen = _spread(places, _PLACES)
        rate = _mean_slopes(places[chosen] / places[-1], places[chosen + 1] / places[-1], self.knots) @ heights
        q = rate if ranks else p[chosen] + density[chosen] * rate
        least = 0.5 / (weights.sum() + 1)
        values = np.clip(q, least, 1 - least)
        stack = CurveStack([scores[chosen]], [values], np.zeros(1, dtype=np.int64), np.float64)
        report = FitReport(0, True, "nll", *cell_losses(cells, stack.answers(scores[:, None])[:, 0]))
        return Learnt({"scores_": scores[chosen].astype(dtype), "values_": values}, report)

    def _stacked(self, maps: list[BinaryMap], groups: Integers, dtype: Any) -> CurveStack:
        fitted = [m for m in maps if isinstance(m, SplineCalibration)]
        return CurveStack([m.scores_ for m in fitted], [m.values_ for m in fitted], groups, dtype)

    def _count_parameters(self) -> float:
        """The heights of the spline at its knots: the table follows from them."""
        return float(self.knots)


@lru_cache(maxsize=8)
def _cardinal(knots: int) -> tuple[Any, Any]:
    """Natural cubic splines that are 1 at one of the evenly spaced knots and 0 at the others, and their derivatives."""
    basis = CubicSpline(np.linspace(0.0, 1.0, knots), np.eye(knots), bc_type="natural")
    return basis, basis.derivative()


def _mean_slopes(left: Array, right: Array, knots: int) -> Array:
    """Mean derivative of each cardinal spline between two places, as rows of one score span a part of the curve.

    A score that many rows have spans much of it, and nothing holds the spline to the slope in the middle.
    """
    basis, slope = _cardinal(knots)
    width = (right - left)[:, None]
    rise = np.divide(basis(right) - basis(left), width, out=np.zeros((len(left), knots)), where=width > _NARROW)
    return np.where(width > _NARROW, rise, slope(0.5 * (left + right)))


def _spline(x: Array, y: Array, weights: Array, knots: int) -> Array:
    """Least-squares natural cubic spline, by its heights at the knots; ends of the curve count like any row.

    Fewer scores than knots leave a choice: the heights closest to the straight line between the ends.
    """
    root = np.sqrt(np.append(weights[:1], weights))
    bent = np.linalg.lstsq(_cardinal(knots)[0](x) * root[:, None], (y - y[-1] * x) * root, rcond=None)[0]
    return bent + y[-1] * np.linspace(0.0, 1.0, knots)


def _spread(places: Array, most: int) -> Integers:
    """At most ``most`` scores: half evenly along the curve, half evenly by rank, and both ends."""
    count = len(places) - 1
    if count <= most:
        return np.arange(count)
    along = np.searchsorted(places[1:], np.linspace(0, places[-1], most // 2))
    ranks = np.linspace(0, count - 1, most // 2).astype(np.int64)
    return np.unique(np.clip(np.concatenate([along, ranks, [0, count - 1]]), 0, count - 1))
