"""One call that measures: metrics with intervals, a test, reliability curves and a verdict in words."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cells.edges import check_edges
from ..cells.pairs import Pairs
from .estimators.binned import binned
from .estimators.calibration_error import error_of
from .estimators.curves import ReliabilityCurve, curve_of, plain
from .inference.intervals import Interval, check_confidence, check_resamples
from .inference.means import loss_interval, rate_of, share_interval
from .inference.resampling import bootstrap_many, resampled_choice, statistic_of
from .inference.testing import CalibrationTest, sweep_test
from .inference.uncertainty import error_interval
from .inference.verdict import verdict_of
from .scores.proper import brier_rows, nll_rows
from .views.forecasts import Forecasts, read

__all__ = ["Measurement", "measure"]

Floats = NDArray[np.float64]
FORMAT = 2  # 2: ends of intervals may be null; norm, note, shape and event_rate are new
# Every class has a curve up to this many classes; beyond, the worst of them do.
MOST_CLASSES = 20
MOST_DRAWS = 200_000_000
# What is measured, as options of `calibration_error`.
CHOICES: dict[str, dict[str, Any]] = {
    "ece_crossfit": {"estimator": "crossfit"},
    "ece": {},
    "ece_sweep": {"estimator": "sweep"},
    "ece_debiased": {"estimator": "debiased"},
    "smece": {"estimator": "smooth"},
    "ks_error": {"estimator": "ks"},
    "mce": {"norm": "max"},
    "cwece": {"view": "class_wise"},
}
FEWER = 100  # resamples that the ends of an interval need at least
RESAMPLED_AT_ONCE = ("ece", "ece_sweep", "ece_debiased", "ks_error")
NO_BINS = ("ece_crossfit", "ece_sweep", "smece", "ks_error")


@dataclass(frozen=True, eq=False)
class Measurement:
    """What `measure` found.

    Attributes
    ----------
    n, n_classes : int
        Rows, and classes (2 for the probability of one event).
    rate : Interval
        How often the top label is right, or the event happened; also as ``accuracy`` or ``event_rate``.
    confidence : float
        Mean score of the top label, or of the event.
    metrics : dict of Interval
        By name: ece_crossfit first, which is the one to quote; the others for comparison with the literature. Each
        says its norm: ece_crossfit and ece_debiased are root mean squares (norm 2), ece is a mean (norm 1).
    test : CalibrationTest
    curve : ReliabilityCurve
        Of the top label, or of the event.
    class_curves : tuple of ReliabilityCurve
        One a class up to 20 classes; else the 20 classes with the largest binned error.
    shape : str
        "none", or how the probabilities are wrong: "too_high", "too_low", "too_extreme", "too_timid", "upside_down",
        "in_places" (`calibrant.metrics.shape.shape_of` has the rule).
    verdict : str
        What it means, in words.
    """

    n: int
    n_classes: int
    rate: Interval
    confidence: float
    metrics: dict[str, Interval]
    test: CalibrationTest
    curve: ReliabilityCurve
    class_curves: tuple[ReliabilityCurve, ...]
    shape: str
    verdict: str

    @property
    def is_event(self) -> bool:
        """Whether the probability of one event was measured, not that of the most probable class."""
        return self.curve.view == "event"

    @property
    def rate_name(self) -> str:
        """What ``rate`` is: "accuracy" or "event_rate"."""
        return "event_rate" if self.is_event else "accuracy"

    @property
    def accuracy(self) -> Interval:
        """How often the top label is right; one event has no accuracy."""
        if self.is_event:
            raise AttributeError("one event's probabilities have no accuracy; event_rate is how often it happened")
        return self.rate

    @property
    def event_rate(self) -> Interval:
        """How often the event happened; several classes have no such rate."""
        if not self.is_event:
            raise AttributeError("probabilities of classes have no event rate; accuracy is how often the top is right")
        return self.rate

    @property
    def figures(self) -> dict[str, Interval]:
        """The rate and the metrics, by name."""
        return {self.rate_name: self.rate, **self.metrics}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain lists, strings and numbers; numbers that are not finite as their names."""
        found = {
            "format": FORMAT,
            "n": self.n,
            "n_classes": self.n_classes,
            self.rate_name: asdict(self.rate),
            "confidence": self.confidence,
            "metrics": {name: asdict(interval) for name, interval in self.metrics.items()},
            "test": asdict(self.test),
            "shape": self.shape,
            "verdict": self.verdict,
            "curve": self.curve.to_dict(),
            "class_curves": [curve.to_dict() for curve in self.class_curves],
        }
        return plain(found)

    def to_json(self, indent: int | None = None) -> str:
        """Return `to_dict` as JSON; "format" is its version."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    def __repr__(self) -> str:
        what = "one event" if self.is_event else f"{self.n_classes} classes"
        level = round(100 * self.rate.confidence)
        lines = [f"Measurement of {self.n:,} rows, {what}", f"  {self.verdict}", ""]
        lines.append(f"  {'':<14}{'norm':>5}{'value':>9}   {level} % interval")
        notes = list(dict.fromkeys(found.note for found in self.figures.values() if found.note))
        for name, found in self.figures.items():
            mark = f" {'*' * (1 + notes.index(found.note))}" if found.note else ""
            value = f"{found.estimate:.4f}" if found.estimate != np.inf else "∞"
            lines.append(f"  {name:<14}{found.norm or '':>5}{value:>9}   {found.brackets}{mark}")
        lines += [f"  {'*' * (1 + i)} {note}" for i, note in enumerate(notes)]
        lines += ["", f"  mean score {self.confidence:.4f}; {self.test}"]
        return "\n".join(lines)


def measure(
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any = None,
    classes: Any = None,
    confidence: float = 0.95,
    resamples: int = 1000,
    bins: int = 15,
    random_state: int = 0,
) -> Measurement:
    """Measure how well calibrated probabilities are, and how sure that is.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Class labels; 0/1 outcomes where ``y_prob`` is one-dimensional.
    y_prob : array-like of shape (n, K) or (n,)
        Probabilities of the classes, or of one event.
    confidence : float
        Of all intervals.
    resamples : int
        Of the bootstrap and of the test. Class-wise and smooth errors use a tenth as many, or 100; beyond 200,000 rows
        there are fewer, in inverse proportion, and 200 at least.
    bins : int
        Of the binned errors and curves.

    Examples
    --------
    >>> import calibrant
    >>> from calibrant.simulation import scenarios
    >>> found = calibrant.measure(*scenarios["resnet110_c10"].sample(2000, random_state=0))
    >>> found.verdict.startswith("Miscalibrated")
    True
    """
    check_confidence(confidence)
    check_resamples(resamples, 19)
    check_edges("equal_width", bins)
    forecasts = read(y_true, y_prob, sample_weight, classes=classes)
    resamples = min(resamples, max(200, MOST_DRAWS // forecasts.n))
    pairs, rng = forecasts.top_label(), np.random.default_rng(random_state)
    words = "the event's probabilities are true" if forecasts.is_event else "the top label's probabilities are true"
    test = sweep_test(pairs, words, 2, resamples, rng)
    found = _metrics(forecasts, pairs, confidence, resamples, bins, rng, test.pvalue)
    rate = share_interval(rate_of(pairs), pairs.rows, confidence)
    mean = float(np.average(pairs.scores, weights=pairs.weights))
    said = verdict_of(forecasts.is_event, pairs, rate.estimate, mean, found["ece_crossfit"], test)
    return Measurement(
        n=pairs.counted().n,
        n_classes=len(forecasts.classes),
        rate=rate,
        confidence=mean,
        metrics=found,
        test=test,
        curve=curve_of(pairs, "event" if forecasts.is_event else "top_label", bins, confidence=confidence),
        class_curves=_class_curves(forecasts, bins, confidence),
        shape=said.shape,
        verdict=said.words,
    )


def _metrics(
    forecasts: Forecasts,
    pairs: Pairs,
    confidence: float,
    resamples: int,
    bins: int,
    rng: np.random.Generator,
    pvalue: float,
) -> dict[str, Interval]:
    """Return all errors and losses; the errors of the top label or event share its test."""
    options = {name: {**choice, **({} if name in NO_BINS else {"bins": bins})} for name, choice in CHOICES.items()}
    if forecasts.is_event:
        options.pop("cwece")
    resampled = {name: resampled_choice(options[name]) for name in RESAMPLED_AT_ONCE}
    statistics = {name: statistic for name, o in resampled.items() if (statistic := statistic_of(o)) is not None}
    values = bootstrap_many(pairs, statistics, resamples, rng)
    found = {}
    for name, choice in options.items():
        estimate, few = error_of(forecasts, **choice), max(min(resamples, FEWER), resamples // 10)
        known = None if name == "cwece" else pvalue
        found[name] = error_interval(
            forecasts, choice, estimate, confidence, few, rng, values=values.get(name), pvalue=known
        )
    for name, rows in (("brier", brier_rows(forecasts, "multi_class")), ("nll", nll_rows(forecasts))):
        found[name] = loss_interval(rows, pairs, confidence)
    return found


def _class_curves(forecasts: Forecasts, bins: int, confidence: float) -> tuple[ReliabilityCurve, ...]:
    if forecasts.is_event:
        return ()
    columns = range(len(forecasts.classes))
    if len(columns) > MOST_CLASSES:
        errors = [binned(forecasts.one_class(k), bins=bins) for k in columns]
        columns = sorted(np.argsort(errors)[::-1][:MOST_CLASSES].tolist())
    return tuple(
        curve_of(forecasts.one_class(k), str(forecasts.classes[k]), bins, confidence=confidence) for k in columns
    )
