"""Net benefit: what acting on a probability is worth, and its curve over thresholds (Vickers and Elkin 2006)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any

import numpy as np

from ...cells.pairs import Pairs, standard_error
from ...errors import InvalidInput
from ...plain import plain
from ...types import Array, Mask
from ..inference.intervals import check_confidence, deviations_of
from ..views.forecasts import read, select

THRESHOLDS = tuple(np.round(np.arange(1, 100) / 100, 2).tolist())
# Part of a threshold by which a score may be below it: half a digit of single precision, whose .7 is less than .7.
ROUNDED = 2.0**-24


@dataclass(frozen=True, eq=False)
class DecisionCurve:
    """Net benefit over thresholds, with intervals of each threshold by itself.

    Attributes
    ----------
    thresholds : array
        Of the probability at which one acts: a false alarm then costs t/(1-t) of what a missed event does.
    net_benefit, low, high : arrays
        Of acting where the score is at least the threshold.
    treat_all : array
        Of acting always; acting never has 0.
    advantage, advantage_low, advantage_high : arrays
        Of the scores over the better of always and never; differences are paired, so their intervals are narrower.
    confidence : float
    """

    thresholds: Array
    net_benefit: Array
    low: Array
    high: Array
    treat_all: Array
    advantage: Array
    advantage_low: Array
    advantage_high: Array
    confidence: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and numbers."""
        return plain(asdict(self), nan="nan")


def check_threshold(threshold: Any) -> float:
    """Refuse what is no threshold; 0 and 1 have no net benefit."""
    if isinstance(threshold, bool) or not isinstance(threshold, Real) or not 0 < float(threshold) < 1:
        raise InvalidInput("threshold is not valid", seen=repr(threshold), allowed="a number between 0 and 1")
    return float(threshold)


def acted(scores: Array, threshold: float) -> Mask:
    """Tell where one acts: at scores of the threshold or above, as far as single precision can tell."""
    return scores >= threshold * (1 - ROUNDED)


def net_benefit(
    y_true: Any,
    y_prob: Any,
    threshold: float,
    *,
    prevalence: float | None = None,
    view: Any = "top_label",
    sample_weight: Any = None,
    classes: Any = None,
) -> float:
    """Net benefit of acting where the probability is at least a threshold.

    The mean of [p ≥ t]·(y - (1 - y)·t/(1 - t)): events caught, less false alarms at the price that the threshold names.

    Parameters
    ----------
    threshold : float
        Between 0 and 1.
    prevalence : float, optional
        Of the event where the scores will be used, if these rows were drawn at another one.

    Examples
    --------
    >>> net_benefit([1, 0, 1, 0], [0.75, 0.5, 0.25, 0.0], 0.5)
    0.0
    """
    pairs = select(read(y_true, y_prob, sample_weight, classes=classes), view)
    return net_benefit_influence(pairs, threshold=threshold, prevalence=prevalence)[0]


def net_benefit_influence(pairs: Pairs, *, threshold: Any, prevalence: float | None = None) -> tuple[float, Array]:
    """Return the net benefit, and what each row adds to it."""
    price = check_threshold(threshold) / (1 - float(threshold))
    acts = acted(pairs.scores, float(threshold)).astype(np.float64)
    w = pairs.weight_array
    if prevalence is None:
        values = acts * (pairs.outcomes - (1 - pairs.outcomes) * price)
        return float(np.average(values, weights=w)), values
    check_threshold(prevalence)
    rate = float(np.average(pairs.outcomes, weights=w))
    if not 0 < rate < 1:
        return float("nan"), np.zeros(pairs.n)
    hit, alarm = (float(np.average(acts, weights=w * side)) for side in (pairs.outcomes, 1 - pairs.outcomes))
    own = np.where(pairs.outcomes > 0, (acts - hit) * prevalence / rate, 0.0)
    own = own - np.where(pairs.outcomes > 0, 0.0, (acts - alarm) * (1 - prevalence) * price / (1 - rate))
    return hit * prevalence - alarm * (1 - prevalence) * price, own


def decision_curve(
    y_true: Any,
    y_prob: Any,
    thresholds: Any = THRESHOLDS,
    *,
    confidence: float = 0.95,
    view: Any = "top_label",
    sample_weight: Any = None,
    clusters: Any = None,
    classes: Any = None,
) -> DecisionCurve:
    """Return the net benefit over thresholds, with intervals, beside that of acting always.

    Examples
    --------
    >>> curve = decision_curve([1, 0, 1, 0], [0.9, 0.4, 0.6, 0.1], [0.25, 0.5])
    >>> print(curve.net_benefit.round(3), curve.treat_all.round(3))
    [0.417 0.5  ] [0.333 0.   ]
    """
    forecasts = read(y_true, y_prob, sample_weight, classes=classes).clustered(clusters)
    return curve_of_decisions(select(forecasts, view), thresholds, confidence)


def curve_of_decisions(pairs: Pairs, thresholds: Any = THRESHOLDS, confidence: float = 0.95) -> DecisionCurve:
    """Return the decision curve of validated pairs."""
    check_confidence(confidence)
    places = np.atleast_1d(np.asarray(thresholds, dtype=np.float64))
    reach, found = deviations_of(confidence), []
    for t in places.tolist():
        value, rows = net_benefit_influence(pairs, threshold=t)
        everyone = pairs.outcomes - (1 - pairs.outcomes) * t / (1 - t)
        treated = float(np.average(everyone, weights=pairs.weight_array))
        gained = rows - everyone if treated > 0 else rows
        error, gap = (standard_error(values, pairs)[0] * reach for values in (rows, gained))
        ahead = value - max(treated, 0.0)
        found.append((value, value - error, value + error, treated, ahead, ahead - gap, ahead + gap))
    value, low, high, treated, ahead, least, most = np.array(found).T
    return DecisionCurve(places, value, low, high, treated, ahead, least, most, confidence)
