"""The cells that scores fall into where too many are distinct for each to be kept."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ..types import Array

TAILS = 0.2  # share of the cells that log-odds get: without, all of a rare event lies in few, and no slope is seen
REACH = 36.0  # log-odds beyond which 1 - p is rounded to 1
_STEPS = 1 << 14  # at which the rule is known; between them it is taken to be straight
_DIGITS = 10  # of an edge: every machine has the same


@lru_cache(maxsize=16)
def grid(cells: int, bins: int) -> Array:
    """Return edges of so many cells, with all edges of ``bins`` bins of equal width among them.

    The cells are equally wide in .8·(2/π)·arcsin √p + .2·(36 + log p/(1-p))/72. In arcsin √p a frequency has the same
    standard error everywhere; log-odds are what slopes and rare events are seen in. Scores of 0 and of 1 have cells of
    their own, as they have no log-odds. Without cells there are the bins alone.
    """
    even = np.arange(bins + 1) / bins
    if cells:
        low = _low_edges(cells)
        ends = np.array([0.0, np.finfo(np.float64).tiny, 1 - 2.0**-53, 1.0])
        even = np.union1d(np.concatenate([ends, low, 1 - low]), even)
    even.flags.writeable = False
    return even


@lru_cache(maxsize=16)
def spans(cells: int, bins: int) -> tuple[Array, Array]:
    """Return the least and the largest score of each cell; those below e⁻³⁶, but not 0, count as that."""
    edges = grid(cells, bins)
    low, high = edges[:-1].copy(), np.nextafter(edges[1:], 0.0)
    high[-1] = 1.0
    if cells:
        low[1] = np.exp(-REACH)
    return low, high


def _low_edges(cells: int) -> Array:
    """Return the edges up to ½; the others are one less these."""
    x = np.linspace(-REACH, 0.0, _STEPS + 1)
    p = np.exp(x) / (1 + np.exp(x))
    rule = (1 - TAILS) * (2 / np.pi) * np.arcsin(np.sqrt(p)) + TAILS * (x + REACH) / (2 * REACH)
    steps = np.interp(np.arange(1, cells // 2 + 1) / cells, rule, p)
    return np.array([float(f"{edge:.{_DIGITS}g}") for edge in steps])
