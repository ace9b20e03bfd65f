"""What signatures name: the kinds of arrays, and the type of the object itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from typing_extensions import Self
else:
    Self = Any  # Python 3.10 has none

Array = NDArray[np.float64]
"""Numbers in double precision: weights, sums, parameters."""

Floats = NDArray[np.floating]
"""Scores and probabilities, in the precision of the user: float32 or float64."""

Integers = NDArray[np.int64]
"""Label indices, row numbers, counts."""

Mask = NDArray[np.bool_]
"""Which ones."""
