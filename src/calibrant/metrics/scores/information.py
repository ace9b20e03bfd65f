"""Mutual information of a quantised score and an outcome."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...cells.information import information_of
from ...errors import InvalidInput
from ...types import Floats, Mask
from ...validation import as_array, as_matrix, as_weights
from ...validation.arrays import as_float


def mutual_information(y_true: Any, scores: Any, edges: Any, sample_weight: Any = None) -> float:
    """Return I(y; bin of the score) in bits, of the sample at hand.

    I = Σ_m Σ_y P(m, y) log₂ [P(m, y) / (P(m) P(y))], with bin m = [g_{m-1}, g_m): what a quantised score still says
    about the outcome (I-Max, Eq. 2). More edges never lower it.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes 0 or 1; for (n, K) scores the class of each row as a column index.
    scores : array-like of shape (n,) or (n, K)
        Any scores on the scale of the edges: log-odds or probabilities. The pairs of K classes are merged.
    edges : array-like of shape (m,)
        Increasing inner edges.
    sample_weight : array-like of shape (n,), optional

    Examples
    --------
    >>> mutual_information([0, 0, 1, 1], [-2.0, -1.0, 1.0, 2.0], edges=[0.0])
    1.0
    """
    values, _ = as_matrix(scores, "scores")
    outcomes = _outcomes(as_float(as_array(y_true, "y_true")[0], "y_true"), values)
    cuts = as_float(as_array(edges, "edges")[0], "edges").astype(np.float64)
    if cuts.ndim != 1 or np.isnan(cuts).any() or (cuts[1:] < cuts[:-1]).any():
        raise InvalidInput("edges must be one increasing row of numbers", seen=repr(edges))
    if np.isnan(values).any():
        raise InvalidInput("scores contains NaN")
    weights = as_weights(sample_weight, len(values))
    if weights is not None:
        weights = np.repeat(weights, values.size // len(values))
    place = np.searchsorted(cuts, values.ravel(), side="right")
    mass = np.bincount(place, weights, minlength=len(cuts) + 1)
    positive = np.bincount(place[outcomes], None if weights is None else weights[outcomes], minlength=len(cuts) + 1)
    return information_of(mass.astype(np.float64), positive.astype(np.float64))


def _outcomes(y: NDArray[Any], values: Floats) -> Mask:
    columns = 2 if values.ndim == 1 else values.shape[1]
    if y.shape != (len(values),) or not np.isin(y, np.arange(columns)).all():
        raise InvalidInput(
            "y_true must hold one outcome a score (0 or 1), or the column index of each row's class",
            seen=f"shape {y.shape}",
            allowed=f"{len(values)} integers from 0 to {columns - 1}",
        )
    if values.ndim == 1:
        return y == 1
    return (y[:, None] == np.arange(columns)).ravel()
