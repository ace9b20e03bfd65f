"""Proper scores: the logarithmic loss and the Brier score."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays import inner
from ...errors import InvalidInput
from ...parameters import is_one_of
from ...types import Array
from ..views.forecasts import Forecasts, read


def nll_rows(forecasts: Forecasts) -> Array:
    """Return -log p of what happened, row by row; infinite where that was given probability 0."""
    p, y = forecasts.probabilities, forecasts.labels
    chosen = np.where(y == 1, p, 1 - p) if forecasts.is_event else p[np.arange(len(y)), y]
    with np.errstate(divide="ignore"):
        return -np.log(chosen.astype(np.float64))


def brier_rows(forecasts: Forecasts, view: str = "multi_class") -> Array:
    """Return the squared error of each row: (p - y)² of one event or the top label, Σ_k (p_k - y_k)² of the vector."""
    if forecasts.is_event or view == "top_label":
        pairs = forecasts.top
        return (pairs.scores - pairs.outcomes) ** 2
    right = forecasts.probabilities[np.arange(forecasts.n), forecasts.labels].astype(np.float64)
    return forecasts.given.squares + 1 - 2 * right


def nll(y_true: Any, y_prob: Any, *, sample_weight: Any = None, classes: Any = None) -> float:
    """Mean negative log-likelihood, in nats.

    A row whose label was given probability exactly 0 makes it infinite: nothing is clipped.

    Examples
    --------
    >>> round(nll([0, 1], [[0.5, 0.5], [0.5, 0.5]]), 4)
    0.6931
    """
    forecasts = read(y_true, y_prob, sample_weight, classes=classes)
    return _mean(nll_rows(forecasts), forecasts.weights)


def brier(
    y_true: Any, y_prob: Any, *, view: str = "multi_class", sample_weight: Any = None, classes: Any = None
) -> float:
    """Brier score.

    Parameters
    ----------
    view : {"multi_class", "top_label"}
        The mean of Σ_k (p_k - y_k)² over rows, between 0 and 2 (Brier 1950; not divided by K, as some libraries do);
        or the mean of (p_top - [top is right])² (paper 001). For one event's probabilities both are (p - y)².

    Examples
    --------
    >>> brier([0, 1], [[0.75, 0.25], [0.25, 0.75]])
    0.125
    """
    if not is_one_of(view, ("multi_class", "top_label")):
        raise InvalidInput("no such view of the Brier score", seen=repr(view), allowed="'multi_class' or 'top_label'")
    forecasts = read(y_true, y_prob, sample_weight, classes=classes)
    return _mean(brier_rows(forecasts, view), forecasts.weights)


def _mean(rows: Array, weights: Array | None) -> float:
    if weights is None:
        return float(rows.mean())
    return inner(rows[weights > 0], weights[weights > 0]) / float(weights.sum())
