"""Reliability curves: what plots and reports draw. Computing is here, drawing is not."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ...cells.edges import make_edges
from ...cells.isotonic import isotonic_levels
from ...cells.logit_spline import logit_spline
from ...cells.pairs import Pairs
from ...plain import plain
from ...types import Array
from ..inference.intervals import frequency_interval
from ..views.forecasts import read, select
from .binned import bin_sums


@dataclass(frozen=True, eq=False)
class BinnedCurve:
    """Bins that are not empty, in order: their edges, weight, mean score, frequency and its interval."""

    left: Array
    right: Array
    weight: Array
    score: Array
    frequency: Array
    low: Array
    high: Array
    confidence: float
    method: str


@dataclass(frozen=True, eq=False)
class IsotonicCurve:
    """The isotonic (CORP) estimate: steps at ``level`` from score ``left`` to ``right``, with the weight of each."""

    left: Array
    right: Array
    weight: Array
    score: Array
    level: Array
    low: Array
    high: Array


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """How often the event of a view happened at each score.

    Attributes
    ----------
    view : str
        "top_label", "event" for the probability of one event, or the name of a class.
    binned : BinnedCurve
    isotonic : IsotonicCurve
    edges, counts : arrays
        A histogram of the scores: 50 bins of equal width.
    """

    view: str
    binned: BinnedCurve
    isotonic: IsotonicCurve
    edges: Array
    counts: Array

    @property
    def mean_gap(self) -> float:
        """How far the bins are from the diagonal, weighted by rows."""
        bins = self.binned
        return float(bins.weight @ np.abs(bins.score - bins.frequency) / bins.weight.sum())

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and numbers."""
        return plain(asdict(self), nan="nan")


@dataclass(frozen=True, eq=False)
class SmoothCurve:
    """A smooth calibration curve: frequencies at scores, and a band that holds for all of them at once.

    ``yes`` and ``no`` are histograms of the scores of what happened and of what did not, over 50 bins of equal width.
    """

    score: Array
    frequency: Array
    low: Array
    high: Array
    yes: Array
    no: Array
    confidence: float
    smoother: str = "spline"

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and numbers."""
        return plain(asdict(self), nan="nan")


def smooth_curve(pairs: Pairs, confidence: float = 0.95, places: int = 200) -> SmoothCurve:
    """Return the penalised spline of pairs, from the lowest to the highest score, with its band."""
    cells = pairs.cells
    found = logit_spline(pairs)
    even = np.linspace(cells.scores[0], cells.scores[-1], places)
    mass = np.interp(np.linspace(0, 1, places), np.cumsum(cells.share), cells.scores)
    at = np.unique(np.r_[even, mass])
    low, high = found.band(at, confidence)
    w = pairs.weight_array
    yes, no = (
        np.histogram(pairs.scores, 50, (0.0, 1.0), weights=w * part)[0].astype(np.float64)
        for part in (pairs.outcomes, 1 - pairs.outcomes)
    )
    return SmoothCurve(at, found.at(at), low, high, yes, no, confidence)


def reliability_curve(
    y_true: Any,
    y_prob: Any,
    *,
    view: Any = "top_label",
    bins: Any = 15,
    edges: Any = "equal_width",
    confidence: float = 0.95,
    method: str = "wilson",
    sample_weight: Any = None,
    classes: Any = None,
) -> ReliabilityCurve:
    """Return the reliability curve of one view, binned with intervals and isotonic.

    Parameters
    ----------
    method : {"wilson", "clopper_pearson"}
        Of the intervals of the bins' frequencies.
    """
    forecasts = read(y_true, y_prob, sample_weight, classes=classes)
    name = "event" if forecasts.is_event and isinstance(view, str) and view == "top_label" else str(view)
    return curve_of(select(forecasts, view), name, bins, edges, confidence, method)


def curve_of(
    pairs: Pairs,
    name: str,
    bins: Any = 15,
    edges: Any = "equal_width",
    confidence: float = 0.95,
    method: str = "wilson",
) -> ReliabilityCurve:
    """Return the reliability curve of validated pairs."""
    counts, places = np.histogram(pairs.scores, bins=50, range=(0.0, 1.0), weights=pairs.weights)
    binned = binned_curve(pairs, bins, edges, confidence, method)
    return ReliabilityCurve(name, binned, isotonic_curve(pairs, confidence), places, counts.astype(np.float64))


def binned_curve(pairs: Pairs, bins: Any, edges: Any, confidence: float, method: str) -> BinnedCurve:
    """Return the bins that are not empty, each with the interval of its frequency."""
    made = make_edges(edges, bins, pairs)
    sums = bin_sums(pairs, made)
    seen = sums[0] > 0
    weight, score, outcome = sums[:, seen]
    low, high = frequency_interval(outcome, weight, confidence=confidence, method=method)
    return BinnedCurve(
        made[:-1][seen], made[1:][seen], weight, score / weight, outcome / weight, low, high, confidence, method
    )


def isotonic_curve(pairs: Pairs, confidence: float) -> IsotonicCurve:
    """Return the steps of the isotonic fit, each with Wilson's interval for its own rows (the steps taken as given)."""
    cells = pairs.cells
    levels = isotonic_levels(cells.weights, cells.outcomes)
    first = np.flatnonzero(np.r_[True, levels[1:] != levels[:-1]])
    last = np.r_[first[1:] - 1, len(levels) - 1]
    weight, outcome = np.add.reduceat(cells.weights, first), np.add.reduceat(cells.outcomes, first)
    score = np.add.reduceat(cells.weights * cells.scores, first) / weight
    low, high = frequency_interval(np.minimum(outcome, weight), weight, confidence=confidence)
    return IsotonicCurve(cells.scores[first], cells.scores[last], weight, score, outcome / weight, low, high)


def count_ticks(most: float, scale: str) -> list[float]:
    """Return two or three round numbers up to ``most`` that a strip of counts can be read by, on its scale.

    Examples
    --------
    >>> count_ticks(4200, "sqrt"), count_ticks(4200, "log"), count_ticks(4200, "linear")
    ([400.0, 4000.0], [1.0, 1000.0], [2000.0, 4000.0])
    """
    if most < 1:
        return [most]
    size = 10.0 ** np.floor(np.log10(most))
    top = float(size * np.floor(most / size))
    if scale == "log":
        return [1.0, float(size)] if size > 1 else [1.0]
    return [top / (10 if scale == "sqrt" else 2), top]
