"""Distances of a smooth calibration curve from the diagonal: ICI, E50, E90, Emax (Austin and Steyerberg 2019)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...arrays import inner
from ...cells.pairs import Pairs
from ...types import Array
from .smoothers import smoothed

GAPS = ("ici", "e50", "e90", "emax")


def summed_up(gaps: Array, share: Array) -> tuple[float, ...]:
    """Return mean, median, 90 % quantile and maximum of gaps.

    Quantiles are of type 7: rank (n - 1)·q, where weights are numbers of rows up to a factor.
    """
    order = np.argsort(gaps)
    ordered, ends = gaps[order], np.cumsum(share[order]) / float(share[share > 0].min())
    rank = np.array([0.5, 0.9]) * (ends[-1] - 1)
    whole = np.floor(rank + 1e-9)
    low, high = (
        ordered[np.searchsorted(ends, whole + step + 1e-6, side="right").clip(0, len(gaps) - 1)] for step in (0, 1)
    )
    return inner(share, gaps), *(low + (rank - whole) * (high - low)).tolist(), float(ordered[-1])


def distances(pairs: Pairs, smoother: str = "spline") -> tuple[float, ...]:
    """Return ICI, E50, E90 and Emax of the curve of a named smoother: mean, … over rows of |curve - score|."""
    cells = pairs.cells
    return summed_up(np.abs(smoothed(pairs, smoother).at(cells.scores) - cells.scores), cells.share)


def gap_figure(name: str) -> Callable[..., float]:
    """Return one of the figures as an estimator of pairs."""
    place = GAPS.index(name)

    def figure(pairs: Pairs, *, smoother: str = "spline") -> float:
        return distances(pairs, smoother)[place]

    return figure
