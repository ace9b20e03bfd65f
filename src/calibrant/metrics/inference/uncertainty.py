"""Intervals of calibration errors: by the bootstrap, by the estimator's own standard error, or from frequencies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from ...cells.edges import fixed_edges, make_edges
from ...cells.pairs import Pairs
from ...types import Array
from ..estimators.binned import bin_sums
from ..estimators.calibration_error import default_norm, error_of, error_of_pairs, option_of
from ..estimators.crossfit import CrossFit, any_shape, crossfit_of
from ..estimators.norms import Norm
from ..estimators.sums import FROM_SUMS, error_from_sums, power_mean
from ..views.blocks import CellForecasts
from ..views.forecasts import select
from ..views.thresholds import above
from .bounds import largest_error, largest_gap_interval
from .class_test import class_wise_pvalue
from .intervals import Interval
from .means import FEW, few_words, rarer, sides
from .resampling import CUMULATIVE, Sampling, drawn_classes, is_view, resampled_choice
from .testing import sweep_test

# In which power the noise of a sample adds up with what is there (see `bootstrap`); in squares where nothing is said.
POWERS = {"smooth": 3}
# Share of one bin from which the binned error misses much: with 98 %, its own interval covered the true error in 60 %.
CROWDED = 0.9
MANY = 10_000  # rows from which it shows: by bins alone 68 % of samples of 100,000 rows, events of 5 %, were covered
CANCELS, CROSSFITTED = "what cancels within bins is not seen", ", and the upper end is that of the cross-fitted error"
FULL = 0.97  # share from which the upper end is that of the cross-fitted root mean square


def error_interval(
    forecasts: Any, choice: dict[str, Any], estimate: float, confidence: float, sampling: Sampling
) -> Interval:
    """Return a calibration error with its interval (see `calibrant.metrics.bootstrap`).

    Parameters
    ----------
    choice : dict
        Options of `calibration_error`.
    """
    estimator = choice.get("estimator", "binned")
    norm = choice.get("norm") or default_norm(estimator)
    by_class = is_view(choice, "class_wise", "marginals") and not forecasts.is_event
    pairs = None if by_class else next(iter(_groups(forecasts, choice)), None)
    if estimator == "crossfit":
        groups = _groups(forecasts, choice) if pairs is None else [pairs]
        settings = {name: choice[name] for name in ("folds", "random_state") if choice.get(name) is not None}
        found = crossfit_interval(groups, confidence, norm, **settings)
        if norm == 2 and pairs is not None and not settings:  # as other figures of these rows need it
            sampling.values[id(pairs), "largest mean gap", confidence] = found.high
    elif norm == "max" and estimator not in CUMULATIVE:
        found = _largest_gap(pairs, choice, estimate, confidence)
    else:
        sampled = resampled_choice(choice)
        values = _resampled(forecasts, pairs, sampled, sampling)
        centre, power = error_of(forecasts, **sampled), POWERS.get(estimator, 2)
        unbiased = sampled is not choice  # the binned error is resampled in place of the debiased one
        found = from_resamples(estimate, values, confidence, 1.0, centre=centre, power=power, unbiased=unbiased)
    found = with_evidence(replace(found, norm=norm), evidence_of(forecasts, pairs, confidence, sampling), pairs)
    if pairs is None or found.note:
        return found
    few = estimator in ("binned", "sweep") or (estimator == "debiased" and pairs.rows >= MANY)
    return _cancelled(found, pairs, choice, sampling) if few else found


def _cancelled(found: Interval, pairs: Pairs, choice: dict[str, Any], sampling: Sampling) -> Interval:
    """Return the interval of a binned or swept error with an upper end that knows what cancels within bins.

    That is the root mean square's, which needs no shape. A sweep takes few bins, and saw 20 to 50 % of a step; others
    have it of many rows, as noise is larger than what cancels in few, and of nearly all rows in one bin.
    """
    if found.high is None or found.norm == "max" or choice.get("squared"):
        return found
    share, known = 0.0, True
    if choice.get("estimator") != "sweep":
        edges, bins = (option_of({"estimator": "binned", **choice}, name) for name in ("edges", "bins"))
        mass = bin_sums(pairs, make_edges(edges, bins, pairs))[0]
        share = float(mass.max() / mass.sum())
        if len(mass) == 1:  # which is what was asked for
            return found
        known = share >= FULL or pairs.rows >= MANY
    crowded = f"{share:.0%} of the rows lie in one bin: what cancels within it is not seen"
    note = crowded if share > CROWDED else CANCELS
    high = largest_mean_gap(pairs, found.confidence, sampling) if known else 0.0
    if high > found.high:
        return replace(found, high=high, note=f"{note}{CROSSFITTED}")
    return replace(found, note=note) if share > CROWDED else found


def _resampled(forecasts: Any, pairs: Pairs | None, choice: dict[str, Any], sampling: Sampling) -> Array:
    fast = None if pairs is None else sampling.statistic(pairs, choice)
    if fast is not None:
        return fast
    by_sums = choice.get("estimator") in FROM_SUMS and not choice.get("squared")
    if pairs is None and isinstance(forecasts, CellForecasts) and by_sums:
        edges = fixed_edges(option_of(choice, "edges"), option_of(choice, "bins"), forecasts.rows)
        if edges is not None:
            norm = choice.get("norm") or default_norm(choice["estimator"])
            drawn = drawn_classes(forecasts, edges, sampling.slow, sampling.rng)
            return np.array([error_from_sums(sums, choice["estimator"], norm) for sums in drawn])
    if pairs is None or choice.get("squared") or choice.get("threshold") is not None:
        return np.array([error_of(drawn, **choice) for drawn in sampling.forecasts(forecasts)])
    own = {name: value for name, value in choice.items() if name not in ("view", "squared", "threshold")}
    return np.array([error_of_pairs(drawn, **own) for drawn in sampling.pairs(pairs)])  # other views are not drawn


def _largest_gap(pairs: Pairs | None, choice: dict[str, Any], estimate: float, confidence: float) -> Interval:
    if pairs is not None and choice.get("estimator", "binned") == "binned":
        edges = {name: choice[name] for name in ("bins", "edges") if choice.get(name) is not None}
        return largest_gap_interval(pairs, estimate, confidence, **edges)
    note = "the largest of many noisy gaps has no interval that covers"
    return Interval(estimate, None, None, confidence, np.nan, 0.0, "none", "max", note)


def with_evidence(found: Interval, pvalue: float, pairs: Pairs | None = None) -> Interval:
    """Return the interval with what a test and few rows say of it."""
    if found.low is None or found.high is None:
        return found
    low = found.low if pvalue <= 1 - found.confidence else 0.0
    tested = replace(found, low=low, wide=found.wide or low == 0)
    for seen, what in () if pairs is None else sides(pairs):  # no spread is seen before some row goes against its score
        if rarer(seen) < FEW:
            high = max(found.high, largest_error(seen, found.confidence, cast("Norm", found.norm)))
            return replace(tested, high=high, note=few_words(seen, what))
    return tested.explained()


def evidence_of(forecasts: Any, pairs: Pairs | None, confidence: float, sampling: Sampling) -> float:
    """Return the p-value of the hypothesis that the probabilities of a view, or of all classes, are true."""
    key = id(forecasts if pairs is None else pairs)
    if key not in sampling.pvalues:
        asked = sampling.slow if pairs is None else sampling.resamples
        enough = max(asked, int(np.ceil(1 / (1 - confidence))))  # as a test at this level needs at least
        if pairs is None:
            sampling.pvalues[key] = class_wise_pvalue(forecasts, enough, sampling.rng)
        else:
            sampling.pvalues[key] = sweep_test(pairs, "", 2, enough, sampling.rng).pvalue
    return sampling.pvalues[key]


def mean_gap_ends(pairs: Pairs, confidence: float, sampling: Sampling) -> tuple[float, float]:
    """Return ends of the mean gap that need no shape: those of the cross-fitted errors of norm 1 and of norm 2."""
    key = id(pairs), "mean gap", confidence
    if key not in sampling.values:
        sampling.values[key] = crossfit_of(pairs, norm=1).bounds(confidence)[0]
    return sampling.values[key], largest_mean_gap(pairs, confidence, sampling)


def largest_mean_gap(pairs: Pairs, confidence: float, sampling: Sampling) -> float:
    """Return the upper end of the root mean square gap, which needs no shape; no mean gap is larger."""
    key = id(pairs), "largest mean gap", confidence
    if key not in sampling.values:
        sampling.values[key] = crossfit_interval([pairs], confidence).high
    return sampling.values[key]


def _groups(forecasts: Any, choice: dict[str, Any]) -> list[Pairs]:
    if is_view(choice, "class_wise", "marginals"):
        return [kept for _, kept in above(forecasts, choice.get("threshold"))]
    return [select(forecasts, choice.get("view", "top_label"))]


def from_resamples(
    estimate: float,
    values: Array,
    confidence: float,
    most: float = np.inf,
    *,
    centre: float | None = None,
    power: int = 1,
    unbiased: bool = False,
) -> Interval:
    """Return the reflected bootstrap interval of an estimate (see `calibrant.metrics.bootstrap`).

    Parameters
    ----------
    values : array of shape (resamples,)
    most : float
        The largest value there can be; the smallest is 0 unless a value is below it.
    centre : float, optional
        What the values were resampled from, where that is not the estimate itself.
    power : int
        In which noise adds up with a calibration error; 1 for what noise adds nothing to.
    unbiased : bool
        Whether the estimate is what the values were resampled from without its bias.
    """
    centre = estimate if centre is None else centre
    if not (np.isfinite(estimate) and np.isfinite(values).all()):
        note = "it is not finite, or would not be if other rows had been drawn"
        return Interval(estimate, None, None, confidence, np.nan, np.nan, "bootstrap", note=note)
    tail = (1 - confidence) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    bias = 0.0 if unbiased else float(values.mean() - centre)
    error = float(values.std(ddof=1))
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

    Errors of several groups add up as if they moved together, which is the worst they can do. The upper end is that of
    norm 2 (no error of norm 1 is larger, and the estimate of that falls short where signs are uncertain), and at least
    that of a curve which may have any shape: an isotonic one sees nothing of scores that are upside down.
    """
    found = [crossfit_of(pairs, norm=norm, **settings) for pairs in groups]
    value = power_mean([part.value for part in found], norm)
    if not found:
        return Interval(value, 0.0, 1.0, confidence, np.nan, 0.0, "cross-fit", norm)
    joint = _together(found)
    if norm == 1:
        low, high = joint.bounds(confidence)[0], crossfit_interval(groups, confidence, **settings).high
    else:
        free = _together([crossfit_of(pairs, curve=any_shape, **settings) for pairs in groups])
        low, high = joint.bounds(confidence)
        high = max(high, free.bounds(confidence)[1])
    error = joint.mean_error if norm == 1 else joint.mean_error / (2 * value) if value > 0 else np.nan
    return Interval(value, low, high, confidence, float(error), 0.0, "cross-fit", norm)


def _together(found: Sequence[CrossFit]) -> CrossFit:
    parts = [[part.mean, part.mean_error, part.rows, part.gap_error] for part in found]
    return CrossFit(found[0].norm, *np.mean(parts, axis=0).tolist())
