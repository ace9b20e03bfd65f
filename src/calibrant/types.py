"""The kinds of arrays that signatures name."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Floats", "Integers", "Mask"]

Array = NDArray[np.float64]
"""Numbers in double precision: weights, sums, parameters."""

Floats = NDArray[np.floating]
"""Scores and probabilities, in the precision of the user: float32 or float64."""

Integers = NDArray[np.int64]
"""Label indices, row numbers, counts."""

Mask = NDArray[np.bool_]
"""Which ones."""
