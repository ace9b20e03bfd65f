"""The shape of a miscalibration: too high, too low, too extreme, too timid, upside down, or wrong in places."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit, logit

from ...cells.logistic import fit_logistic
from ...cells.pairs import Pairs
from ...types import Array
from ..estimators.cox import LOOSE

# The line is fitted on at most this many groups of equal mass: a group's scores are then almost equal.
GROUPS = 1000
# Places are looked for among at most this many groups of equal mass, and no more than have this variance Σs(1 - s) on
# average: below it X² is no χ².
PLACES, VARIANCE = 20, 4.0
# Twice the gain in log-likelihood that one parameter more must bring: the 95 % quantile of χ² with one degree.
CLEAR = 3.84
# Gaps of the rarer sign that are less than this part of all gaps are not spoken of.
FEW_GAPS = 0.2
# Standard errors of a gap that is spoken of: among all ranges of 20 groups, chance reaches them in 4 of 100 samples.
SEEN = 3.5
# A range with more of all rows is no place.
MOST_ROWS = 0.9


@dataclass(frozen=True)
class Range:
    """Rows whose scores lie in a range: their number, mean score and frequency."""

    low: float
    high: float
    rows: float
    score: float
    frequency: float


@dataclass(frozen=True)
class Shape:
    """How scores differ from frequencies.

    Attributes
    ----------
    kind : str
        "too_high", "too_low", "too_extreme", "too_timid", "upside_down" or "in_places".
    ranges : tuple of Range
        Below and above the score at which the sign changes ("too_extreme", "too_timid", "upside_down"); the ranges with
        the clearest gaps ("in_places"); else all rows.
    """

    kind: str
    ranges: tuple[Range, ...]


@dataclass(frozen=True, eq=False)
class _Groups:
    """Neighbouring scores as one, in increasing order."""

    scores: Array
    weights: Array
    outcomes: Array
    edges: Array
    scale: float  # rows for each unit of weight

    def span(self, first: int, last: int) -> Range:
        part = slice(first, last)
        weight = self.weights[part].sum()
        mean = float((self.weights * self.scores)[part].sum() / weight)
        rows = float(weight * self.scale)
        return Range(
            float(self.edges[first]), float(self.edges[last]), rows, mean, float(self.outcomes[part].sum() / weight)
        )


def shape_of(pairs: Pairs) -> Shape:
    """Return the shape of a miscalibration that a test has found.

    1. The line log-odds of the frequency = a + b·log-odds of the score is fitted (Cox 1958), and the shift with b = 1.
    2. Where Pearson's X² of at most 20 groups of equal mass about the line, less its degrees of freedom, is larger than
       what the line gained (twice the log-likelihood), no line describes it: it is wrong **in places**, which are the
       ranges of neighbouring groups with the largest gap of either sign in standard errors, where that is at least 3.5
       and one of them leaves out a tenth of the rows.
    3. Where the line is not clearly better than the shift (χ² at 5 %), or gaps of one sign are less than a fifth of all
       gaps of the line, it is **too high** or **too low**.
    4. Else the sign changes at one score. Slope b < 0, where the line is clearly better than none (b = 0): **upside
       down**; else b < 1: **too extreme**, that is too high above that score and too low below it; b > 1: **too
       timid**, the other way round.
    """
    fine = _grouped(pairs, GROUPS)
    variance = float((fine.weights * fine.scores * (1 - fine.scores)).sum() * fine.scale)
    coarse = _grouped(pairs, int(np.clip(variance / VARIANCE, 2, PLACES)))
    everything = (coarse.span(0, len(coarse.weights)),)
    x = _log_odds(fine)
    shift, line = _fit(fine, x, slope=False), _fit(fine, x, slope=True)
    gained = _likelihood(fine, x, line) - _likelihood(fine, x, (0.0, 1.0))
    places = _places(coarse) if _left(coarse, line) > 2 * gained else ()
    if len(places) > 1 or (places and places[0].rows < MOST_ROWS * everything[0].rows):
        return Shape("in_places", places)
    if 2 * (_likelihood(fine, x, line) - _likelihood(fine, x, shift)) < CLEAR:
        return Shape("too_low" if shift[0] > 0 else "too_high", everything)
    gaps = fine.weights * (expit(line[0] + line[1] * x) - expit(x))
    up, down = gaps[gaps > 0].sum(), -gaps[gaps < 0].sum()
    falls = line[1] < 0 and 2 * (_likelihood(fine, x, line) - _likelihood(fine, x, _level(fine))) >= CLEAR
    if not falls and min(up, down) < FEW_GAPS * (up + down):
        return Shape("too_low" if up > down else "too_high", everything)
    kind = "upside_down" if falls else "too_extreme" if line[1] < 1 else "too_timid"
    return Shape(kind, _sides(fine, line) or everything)


def _grouped(pairs: Pairs, most: int) -> _Groups:
    """Return at most so many groups of equal mass; tied scores stay together."""
    cells = pairs.cells
    before = np.cumsum(cells.weights) - cells.weights
    place = np.minimum(before * most // cells.weights.sum(), most - 1)
    first = np.flatnonzero(np.r_[True, place[1:] != place[:-1]])
    weights = np.add.reduceat(cells.weights, first)
    scores = np.add.reduceat(cells.weights * cells.scores, first) / weights
    edges = np.r_[cells.scores[first], cells.scores[-1]]
    return _Groups(scores, weights, np.add.reduceat(cells.outcomes, first), edges, cells.rows / weights.sum())


def _log_odds(groups: _Groups) -> Array:
    """Return the log-odds of the scores, none nearer to 0 or 1 than half a row of all can tell."""
    least = 0.5 / float(groups.weights.sum() * groups.scale)
    return logit(np.clip(groups.scores, least, 1 - least))


def _likelihood(groups: _Groups, x: Array, line: tuple[float, float]) -> float:
    z = line[0] + line[1] * x
    happened, missed = groups.outcomes * groups.scale, (groups.weights - groups.outcomes) * groups.scale
    return float(happened @ log_expit(z) + missed @ log_expit(-z))


def _fit(groups: _Groups, x: Array, *, slope: bool) -> tuple[float, float]:
    """Return intercept and slope of greatest likelihood, or the shift alone; the prior keeps them finite."""
    design = np.column_stack([np.ones_like(x), x]) if slope else np.ones((len(x), 1))
    identity = np.array([0.0, 1.0])[: design.shape[1]]
    theta = fit_logistic(
        design,
        groups.outcomes * groups.scale,
        groups.weights * groups.scale,
        offset=0.0 if slope else x,
        penalty=np.eye(len(identity)) / LOOSE**2,
        start=identity,
        centre=identity,
    ).theta
    return float(theta[0]), float(theta[1]) if slope else 1.0


def _level(groups: _Groups) -> tuple[float, float]:
    """Return the line with slope 0: the log-odds of the frequency of all rows, as `_log_odds` bounds them."""
    rate = float(groups.outcomes.sum() / groups.weights.sum())
    least = 0.5 / float(groups.weights.sum() * groups.scale)
    return float(logit(np.clip(rate, least, 1 - least))), 0.0


def _left(groups: _Groups, line: tuple[float, float]) -> float:
    """Return Pearson's X² of groups about the line, less its degrees of freedom."""
    p = expit(line[0] + line[1] * _log_odds(groups))
    spread = groups.weights * groups.scale * p * (1 - p)
    gaps = (groups.outcomes - groups.weights * p) * groups.scale
    return float((gaps**2 / np.maximum(spread, 1e-300)).sum()) - max(0, len(p) - 2)


