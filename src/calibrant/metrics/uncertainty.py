"""Intervals for every metric, by the bootstrap.

Resamples are counts: how often each row was drawn. Metrics of one view are computed for many resamples at once from
prefix sums (`calibrant.metrics.replicates`); every other metric takes the counts as weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..errors import InvalidInput
from ..threads import get_threads
from . import names
from .calibration_error import calibration_error, error_of
from .cells import cells_of
from .crossfit import crossfit_of
from .intervals import Interval, check_confidence, deviations_of
from .replicates import Replicates
from .views import Forecasts, Pairs, read, select

__all__ = ["bootstrap", "bootstrap_many", "from_resamples", "resampled_errors", "resamples_of"]

Floats = NDArray[np.float64]
Statistic = Callable[[Replicates], Floats]
# Entries of one block of resamples: a few megabytes.
BLOCK = 1_000_000
# Metrics of one view that have a form for many resamples, by what they hand to `calibration_error`.
FAST: dict[Any, dict[str, Any]] = {
    calibration_error: {},
    names.ece: {},
    names.mce: {"norm": "max"},
    names.ece_sweep: {"estimator": "sweep"},
    names.ece_debiased: {"estimator": "debiased"},
    names.ks_error: {"estimator": "ks"},
}


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
    values it is [2θ - q_high, 2θ - q_low], cut at 0 where the metric cannot be negative (Kumar et al. 2019 do so too).
    `ece_crossfit` has a standard error of its own and needs no resamples.

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
    0.0726 [0.0598, 0.0836]
    """
    check_confidence(confidence)
    if resamples < 2:
        raise InvalidInput("resamples must be at least 2", seen=repr(resamples))
    if metric is names.ece_crossfit:
        return _crossfit_interval(y_true, y_prob, sample_weight, confidence, options)
    estimate = float(metric(y_true, y_prob, sample_weight=sample_weight, **options))
    rng = np.random.default_rng(random_state)
    fast = statistic_of({**FAST[metric], **options}) if metric in FAST else None
    forecasts = read(y_true, y_prob, sample_weight, classes=options.get("classes"))
    if fast is not None:
        pairs = select(forecasts, options.get("view", "top_label"))
        values = np.concatenate([fast(many) for many, _ in resamples_of(pairs, resamples, rng)])
    else:
        drawn = _weights(forecasts, resamples, rng)
        values = np.array([metric(y_true, y_prob, sample_weight=w, **options) for w in drawn])
    return from_resamples(estimate, values, confidence)


def from_resamples(estimate: float, values: Floats, confidence: float, most: float = np.inf) -> Interval:
    """Return the reflected bootstrap interval of an estimate that lies between 0 and ``most``."""
    tail = (1 - confidence) / 2
    finite = values[np.isfinite(values)]
    if not np.isfinite(estimate) or len(finite) < len(values):
        return Interval(estimate, np.nan, np.inf, confidence, np.nan, np.nan, "bootstrap")
    low, high = np.quantile(values, [tail, 1 - tail])
    bias, error = float(values.mean() - estimate), float(values.std(ddof=1))
    low, high = np.clip([2 * estimate - high, 2 * estimate - low], 0.0, most)
    return Interval(estimate, float(low), float(high), confidence, error, bias, "bootstrap")


def bootstrap_many(
    pairs: Pairs, statistics: dict[str, Statistic], rows: Floats, resamples: int, rng: np.random.Generator
) -> tuple[dict[str, Floats], Floats]:
    """Return resampled values of several statistics and resampled means of the columns of ``rows``, in one go."""
    values: dict[str, list[Floats]] = {name: [] for name in statistics}
    means = []
    for many, sums in resamples_of(pairs, resamples, rng, rows):
        for name, statistic in statistics.items():
            values[name].append(statistic(many))
        means.append(sums / many.mass[:, -1:])
    return {name: np.concatenate(parts) for name, parts in values.items()}, np.concatenate(means)


