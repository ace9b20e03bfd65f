"""Control variates: sums of a sample whose expectation is known exactly tell how lucky the sample was.

An experiment's mean over repeats is corrected by regression on six such sums (the gap, its square and the complement,
the share of low scores, …). It stays consistent and its standard error falls to about a half for binned estimators.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InvalidInput
from ..parameters import Instance, check_value
from ..types import Array
from ..validation import as_array, as_numbers
from ..validation.arrays import as_float
from .scenario import Draw, Scenario

# Fewer repeats than this cannot carry a regression on six controls.
LEAST_REPEATS = 100


def _sample_controls(drawn: Draw) -> Array:
    t, gap, low = drawn.complements, ~drawn.outcomes - drawn.complements, drawn.scores < 0.5
    columns = (gap, gap**2, t, t**2, low, gap * low)
    return np.stack([column.mean(axis=1) for column in columns], axis=1)


def _expected_controls(scenario: Scenario) -> Array:
    mean, gap = scenario.distribution.expectation, scenario.curve.gap

    def squared(s: Array, t: Array) -> Array:
        c, flipped = scenario.curve.probabilities(s, t)
        return c * t * t + flipped * s * s

    return np.array(
        [
            mean(gap),
            mean(squared),
            mean(lambda s, t: t),
            mean(lambda s, t: t * t),
            mean(lambda s, t: np.where(s < 0.5, 1.0, 0.0)),
            mean(lambda s, t: np.where(s < 0.5, gap(s, t), 0.0)),
        ]
    )


def control_deviations(scenario: Scenario, drawn: Draw) -> Array:
    """Return the controls of each sample less their expectation, shape (repeats, 6)."""
    check_value("scenario", scenario, Instance((Scenario,), "a Scenario"))
    check_value("drawn", drawn, Instance((Draw,), "what its method draw returns"))
    if not drawn.scores.size:
        raise InvalidInput("drawn is empty", allowed="at least one row")
    return _sample_controls(drawn) - _expected_controls(scenario)


def numbers(estimates: Any, name: str) -> Array:
    """Return one row of estimates, of which some may be NaN or infinite: an estimator's own answer."""
    found = as_float(as_array(estimates, name)[0], name).astype(np.float64)
    if found.ndim != 1:
        raise InvalidInput(f"{name} must be one row of numbers", seen=f"shape {found.shape}")
    return found


@np.errstate(invalid="ignore", over="ignore")
def adjusted_mean(estimates: Array, deviations: Array) -> tuple[float, float]:
    """Return the mean of the estimates at zero deviation, and its standard error."""
    estimates, deviations = numbers(estimates, "estimates"), as_numbers(deviations, "deviations", ndim=2)
    repeats = len(estimates)
    if len(deviations) != repeats:
        raise InvalidInput("deviations must be as many as estimates", seen=f"{len(deviations)} for {repeats}")
    if repeats < LEAST_REPEATS:
        return float(estimates.mean()), float(estimates.std(ddof=1) / np.sqrt(repeats)) if repeats > 1 else np.nan
    design = np.hstack([np.ones((repeats, 1)), deviations])
    weights, *_ = np.linalg.lstsq(design, estimates, rcond=None)
    rest = estimates - design @ weights
    return float(weights[0]), float(np.sqrt(rest @ rest / (repeats - design.shape[1]) / repeats))
