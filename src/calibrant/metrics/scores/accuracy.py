"""Accuracy with honest ties, and sharpness."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...cells.pairs import Pairs
from ...errors import InvalidInput
from ...parameters import Integer
from ...types import Array, Floats, Integers, Mask
from ...validation import as_matrix, as_weights, label_hits, ordered_like, refuse_swapped, simplex_tolerance
from ..views.forecasts import Forecasts, read, read_labels


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
    refuse_swapped(y_true, y_prob)
    probabilities, columns = as_matrix(y_prob, "y_prob")
    if probabilities.ndim == 1 or probabilities.shape[1] == 1:
        right, weights = _event_hits(read(y_true, y_prob, sample_weight, classes=classes), k, raw_scores)
    else:
        labels, known = read_labels(y_true, probabilities, classes, columns)
        right = label_hits(probabilities, labels, k, marginals=marginals, tolerance=simplex_tolerance(y_prob))
        weights = as_weights(sample_weight, len(labels))
        if raw_scores is not None:
            right = _ranks(probabilities, labels, ordered_like(raw_scores, y_prob, known)) < k
    return float(np.count_nonzero(right) / len(right) if weights is None else np.average(right, weights=weights))


def _event_hits(forecasts: Forecasts, k: int, raw_scores: Any) -> tuple[Mask, Array | None]:
    """Two classes, of which the other has the rest; one half is the first class's."""
    if raw_scores is not None:
        raise InvalidInput("raw_scores need a column for each class", seen="probabilities of one event")
    hits = (forecasts.probabilities > 0.5) == (forecasts.labels == 1)
    return hits | (k > 1), forecasts.weights


def _ranks(p: Floats, y: Integers, raw_scores: Any) -> Integers:
    """Return how many classes come before the label: larger ones, or equal ones with a larger raw score."""
    raw, _ = as_matrix(raw_scores, "raw_scores")
    if raw.shape != p.shape:
        raise InvalidInput("raw_scores must have the shape of y_prob", seen=f"{raw.shape}, {p.shape}")
    if np.isnan(raw).any():
        raise InvalidInput("raw_scores contains NaN", seen=f"in row {int(np.isnan(raw).any(axis=1).argmax())}")
    own, own_raw = (values[np.arange(len(y)), y][:, None] for values in (p, raw))
    ahead = (raw > own_raw) | ((raw == own_raw) & (np.arange(p.shape[1]) < y[:, None]))
    return ((p > own) | ((p == own) & ahead)).sum(axis=1)


def sharpness(y_prob: Any, *, sample_weight: Any = None) -> float:
    """Variance of the confidences (paper 004, Figure 3): of the largest probability, or of one event's.

    Examples
    --------
    >>> sharpness([0.25, 0.75])
    0.0625
    """
    probabilities, _ = as_matrix(y_prob, "y_prob")
    return spread_of_scores(read(np.zeros(len(probabilities), dtype=int), probabilities, sample_weight).top)


def spread_of_scores(pairs: Pairs) -> float:
    """Return the variance of the scores."""
    mean = np.average(pairs.scores, weights=pairs.weights)
    return float(np.average((pairs.scores - mean) ** 2, weights=pairs.weights))


def hits(forecasts: Forecasts, k: int = 1, raw_scores: Any = None) -> Array:
    """Return for each row whether its label is among the k largest probabilities."""
    if forecasts.is_event:
        return _event_hits(forecasts, k, raw_scores)[0].astype(np.float64)
    p, y = forecasts.probabilities, forecasts.labels
    return (_ranks(p, y, p if raw_scores is None else raw_scores) < k).astype(np.float64)
