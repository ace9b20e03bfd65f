"""Intervals for every metric: by the bootstrap, by the estimator's own standard error, or from frequencies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ...cells.pairs import Pairs
from ...cells.tied import cells_of
from .. import names
from ..estimators.calibration_error import calibration_error, default_norm, error_of
from ..estimators.canonical import canonical_error
from ..estimators.crossfit import CrossFit, crossfit_of
from ..estimators.kernel import skce
from ..estimators.norms import Norm
from ..estimators.sums import power_mean
from ..scores.accuracy import accuracy, sharpness, top_k_accuracy
from ..scores.proper import brier, brier_rows, nll, nll_rows
from ..views.forecasts import Forecasts, read, select
from ..views.thresholds import above
from .bounds import largest_error, largest_gap_interval
from .class_test import class_wise_pvalue
from .intervals import Interval, check_confidence, check_resamples
from .means import FEW, few_words, loss_interval, rarer, share_interval
from .resampling import is_view, resampled_choice, resampled_errors, resampled_weights, resamples_of, statistic_of
from .testing import sweep_test

__all__ = ["bootstrap", "crossfit_interval", "error_interval", "from_resamples"]

Floats = NDArray[np.float64]
# The calibration errors, by what they hand to `calibration_error`.
NAMED: dict[Any, dict[str, Any]] = {
    calibration_error: {},
    names.ece: {},
    names.mce: {"norm": "max"},
    names.ace: {"view": "class_wise", "edges": "equal_mass"},
    names.cwece: {"view": "class_wise"},
    names.ece_crossfit: {"estimator": "crossfit"},
    names.ece_debiased: {"estimator": "debiased"},
    names.ece_kde: {"estimator": "kde"},
    names.ece_sweep: {"estimator": "sweep"},
    names.ks_error: {"estimator": "ks"},
    names.smece: {"estimator": "smooth"},
}
# In which power the noise of a sample adds up with what is there (see `bootstrap`); in squares where nothing is said.
POWERS = {"smooth": 3}


def bootstrap(
    metric: Callable[..., float],
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any = None,
    confidence: float = 0.95,
    resamples: int = 1000,
    random_state: int = 0,
    **options: Any,
) -> Interval:
    """Return a metric with an interval that covers the true value.

    Metrics are resampled, and the interval is reflected: with θ the estimate and q the quantiles of the resampled
    values it is [2θ - q_high, 2θ - q_low]. Calibration errors need more care. Noise raises them, and resampling adds
    about as much noise again, in squares (in cubes for smECE, whose bandwidth grows with the noise). The lower end is
    therefore √(2θ² - q_high²) or 0. How much of the estimate is noise depends on the unknown truth, but it is never
    negative, so the upper end is θ plus the longer side of the resampled values about their mean. A debiased error gets
    the interval of the binned error with the same bins, as a debiased value that was cut at 0 has nothing to be
    reflected. Three rules make this hold for calibrated samples and rare events too:

    - The lower end is above 0 only where a test finds miscalibration at the level 1 - confidence: the sweep test of
      `calibration_test` for one view, and one of the class-wise error for all classes and whole vectors. Resampling
      cannot see the noise of outcomes that did not happen.
    - Where fewer than five rows have the rarer outcome, the upper end is at least `bounds.largest_error`.
    - The largest gap of bins (norm "max") has simultaneous intervals of its bins instead (`bounds`); that of other
      estimators and views has none.

    The cross-fitted error has a standard error of its own; accuracy has Clopper and Pearson's interval; losses have
    Student's, corrected for skewness, and none where they are infinite or fewer than five rows have the rarer outcome.
    Every other metric is resampled and reflected. Coverage: docs/evidence/coverage-null.md.

    Parameters
    ----------
    metric : callable
        A metric of (y_true, y_prob, sample_weight=…): any in `calibrant.metrics`, or your own.
    sample_weight : array-like of shape (n,), optional
        Rows are drawn with equal probability and carry their weights.
    **options
        Handed to the metric.

    Returns
    -------
    Interval
        ``low`` and ``high`` are None where there is none, and ``note`` says why.

    Examples
    --------
    >>> from calibrant.metrics import ece
    >>> from calibrant.simulation import scenarios
    >>> y, p = scenarios["resnet110_c10"].sample(2000, random_state=0)
    >>> found = bootstrap(ece, y, p, resamples=200)
    >>> print(found)
    0.0726 [0.0570, 0.0851]
    """
    check_confidence(confidence)
    check_resamples(resamples, 2)
    metric = _sharpness if metric is sharpness else metric
    named = metric in NAMED
    choice = {**NAMED[metric], **options} if named else options
    estimate = float(metric(y_true, y_prob, sample_weight=sample_weight, **options))
    marginals = bool(choice.get("marginals")) or is_view(choice, "marginals")
    forecasts = read(y_true, y_prob, sample_weight, classes=options.get("classes"), marginals=marginals)
    if metric in (accuracy, top_k_accuracy):
        return share_interval(estimate, forecasts.rows, confidence)
    if metric in (brier, nll):
        rows = nll_rows(forecasts) if metric is nll else brier_rows(forecasts, options.get("view", "multi_class"))
        return loss_interval(rows, forecasts.top_label(), confidence)
    rng = np.random.default_rng(random_state)
    if named:
        return error_interval(forecasts, choice, estimate, confidence, resamples, rng)
    compute = partial(metric, **options)
    values = np.array([compute(y_true, y_prob, sample_weight=w) for w in resampled_weights(forecasts, resamples, rng)])
    if metric is skce:  # a row drawn twice makes a pair with itself: resamples are about the estimate with those pairs
        values += estimate - skce(y_true, y_prob, sample_weight=sample_weight, **{**options, "estimator": "biased"})
    if metric is not canonical_error:
        return from_resamples(estimate, values, confidence)
    found = from_resamples(estimate, values, confidence, power=2)
    pvalue = _evidence(forecasts, {"view": "class_wise"}, _enough(resamples, confidence), rng)
    return _with_evidence(replace(found, norm=options.get("norm", 1)), pvalue)


def error_interval(
    forecasts: Forecasts,
    choice: dict[str, Any],
    estimate: float,
    confidence: float,
    resamples: int,
    rng: np.random.Generator,
    *,
    values: Floats | None = None,
    pvalue: float | None = None,
) -> Interval:
    """Return a calibration error with its interval (see `bootstrap`).

    Parameters
    ----------
    choice : dict
        Options of `calibration_error`.
    values : array, optional
        Resampled values of `resampled_choice`, where they are known already.
    pvalue : float, optional
        Of the test that the view is calibrated, where it is known already.
    """
    estimator = choice.get("estimator", "binned")
    norm = choice.get("norm") or default_norm(estimator)
    by_class = is_view(choice, "class_wise", "marginals") and not forecasts.is_event
    pairs = None if by_class else next(iter(_groups(forecasts, choice)), None)
    if estimator == "crossfit":
        groups = _groups(forecasts, choice) if pairs is None else [pairs]
        settings = {name: choice[name] for name in ("folds", "random_state") if choice.get(name) is not None}
        found = crossfit_interval(groups, confidence, norm, **settings)
    elif norm == "max" and estimator != "ks":
        found = _largest_gap(pairs, choice, estimate, confidence)
    else:
        sampled = {k: v for k, v in resampled_choice(choice).items() if k not in ("classes", "marginals")}
        sampled["view"] = "class_wise" if is_view(choice, "marginals") else choice.get("view", "top_label")
        values = _resampled(forecasts, sampled, resamples, rng) if values is None else values
        centre, power = error_of(forecasts, **sampled), POWERS.get(estimator, 2)
        found = from_resamples(estimate, values, confidence, 1.0, centre=centre, power=power)
    if pvalue is None:
        pvalue = _evidence(forecasts, choice, _enough(resamples, confidence), rng)
    return _with_evidence(replace(found, norm=norm), pvalue, pairs)


def _resampled(forecasts: Forecasts, options: dict[str, Any], resamples: int, rng: np.random.Generator) -> Floats:
    fast = statistic_of(options)
    if fast is None:
        return resampled_errors(forecasts, options, resamples, rng)
    pairs = select(forecasts, options["view"])
    return np.concatenate([fast(many) for many in resamples_of(pairs, resamples, rng)])


def _largest_gap(pairs: Pairs | None, choice: dict[str, Any], estimate: float, confidence: float) -> Interval:
    if pairs is not None and choice.get("estimator", "binned") == "binned":
        edges = {name: choice[name] for name in ("bins", "edges") if choice.get(name) is not None}
        return largest_gap_interval(pairs, estimate, confidence, **edges)
    note = "the largest of many noisy gaps has no interval that covers"
    return Interval(estimate, None, None, confidence, np.nan, 0.0, "none", "max", note)


def _with_evidence(found: Interval, pvalue: float, pairs: Pairs | None = None) -> Interval:
    """Return the interval with what a test and few rows say of it."""
    if found.low is None or found.high is None:
        return found
    low = found.low if pvalue <= 1 - found.confidence else 0.0
    if pairs is None or rarer(pairs) >= FEW:
        return replace(found, low=low).explained()
    high = max(found.high, largest_error(pairs, found.confidence, cast("Norm", found.norm)))
    return replace(found, low=low, high=high, note=few_words(pairs))


def _evidence(forecasts: Forecasts, choice: dict[str, Any], resamples: int, rng: np.random.Generator) -> float:
    """Return the p-value of the hypothesis that the probabilities of a view are true."""
    if is_view(choice, "class_wise", "marginals") and not forecasts.is_event:
        return class_wise_pvalue(forecasts, resamples, rng)
    view = "top_label" if forecasts.is_event else choice.get("view", "top_label")
    return sweep_test(select(forecasts, view), "", 2, resamples, rng).pvalue


def _enough(resamples: int, confidence: float) -> int:
    """Return as many resamples as a test at this level needs at least."""
    return max(resamples, int(np.ceil(1 / (1 - confidence))))


def _groups(forecasts: Forecasts, choice: dict[str, Any]) -> list[Pairs]:
    if is_view(choice, "class_wise", "marginals"):
        return [kept for _, kept in above(forecasts, choice.get("threshold"))]
    return [select(forecasts, choice.get("view", "top_label"))]


def _sharpness(y_true: Any, y_prob: Any, *, sample_weight: Any = None) -> float:
    return sharpness(y_prob, sample_weight=sample_weight)


def from_resamples(
    estimate: float,
    values: Floats,
    confidence: float,
    most: float = np.inf,
    *,
    centre: float | None = None,
    power: int = 1,
) -> Interval:
    """Return the reflected bootstrap interval of an estimate (see `bootstrap`).

    Parameters
    ----------
    values : array of shape (resamples,)
    most : float
        The largest value there can be; the smallest is 0 unless a value is below it.
    centre : float, optional
        What the values were resampled from, where the estimate is that without its bias.
    power : int
        In which noise adds up with a calibration error; 1 for what noise adds nothing to.
    """
    centre = estimate if centre is None else centre
    if not (np.isfinite(estimate) and np.isfinite(values).all()):
        note = "it is not finite, or would not be if other rows had been drawn"
        return Interval(estimate, None, None, confidence, np.nan, np.nan, "bootstrap", note=note)
    tail = (1 - confidence) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    bias, error = float(values.mean() - centre) if centre == estimate else 0.0, float(values.std(ddof=1))
    if power == 1:
        ends = [2 * centre - high, 2 * centre - low]
    else:
        longer = max(high - values.mean(), values.mean() - low)
        ends = [max(0.0, 2 * centre**power - high**power) ** (1 / power), centre + longer]
    least = 0.0 if min(estimate, values.min()) >= 0 else -np.inf
    low, high = np.clip(ends, least, most)
    return Interval(estimate, float(low), float(high), confidence, error, bias, "bootstrap").explained()


def crossfit_interval(groups: Sequence[Pairs], confidence: float, norm: Norm = 2, **settings: Any) -> Interval:
    """Return the cross-fitted error, the power mean over groups, with the interval that its standard errors give.

    Errors of several groups add up as if they moved together, which is the worst they can do. For norm 1, whose
    estimate falls short where signs are uncertain, the upper end is that of norm 2: no error of norm 1 is larger.
    """
    found = [crossfit_of(cells_of(pairs), norm=norm, **settings) for pairs in groups]
    value = power_mean([part.value for part in found], norm)
    if not found:
        return Interval(value, 0.0, 1.0, confidence, np.nan, 0.0, "cross-fit", norm)
    joint = CrossFit(int(norm), *np.mean([[part.mean, part.mean_error, part.rows] for part in found], axis=0).tolist())
    low, high = joint.bounds(confidence)
    if norm == 1:
        high = crossfit_interval(groups, confidence, **settings).high
    error = joint.mean_error if norm == 1 else joint.mean_error / (2 * value) if value > 0 else np.nan
    return Interval(value, low, high, confidence, float(error), 0.0, "cross-fit", norm)
