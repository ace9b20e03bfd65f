"""Cumulative estimators: how far the running sum of outcomes less scores strays, without bins or smoothing."""

from __future__ import annotations

import numpy as np

from ...cells.pairs import Pairs
from ...types import Array
from .norms import Norm, check_norm


def walk(pairs: Pairs) -> Array:
    """Return the running sum C_j = Σ_{i≤j} w(y - s)/Σw over sorted scores, from C₀ = 0; ties enter together."""
    cells = pairs.cells
    found = np.zeros(len(cells.scores) + 1)
    np.add.accumulate(cells.residuals, out=found[1:])
    found /= cells.weights.sum()
    return found


def deviation(pairs: Pairs) -> float:
    """Return the standard deviation σ of the whole sum if the scores are true: √(Σw²s(1-s))/Σw.

    Whole weights are numbers of rows and enter the variance once. Rows of a cluster are added up first, with the
    residuals as they were seen: √(Σ_g (Σ_{i∈g} w(y - s))²)/Σw.
    """
    w, s = pairs.weight_array, pairs.scores
    if pairs.clusters is not None:
        sums = np.bincount(pairs.clusters, w * (pairs.outcomes - s))
        return float(np.sqrt((sums**2).sum()) / pairs.total)
    return float(np.sqrt((w * pairs.unit * s * (1 - s)).sum()) / pairs.total)


def ecce(pairs: Pairs, *, norm: Norm = "max") -> float:
    """Estimated cumulative calibration error, the range max C - min C (Arrieta-Ibarra et al. 2022: ECCE-R, Kuiper).

    The largest |Σ(y - s)|/n over any interval of scores, so that gaps of either sign count wherever they lie. C starts
    at C₀ = 0 and is read after ties only; MAPIE leaves C₀ out, and others break ties by the order of the rows.
    """
    check_norm(norm, ("max",))
    return float(np.ptp(walk(pairs)))


def ks(pairs: Pairs, *, norm: Norm = "max") -> float:
    """Kolmogorov–Smirnov calibration error max_t |Σ_{s_i ≤ t} (s_i - y_i)|/n (Gupta et al. 2021; ECCE-MAD).

    Needs no bins. The norm is "max" by its nature; tied scores enter the curve together.
    """
    check_norm(norm, ("max",))
    return float(np.abs(walk(pairs)).max())