def resamples_of(
    pairs: Pairs, resamples: int, rng: np.random.Generator, rows: Floats | None = None
) -> Iterator[tuple[Replicates, Floats]]:
    """Yield blocks of resamples, and the weighted sums of the columns of ``rows`` in each of them."""
    order = np.argsort(pairs.scores, kind="stable")
    scores, outcomes = pairs.scores[order], pairs.outcomes[order]
    weights = None if pairs.weights is None else pairs.weights[order]
    columns = np.empty((pairs.n, 0)) if rows is None else np.ascontiguousarray(rows[order])
    group = np.cumsum(np.r_[0, scores[1:] != scores[:-1]])
    shared = scores[np.r_[True, scores[1:] != scores[:-1]]][None, :]
    whole = weights is None or bool((weights == np.floor(weights)).all())
    seeds = rng.integers(0, 2**64, resamples, dtype=np.uint64)
    for part in np.array_split(seeds, max(1, -(-resamples * pairs.n // BLOCK))):
        mass, events, excess = (np.empty((len(part), shared.shape[1] + 1)) for _ in range(3))
        sums = np.empty((len(part), columns.shape[1]))
        _core.resample_sums(
            group, outcomes, scores - outcomes, weights, columns, part, get_threads(), mass, events, excess, sums
        )
        yield Replicates(shared, mass.astype(np.int64) if whole else mass, events, excess), sums


def resampled_errors(forecasts: Forecasts, options: dict[str, Any], resamples: int, rng: np.random.Generator) -> Floats:
    """Return calibration errors of resamples one by one, for the estimators and views that have no faster form."""
    drawn = _weights(forecasts, resamples, rng)
    return np.array([error_of(replace(forecasts, weights=w), **options) for w in drawn])


def _weights(forecasts: Forecasts, resamples: int, rng: np.random.Generator) -> Iterator[Floats]:
    n, weights = forecasts.n, forecasts.weights
    while resamples > 0:
        counts = np.bincount(rng.integers(0, n, n), minlength=n).astype(np.float64)
        drawn = counts if weights is None else counts * weights
        if drawn.any():
            yield drawn
            resamples -= 1


def statistic_of(options: dict[str, Any]) -> Statistic | None:
    """Return `calibration_error` with these options as a function of many resamples, or None where there is no such."""
    view, edges, bins = options.get("view", "top_label"), options.get("edges"), options.get("bins", 15)
    many_views = isinstance(view, str) and view in ("class_wise", "marginals", "pooled")
    known = {"view", "classes", "estimator", "norm", "edges", "bins"}
    if many_views or edges not in (None, "equal_width", "equal_mass") or not set(options) <= known:
        return None
    norm, estimator = options.get("norm"), options.get("estimator", "binned")
    if estimator == "sweep":
        return lambda many: many.sweep(edges or "equal_mass", norm or 1)[0]
    if estimator == "ks":
        return Replicates.ks
    if not isinstance(bins, int):
        return None
    if estimator == "debiased" and norm in (None, 2):
        return lambda many: many.debiased(bins, edges or "equal_mass")
    return (lambda many: many.binned(bins, edges or "equal_width", norm or 1)) if estimator == "binned" else None


def _crossfit_interval(
    y_true: Any, y_prob: Any, sample_weight: Any, confidence: float, options: dict[str, Any]
) -> Interval:
    settings = {k: v for k, v in options.items() if k not in ("view", "classes")}
    forecasts = read(y_true, y_prob, sample_weight, classes=options.get("classes"))
    return crossfit_interval(select(forecasts, options.get("view", "top_label")), confidence, **settings)


def crossfit_interval(pairs: Pairs, confidence: float, **settings: Any) -> Interval:
    """Return the cross-fitted error with the interval that its standard error gives."""
    found = crossfit_of(cells_of(pairs), **settings)
    low, high = found.bounds(deviations_of(confidence))
    value = found.value
    error = found.mean_error if found.norm == 1 else found.mean_error / (2 * value) if value > 0 else np.nan
    return Interval(value, low, high, confidence, float(error), 0.0, "cross-fit")
