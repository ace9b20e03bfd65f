"""Intervals of distances of a smooth curve, of the two-bin and the variational error, and of decision losses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ...cells.pairs import Pairs
from ..estimators.integrated import GAPS, distances
from ..estimators.norms import Norm
from ..estimators.two_bin import averaged_two_bin, two_bin_of
from ..estimators.variational import variational_of
from .intervals import BIASED, Interval
from .resampling import Sampling, resamples_of
from .uncertainty import evidence_of, from_resamples, largest_mean_gap, mean_gap_ends, with_evidence

OF_TRUTH = "the estimate is the smooth curve's, and the interval that of the true frequencies, whatever their shape"
ONE_PLACE = "one score decides it, of which few rows know: no interval holds whatever the shape of the true frequencies"
AT_MOST = "estimates what a cross-fitted curve can show, less than the error on average; the interval is of the error"
BEYOND = {"e50": 0.5, "e90": 0.1, "emax": 0.0}  # share of the rows whose gap is larger


def gap_law(name: str) -> Callable[..., Interval]:
    """Return the law of a distance of the smooth curve: its interval is that of the true frequencies' distance.

    It asks nothing of the curve, which smooths steps and waves away: by draws from its covariance, E50 of a step (.25
    below ½, .75 above; 500 rows) was covered in half of the samples. The mean gap is at least the cross-fitted error
    of norm 1, and at most that of norm 2, M. Of the gap q that a share t of the rows exceeds, tq² ≤ M² (Markov), and
    the mean is at most q + √t·M (Cauchy and Schwarz, for those beyond q). For t = 0 that bounds nothing from above.
    """
    place = GAPS.index(name)

    def law(pairs: Pairs, confidence: float, sampling: Sampling, smoother: str = "spline") -> Interval:
        key = id(pairs), "gaps", smoother
        if key not in sampling.values:
            sampling.values[key] = distances(pairs, smoother)
        estimate, share = sampling.values[key][place], BEYOND.get(name)
        if share == 0:
            return Interval(estimate, None, None, confidence, np.nan, 0.0, "none", "max", ONE_PLACE)
        ends, norm = mean_gap_ends(pairs, confidence, sampling), 1 if share is None else 2
        found = Interval(estimate, *ends, confidence, np.nan, 0.0, "cross-fit", norm, wide=True)
        found = with_evidence(found, evidence_of(None, pairs, confidence, sampling), pairs)
        note = "" if found.note == BIASED else found.note
        if share is not None:
            found = replace(found, **_of_quantile(found.low, found.high, share), norm=None)
        return replace(found, note=note or (OF_TRUTH if found.outside else ""))

    return law


def _of_quantile(mean: Any, most: Any, share: float) -> dict[str, float]:
    """Return ends of the gap that a share of the rows exceeds, from the least mean and the largest root mean square."""
    root = float(np.sqrt(share))
    return {"low": max(0.0, mean - root * most), "high": min(1.0, most / root)}


def resampled_law(estimator: Callable[..., float], most: float = 1.0) -> Callable[..., Interval]:
    """Return the law of an error that noise raises: resampled and reflected in squares."""

    def law(pairs: Pairs, confidence: float, sampling: Sampling, **options: Any) -> Interval:
        estimate = estimator(pairs, **options)
        values = np.array([estimator(part, **options) for part in sampling.pairs(pairs)])
        found = from_resamples(estimate, values, confidence, most, power=2)
        return with_evidence(found, evidence_of(None, pairs, confidence, sampling))

    return law


def two_bin_law(pairs: Pairs, confidence: float, sampling: Sampling, norm: Norm = 2) -> Interval:
    """The law of the averaged two-bin error, resampled as a root."""
    parts = []
    for many in resamples_of(pairs, sampling.resamples, sampling.rng):
        parts.append(two_bin_of(many.scores[0], -many.excess / many.mass[:, -1:], norm))
    power = 1 if norm == 1 else 0.5
    estimate, values = averaged_two_bin(pairs, norm=norm) ** power, np.concatenate(parts) ** power
    found = with_evidence(
        from_resamples(estimate, values, confidence, power=2), evidence_of(None, pairs, confidence, sampling)
    )
    return found if norm == 1 else found.squared()


def variational_law(side: str | None) -> Callable[..., Interval]:
    """Return the law of the variational error, or of one side of it.

    Its folds learn from each other: where the signs of all agree by chance, all gain, and the mean of the rows strays
    1.4 times as far as their own standard error tells. So the lower end is 0 unless the test rejects, and the upper
    end is that of the cross-fitted root mean square: no mean gap is larger.
    """

    def law(pairs: Pairs, confidence: float, sampling: Sampling, **options: Any) -> Interval:
        curves = sampling.values.setdefault((id(pairs), "folds", repr(options)), {})
        found = variational_of(pairs, side=side, known=curves, **options)
        high = largest_mean_gap(pairs, confidence, sampling)
        ends = Interval(
            found.mean, found.bounds(confidence)[0], high, confidence, found.mean_error, 0.0, "cross-fit", 1, AT_MOST
        )
        return with_evidence(ends, evidence_of(None, pairs, confidence, sampling), pairs)

    return law
