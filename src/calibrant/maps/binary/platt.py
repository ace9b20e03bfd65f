"""Platt scaling: a sigmoid of the score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...fit_report import FitReport
from ...parameters import OneOf
from ...traits import Traits
from .base import BinaryMap, Pairs
from .logistic import fit_logistic, sigmoid

__all__ = ["PlattScaling"]


class PlattScaling(BinaryMap):
    """q = σ(a λ + b), with a and b minimising the log-loss (Platt 1999).

    λ are log-odds, so a = 1, b = 0 leaves the scores alone. Newton steps with exact derivatives.

    Parameters
    ----------
    smooth_targets : bool
        Platt's own guard against over-fitting: outcomes 1 and 0 become (n₊ + 1)/(n₊ + 2) and 1/(n₋ + 2), with
        n₊ and n₋ the (weighted) numbers of positives and negatives. Keeps the fit finite where the classes can be
        separated.
    inputs, classes
        See `Calibrator`.

    Attributes
    ----------
    slope_, intercept_ : float
        a and b.
    """

    _traits = Traits("binary", "nothing", "each class", "2")
    _constraints: ClassVar[Mapping[str, Any]] = {"smooth_targets": OneOf(True, False)}
    slope_: float
    intercept_: float

    def __init__(self, smooth_targets: bool = True, *, inputs: str = "logits", classes: Any = None) -> None:
        self.smooth_targets = smooth_targets
        self.inputs = inputs
        self.classes = classes

    def _fit_pairs(self, pairs: Pairs) -> FitReport:
        features = np.stack([pairs.log_odds, np.ones_like(pairs.log_odds)], axis=1)
        found = fit_logistic(features, pairs, np.array([1.0, 0.0]), smooth_targets=self.smooth_targets)
        self.slope_, self.intercept_ = (float(c) for c in found.coefficients)
        return found.report(pairs, self._map_scores(pairs.log_odds))

    def _map_scores(self, log_odds: NDArray[np.floating]) -> NDArray[np.floating]:
        return sigmoid(_affine(log_odds, self.slope_, self.intercept_))


def _affine(log_odds: NDArray[np.floating], slope: float, intercept: float) -> NDArray[np.floating]:
    """a λ + b, where an infinite λ counts for nothing when a = 0."""
    if slope == 0:
        return np.full_like(log_odds, intercept)
    return log_odds * log_odds.dtype.type(slope) + log_odds.dtype.type(intercept)
