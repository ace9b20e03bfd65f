"""The label-binned estimator: every row's score against the frequency of its bin."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...cells.edges import bin_index, make_edges
from ...cells.pairs import Pairs
from .binned import bin_sums
from .norms import Norm, norm_of


def label_binned(pairs: Pairs, *, norm: Norm = 1, bins: Any = 15, edges: Any = "equal_width") -> float:
    """Label-binned calibration error (1/n Σ_i |p_i - acc_bin(i)|^p)^(1/p) (paper 003, Eq. 3); never below `binned`."""
    made = make_edges(edges, bins, pairs)
    weight, _, outcome = bin_sums(pairs, made)
    frequency = np.divide(outcome, weight, out=np.zeros_like(weight), where=weight > 0)
    gap = np.abs(pairs.scores - frequency[bin_index(pairs.scores, made)])
    counted = pairs.weight_array > 0
    return norm_of(pairs.weight_array[counted] / pairs.total, gap[counted], norm)
