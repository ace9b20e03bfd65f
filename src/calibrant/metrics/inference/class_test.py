"""The test of all classes at once: the class-wise error against those of labels drawn from the probabilities."""

from __future__ import annotations

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
COPIES = 1_000_000  # rows that whole weights stand for, beyond which their labels are counted and not drawn one by one
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
    drawn = _Draws(forecasts, resamples, rng)
    if copies.sum() > max(COPIES, MANY * forecasts.probabilities.size):
        step = max(1, BLOCK // (resamples * seen.shape[1]))
        for start in range(0, forecasts.n, step):
            block = forecasts.order[start : start + step]
            happened += _sums(forecasts.probabilities[block], drawn.counts(block, copies[block]), edges)
    else:
        rows = np.repeat(forecasts.order, copies[forecasts.order])
        own = np.ones(len(rows)) if is_whole(weights) else weights[rows]
        step = max(1, BLOCK // (seen.shape[1] + resamples))
        for start in range(0, len(rows), step):
            block = rows[start : start + step]
            happened += _counts(forecasts.probabilities[block], own[start : start + step], edges, drawn.uniforms(block))
    null = _mean_errors(seen[0], seen[1] - happened)
    value = _mean_errors(seen[0], (seen[1] - seen[2])[None])[0]
    return drawn_pvalue(float(value), null)


class _Draws:
    """Labels drawn for rows, where rows of a cluster may have theirs in common.

    A row takes its cluster's number by chance. The share of pairs of rows that both do is the sum of products of
    residuals of different rows of a cluster, over all classes, divided by what it is on average where all rows do.
    """

    def __init__(self, forecasts: Forecasts, resamples: int, rng: np.random.Generator) -> None:
        self.forecasts, self.resamples, self.rng, self.chance = forecasts, resamples, rng, 0.0
        if forecasts.clusters is None:
            return
        p, own, n = forecasts.probabilities.astype(np.float64), forecasts.clusters, forecasts.n
        count, k = int(own.max()) + 1, p.shape[1]
        said = np.stack([np.bincount(own, column, count) for column in p.T], axis=1)
        constant = (said**2).sum() - (p**2).sum() - n

        def products(labels: Integers) -> float:
            together = np.unique(own * k + labels, return_counts=True)[1]
            return float((together**2).sum() + 2 * (p[np.arange(n), labels] - said[own, labels]).sum() + constant)

        full = np.mean([products(row) for row in drawn_labels(label_steps(p), rng.random((FULL, count))[:, own])])
        self.chance = np.sqrt(np.clip(products(forecasts.labels) / full, 0.0, 1.0)) if full > 0 else 0.0
        self.common = rng.random((resamples, count))

    def uniforms(self, rows: Integers) -> Array:
        """Return the uniform numbers that decide the labels of some rows, shape (resamples, rows)."""
        if self.forecasts.clusters is None:
            return self.rng.random((self.resamples, len(rows)))
        takes, alone = self.rng.random((2, self.resamples, len(rows)))
        return np.where(takes < self.chance, self.common[:, self.forecasts.clusters[rows]], alone)

    def counts(self, rows: Integers, copies: Integers) -> Integers:
        """Return how many copies of some rows have which label, shape (resamples, rows, classes): drawn at once."""
        p = self.forecasts.probabilities[rows].astype(np.float64)
        p /= p.sum(axis=1, keepdims=True)
        together = self.rng.binomial(copies, self.chance, (self.resamples, len(rows)))
        found = np.asarray(self.rng.multinomial(copies - together, p))
        if self.forecasts.clusters is not None:
            labels = drawn_labels(label_steps(p), self.common[:, self.forecasts.clusters[rows]])
            found += together[..., None] * (labels[..., None] == np.arange(p.shape[1]))
        return found


def _counts(p: Floats, weights: Array, edges: Array, uniforms: Array) -> Array:
    """Return the weight of drawn labels by class and bin, of shape (resamples, classes, bins)."""
    k, bins, resamples = p.shape[1], len(edges) - 1, len(uniforms)
    labels = drawn_labels(label_steps(p.astype(np.float64)), uniforms)
    rows = np.arange(len(p))
    place = bin_index(p, edges)[rows, labels] if k < resamples else bin_index(p[rows, labels], edges)
    index = (np.arange(resamples)[:, None] * k + labels) * bins + place
    counts = np.bincount(index.ravel(), np.broadcast_to(weights, labels.shape).ravel(), resamples * k * bins)
    return counts.reshape(resamples, k, bins).astype(np.float64)


def _sums(p: Floats, counts: Integers, edges: Array) -> Array:
    """Return the weight of labels by class and bin, of shape (resamples, classes, bins), from that of each row's."""
    k, bins = p.shape[1], len(edges) - 1
    place = (np.arange(k) * bins + bin_index(p, edges)).ravel()
    sums = [np.bincount(place, one.ravel(), k * bins) for one in counts]
    return np.reshape(sums, (len(counts), k, bins)).astype(np.float64)


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
