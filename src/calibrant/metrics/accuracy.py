"""Accuracy with honest ties, and sharpness."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InvalidInput
from ..parameters import Integer
from ..validation import as_matrix
from .views import Forecasts, read

__all__ = ["accuracy", "sharpness", "top_k_accuracy"]


def accuracy(
    y_true: Any,
    y_prob: Any,
    *,
    raw_scores: Any = None,
    sample_weight: Any = None,
    classes: Any = None,
    marginals: bool = False,
) -> float:
    """Share of rows whose largest probability is the label's.

    Parameters
    ----------
    raw_scores : array-like of shape (n, K), optional
        Logits or probabilities before calibration. A map that merges values makes ties; they are broken by these
        (paper 002, A4), and by the earlier column where these are equal too.
    marginals : bool
        Allow rows that do not sum to one.

    Examples
    --------
    >>> tied = [[0.5, 0.5], [0.25, 0.75]]
    >>> accuracy([1, 1], tied), accuracy([1, 1], tied, raw_scores=[[0, 1], [0, 1]])
    (0.5, 1.0)
    """
    return top_k_accuracy(
        y_true, y_prob, k=1, raw_scores=raw_scores, sample_weight=sample_weight, classes=classes, marginals=marginals
    )


def top_k_accuracy(
    y_true: Any,
    y_prob: Any,
    *,
    k: int = 5,
    raw_scores: Any = None,
    sample_weight: Any = None,
    classes: Any = None,
    marginals: bool = False,
) -> float:
    """Share of rows whose label is among the k largest probabilities; ties as in `accuracy`."""
    if not Integer(1).accepts(k):
        raise InvalidInput("k is not valid", seen=repr(k), allowed=Integer(1).allowed)
    forecasts = read(y_true, y_prob, sample_weight, classes=classes, marginals=marginals)
    simple = k == 1 and raw_scores is None and not forecasts.is_event
    right = (forecasts.given.top_column == forecasts.labels) if simple else _rank_of_label(forecasts, raw_scores) < k
    return float(right.mean()) if forecasts.weights is None else float(np.average(right, weights=forecasts.weights))


def _rank_of_label(forecasts: Forecasts, raw_scores: Any) -> Any:
    if forecasts.is_event:  # the other class has the rest; one half is the first class's
        return (forecasts.probabilities > 0.5) != (forecasts.labels == 1)
    p, y = forecasts.probabilities, forecasts.labels
    own = p[np.arange(len(y)), y][:, None]
    earlier = np.arange(p.shape[1]) < y[:, None]
    if raw_scores is None:
        return ((p > own) | ((p == own) & earlier)).sum(axis=1)
    raw, _ = as_matrix(raw_scores, "raw_scores")
    if raw.shape != p.shape:
        raise InvalidInput("raw_scores must have the shape of y_prob", seen=f"{raw.shape}, {p.shape}")
    own_raw = raw[np.arange(len(y)), y][:, None]
    ahead = (raw > own_raw) | ((raw == own_raw) & earlier)
    return ((p > own) | ((p == own) & ahead)).sum(axis=1)


def sharpness(y_prob: Any, *, sample_weight: Any = None) -> float:
    """Variance of the confidences (paper 004, Figure 3): of the largest probability, or of one event's.

    Examples
    --------
    >>> sharpness([0.25, 0.75])
    0.0625
    """
    probabilities, _ = as_matrix(y_prob, "y_prob")
    pairs = read(np.zeros(len(probabilities), dtype=int), probabilities, sample_weight).top_label()
    mean = np.average(pairs.scores, weights=pairs.weights)
    return float(np.average((pairs.scores - mean) ** 2, weights=pairs.weights))
