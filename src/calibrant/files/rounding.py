"""Probabilities that were rounded on their way into a file: percentages, and types coarser than float32."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..types import Array, Floats

_MOST_DECIMALS = 6  # behind which a percentage counts as not rounded


def from_percent(values: NDArray[Any]) -> Floats:
    """Return percentages as fractions; rows that sum to one but for the rounding of their cells are scaled to it.

    Percentages with d decimals are each off by 10⁻ᵈ/2 at most, so three of them may sum to 99 where d is 0.
    """
    fractions = np.asarray(values, dtype=np.float64) / 100.0
    if fractions.ndim < 2 or fractions.shape[1] < 2:
        return fractions
    finite = np.where(np.isfinite(fractions), fractions, 0.0)
    decimals = next((d for d in range(_MOST_DECIMALS) if _has_decimals(100.0 * finite, d)), _MOST_DECIMALS)
    off = fractions.shape[1] * 0.5 * 10.0**-decimals / 100.0
    return _scaled(fractions, off)


def on_the_simplex(values: NDArray[Any], rounding: float) -> NDArray[Any]:
    """Return rows scaled to sum to one where rounding by ``rounding`` of each entry explains that they do not."""
    return values if values.ndim < 2 or values.shape[1] < 2 else _scaled(values, rounding)


def _has_decimals(values: Array, count: int) -> bool:
    scaled = values * 10.0**count
    return bool((np.abs(scaled - scaled.round()) < 1e-6).all())


def _scaled(values: NDArray[Any], off: float) -> NDArray[Any]:
    total = values.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        explained = np.abs(total - 1.0) <= off * 1.001
    return np.where(explained, values / np.where(explained, total, 1), values).astype(values.dtype)
