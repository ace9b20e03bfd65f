"""The one place where a metric is defined: its name, view, estimator, norm, and what it means in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..errors import InvalidInput
from .decisions.loss import decision_loss, recalibration_benefit
from .decisions.net_benefit import net_benefit, net_benefit_influence
from .estimators.calibration_error import calibration_error
from .estimators.canonical import canonical_error, canonical_of
from .estimators.cox import calibration_in_the_large, calibration_intercept, calibration_slope, observed_expected
from .estimators.integrated import gap_figure
from .estimators.kernel import skce, skce_of
from .estimators.two_bin import averaged_two_bin, two_bin_excess
from .estimators.variational import variational
from .inference.figures import gap_law, resampled_law, two_bin_law, variational_law
from .inference.intervals import Interval
from .inference.resampling import Sampling
from .inference.risk import large_law, line_law, mean_law, ratio_law
from .inference.uncertainty import evidence_of, from_resamples, with_evidence
from .metric import Error, Figure, Mean, Metric, Vector
from .scores.accuracy import accuracy, hits, sharpness, spread_of_scores, top_k_accuracy
from .scores.proper import brier, brier_rows, nll, nll_rows
from .scores.ranking import auroc, auroc_influence, scaled_brier, scaled_brier_influence
from .views.forecasts import select

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
    pairs = select(forecasts, "top_label") if forecasts.is_event else None
    return with_evidence(found, evidence_of(forecasts, pairs, confidence, sampling))


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
        'Błasiok and Nakkiran 2023, by the integral; ``grid="relplot"`` has the digits of their package, which differ.',
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
        "Largest sum of gaps over any range of {said}, a row: no bins.",
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
    # Figures of one event: of risk, of cumulative curves, of decisions.
    Figure(
        "calibration_slope",
        "Slope of log-odds: 1 is right, below 1 {said} is too extreme, above 1 too timid.",
        "Cox's line, by maximum likelihood; scores of exactly 0 and 1 are left out and counted.",
        estimator=calibration_slope,
        law=line_law(1),
    ),
    Figure(
        "calibration_intercept",
        "Intercept of log-odds beside the slope: what val.prob calls Intercept; not calibration in the large.",
        estimator=calibration_intercept,
        law=line_law(0),
    ),
    Figure(
        "calibration_in_the_large",
        "Shift of log-odds: 0 is right, above 0 events happen more often than was said.",
        "The intercept with the slope held at 1.",
        estimator=calibration_in_the_large,
        law=large_law,
    ),
    Figure(
        "observed_expected",
        "Events seen over events expected: 1 is right, above 1 {said} is too low.",
        estimator=observed_expected,
        law=ratio_law,
    ),
    *(
        Figure(
            name,
            f"{what} distance between the smooth curve and what was said, over rows.",
            'On our penalised spline of the log-odds; ``smoother="lowess" | "loess" | "rcs"`` for those of others, '
            "whose answers differ under the same name.",
            estimator=gap_figure(name),
            law=gap_law(name),
        )
        for name, what in {"ici": "Mean", "e50": "Median", "e90": "90 % quantile of the", "emax": "Largest"}.items()
    ),
    Figure(
        "scaled_brier",
        "Brier score against always saying the event's frequency: 1 is perfect, 0 no better than that.",
        "1 - B/(ȳ(1 - ȳ)), with the frequency ȳ of the rows at hand.",
        estimator=scaled_brier,
        law=mean_law(scaled_brier_influence, loss=True),
    ),
    Figure(
        "auroc",
        "How often an event's {said} is above that of another row: ranking, not calibration.",
        "Ties count half; the interval is DeLong's on the log-odds.",
        estimator=auroc,
        law=mean_law(auroc_influence, logits=True),
    ),
    Figure(
        "averaged_two_bin",
        "Squared error of two bins, cut everywhere: truthful, as no report beats the true probabilities.",
        "Hartline, Hu and Wu 2026; noise alone adds Σs(1-s)/n² to it.",
        estimator=averaged_two_bin,
        law=two_bin_law,
        norm=2,
    ),
    Figure(
        "two_bin_excess",
        "The averaged two-bin error less what noise adds: 0 on average where {said} is true.",
        estimator=two_bin_excess,
    ),
    *(
        Figure(
            name,
            words,
            "Cross-fitted on 5 folds (arXiv 2602.24230).",
            norm=1,
            estimator=variational(side),
            law=variational_law(side),
        )
        for name, words, side in (
            (
                "variational_error",
                "Mean gap that a cross-fitted curve can show: at most the true one on average.",
                None,
            ),
            ("over_confidence", "The part of it where {said} is too extreme.", "over"),
            ("under_confidence", "The part of it where {said} is not extreme enough.", "under"),
        )
    ),
    Figure(
        "net_benefit",
        "Events caught, less false alarms at the price that the threshold names, a row.",
        estimator=lambda pairs, threshold, prevalence=None: net_benefit_influence(
            pairs, threshold=threshold, prevalence=prevalence
        )[0],
        law=mean_law(net_benefit_influence),
    ),
    Figure(
        "recalibration_benefit",
        "Net benefit that recalibration would gain at a threshold.",
        estimator=recalibration_benefit,
        law=resampled_law(recalibration_benefit, float("inf")),
    ),
    Figure(
        "decision_loss",
        "What miscalibration costs at most in any decision with payoffs between 0 and 1.",
        "Calibration decision loss (Hu and Wu 2024) of 15 bins of equal mass.",
        estimator=decision_loss,
        law=resampled_law(decision_loss),
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
    "risk": (
        "observed_expected",
        "calibration_in_the_large",
        "calibration_slope",
        "calibration_intercept",
        "ici",
        "e50",
        "e90",
        "emax",
        "ece_crossfit",
        "brier",
        "scaled_brier",
        "nll",
        "auroc",
        "decision_loss",
    ),
    "multilabel": (
        "ece_crossfit",
        "ece",
        "observed_expected",
        "calibration_slope",
        "brier",
        "scaled_brier",
        "nll",
        "auroc",
    ),
    "forecast": (
        "ece_crossfit",
        "ecce",
        "averaged_two_bin",
        "variational_error",
        "over_confidence",
        "under_confidence",
        "calibration_slope",
        "smece",
        "brier",
        "scaled_brier",
        "nll",
        "auroc",
    ),
}
_WRITTEN: dict[str, Callable[..., float]] = {  # those whose function has a signature of its own
    function.__name__: function
    for function in (
        calibration_error,
        canonical_error,
        skce,
        accuracy,
        top_k_accuracy,
        brier,
        nll,
        sharpness,
        net_benefit,
    )
}


def _public(row: Metric) -> Callable[..., float]:
    """Return the metric as a function of labels and probabilities: its state, run once."""

    def metric(y_true: Any, y_prob: Any, *, sample_weight: Any = None, classes: Any = None, **options: Any) -> float:
        return row.defined(row.of(row.read(y_true, y_prob, sample_weight, classes, options), **options))

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
    own: Any = metric if callable(metric) else None
    return _ROWS.get(own)


def meanings_of(is_event: bool) -> dict[str, str]:
    """Return a sentence for each metric: of one event, or of the most probable class."""
    said, seen = ("probability", "frequency") if is_event else ("confidence", "accuracy")
    return {name: row.words.format(said=said, seen=seen) for name, row in TABLE.items()}
