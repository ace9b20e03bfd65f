"""The one place where a metric is defined: its name, view, estimator, norm, and what it means in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..errors import InvalidInput
from .estimators.calibration_error import calibration_error
from .estimators.canonical import canonical_error, canonical_of
from .estimators.kernel import skce, skce_of
from .inference.intervals import Interval
from .inference.resampling import Sampling
from .inference.uncertainty import evidence_of, from_resamples, with_evidence
from .metric import Error, Figure, Mean, Metric, Vector
from .scores.accuracy import accuracy, hits, sharpness, spread_of_scores, top_k_accuracy
from .scores.proper import brier, brier_rows, nll, nll_rows

__all__ = ["FUNCTIONS", "PROFILES", "TABLE", "meanings_of", "row_of"]


def _kernel_law(
    forecasts: Any, estimate: float, values: Any, confidence: float, sampling: Sampling, **options: Any
) -> Interval:
    """A row drawn twice makes a pair with itself: resamples are about the estimate with those pairs."""
    biased = skce_of(forecasts, **{**options, "estimator": "biased"})
    return from_resamples(estimate, values + estimate - biased, confidence)


def _canonical_law(
    forecasts: Any, estimate: float, values: Any, confidence: float, sampling: Sampling, **options: Any
) -> Interval:
    found = replace(from_resamples(estimate, values, confidence, power=2), norm=options.get("norm", 1))
    return with_evidence(found, evidence_of(forecasts, None, confidence, sampling))


ROWS: tuple[Metric, ...] = (
    # Calibration errors: a view, an estimator and a norm.
    Error("calibration_error", "How far probabilities are from frequencies."),
    Error(
        "ece_crossfit",
        "Root mean square gap between {said} and {seen}, with little bias: quote this one.",
        "Isotonic, cross-fitted on 5 folds, norm 2.",
        estimator="crossfit",
        norm=2,
    ),
    Error(
        "ece",
        "Mean gap between {said} and {seen} over 15 bins: the number most papers print. Too high on few rows.",
        "Top label, 15 bins of equal width, norm 1 (Naeini et al. 2015; Guo et al. 2017). netcal, torchmetrics and "
        "others bin by (lo, hi] or put p = 1 into a bin of its own; ours are [lo, hi), the last one closed. Without "
        "scores on an edge the values agree. pycalib's has 100 bins on [1/K, 1] and compares with their middles.",
        norm=1,
    ),
    Error(
        "ece_sweep",
        "Mean gap with as many bins as keep the curve rising: less biased.",
        "Equal mass, norm 1 (paper 003, §4). The authors' code defaults to norm 2; Table 4 of the paper has norm 1.",
        estimator="sweep",
        norm=1,
    ),
    Error(
        "ece_debiased",
        "Root mean square gap over bins, with their bias subtracted.",
        "15 bins of equal mass, norm 2 (Kumar et al. 2019).",
        estimator="debiased",
        norm=2,
    ),
    Error(
        "smece",
        "Mean gap, smoothed over {said} instead of binned.",
        "Błasiok and Nakkiran 2023.",
        estimator="smooth",
        norm=1,
    ),
    Error(
        "ks_error",
        "Largest gap between cumulated {said} and cumulated {seen}.",
        "Kolmogorov–Smirnov (Gupta et al. 2021); the same as ECCE-MAD.",
        estimator="ks",
        norm="max",
    ),
    Error(
        "ecce",
        "Largest sum of gaps over any range of {said}, a row: no bins, and its test needs no resampling.",
        "The range of the cumulative curve, Kuiper's form (Arrieta-Ibarra et al. 2022).",
        estimator="ecce",
        norm="max",
    ),
    Error("mce", "Largest gap of any bin. Unstable where bins have few rows.", "Naeini et al. 2015.", norm="max"),
    Error(
        "ece_kde",
        "Mean gap by kernel densities of {said}.",
        "Probability space, norm 1 (paper 000, §4.1).",
        estimator="kde",
        norm=1,
    ),
    Error(
        "cwece",
        "Mean gap over the classes, each against the rest.",
        "The mean over classes with 15 bins of equal width, norm 1 (Kull et al. 2019). Paper 002 uses ``bins=100, "
        'threshold="1/K"``; paper 001 ``bins=20, edges="equal_mass", threshold="kcal"``. Some report the sum.',
        view="class_wise",
        norm=1,
    ),
    Error(
        "ace",
        "Mean gap over the classes, each against the rest, in bins of equal mass.",
        "15 bins of equal mass, norm 1 (Nixon et al. 2019). Bins count by mass, which for equal mass without ties "
        "is the same as equally. netcal's ACE is top label, equal width, with bins that are not empty counted equally.",
        view="class_wise",
        norm=1,
        options={"edges": "equal_mass"},
    ),
    # Of the whole vector.
    Vector("skce", "Squared kernel error of the whole vector.", estimator=skce_of, law=_kernel_law, view="vector"),
    Vector(
        "canonical_error",
        "Mean distance between the whole vector and the frequencies near it, for few classes.",
        estimator=canonical_of,
        law=_canonical_law,
        view="vector",
        norm=1,
    ),
    # Means over rows.
    Mean("accuracy", "How often the most probable class is right.", rows=hits, share=True),
    Mean(
        "top_k_accuracy", "How often the label is among the k most probable.", rows=hits, share=True, options={"k": 5}
    ),
    Mean("event_rate", "How often the event happened. No map changes it.", rows=lambda f: f.top.outcomes, share=True),
    Mean("brier", "Squared distance between the probabilities and what happened. Lower is better.", rows=brier_rows),
    Mean(
        "nll",
        "Logarithmic loss in nats: punishes confident errors most. Lower is better; it rewards truth and sharpness.",
        rows=nll_rows,
    ),
    Figure("sharpness", "Variance of {said}.", estimator=spread_of_scores),
)
TABLE: dict[str, Metric] = {row.name: row for row in ROWS}
# What `measure` tells to whom: the first is the one to quote.
PROFILES: dict[str, tuple[str, ...]] = {
    "default": (
        "ece_crossfit",
        "ece",
        "ece_sweep",
        "ece_debiased",
        "smece",
        "ks_error",
        "mce",
        "cwece",
        "brier",
        "nll",
    ),
}
_WRITTEN: dict[str, Callable[..., float]] = {  # those whose function has a signature of its own
    function.__name__: function
    for function in (calibration_error, canonical_error, skce, accuracy, top_k_accuracy, brier, nll, sharpness)
}


def _public(row: Metric) -> Callable[..., float]:
    """Return the metric as a function of labels and probabilities: its state, run once."""

    def metric(y_true: Any, y_prob: Any, *, sample_weight: Any = None, classes: Any = None, **options: Any) -> float:
        return row.of(row.read(y_true, y_prob, sample_weight, classes, options), **options)

    said = row.words.format(said="scores", seen="frequency")
    metric.__name__ = metric.__qualname__ = row.name
    metric.__module__ = "calibrant.metrics"
    metric.__doc__ = f"{said}\n\n    {row.about}\n\n    Options are those of `calibration_error`.\n    "
    return metric


FUNCTIONS: dict[str, Callable[..., float]] = {name: _WRITTEN.get(name) or _public(row) for name, row in TABLE.items()}
_ROWS = {function: TABLE[name] for name, function in FUNCTIONS.items()}


def row_of(metric: Any) -> Metric | None:
    """Return the row of a metric of ours, by its name or its function; None for a function that is not ours."""
    if isinstance(metric, str):
        if metric not in TABLE:
            raise InvalidInput("no such metric", seen=repr(metric), allowed=", ".join(TABLE))
        return TABLE[metric]
    return _ROWS.get(metric)


def meanings_of(is_event: bool) -> dict[str, str]:
    """Return a sentence for each metric: of one event, or of the most probable class."""
    said, seen = ("probability", "frequency") if is_event else ("confidence", "accuracy")
    return {name: row.words.format(said=said, seen=seen) for name, row in TABLE.items()}
