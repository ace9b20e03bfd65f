"""The test of all classes at once: the class-wise error against those of labels drawn from the probabilities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...cells.edges import bin_index, equal_width
from ...cells.pairs import is_whole
from ...types import Array, Floats, Integers
from ..estimators.binned import binned_of
from ..estimators.sums import group_sums
from ..views.blocks import CellForecasts
from ..views.forecasts import Forecasts
from .cumulative_test import cumulative_pvalue
from .intervals import drawn_pvalue
from .kernel_test import drawn_labels, label_steps

# Entries of one block of rows: some tens of megabytes.
BLOCK = 4_000_000
MANY = 20  # rows a class in clusters from which random signs raised 4 to 7 %
FULL = 20  # draws that tell how dependent rows could be


def class_wise_pvalue(forecasts: Any, resamples: int, rng: np.random.Generator, bins: int = 15) -> float:
    """Return the p-value of the class-wise error among those of drawn labels.

    The error is the mean over classes with bins of equal width and norm 1. Labels do not change what is said, so a
    drawn set of labels costs one look-up a row. Rows that do not sum to one are scaled to: the test then errs on the
    side of calibration. Rows of a cluster have the uniform number that decides their labels in common with a chance
    that the residuals tell; with 20 rows a class or more, their residuals get a common random sign instead, which needs
    no such law but raised 25 % at two rows a class. Of rows that came in blocks, each class is tested by its cumulative
    error, and the smallest p-value counts K times.
    """
    if isinstance(forecasts, CellForecasts):
        least = min(cumulative_pvalue(pairs, "ecce", resamples, rng)[0] for pairs in forecasts.each_class())
        return min(1.0, len(forecasts.classes) * least)
    edges = equal_width(bins)
    seen = group_sums(forecasts, "class_wise", edges)
    if forecasts.clusters is not None and forecasts.n >= MANY * len(forecasts.classes):
        gaps = _flipped(forecasts, edges, resamples, rng)
        null, value = _mean_errors(seen[0], gaps), _mean_errors(seen[0], (seen[1] - seen[2])[None])[0]
        return drawn_pvalue(float(value), null)
    happened = np.zeros((resamples, *seen.shape[1:]))
    weights = np.ones(forecasts.n) if forecasts.weights is None else forecasts.weights
    copies = weights.astype(np.int64) if is_whole(weights) else np.ones(forecasts.n, np.int64)
    rows = np.repeat(forecasts.order, copies[forecasts.order])
    own = np.ones(len(rows)) if is_whole(weights) else weights[rows]
    step, drawn = max(1, BLOCK // (seen.shape[1] + resamples)), _uniforms(forecasts, resamples, rng)
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        happened += _counts(forecasts.probabilities[block], own[start : start + step], edges, drawn(block))
    null = _mean_errors(seen[0], seen[1] - happened)
    value = _mean_errors(seen[0], (seen[1] - seen[2])[None])[0]
    return drawn_pvalue(float(value), null)


def _uniforms(forecasts: Forecasts, resamples: int, rng: np.random.Generator) -> Callable[[Integers], Array]:
    """Return how uniform numbers of some rows are drawn, shape (resamples, rows).

    A row takes its cluster's number by chance. The share of pairs of rows that both do is the sum of products of
    residuals of different rows of a cluster, over all classes, divided by what it is on average where all rows do.
    """
    if forecasts.clusters is None:
        return lambda rows: rng.random((resamples, len(rows)))
    p, own, n = forecasts.probabilities.astype(np.float64), forecasts.clusters, forecasts.n
    count, k = int(own.max()) + 1, p.shape[1]
    said = np.stack([np.bincount(own, column, count) for column in p.T], axis=1)
    constant = (said**2).sum() - (p**2).sum() - n

    def products(labels: Integers) -> float:
        together = np.unique(own * k + labels, return_counts=True)[1]
        return float((together**2).sum() + 2 * (p[np.arange(n), labels] - said[own, labels]).sum() + constant)

    full = np.mean([products(row) for row in drawn_labels(label_steps(p), rng.random((FULL, count))[:, own])])
    share = np.clip(products(forecasts.labels) / full, 0.0, 1.0) if full > 0 else 0.0
    common = rng.random((resamples, count))

    def drawn(rows: Integers) -> Array:
        takes, alone = rng.random((2, resamples, len(rows)))
        return np.where(takes < np.sqrt(share), common[:, own[rows]], alone)

    return drawn


def _counts(p: Floats, weights: Array, edges: Array, uniforms: Array) -> Array:
    """Return the weight of drawn labels by class and bin, of shape (resamples, classes, bins)."""
    k, bins, resamples = p.shape[1], len(edges) - 1, len(uniforms)
    labels = drawn_labels(label_steps(p.astype(np.float64)), uniforms)
    rows = np.arange(len(p))
    place = bin_index(p, edges)[rows, labels] if k < resamples else bin_index(p[rows, labels], edges)
    index = (np.arange(resamples)[:, None] * k + labels) * bins + place
    counts = np.bincount(index.ravel(), np.broadcast_to(weights, labels.shape).ravel(), resamples * k * bins)
    return counts.reshape(resamples, k, bins).astype(np.float64)


def _flipped(forecasts: Forecasts, edges: Array, resamples: int, rng: np.random.Generator) -> Array:
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


def _mean_errors(weight: Array, gaps: Array) -> Array:
    """Return the mean over classes that have rows, of gaps of shape (…, classes, bins)."""
    some = weight.sum(axis=-1) > 0
    errors = binned_of(np.stack(np.broadcast_arrays(weight[some], gaps[..., some, :], np.zeros(1))), 1)
    return errors.mean(axis=-1)
