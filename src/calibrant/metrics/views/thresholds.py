"""Thresholds of the class-wise view: which entries of a class count."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np

from ...cells.pairs import Pairs
from ...errors import InvalidInput
from ...parameters import AnyOf, Number, OneOf
from ...types import Array
from .forecasts import Forecasts

Threshold: TypeAlias = float | str | None

_ALLOWED = AnyOf(OneOf(None, "1/K", "prior", "kcal"), Number(0.0, 1.0))


def threshold_values(forecasts: Forecasts, threshold: Any) -> Array | None:
    """Return the threshold of each class, or None where every entry counts."""
    if not _ALLOWED.accepts(threshold):
        raise InvalidInput("no such threshold", seen=repr(threshold), allowed=_ALLOWED.allowed)
    k = len(forecasts.classes)
    if threshold is None:
        return None
    if threshold == "prior":
        counts = np.bincount(forecasts.labels, weights=forecasts.weights, minlength=k)
        return counts / counts.sum()
    if isinstance(threshold, str):
        threshold = 1 / k if threshold == "1/K" else max(0.01, 1 / k)
    return np.full(k, float(threshold))


def above(forecasts: Forecasts, threshold: Threshold) -> Iterator[tuple[Pairs, Pairs]]:
    """Yield for each class all its pairs, and those above its threshold; classes without any are left out."""
    floors = threshold_values(forecasts, threshold)
    for column, pairs in enumerate(forecasts.each_class()):
        if floors is None:
            yield pairs, pairs
            continue
        kept = pairs.take(pairs.scores > floors[1 if forecasts.is_event else column])
        if kept.total > 0:
            yield pairs, kept
