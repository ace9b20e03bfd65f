"""Intervals of errors that are resampled: distances of a smooth curve, the two-bin error, decision losses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...cells.logit_spline import LogitSpline, grouped
from ...cells.pairs import Pairs
from ..estimators.integrated import GAPS, distances_of, summed_up
from ..estimators.norms import Norm
from ..estimators.smoothers import smoothed
from ..estimators.two_bin import averaged_two_bin, two_bin_of
from ..estimators.variational import variational_of
from .intervals import Interval, deviations_of
from .resampling import Sampling, resamples_of
from .uncertainty import evidence_of, from_resamples, with_evidence

__all__ = ["gap_law", "resampled_law", "two_bin_law", "variational_law"]

Floats = NDArray[np.float64]
# Of 10,000 rows with events of 1 to 5 % it covered 78 to 85 % (docs/evidence/coverage.md).
ONE_PLACE = "one place decides it, often one where few rows are: the interval may be short"


def gap_law(name: str) -> Callable[..., Interval]:
    """Return the law of a distance of the smooth curve; the four of them share their resamples."""
    place = GAPS.index(name)

    def law(pairs: Pairs, confidence: float, sampling: Sampling, smoother: str = "spline") -> Interval:
        key = id(pairs), "gaps", smoother
        if key not in sampling.values:
            sampling.values[key] = _drawn_gaps(pairs, sampling, smoother)
        (estimate, centre), values = sampling.values[key][:2, place].tolist(), sampling.values[key][2:, place]
        norm: Norm | None = {"ici": 1, "emax": "max"}.get(name)  # pyright: ignore[reportAssignmentType]
        found = replace(from_resamples(estimate, values, confidence, 1.0, centre=centre, power=2), norm=norm)
        found = with_evidence(found, evidence_of(None, pairs, confidence, sampling), pairs if norm else None)
        note = found.note or (ONE_PLACE if name == "emax" else "")
        return replace(found, method=f"{'drawn' if smoother == 'spline' else 'bootstrap'}, {smoother}", note=note)

    return law


def _drawn_gaps(pairs: Pairs, sampling: Sampling, smoother: str) -> Floats:
    """Return the distances, those of what is drawn without its noise, and the drawn ones: (2 + draws, 4).

    Our spline knows its own covariance, and curves are drawn from it; others are fitted to resamples of the rows.
    """
    curve = smoothed(pairs, smoother)
    seen = distances_of(pairs, curve)
    if not isinstance(curve, LogitSpline):
        drawn = (distances_of(part, smoothed(part, smoother, like=curve)) for part in sampling.pairs(pairs))
        return np.array([seen, seen, *drawn])
    groups = grouped(pairs.cells, pairs.rows)
    curves = curve.drawn(groups.scores, sampling.resamples, sampling.rng)
    gaps = np.abs(np.vstack([curve.at(groups.scores), curves]) - groups.scores)
    return np.array([seen, *(summed_up(row, groups.share) for row in gaps)])


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


def variational_law(side: str | None = None) -> Callable[..., Interval]:
    """Return the law of the variational error, or of one side of it: a mean of independent terms in each fold."""

    def law(pairs: Pairs, confidence: float, sampling: Sampling, **options: Any) -> Interval:
        found = variational_of(pairs, side=side, **options)
        reach = deviations_of(confidence) * found.mean_error
        note = "the error is at least this: what a cross-fitted curve can show of it, which may be below 0"
        ends = found.mean - reach, min(1.0, found.mean + reach)
        return Interval(found.mean, *ends, confidence, found.mean_error, 0.0, "cross-fit", 1, note)

    return law
