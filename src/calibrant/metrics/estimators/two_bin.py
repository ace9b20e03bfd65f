"""The averaged two-bin error: two bins, cut at every place (Hartline, Hu and Wu 2026)."""

from __future__ import annotations

import numpy as np

from ...cells.pairs import Pairs
from ...types import Array
from .cumulative import deviation, walk
from .norms import Norm, check_norm


def averaged_two_bin(pairs: Pairs, *, norm: Norm = 2) -> float:
    """Averaged two-bin error ∫₀¹ [(Σ_{s<q} r)² + (Σ_{s≥q} r)²] dq / n², r = s - y.

    Truthful: no report has a smaller expectation than the true probabilities. What noise alone adds, Σs(1-s)/n², is the
    same for every report (`two_bin_excess` is without it). Norm 1, ∫(|A| + |S - A|)/n, is within constants of the
    smooth calibration error.
    """
    check_norm(norm, (1, 2))
    return float(two_bin_of(pairs.cells.scores, walk(pairs)[None, :], norm)[0])


def two_bin_of(scores: Array, walks: Array, norm: Norm) -> Array:
    """Return the error of running sums of residuals, one a row: (r, cells + 1)."""
    steps = np.diff(np.r_[0.0, scores, 1.0])
    rest = walks[:, -1:] - walks
    if norm == 1:
        return (np.abs(walks) + np.abs(rest)) @ steps
    return (walks**2 + rest**2) @ steps


def two_bin_excess(pairs: Pairs) -> float:
    """Return the averaged two-bin error less what noise adds to it: 0 in expectation where scores are true."""
    return averaged_two_bin(pairs) - deviation(pairs) ** 2
