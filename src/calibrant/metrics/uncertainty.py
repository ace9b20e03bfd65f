"""Intervals for every metric, by the bootstrap or by the estimator's own standard error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import names
from .accuracy import accuracy, sharpness, top_k_accuracy
from .calibration_error import calibration_error
from .canonical import canonical_error
from .cells import cells_of
from .crossfit import CrossFit, crossfit_of
from .intervals import Interval, check_confidence, check_resamples
from .kernel import skce
from .norms import Norm
from .resampling import is_view, resampled_choice, resampled_weights, resamples_of, statistic_of
from .sums import power_mean
from .thresholds import above
from .views import Forecasts, Pairs, read, select

__all__ = ["bootstrap", "crossfit_interval", "from_resamples"]

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
AT_MOST_ONE = (*NAMED, accuracy, top_k_accuracy)


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
    """Return a metric with a bias-corrected bootstrap interval.

    Resampling adds to a calibration error about as much noise as the sample already had, so resampled values lie too
    high by about the estimate's own bias. The interval is therefore reflected: with q the quantiles of the resampled
    values it is [2θ - q_high, 2θ - q_low] (Kumar et al. 2019 do so too). For calibration errors the lower end is
    √(2θ² - q_high²) or 0, never above the former: noise adds up in squares, so that where there is nothing but noise
    the reflected squares are 0 on average, as the truth is. A debiased error gets the interval of the binned error with
    the same bins, as a debiased value that was cut at 0 has nothing to be reflected. Ends stay in the metric's range.

    The cross-fitted error (of one view) has a standard error of its own and needs no resamples.

    Parameters
    ----------
    metric : callable
        A metric of (y_true, y_prob, sample_weight=…): any in `calibrant.metrics`, or your own.
    sample_weight : array-like of shape (n,), optional
        Rows are drawn with equal probability and carry their weights.
    **options
        Handed to the metric.

    Examples
    --------
    >>> from calibrant.metrics import ece
    >>> from calibrant.simulation import scenarios
    >>> y, p = scenarios["resnet110_c10"].sample(2000, random_state=0)
    >>> found = bootstrap(ece, y, p, resamples=200)
    >>> print(found)
    0.0726 [0.0570, 0.0836]
    """
    check_confidence(confidence)
    check_resamples(resamples, 2)
    metric = _sharpness if metric is sharpness else metric
    named = metric in NAMED
    choice = {**NAMED[metric], **options} if named else options
    estimate = float(metric(y_true, y_prob, sample_weight=sample_weight, **options))
    marginals = bool(choice.get("marginals")) or is_view(choice, "marginals")
    forecasts = read(y_true, y_prob, sample_weight, classes=options.get("classes"), marginals=marginals)
    if named and choice.get("estimator") == "crossfit":
        settings = {name: choice[name] for name in ("norm", "folds", "random_state") if choice.get(name) is not None}
        return crossfit_interval(_groups(forecasts, choice), confidence, **settings)
    compute = partial(calibration_error, **resampled_choice(choice)) if named else partial(metric, **options)
    values = _resampled(compute, y_true, y_prob, forecasts, resamples, np.random.default_rng(random_state))
    if metric is skce:  # a row drawn twice makes a pair with itself: resamples are about the estimate with those pairs
        values += estimate - skce(y_true, y_prob, sample_weight=sample_weight, **{**options, "estimator": "biased"})
    return from_resamples(
        estimate,
        values,
        confidence,
        most=1.0 if metric in AT_MOST_ONE else np.inf,
        centre=float(compute(y_true, y_prob, sample_weight=sample_weight)) if named else estimate,
        is_error=named or metric is canonical_error,
    )


def _resampled(
    compute: partial[float], y_true: Any, y_prob: Any, forecasts: Forecasts, resamples: int, rng: np.random.Generator
) -> Floats:
    fast = statistic_of(compute.keywords) if compute.func is calibration_error else None
    if fast is None:
        drawn = resampled_weights(forecasts, resamples, rng)
        return np.array([compute(y_true, y_prob, sample_weight=w) for w in drawn])
    pairs = select(forecasts, compute.keywords.get("view", "top_label"))
    return np.concatenate([fast(many) for many, _ in resamples_of(pairs, resamples, rng)])


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
    is_error: bool = False,
) -> Interval:
    """Return the reflected bootstrap interval of an estimate (see `bootstrap`).

    Parameters
    ----------
    values : array of shape (resamples,)
    most : float
        The largest value there can be; the smallest is 0 unless a value is below it.
    centre : float, optional
        What the values were resampled from, where the estimate is that without its bias.
    is_error : bool
        Whether it is a calibration error: something that noise adds to in squares.
    """
    centre = estimate if centre is None else centre
    if not (np.isfinite(estimate) and np.isfinite(values).all()):
        return Interval(estimate, np.nan, np.inf, confidence, np.nan, np.nan, "bootstrap")
    tail = (1 - confidence) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    bias, error = float(values.mean() - centre) if centre == estimate else 0.0, float(values.std(ddof=1))
    ends = [np.sqrt(max(0.0, 2 * centre**2 - high**2)) if is_error else 2 * centre - high, 2 * centre - low]
    least = 0.0 if min(estimate, values.min()) >= 0 else -np.inf
    low, high = np.clip(ends, least, most)
    return Interval(estimate, float(low), float(high), confidence, error, bias, "bootstrap")


def crossfit_interval(groups: Sequence[Pairs], confidence: float, norm: Norm = 2, **settings: Any) -> Interval:
    """Return the cross-fitted error, the power mean over groups, with the interval that its standard errors give.

    Errors of several groups add up as if they moved together, which is the worst they can do. For norm 1, whose
    estimate falls short where signs are uncertain, the upper end is that of norm 2: no error of norm 1 is larger.
    """
    found = [crossfit_of(cells_of(pairs), norm=norm, **settings) for pairs in groups]
    value = power_mean([part.value for part in found], norm)
    if not found:
        return Interval(value, 0.0, 1.0, confidence, np.nan, 0.0, "cross-fit")
    joint = CrossFit(int(norm), *np.mean([[part.mean, part.mean_error, part.rows] for part in found], axis=0).tolist())
    low, high = joint.bounds(confidence)
    if norm == 1:
        high = crossfit_interval(groups, confidence, **settings).high
    error = joint.mean_error if norm == 1 else joint.mean_error / (2 * value) if value > 0 else np.nan
    return Interval(value, low, high, confidence, float(error), 0.0, "cross-fit")
