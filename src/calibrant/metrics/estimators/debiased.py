"""The debiased estimator: the binned error less what chance alone adds to it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr

from ...cells.edges import make_edges
from ...cells.pairs import Pairs
from ...errors import InvalidInput
from ...types import Array
from .binned import bin_sums
from .norms import Norm, check_norm


def debiased(pairs: Pairs, *, norm: Norm = 2, bins: Any = 15, edges: Any = "equal_mass") -> float:
    """Debiased calibration error (Kumar, Liang and Ma 2019, §4).

    Norm 2: the root of max(0, Σ_b (n_b/n)·[(conf_b - acc_b)² - acc_b(1 - acc_b)/(n_b - 1)]).

    Norm 1: the binned error less the mean of its increase when each bin's frequency is drawn again from a normal law
    of variance acc_b(1 - acc_b)/n_b. Their code draws 1,000 times; ours is that mean in closed form (a folded
    normal's), so it needs no seed.

    Bins of fewer than two rows contribute nothing (their norm-1 code raises an error). Their equal-mass bins put
    edges half-way between neighbours and other numbers of rows into them; ours follow `calibrant.cells.edges`.
    Fractional weights of a bin count as (Σw)²/Σw² rows.
    """
    made = make_edges(edges, bins, pairs)
    sums = bin_sums(pairs, made)
    rows = sums[0]
    if not pairs.counts:
        squares = bin_sums(pairs.weighted(pairs.weight_array * pairs.unit), made)[0]
        rows = np.divide(rows**2, squares, out=np.zeros_like(rows), where=rows > 0)
    return float(_debiased(sums, rows, norm))


def debiased_of(sums: Array, norm: Norm) -> Array:
    """Debiased error of (3, …, bins) sums of weights, scores and outcomes, one for each leading index."""
    if (sums[0] != np.floor(sums[0])).any():
        raise InvalidInput(
            "sums by bin do not tell how many rows fractional weights count",
            seen=f"a bin of weight {float(sums[0][sums[0] != np.floor(sums[0])][0]):g}",
            allowed="whole weights",
            hint="bins of equal mass take them: edges='equal_mass'",
        )
    return _debiased(sums, sums[0], norm)


def _debiased(sums: Array, rows: Array, norm: Norm) -> Array:
    """Return the error of sums whose bins count as so many rows."""
    check_norm(norm, (1, 2))
    counted = rows >= 2
    weight, score, outcome, rows = (np.where(counted, part, 2.0) for part in (*sums, rows))
    gap, frequency = (score - outcome) / weight, outcome / weight
    variance = np.maximum(frequency * (1 - frequency), 0)
    if norm == 2:
        parts = gap**2 - variance / (rows - 1)
    else:
        parts = 2 * np.abs(gap) - _folded_mean(gap, np.sqrt(variance / rows))
    mean = np.maximum(0.0, (weight * parts).sum(axis=-1, where=counted) / sums[0].sum(axis=-1))
    return np.sqrt(mean) if norm == 2 else mean


def _folded_mean(mean: Array, deviation: Array) -> Array:
    """E|mean + deviation·Z| of a standard normal Z."""
    z = np.divide(mean, deviation, out=np.zeros_like(mean), where=deviation > 0)
    folded = deviation * np.sqrt(2 / np.pi) * np.exp(-(z**2) / 2) + mean * (1 - 2 * ndtr(-z))
    return np.where(deviation > 0, folded, np.abs(mean))
