"""The Kolmogorov–Smirnov estimator: the largest gap between two cumulative curves."""

from __future__ import annotations

import numpy as np

from ...cells.pairs import Pairs
from ...cells.tied import cells_of
from .norms import Norm, check_norm

__all__ = ["ks"]


def ks(pairs: Pairs, *, norm: Norm = "max") -> float:
    """Kolmogorov–Smirnov calibration error max_t |Σ_{p_i ≤ t} (p_i - y_i)|/n (Gupta et al. 2021).

    Needs no bins. The norm is "max" by its nature; tied scores enter the curve together.
    """
    check_norm(norm, ("max",))
    cells = cells_of(pairs)
    curve = np.cumsum(cells.weights * cells.scores - cells.outcomes)
    return float(np.abs(curve).max() / cells.weights.sum())
