"""Intervals of the figures that a risk model is reported with."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtri, expit, log_expit, logit, stdtrit

from ...cells.logistic import fit_logistic
from ...cells.pairs import Pairs, standard_error
from ...errors import InvalidInput
from ...parameters import is_one_of
from ..estimators.cox import Line, line_covariance, line_of, observed_expected, outside_of
from .intervals import Interval, deviations_of
from .means import FEW, few_against, few_words, mean_interval, rarer, share_ends, short_words, too_few
from .resampling import Sampling

_GROUPED = 4000  # cells beyond which the profile is taken of groups of neighbours: the ends move by less than a percent
# The usual error of observed over expected is that of scores which are all one; where they differ, outcomes vary less,
# and from this share of their variance on 95 % intervals hold more than 97 % ((1.96/2.17)²).
SPREAD = 0.816
# Times its usual error that a coefficient strays from where on its interval grows: true rows of 50 to 1,000 stray less.
MISFIT = 1.1
_FAR = 60  # doublings of the reach within which an end of the profile is looked for


def _note(pairs: Pairs, line: Line) -> str:
    left = outside_of(pairs)
    words = f"{left:,.0f} rows with a score of exactly 0 or 1 have no log-odds and were left out" if left else ""
    if line.separable:
        words = "; ".join(filter(None, [words, "outcomes are separable by the scores: a loose prior keeps it finite"]))
    return "; ".join(filter(None, [words, short_words(pairs)]))


def line_law(place: int) -> Any:
    """Return the law of the intercept (0) or the slope (1) of Cox's line."""

    def law(pairs: Pairs, confidence: float, sampling: Sampling, method: str = "robust") -> Interval:
        line = line_of(pairs)
        if line.constant:
            note = "all scores are one: there is no line"
            return Interval(np.nan, None, None, confidence, np.nan, 0.0, "none", note=note)
        return _ends(pairs, line, place, confidence, method)

    return law


def large_law(pairs: Pairs, confidence: float, sampling: Sampling, method: str = "robust") -> Interval:
    """The law of calibration in the large."""
    line = line_of(pairs, slope=False)
    if not len(line.x):
        note = "all scores are exactly 0 or 1: none has log-odds"
        return Interval(np.nan, None, None, confidence, np.nan, 0.0, "none", note=note)
    if line.separable:
        estimate = float(np.copysign(np.inf, line.outcomes.sum() - expit(line.x) @ line.weights))
        return Interval(estimate, None, None, confidence, np.nan, 0.0, "none", note="only one outcome was seen")
    return _ends(pairs, line, 0, confidence, method)


def _ends(pairs: Pairs, line: Line, place: int, confidence: float, method: str) -> Interval:
    if not is_one_of(method, ("robust", "profile", "wald")):
        raise InvalidInput("no such interval", seen=repr(method), allowed="'robust', 'profile' or 'wald'")
    estimate, error = float(line.fit.theta[place]), float(np.sqrt(line.fit.covariance[place, place]))
    note = _note(pairs, line)
    if pairs.clusters is not None:
        spread, freedom = line_covariance(pairs, line)
        if freedom[place] < 1:
            return Interval(estimate, None, None, confidence, np.nan, 0.0, "clusters", note="one cluster has no spread")
        error = max(error, float(np.sqrt(spread[place, place])))
        reach = float(stdtrit(freedom[place], 0.5 + confidence / 2)) * error
        return Interval(estimate, estimate - reach, estimate + reach, confidence, error, 0.0, "clusters", note=note)
    reach = deviations_of(confidence) * error
    if method == "wald" or line.separable:
        return Interval(estimate, estimate - reach, estimate + reach, confidence, error, 0.0, "wald", note=note)
    low, high = _profile(line, place, confidence, error)
    times = _misfit(line, place)
    if method == "profile" or times < MISFIT:
        return Interval(estimate, low, high, confidence, error, 0.0, "profile", note=note)
    low, high = estimate - times * (estimate - low), estimate + times * (high - estimate)
    return Interval(estimate, low, high, confidence, times * error, 0.0, "robust", note=note)


def _misfit(line: Line, place: int) -> float:
    """Return how many times its usual error a coefficient strays by the residuals (Huber 1967, White 1982).

    A line that does not describe the rows takes their outcomes for more certain than they are: without this, the shift
    of over-confident scores near 0 and 1 covered 75 to 87 %.
    """
    x, ones = line.x, np.ones_like(line.x)
    design = np.column_stack([ones, x]) if line.with_slope else ones[:, None]
    mean = expit(design @ line.fit.theta + (0.0 if line.with_slope else x))
    squares = line.outcomes * (1 - mean) ** 2 + (line.weights - line.outcomes) * mean**2
    moved = design @ line.fit.covariance[:, place]
    return float(np.sqrt((squares * moved**2).sum() / line.fit.covariance[place, place]))


