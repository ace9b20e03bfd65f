"""A measurement in words."""

from __future__ import annotations

from .intervals import Interval
from .testing import CalibrationTest

__all__ = ["verdict_of"]


def verdict_of(is_event: bool, rate: float, score: float, error: Interval, test: CalibrationTest) -> str:
    """Say whether a model is miscalibrated, how, by how much, and what could have gone unnoticed."""
    size = f"{error.estimate:.3f} ({round(100 * error.confidence)} % interval {error.low:.3f} to {error.high:.3f})"
    if not test.rejects(1 - error.confidence):
        return (
            f"No miscalibration found in {test.n:,} rows (p = {test.pvalue:.2g}); "
            f"an error of up to {error.high:.3f} (root mean square) remains possible."
        )
    return f"Miscalibrated (p = {test.pvalue:.2g}): {_direction(is_event, rate, score)}; root mean square error {size}."


def _direction(is_event: bool, rate: float, score: float) -> str:
    seen, said = (
        ("the event happened in", "the mean probability is") if is_event else ("accuracy is", "mean confidence")
    )
    facts = f"{said} {score:.3f}, {seen} {rate:.3f}"
    if abs(score - rate) < 0.005:
        return f"right on average ({facts}), wrong in places"
    if is_event:
        return ("probabilities are too high" if score > rate else "probabilities are too low") + f" ({facts})"
    return ("over-confident" if score > rate else "under-confident") + f" ({facts})"
