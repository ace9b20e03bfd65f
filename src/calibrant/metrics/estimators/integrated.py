"""Distances of a smooth calibration curve from the diagonal: ICI, E50, E90, Emax (Austin and Steyerberg 2019)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import inner
from ...cells.pairs import Pairs
from .smoothers import smoothed

__all__ = ["GAPS", "distances", "distances_of", "gap_figure"]

Floats = NDArray[np.float64]


def _mean(gaps: Floats, share: Floats) -> float:
    return inner(share, gaps)


def _quantile(at: float) -> Callable[[Floats, Floats], float]:
    def quantile(gaps: Floats, share: Floats) -> float:
        """Type 7: rank (n - 1)·q; weights are numbers of rows, up to a factor."""
        order = np.argsort(gaps, kind="stable")
        unit = float(share[share > 0].min())
        ends = np.cumsum(share[order]) / unit
        rank = at * (ends[-1] - 1)
        whole = np.floor(rank + 1e-9)
        low, high = (
            gaps[order[np.searchsorted(ends, whole + step + 1e-6, side="right").clip(0, len(gaps) - 1)]]
            for step in (0, 1)
        )
        return float(low + (rank - whole) * (high - low))

    return quantile


def _largest(gaps: Floats, share: Floats) -> float:
    return float(gaps.max())


GAPS: dict[str, Callable[[Floats, Floats], float]] = {
    "ici": _mean,
    "e50": _quantile(0.5),
    "e90": _quantile(0.9),
    "emax": _largest,
}


def distances_of(pairs: Pairs, curve: Any) -> tuple[float, ...]:
    """Return mean, median, 90 % quantile and maximum over rows of |curve - score|."""
    cells = pairs.cells
    gaps = np.abs(np.clip(curve.at(cells.scores), 0, 1) - cells.scores)
    return tuple(figure(gaps, cells.share) for figure in GAPS.values())


def distances(pairs: Pairs, smoother: str = "spline") -> tuple[float, ...]:
    """Return ICI, E50, E90 and Emax of the curve of a named smoother."""
    return distances_of(pairs, smoothed(pairs, smoother))


def gap_figure(name: str) -> Callable[..., float]:
    """Return one of the figures as an estimator of pairs."""
    place = list(GAPS).index(name)

    def figure(pairs: Pairs, *, smoother: str = "spline") -> float:
        return distances(pairs, smoother)[place]

    return figure
