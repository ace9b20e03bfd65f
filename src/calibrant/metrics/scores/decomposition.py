"""Proper scores taken apart: what miscalibration costs, and what remains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import xlogy

from ...arrays import inner
from ...cells.edges import bin_index, make_edges
from ...cells.isotonic import isotonic_levels
from ...cells.pairs import Cells, Pairs
from ...errors import InvalidInput
from ...types import Array
from ..views.forecasts import read, select


@dataclass(frozen=True)
class Decomposition:
    """A proper score as calibration + refinement, and refinement as uncertainty - resolution.

    Attributes
    ----------
    score : float
        The mean score of the forecasts.
    calibration : float
        What recalibration saves: the score less that of the recalibrated forecasts (CORP's MCB).
    uncertainty : float
        The score of the overall frequency (CORP's UNC).
    refinement : float
        The score after recalibration; finite also where the score is not.
    """

    score: float
    calibration: float
    uncertainty: float
    refinement: float = field(repr=False)

    @property
    def resolution(self) -> float:
        """What the recalibrated forecasts save against the overall frequency (CORP's DSC)."""
        return self.uncertainty - self.refinement

    def __add__(self, other: Decomposition) -> Decomposition:
        return Decomposition(
            self.score + other.score,
            self.calibration + other.calibration,
            self.uncertainty + other.uncertainty,
            self.refinement + other.refinement,
        )


def _squared(p: Array, y: Array) -> Array:
    """E(p - Y)² for an event of frequency y."""
    return (p - y) ** 2 + y * (1 - y)


def _logarithmic(p: Array, y: Array) -> Array:
    """Return E[-log p(Y)] for an event of frequency y."""
    return -(xlogy(y, p) + xlogy(1 - y, 1 - p))


def decompose(
    pairs: Pairs,
    loss: Callable[[Array, Array], Array],
    method: str = "isotonic",
    bins: Any = 15,
    edges: Any = "equal_mass",
) -> Decomposition:
    """Decomposition of the mean loss of pairs; ``method`` says how forecasts are recalibrated."""
    cells = pairs.cells
    frequency, share = cells.frequencies, cells.share
    overall = np.full_like(share, inner(share, frequency))
    recalibrated = _recalibrated(cells, pairs, method, bins, edges)
    score, refinement, uncertainty = (inner(share, loss(p, frequency)) for p in (cells.scores, recalibrated, overall))
    return Decomposition(score, score - refinement, uncertainty, refinement)


def _recalibrated(cells: Cells, pairs: Pairs, method: str, bins: Any, edges: Any) -> Array:
    if method == "isotonic":
        return np.clip(isotonic_levels(cells.weights, cells.outcomes), 0, 1)
    if method != "binned":
        raise InvalidInput("no such method", seen=repr(method), allowed="'isotonic' or 'binned'")
    place = bin_index(cells.scores, make_edges(edges, bins, pairs))
    weight, outcome = np.bincount(place, cells.weights), np.bincount(place, cells.outcomes)
    return (outcome / np.where(weight > 0, weight, 1))[place]


def brier_decomposition(
    y_true: Any,
    y_prob: Any,
    *,
    view: Any = "multi_class",
    method: str = "isotonic",
    bins: Any = 15,
    edges: Any = "equal_mass",
    sample_weight: Any = None,
    classes: Any = None,
) -> Decomposition:
    """Calibration and refinement of the Brier score.

    Parameters
    ----------
    view : {"multi_class", "top_label"} or a class
        "multi_class" adds up the classes, each recalibrated by itself.
    method : {"isotonic", "binned"}
        Recalibration by isotonic regression (CORP, Dimitriadis et al. 2021: no bins to choose, never negative), or to
        the frequency of each bin (Murphy 1973, with the spread of the scores within bins on the calibration side).

    Examples
    --------
    >>> brier_decomposition([0, 1, 0, 1], [0.25, 0.25, 0.5, 0.5])
    Decomposition(score=0.28125, calibration=0.03125, uncertainty=0.25)
    """
    forecasts = read(y_true, y_prob, sample_weight, classes=classes)
    every = isinstance(view, str) and view == "multi_class"
    groups = forecasts.each_class() if every else [select(forecasts, view, ("multi_class",))]
    total = Decomposition(0.0, 0.0, 0.0, 0.0)
    for pairs in groups:
        total += decompose(pairs, _squared, method, bins, edges)
    return total


def nll_decomposition(
    y_true: Any,
    y_prob: Any,
    *,
    view: Any = "top_label",
    sample_weight: Any = None,
    classes: Any = None,
    **how: Any,
) -> Decomposition:
    """Calibration and refinement of the logarithmic score of one event: the top label being right, or one class.

    The score of the whole vector is not a sum over classes, so it has no such decomposition. Parameters are those of
    `brier_decomposition`, ``how`` being its method, bins and edges.
    """
    return decompose(select(read(y_true, y_prob, sample_weight, classes=classes), view), _logarithmic, **how)
