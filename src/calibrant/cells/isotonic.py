"""Isotonic regression of outcomes on scores: the CORP estimate of a calibration curve."""

from __future__ import annotations

import numpy as np

from .. import _core
from ..types import Array


def isotonic_levels(weights: Array, outcomes: Array) -> Array:
    """Return the non-decreasing levels closest to outcomes / weights in weighted squares (pool adjacent violators)."""
    whole = np.array([0, len(weights)], dtype=np.int64)
    return _core.pool_adjacent(np.ascontiguousarray(outcomes), np.ascontiguousarray(weights), whole)
