"""The binned estimator: the mean over bins of the gap between mean score and frequency."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _core
from ...cells.edges import Edges, make_edges
from ...cells.pairs import Pairs
from ...types import Array
from .norms import Norm


def bin_sums(pairs: Pairs, edges: Edges) -> Array:
    """Return (3, bins): the sums of weights, of weighted scores and of weighted outcomes in each bin."""
    return _core.pair_bins(pairs.scores, pairs.outcomes, pairs.weights, edges)


def binned_of(sums: Array, norm: Norm) -> Array:
    """Binned error of (3, …, bins) sums of weights, scores and outcomes, one for each leading index."""
    gap = np.abs(sums[1] - sums[2])
    if norm == 1:
        return np.add.reduce(gap, -1) / np.add.reduce(sums[0], -1)
    weight = sums[0]
    gap = np.divide(gap, weight, out=np.zeros_like(gap), where=weight > 0)
    if norm == "max":
        return gap.max(axis=-1)
    return np.sqrt((weight * gap**2).sum(axis=-1) / weight.sum(axis=-1))


def binned(pairs: Pairs, *, norm: Norm = 1, bins: Any = 15, edges: Any = "equal_width") -> float:
    """Binned calibration error (Σ_b (n_b/n)·|conf_b - acc_b|^p)^(1/p), or the largest gap for norm "max".

    Naeini et al. 2015; paper 003, §3. Its bias grows with the number of bins and shrinks with n.
    """
    return float(binned_of(bin_sums(pairs, make_edges(edges, bins, pairs)), norm))
