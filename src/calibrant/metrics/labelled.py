"""Figures of several labels a row: by label, over all entries, their mean over labels, and of the number of labels."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.special import stdtrit

from ..cells.pairs import Pairs, standard_error
from .inference.intervals import Interval
from .inference.means import loss_interval, rarer, share_interval
from .inference.resampling import Sampling
from .inference.uncertainty import from_resamples
from .table import TABLE
from .views.forecasts import Forecasts
from .views.labels import MultiLabel

BY_LABEL = ("observed_expected", "calibration_slope", "ece_crossfit", "brier", "scaled_brier", "auroc")
MACRO = ("ece_crossfit", "brier", "scaled_brier", "auroc")
MOST = 20_000_000  # entries that may be resampled for the mean over labels


@dataclass(frozen=True)
class LabelFindings:
    """Figures of several labels a row.

    Attributes
    ----------
    labels : dict
        By label: event_rate and the figures, each with its interval.
    macro, weighted : dict of Interval
        Means over labels that have both outcomes: plain, and weighted by how often a label occurs.
    left_out : tuple of str
        Labels with one outcome only, which are not in the means.
    count_ratio, count_slope : Interval
        Labels of a row that were seen over those expected, and by how much that number rises with the expected one.
    missing : int
        Entries whose outcome is not known.
    """

    labels: dict[str, dict[str, Interval]]
    macro: dict[str, Interval]
    weighted: dict[str, Interval]
    left_out: tuple[str, ...]
    count_ratio: Interval
    count_slope: Interval
    missing: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, strings and numbers."""
        return asdict(self)


def label_findings(given: MultiLabel, pooled: Forecasts, confidence: float, sampling: Sampling) -> LabelFindings:
    """Return the figures by label, their means, and those of the number of labels."""
    parts = {name: given.label(place) for place, name in enumerate(given.names)}
    seen = {name: part for name, part in parts.items() if part.total > 0}
    labels = {name: _figures(part, confidence, sampling) for name, part in seen.items()}
    both = [name for name, part in seen.items() if rarer(part) > 0]
    macro, weighted = (
        {name: _macro(name, given, labels, both, confidence, sampling, by) for name in MACRO} for by in (False, True)
    )
    ratio = TABLE["observed_expected"].interval(pooled, confidence, sampling)
    left = tuple(name for name in given.names if name not in both)
    missing = int((~given.known).sum())
    return LabelFindings(labels, macro, weighted, left, ratio, _count_slope(given, confidence), missing)


class _Pairs:
    """One set of pairs in the place of forecasts."""

    is_event = True
    classes = np.array([0, 1])

    def __init__(self, pairs: Pairs) -> None:
        self.top, self.weights, self.n, self.rows = pairs, pairs.weights, pairs.n, pairs.rows


def _figures(pairs: Pairs, confidence: float, sampling: Sampling) -> dict[str, Interval]:
    found = {"event_rate": share_interval(pairs, confidence)}
    for name in BY_LABEL:
        if name == "brier":
            found[name] = _brier(pairs, confidence)
        else:
            found[name] = TABLE[name].interval(_Pairs(pairs), confidence, sampling)
    return found


def _brier(pairs: Pairs, confidence: float) -> Interval:
    return loss_interval((pairs.scores - pairs.outcomes) ** 2, pairs, confidence)


def _value(name: str, pairs: Pairs) -> float:
    if name == "brier":
        return float(np.average((pairs.scores - pairs.outcomes) ** 2, weights=pairs.weights))
    return TABLE[name].of(_Pairs(pairs))


def _macro(
    name: str,
    given: MultiLabel,
    labels: dict[str, dict[str, Interval]],
    both: list[str],
    confidence: float,
    sampling: Sampling,
    weighted: bool,
) -> Interval:
    """Return the mean over labels; rows are resampled, not entries, as those of one row may depend on each other.

    Resamples do not tell the ends of an error that is cut at 0: those are the means of the labels' own, as if all
    labels erred together, which is the worst they can do.
    """
    places = [place for place, label in enumerate(given.names) if label in both]
    if not places:
        return Interval(np.nan, None, None, confidence, np.nan, 0.0, "none", note="no label has both outcomes")

    def mean(sample: MultiLabel) -> float:
        parts = [sample.label(place).counted() for place in places]
        kept = [part for part in parts if part.n and rarer(part) > 0]
        values = [_value(name, part) for part in kept]
        shares = [float(np.average(part.outcomes, weights=part.weights)) for part in kept] if weighted else None
        return float(np.average(values, weights=shares)) if kept else np.nan

    estimate = mean(given)
    if norm := TABLE[name].norm:
        shares = [labels[label]["event_rate"].estimate for label in both] if weighted else None
        ends = ([getattr(labels[label][name], end) for label in both] for end in ("low", "high"))
        low, high = (float(np.average(values, weights=shares)) for values in ends)
        return Interval(estimate, low, high, confidence, np.nan, 0.0, "of each label", norm, wide=True)
    draws = min(sampling.slow, 50, MOST // max(1, given.outcomes.size))
    if draws < 20:
        note = "too many entries to resample: intervals are by label"
        return Interval(estimate, None, None, confidence, np.nan, 0.0, "none", note=note)
    units = np.arange(given.n) if given.clusters is None else given.clusters
    values, count = [], int(units.max()) + 1
    for _ in range(draws):
        drawn = np.bincount(sampling.rng.integers(0, count, count), minlength=count).astype(np.float64)[units]
        own = drawn if given.weights is None else drawn * given.weights
        values.append(mean(MultiLabel(given.probabilities, given.outcomes, own, None, given.names)))
    found = from_resamples(estimate, np.array(values), confidence)
    if found.low is None:
        return found
    reach = float(stdtrit(draws - 1, 0.5 + confidence / 2)) * found.standard_error
    return replace(found, low=estimate - reach, high=estimate + reach)  # so few draws know a spread, not quantiles


def _count_slope(given: MultiLabel, confidence: float) -> Interval:
    """Return the slope of the number of labels over the expected number, by least squares, with robust errors."""
    seen, expected = given.counts()
    w = np.ones(given.n) if given.weights is None else given.weights
    centred = expected - np.average(expected, weights=w)
    spread = float((w * centred**2).sum())
    if spread <= 0 or given.n < 3:
        note = "the expected number is the same in all rows"
        return Interval(np.nan, None, None, confidence, np.nan, 0.0, "none", note=note)
    slope = float((w * centred * seen).sum() / spread)
    residual = seen - np.average(seen, weights=w) - slope * centred
    influence = centred * residual * (w.sum() / spread)
    error, count = standard_error(influence, Pairs(expected, seen, given.weights, clusters=given.clusters))
    reach = float(stdtrit(max(count - 2, 1), 0.5 + confidence / 2)) * error
    return Interval(slope, slope - reach, slope + reach, confidence, error, 0.0, "least squares")
