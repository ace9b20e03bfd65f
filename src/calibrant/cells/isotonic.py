"""Isotonic regression of outcomes on scores: the CORP estimate of a calibration curve."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .. import _core

__all__ = ["isotonic_levels"]

Floats = NDArray[np.float64]


def isotonic_levels(weights: Floats, outcomes: Floats) -> Floats:
    """Return the non-decreasing levels closest to outcomes / weights in weighted squares (pool adjacent violators)."""
    whole = np.array([0, len(weights)], dtype=np.int64)
    return _core.pool_adjacent(np.ascontiguousarray(outcomes), np.ascontiguousarray(weights), whole)