def _profile(line: Line, place: int, confidence: float, error: float) -> tuple[float, float]:
    """Return the values at which twice the log-likelihood, at its best in the other parameter, has fallen by χ²."""
    limit = float(chdtri(1, 1 - confidence))
    x, w, o, moved = line.x, line.weights, line.outcomes, 0.0
    estimate = float(line.fit.theta[place])
    ones = np.ones((len(x), 1))
    if len(x) > _GROUPED:
        first = np.searchsorted(np.cumsum(w), np.linspace(0, w.sum(), _GROUPED + 1)[:-1], side="right")
        first = np.unique(first.clip(0, len(x) - 1))
        first[0] = 0
        mass = np.add.reduceat(w, first)
        x, o, w = np.add.reduceat(w * x, first) / mass, np.add.reduceat(o, first), mass
        ones = np.ones((len(x), 1))
        design = np.column_stack([ones, x]) if line.with_slope else ones
        grouped = fit_logistic(design, o, w, offset=0.0 if line.with_slope else x, start=line.fit.theta)
        moved, likelihood = estimate - float(grouped.theta[place]), grouped.likelihood
        other = grouped.theta
    else:
        likelihood, other = line.fit.likelihood, line.fit.theta
    centre = estimate - moved

    def fallen(value: float) -> float:
        if not line.with_slope:
            z = x + value
            return 2 * (likelihood - float(o @ log_expit(z) + (w - o) @ log_expit(-z))) - limit
        design, offset = (x[:, None], value) if place == 0 else (ones, value * x)
        fit = fit_logistic(design, o, w, offset=offset, start=other[[1 - place]])
        return 2 * (likelihood - fit.likelihood) - limit

    ends = []
    for side in (-1.0, 1.0):
        reach = error
        for _ in range(_FAR):
            if fallen(centre + side * reach) > 0:
                break
            reach *= 1.5
        else:
            ends.append(side * np.inf)
            continue
        ends.append(float(brentq(fallen, centre, centre + side * reach, xtol=1e-7)) + moved)  # pyright: ignore
    return ends[0], ends[1]


def ratio_law(pairs: Pairs, confidence: float, sampling: Sampling) -> Interval:
    """The law of observed over expected: normal in its logarithm, √((1 - ȳ)/O); exact where there are few events."""
    estimate, rows = observed_expected(pairs), pairs.rows
    rate = float(np.average(pairs.outcomes, weights=pairs.weights))
    if not np.isfinite(estimate):
        return Interval(estimate, None, None, confidence, np.nan, 0.0, "none", note="the scores add up to nothing")
    if rarer(pairs) < FEW:
        said = rate / estimate if estimate > 0 else float(np.average(pairs.scores, weights=pairs.weights))
        low, high = (end / said for end in share_ends(pairs, confidence))
        note = few_words(pairs)
        return Interval(estimate, low, high, confidence, np.nan, 0.0, "clopper-pearson", note=note, wide=True)
    error, reach = float(np.sqrt((1 - rate) / (rate * rows))), deviations_of(confidence)
    spread = float(np.average(pairs.scores * (1 - pairs.scores), weights=pairs.weights))
    wide = pairs.clusters is None and spread < SPREAD * rate * (1 - rate)
    if pairs.clusters is not None:
        error, count = standard_error((pairs.outcomes - estimate * pairs.scores) / rate, pairs)
        reach = float(stdtrit(count - 1, 0.5 + confidence / 2))
    ends = estimate * np.exp(-reach * error), estimate * np.exp(reach * error)
    note = short_words(pairs)
    return Interval(
        estimate, float(ends[0]), float(ends[1]), confidence, estimate * error, 0.0, "log-normal", note=note, wide=wide
    )


def mean_law(influence: Any, *, logits: bool = False, loss: bool = False) -> Any:
    """Return the law of a figure whose rows have an influence: ``influence(pairs, **options)`` is (estimate, values).

    Its interval is that of the mean of the values, rows of a cluster added up first. With ``logits`` it is made on the
    log-odds, so that it stays between 0 and 1. A ``loss`` lies in the rows that go against their scores, too.
    """

    def law(pairs: Pairs, confidence: float, sampling: Sampling, **options: Any) -> Interval:
        estimate, values = influence(pairs, **options)
        if not np.isfinite(estimate):
            return Interval(estimate, None, None, confidence, np.nan, 0.0, "none", note="only one outcome was seen")
        error, count = standard_error(values, pairs)
        few = few_against(pairs) if loss else few_words(pairs) if too_few(pairs) else ""
        note = few or short_words(pairs)
        if not np.isfinite(error) or few:
            return Interval(estimate, None, None, confidence, np.nan, 0.0, "none", note=note or "one row has no spread")
        if not logits and pairs.clusters is None:
            found = mean_interval(values, pairs.weights, confidence)
            return found.moved(estimate, "influence", note)
        if logits and not 0 < estimate < 1:
            return Interval(estimate, None, None, confidence, np.nan, 0.0, "none", note="outcomes are separable")
        count = min(count, rarer(pairs))  # what has the rarer outcome decides the error
        reach = float(stdtrit(count - 1, 0.5 + confidence / 2)) * error
        if logits:
            reach /= estimate * (1 - estimate)
            low, high = (float(expit(logit(estimate) + side * reach)) for side in (-1, 1))
        else:
            low, high = estimate - reach, estimate + reach
        return Interval(estimate, low, high, confidence, error, 0.0, "influence", note=note)

    return law
