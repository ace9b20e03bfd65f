"""Centred isotonic regression: each step of the isotonic fit shrinks to a point, and lines join the points."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from ... import _core
from ...cells.fine import FineCells
from ...declared import attribute, declared, parameter
from ...fits.report import FitReport
from ...invariants import Values
from ...parameters import AMOUNT
from ...traits import Traits
from ...types import Array, Floats, Integers
from .base import BinaryMap, Learnt
from .stack import CurveStack
from .table import CellMap, cell_losses


@declared
class CentredIsotonic(CellMap):
    """Isotonic regression whose steps shrink to their mean raw probability, with straight lines between them.

    Oron & Flournoy 2017: a step of the isotonic fit is flat because the rows say no more than that the truth rises, and
    its height is best where the step's rows lie on average. So ranks survive between the first and the last centre,
    where the isotonic fit has ties. The outer halves of the first and the last step stay flat, and so does a step of
    height exactly 0 or 1, which only ``smoothing=0`` leaves. Centres and lines are in the raw probability.

    Parameters
    ----------
    smoothing : float
        Pseudo-count of a first step of height 0 and a last of height 1: with weight w they answer (s/2) / (w + s), or
        one less that. 0 is the paper's form, which gives a probability of zero to what may well happen.
    inputs, classes, saturated
        See `Calibrator`.

    Attributes
    ----------
    knots_ : array
        Log-odds of the centres, and of the lowest and the highest score seen.
    values_ : float64 array
        The answer at each, linear in the raw probability between them.
    """

    _identifier = "isotonic-centred"
    _traits = Traits("binary", "nothing", "each class", "n", sees="cells")
    _zeros_lowest = True
    smoothing: float = parameter(AMOUNT, default=1.0)
    values_: Array = attribute(Values("knots", low=0, high=1, order="rising"), counted=True)
    knots_: Floats = attribute(Values("knots", low=-np.inf, high=np.inf, order="rising", finite=False))

    def _learnt_from(self, cells: FineCells, dtype: Any) -> Learnt:
        knots, values = centred(cells, self.smoothing)
        stack = CurveStack([knots], [values], np.zeros(1, dtype=np.int64), np.float64)
        report = FitReport(0, True, "nll", *cell_losses(cells, stack.answers(cells.scores[:, None])[:, 0]))
        return Learnt({"knots_": knots.astype(dtype), "values_": values}, report)

    def _stacked(self, maps: list[BinaryMap], groups: Integers, dtype: Any) -> CurveStack:
        fitted = [m for m in maps if isinstance(m, CentredIsotonic)]
        return CurveStack([m.knots_ for m in fitted], [m.values_ for m in fitted], groups, dtype)


def centred(cells: FineCells, smoothing: float) -> tuple[Array, Array]:
    """Return the knots, in log-odds, and the answers of the centred isotonic fit."""
    p, rest, w = expit(cells.scores), expit(-cells.scores), cells.weights
    levels, begin = _steps(cells)
    if smoothing > 0:
        levels = _off_the_ends(levels, np.add.reduceat(w, begin), smoothing)
    end = np.append(begin[1:], len(w)) - 1
    # The centre is a mean probability; its log-odds are exact at either end of the unit interval.
    with np.errstate(divide="ignore"):
        centre = np.log(np.add.reduceat(w * p, begin)) - np.log(np.add.reduceat(w * rest, begin))
    first, last = cells.scores[begin], cells.scores[end]
    centre = np.clip(centre, first, last)
    flat = (levels <= 0) | (levels >= 1)
    left, right = np.where(flat, first, centre), np.where(flat, last, centre)
    left[0], right[-1] = first[0], last[-1]
    knots = np.stack([left, centre, right], axis=1).ravel()
    fresh = np.append(True, np.diff(knots) > 0)
    return knots[fresh], np.repeat(levels, 3)[fresh]


def _steps(cells: FineCells) -> tuple[Array, Integers]:
    """Return the height of each step of the isotonic fit, and the first cell of each."""
    levels = _core.pool_adjacent(cells.outcomes, cells.weights, np.array([0, cells.count]))
    begin = np.flatnonzero(np.append(True, levels[1:] != levels[:-1]))
    return levels[begin], begin


def _off_the_ends(levels: Array, weights: Array, smoothing: float) -> Array:
    """Return the heights with the first and the last as a pseudo-count has them where they are 0 and 1, in order."""
    moved = levels.copy()
    if levels[0] <= 0:
        moved[0] = min(0.5 * smoothing / (weights[0] + smoothing), levels[1] if len(levels) > 1 else 1.0)
    if levels[-1] >= 1:
        moved[-1] = 1 - 0.5 * smoothing / (weights[-1] + smoothing)
        moved[-1] = max(moved[-1], moved[max(len(moved) - 2, 0)])
    return moved
