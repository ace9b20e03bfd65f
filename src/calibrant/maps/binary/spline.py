"""Spline calibration: the derivative of a spline through the cumulative outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.special import expit

from ... import _core
from ...fits.report import FitReport
from ...parameters import Integer, OneOf
from ...threads import get_threads
from ...traits import Traits
from .base import BinaryMap, Pairs

__all__ = ["SplineCalibration"]

_PLACES = 257  # scores at which the map is stored


class SplineCalibration(BinaryMap):
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
    _traits = Traits("binary", "nothing", "each class", "knots")
    _constraints: ClassVar[Mapping[str, Any]] = {"knots": Integer(2), "along": OneOf("deviation", "rank")}
    scores_: NDArray[np.floating]
    values_: NDArray[np.float64]

    def __init__(
        self,
        knots: int = 6,
        along: str = "deviation",
        *,
        inputs: str = "logits",
        classes: Any = None,
        saturated: str = "small",
    ) -> None:
        self.knots = knots
        self.along = along
        self.inputs = inputs
        self.classes = classes
        self.saturated = saturated

    def _fit_pairs(self, pairs: Pairs) -> FitReport:
        scores, outcomes, weights = _merged(pairs)
        p = expit(scores.astype(np.float64))
        ranks = self.along == "rank"
        density = np.ones_like(p) if ranks else np.sqrt(p * expit(-scores.astype(np.float64))) + 1e-9
        excess = outcomes - (0.0 if ranks else p)
        places = np.append(0.0, np.cumsum(weights * density))
        curve = np.append(0.0, np.cumsum(weights * excess))
        heights = _spline(places / places[-1], curve / places[-1], weights, self.knots)
        chosen = _spread(places, _PLACES)
        middle = 0.5 * (places[chosen] + places[chosen + 1]) / places[-1]
        rate = _cardinal(self.knots)[1](middle) @ heights
        q = rate if ranks else p[chosen] + density[chosen] * rate
        least = 0.5 / (weights.sum() + 1)
        self.scores_, self.values_ = scores[chosen], np.clip(q, least, 1 - least)
        return FitReport(0, True, "nll", pairs.raw_nll(), pairs.mean_nll(self._map_scores(pairs.log_odds)))

    def _map_scores(self, log_odds: NDArray[np.floating]) -> NDArray[np.floating]:
        flat = np.ascontiguousarray(log_odds).reshape(1, -1)
        return _interpolated([self], flat, np.zeros(flat.shape[1], dtype=np.int64)).reshape(log_odds.shape)

    def _map_groups(
        self, maps: list[BinaryMap], log_odds: NDArray[np.floating], groups: NDArray[np.int64]
    ) -> NDArray[np.floating]:
        return _interpolated([m for m in maps if isinstance(m, SplineCalibration)], log_odds, groups)


def _interpolated(
    maps: list[SplineCalibration], log_odds: NDArray[np.floating], groups: NDArray[np.int64]
) -> NDArray[np.floating]:
    """Answer column k by ``maps[groups[k]]``."""
    starts = np.cumsum([0, *(len(m.scores_) for m in maps)])
    knots = np.concatenate([m.scores_ for m in maps]).astype(log_odds.dtype)
    values = np.concatenate([m.values_ for m in maps])
    out = np.empty_like(log_odds)
    _core.isotonic_apply(log_odds, groups, starts, knots, values, False, 0.0, get_threads(), out)
    return out


def _merged(pairs: Pairs) -> tuple[NDArray[np.floating], NDArray[np.float64], NDArray[np.float64]]:
    """Distinct scores in order, the mean outcome of each and its weight."""
    scores, place = np.unique(pairs.log_odds, return_inverse=True)
    weights = np.bincount(place, pairs.weight_array).astype(np.float64)
    return scores, np.bincount(place, pairs.weight_array * pairs.outcomes) / weights, weights


@lru_cache(maxsize=8)
def _cardinal(knots: int) -> tuple[Any, Any]:
    """Natural cubic splines that are 1 at one of the evenly spaced knots and 0 at the others, and their derivatives."""
    basis = CubicSpline(np.linspace(0.0, 1.0, knots), np.eye(knots), bc_type="natural")
    return basis, basis.derivative()


def _spline(
    x: NDArray[np.float64], y: NDArray[np.float64], weights: NDArray[np.float64], knots: int
) -> NDArray[np.float64]:
    """Least-squares natural cubic spline, by its heights at the knots; ends of the curve count like any row.

    Fewer scores than knots leave a choice: the heights closest to the straight line between the ends.
    """
    root = np.sqrt(np.append(weights[:1], weights))
    bent = np.linalg.lstsq(_cardinal(knots)[0](x) * root[:, None], (y - y[-1] * x) * root, rcond=None)[0]
    return bent + y[-1] * np.linspace(0.0, 1.0, knots)


def _spread(places: NDArray[np.float64], most: int) -> NDArray[np.int64]:
    """At most ``most`` scores: half evenly along the curve, half evenly by rank, and both ends."""
    count = len(places) - 1
    if count <= most:
        return np.arange(count)
    along = np.searchsorted(places[1:], np.linspace(0, places[-1], most // 2))
    ranks = np.linspace(0, count - 1, most // 2).astype(np.int64)
    return np.unique(np.clip(np.concatenate([along, ranks, [0, count - 1]]), 0, count - 1))
