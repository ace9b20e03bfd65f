"""One call that measures: metrics with intervals, a test, reliability curves and a verdict in words."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .binned import binned
from .calibration_error import error_of
from .curves import ReliabilityCurve, curve_of, plain
from .edges import check_edges
from .intervals import Interval, check_confidence, check_resamples
from .proper import brier_rows, nll_rows
from .resampling import bootstrap_many, resampled_choice, resampled_errors, statistic_of
from .testing import CalibrationTest, sweep_test
from .uncertainty import crossfit_interval, from_resamples
from .verdict import verdict_of
from .views import Forecasts, Pairs, read

__all__ = ["Measurement", "measure"]

Floats = NDArray[np.float64]
FORMAT = 1
# Every class has a curve up to this many classes; beyond, the worst of them do.
MOST_CLASSES = 20
MOST_DRAWS = 200_000_000
# What is measured beside the cross-fitted error, as options of `calibration_error`.
CHOICES: dict[str, dict[str, Any]] = {
    "ece": {},
    "ece_sweep": {"estimator": "sweep"},
    "ece_debiased": {"estimator": "debiased"},
    "smece": {"estimator": "smooth"},
    "ks_error": {"estimator": "ks"},
    "mce": {"norm": "max"},
    "cwece": {"view": "class_wise"},
}
NO_BINS = ("ece_sweep", "smece", "ks_error")


@dataclass(frozen=True, eq=False)
class Measurement:
    """What `measure` found.

    Attributes
    ----------
    n, n_classes : int
        Rows, and classes (2 for the probability of one event).
    accuracy : Interval
        Of the top label; for one event the share of rows in which it happened.
    confidence : float
        Mean score of the top label, or of the event.
    metrics : dict of Interval
        By name: ece_crossfit first, which is the one to quote; the others for comparison with the literature.
    test : CalibrationTest
    curve : ReliabilityCurve
        Of the top label, or of the event.
    class_curves : tuple of ReliabilityCurve
        One a class up to 20 classes; else the 20 classes with the largest binned error.
    verdict : str
        What it means, in words.
    """

    n: int
    n_classes: int
    accuracy: Interval
    confidence: float
    metrics: dict[str, Interval]
    test: CalibrationTest
    curve: ReliabilityCurve
    class_curves: tuple[ReliabilityCurve, ...]
    verdict: str

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain lists, strings and numbers; numbers that are not finite as their names."""
        found = {
            "format": FORMAT,
            "n": self.n,
            "n_classes": self.n_classes,
            "accuracy": asdict(self.accuracy),
            "confidence": self.confidence,
            "metrics": {name: asdict(interval) for name, interval in self.metrics.items()},
            "test": asdict(self.test),
            "verdict": self.verdict,
            "curve": self.curve.to_dict(),
            "class_curves": [curve.to_dict() for curve in self.class_curves],
        }
        return plain(found)

    def to_json(self, indent: int | None = None) -> str:
        """Return `to_dict` as JSON; "format" is its version."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    def __repr__(self) -> str:
        kind = "accuracy" if self.curve.view == "top_label" else "event rate"
        level = round(100 * self.accuracy.confidence)
        lines = [f"Measurement of {self.n:,} rows, {self.n_classes} classes", f"  {self.verdict}", ""]
        lines.append(f"  {'':<14}{'value':>8}   {level} % interval")
        shown = {kind: self.accuracy, **self.metrics}
        biased = [name for name, found in shown.items() if not found.low <= found.estimate <= found.high]
        for name, found in shown.items():
            star = " *" if name in biased else ""
            lines.append(f"  {name:<14}{found.estimate:>8.4f}   [{found.low:.4f}, {found.high:.4f}]{star}")
        if biased:
            lines.append(
                "  * chance alone raises this estimate; the interval is for the true value, corrected for that"
            )
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
        Of the bootstrap and of the test. Class-wise and smooth errors use a tenth as many; beyond 200,000 rows there
        are fewer, in inverse proportion, and 200 at least.
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
    found = _metrics(forecasts, pairs, confidence, resamples, bins, rng)
    accuracy = found.pop("accuracy")
    words = "the event's probabilities are true" if forecasts.is_event else "the top label's probabilities are true"
    test = sweep_test(pairs, words, 2, resamples, rng)
    mean = float(np.average(pairs.scores, weights=pairs.weights))
    return Measurement(
        n=pairs.counted().n,
        n_classes=len(forecasts.classes),
        accuracy=accuracy,
        confidence=mean,
        metrics=found,
        test=test,
        curve=curve_of(pairs, "event" if forecasts.is_event else "top_label", bins, confidence=confidence),
        class_curves=_class_curves(forecasts, bins, confidence),
        verdict=verdict_of(forecasts.is_event, accuracy.estimate, mean, found["ece_crossfit"], test),
    )


def _metrics(
    forecasts: Forecasts, pairs: Pairs, confidence: float, resamples: int, bins: int, rng: np.random.Generator
) -> dict[str, Interval]:
    found = {"ece_crossfit": crossfit_interval([pairs], confidence)}
    options = {name: {**choice, **({} if name in NO_BINS else {"bins": bins})} for name, choice in CHOICES.items()}
    sampled = {name: resampled_choice(choice) for name, choice in options.items()}
    statistics = {name: statistic for name, o in sampled.items() if (statistic := statistic_of(o)) is not None}
    rows = np.column_stack([pairs.outcomes, brier_rows(forecasts, "multi_class"), nll_rows(forecasts)])
    values, means = bootstrap_many(pairs, statistics, np.where(np.isfinite(rows), rows, 0.0), resamples, rng)
    for name, choice in options.items():
        if forecasts.is_event and name == "cwece":
            continue
        if name not in values:
            values[name] = resampled_errors(forecasts, sampled[name], max(20, resamples // 10), rng)
        estimate, centre = (error_of(forecasts, **o) for o in (choice, sampled[name]))
        found[name] = from_resamples(estimate, values[name], confidence, 1.0, centre=centre, is_error=True)
    for column, name in enumerate(("accuracy", "brier", "nll")):
        seen = rows[:, column] if pairs.weights is None else rows[pairs.weights > 0, column]
        weights = None if pairs.weights is None else pairs.weights[pairs.weights > 0]
        most = 1.0 if name == "accuracy" else np.inf
        found[name] = from_resamples(float(np.average(seen, weights=weights)), means[:, column], confidence, most)
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
