"""The test of all classes at once: the class-wise error against those of labels drawn from the probabilities."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...cells.edges import bin_index, equal_width
from ...cells.pairs import is_whole
from ..estimators.binned import binned_of
from ..estimators.sums import group_sums
from ..views.forecasts import Forecasts
from .kernel_test import drawn_labels, label_steps

__all__ = ["class_wise_pvalue"]

Floats = NDArray[np.float64]
# Entries of one block of rows: some tens of megabytes.
BLOCK = 4_000_000


def class_wise_pvalue(forecasts: Forecasts, resamples: int, rng: np.random.Generator, bins: int = 15) -> float:
    """Return (1 + #{class-wise errors of drawn labels at least as large as the one seen})/(1 + resamples).

    The error is the mean over classes with bins of equal width and norm 1. Labels do not change what is said, so a
    drawn set of labels costs one look-up a row. Rows that do not sum to one are scaled to: the test then errs on the
    side of calibration.
    """
    edges = equal_width(bins)
    seen = group_sums(forecasts, "class_wise", edges)
    happened = np.zeros((resamples, *seen.shape[1:]))
    weights = np.ones(forecasts.n) if forecasts.weights is None else forecasts.weights
    copies = weights.astype(np.int64) if is_whole(weights) else np.ones(forecasts.n, np.int64)
    rows = np.repeat(np.arange(forecasts.n), copies)
    own = np.ones(len(rows)) if is_whole(weights) else weights[rows]
    step = max(1, BLOCK // (seen.shape[1] + resamples))
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        happened += _counts(forecasts.probabilities[rows[block]], own[block], edges, resamples, rng)
    null = _mean_errors(seen[0], seen[1] - happened)
    value = _mean_errors(seen[0], (seen[1] - seen[2])[None])[0]
    return (1 + int((null >= value * (1 - 1e-9)).sum())) / (1 + resamples)


def _counts(
    p: NDArray[np.floating], weights: Floats, edges: Floats, resamples: int, rng: np.random.Generator
) -> Floats:
    """Return the weight of drawn labels by class and bin, of shape (resamples, classes, bins)."""
    k, bins = p.shape[1], len(edges) - 1
    labels = drawn_labels(label_steps(p.astype(np.float64)), resamples, rng)
    place = bin_index(p[np.arange(len(p)), labels], edges)
    index = (np.arange(resamples)[:, None] * k + labels) * bins + place
    counts = np.bincount(index.ravel(), np.broadcast_to(weights, labels.shape).ravel(), resamples * k * bins)
    return counts.reshape(resamples, k, bins).astype(np.float64)


def _mean_errors(weight: Floats, gaps: Floats) -> Floats:
    """Return the mean over classes that have rows, of gaps of shape (…, classes, bins)."""
    some = weight.sum(axis=-1) > 0
    errors = binned_of(np.stack(np.broadcast_arrays(weight[some], gaps[..., some, :], np.zeros(1))), 1)
    return errors.mean(axis=-1)
