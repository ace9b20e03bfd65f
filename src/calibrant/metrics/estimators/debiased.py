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


class UncountedWeights(InvalidInput):
    """Weights that are factors, where numbers of rows are needed."""


def debiased(pairs: Pairs, *, norm: Norm = 2, bins: Any = 15, edges: Any = "equal_mass") -> float:
    """Debiased calibration error (Kumar, Liang and Ma 2019, §4).

    Norm 2: the root of max(0, Σ_b (n_b/n)·[(conf_b - acc_b)² - acc_b(1 - acc_b)/(n_b - 1)]).

    Norm 1: the binned error less the mean of its increase when each bin's frequency is drawn again from a normal law
    of variance acc_b(1 - acc_b)/n_b. Their code draws 1,000 times; ours is that mean in closed form (a folded
    normal's), so it needs no seed.

    Bins of fewer than two rows contribute nothing (their norm-1 code raises an error). Their equal-mass bins put
    edges half-way between neighbours and other numbers of rows into them; ours follow `calibrant.cells.edges`.
    """
    return float(debiased_of(bin_sums(pairs, make_edges(edges, bins, pairs)), norm))


def debiased_of(sums: Array, norm: Norm) -> Array:
    """Debiased error of (3, …, bins) sums of weights, scores and outcomes, one for each leading index."""
    check_norm(norm, (1, 2))
    total = sums[0].sum(axis=-1)
    counted = sums[0] >= 2
    if not counted.any() and (sums[0] != np.floor(sums[0])).any():
        raise UncountedWeights(
            "the debiased error needs weights that count rows",
            seen=f"no bin of weight 2 or more, {float(sums[0].max()):g} at most",
            hint="scale sample_weight to sum to the number of rows",
        )
    weight, score, outcome = np.where(counted, sums, np.array([2.0, 0.0, 0.0]).reshape(3, *[1] * (sums.ndim - 1)))
    gap, frequency = (score - outcome) / weight, outcome / weight
    variance = np.maximum(frequency * (1 - frequency), 0)
    if norm == 2:
        parts = weight * (gap**2 - variance / (weight - 1))
        return np.sqrt(np.maximum(0.0, parts.sum(axis=-1, where=counted) / total))
    parts = weight * (2 * np.abs(gap) - _folded_mean(gap, np.sqrt(variance / weight)))
    return np.maximum(0.0, parts.sum(axis=-1, where=counted) / total)


def _folded_mean(mean: Array, deviation: Array) -> Array:
    """E|mean + deviation·Z| of a standard normal Z."""
    z = np.divide(mean, deviation, out=np.zeros_like(mean), where=deviation > 0)
    folded = deviation * np.sqrt(2 / np.pi) * np.exp(-(z**2) / 2) + mean * (1 - 2 * ndtr(-z))
    return np.where(deviation > 0, folded, np.abs(mean))
