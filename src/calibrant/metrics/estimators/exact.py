"""Exact counting, for maps with finitely many outputs."""

from __future__ import annotations

import numpy as np

from ...cells.pairs import Pairs
from .norms import Norm, norm_of


def exact(pairs: Pairs, *, norm: Norm = 1) -> float:
    """Calibration error with each distinct score as its own bin (paper 002, §2.1).

    For histogram binning, I-Max and other maps that answer with a few values this needs no choice of bins, and
    converges to the truth; on continuous scores it only measures noise. The code of paper 002 counts by the number of
    a bin, ours by its answer: where two bins answer the same they are one.
    """
    cells = pairs.cells
    return norm_of(cells.share, np.abs(cells.scores - cells.frequencies), norm)
