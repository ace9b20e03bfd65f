"""The binned estimator: the mean over bins of the gap between mean score and frequency."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .edges import Edges, bin_index, make_edges
from .norms import Norm, norm_of
from .views import Pairs

__all__ = ["bin_sums", "binned"]


def bin_sums(pairs: Pairs, edges: Edges) -> NDArray[np.float64]:
    """Return (3, bins): the sums of weights, of weighted scores and of weighted outcomes in each bin."""
    place, bins = bin_index(pairs.scores, edges), len(edges) - 1
    if pairs.weights is None:
        rows = (None, pairs.scores, pairs.outcomes)
    else:
        rows = (pairs.weights, pairs.weights * pairs.scores, pairs.weights * pairs.outcomes)
    return np.stack([np.bincount(place, weights=row, minlength=bins).astype(np.float64) for row in rows])


def gaps(sums: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mass share of the bins that are not empty and their gap |mean score - frequency|."""
    weight, score, outcome = sums[:, sums[0] > 0]
    return weight / weight.sum(), np.abs(score - outcome) / weight


def binned(pairs: Pairs, *, norm: Norm = 1, bins: Any = 15, edges: Any = "equal_width") -> float:
    """Binned calibration error (Σ_b (n_b/n)·|conf_b - acc_b|^p)^(1/p), or the largest gap for norm "max".

    Naeini et al. 2015; paper 003, §3. Its bias grows with the number of bins and shrinks with n.
    """
    return norm_of(*gaps(bin_sums(pairs, make_edges(edges, bins, pairs))), norm)