def _places(groups: _Groups) -> tuple[Range, ...]:
    """Return the ranges with the clearest gap of either sign, in order of score."""
    gaps = np.r_[0.0, np.cumsum((groups.outcomes - groups.weights * groups.scores) * groups.scale)]
    spread = np.r_[0.0, np.cumsum(groups.weights * groups.scale * groups.scores * (1 - groups.scores))]
    total, width = gaps[None, :] - gaps[:, None], spread[None, :] - spread[:, None]
    z = np.where(np.triu(width, 1) > 0, total / np.sqrt(np.maximum(width, 1e-300)), 0.0)
    found = [np.unravel_index(side(z), z.shape) for side in (np.argmax, np.argmin)]
    clear = sorted((int(a), int(b)) for a, b in found if abs(z[a, b]) >= SEEN)
    return tuple(groups.span(a, b) for a, b in clear)


def _sides(groups: _Groups, line: tuple[float, float]) -> tuple[Range, ...]:
    """Return the rows below and above the score at which the line crosses the diagonal."""
    crossing = expit(-line[0] / (line[1] - 1))
    middle = int(np.searchsorted(groups.scores, crossing))
    if not 0 < middle < len(groups.scores):
        return ()
    below, above = groups.span(0, middle), groups.span(middle, len(groups.scores))
    at = float(crossing)
    return (
        Range(below.low, at, below.rows, below.score, below.frequency),
        Range(at, above.high, above.rows, above.score, above.frequency),
    )
