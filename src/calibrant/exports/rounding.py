"""Tables in the precision of the scores that are looked up in them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..types import Array


def as_scores(edges: Array, dtype: Any) -> Array:
    """Return edges rounded to the precision of the scores."""
    with np.errstate(over="ignore"):
        return edges.astype(dtype).astype(np.float64)
