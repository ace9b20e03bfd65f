"""Isotonic regression of outcomes on scores: the CORP estimate of a calibration curve."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

__all__ = ["isotonic_levels"]

Floats = NDArray[np.float64]


def isotonic_levels(weights: Floats, outcomes: Floats) -> Floats:
    """Return the non-decreasing levels closest to outcomes / weights in weighted squares (pool adjacent violators)."""
    return isotonic_regression(outcomes / weights, weights=weights).x
