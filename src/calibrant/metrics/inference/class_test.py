"""The test of all classes at once: the class-wise error against those of labels drawn from the probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...cells.edges import bin_index, equal_width
from ...cells.pairs import is_whole
from ..estimators.binned import binned_of
from ..estimators.sums import group_sums
from ..views.blocks import CellForecasts
from ..views.forecasts import Forecasts
from .cumulative_test import cumulative_pvalue
from .kernel_test import drawn_labels, label_steps

__all__ = ["class_wise_pvalue"]

Floats = NDArray[np.float64]
# Entries of one block of rows: some tens of megabytes.
BLOCK = 4_000_000


def class_wise_pvalue(forecasts: Any, resamples: int, rng: np.random.Generator, bins: int = 15) -> float:
    """Return (1 + #{class-wise errors of drawn labels at least as large as the one seen})/(1 + resamples).

    The error is the mean over classes with bins of equal width and norm 1. Labels do not change what is said, so a
    drawn set of labels costs one look-up a row. Rows that do not sum to one are scaled to: the test then errs on the
    side of calibration. Residuals of a cluster get a common random sign instead; of rows that came in blocks, each
    class is tested by its cumulative error, and the smallest p-value counts K times.
    """
    if isinstance(forecasts, CellForecasts):
        least = min(cumulative_pvalue(pairs, "ecce", resamples, rng)[0] for pairs in forecasts.each_class())
        return min(1.0, len(forecasts.classes) * least)
    edges = equal_width(bins)
    seen = group_sums(forecasts, "class_wise", edges)
    if forecasts.clusters is not None:
        gaps = _flipped(forecasts, edges, resamples, rng)
        null, value = _mean_errors(seen[0], gaps), _mean_errors(seen[0], (seen[1] - seen[2])[None])[0]
        return (1 + int((null >= value * (1 - 1e-9)).sum())) / (1 + resamples)
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
    rows = np.arange(len(p))
    place = bin_index(p, edges)[rows, labels] if k < resamples else bin_index(p[rows, labels], edges)
    index = (np.arange(resamples)[:, None] * k + labels) * bins + place
    counts = np.bincount(index.ravel(), np.broadcast_to(weights, labels.shape).ravel(), resamples * k * bins)
    return counts.reshape(resamples, k, bins).astype(np.float64)


def _flipped(forecasts: Forecasts, edges: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """Return gaps by class and bin with the residuals of each cluster flipped at random: (resamples, classes, bins)."""
    p, bins, k = forecasts.probabilities, len(edges) - 1, len(forecasts.classes)
    clusters = forecasts.clusters
    assert clusters is not None  # only asked for where there are some
    weights = np.ones(forecasts.n) if forecasts.weights is None else forecasts.weights
    residuals = (p - (forecasts.labels[:, None] == np.arange(k))) * weights[:, None]
    place = (np.arange(k) * bins + bin_index(p, edges)).ravel()
    found = np.zeros((resamples, k, bins))
    for gaps in found:
        signs = rng.choice([-1.0, 1.0], int(clusters.max()) + 1)[clusters]
        gaps[:] = np.bincount(place, (residuals * signs[:, None]).ravel(), k * bins).reshape(k, bins)
    return found


def _mean_errors(weight: Floats, gaps: Floats) -> Floats:
    """Return the mean over classes that have rows, of gaps of shape (…, classes, bins)."""
    some = weight.sum(axis=-1) > 0
    errors = binned_of(np.stack(np.broadcast_arrays(weight[some], gaps[..., some, :], np.zeros(1))), 1)
    return errors.mean(axis=-1)
