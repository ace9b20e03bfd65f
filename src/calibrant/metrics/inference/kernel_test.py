"""The distribution of the kernel calibration error when the probabilities are true.

Labels are drawn from the probabilities again and again. The Gaussian kernel matrix is replaced by ΦΦᵀ with few columns,
so that a drawn set of labels costs one pass over the rows and not one over all pairs. The error that was seen is
taken with the same ΦΦᵀ, so the test is exact however few the columns are.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from ...types import Array, Integers
from ..estimators.kernel import median_bandwidth
from ..views.forecasts import Forecasts
from .intervals import drawn_pvalue

_MOST_FEATURES = 64
_NOTHING_LEFT = 1e-6
_BLOCK = 4_000_000
_FEW_CLASSES = 32  # up to which comparing with every step is quicker than a search


def kernel_features(p: Array, width: float) -> Array:
    """Return Φ of shape (n, at most 64) with ΦΦᵀ ≈ exp(-‖p_i - p_j‖²/(2·width²)): a pivoted Cholesky factor."""
    left, squares = np.ones(len(p)), (p * p).sum(axis=1)
    features = np.zeros((min(_MOST_FEATURES, len(p)), len(p)))
    for d, feature in enumerate(features):
        pivot = int(left.argmax())
        if left[pivot] < _NOTHING_LEFT:
            return features[:d].T
        distances = np.maximum(squares + squares[pivot] - 2 * (p @ p[pivot]), 0)
        feature[:] = np.exp(-0.5 * distances / width**2) - features[:d, pivot] @ features[:d]
        feature /= np.sqrt(left[pivot])
        left = np.maximum(left - feature**2, 0)
    return features.T


def skce_pvalue(forecasts: Forecasts, resamples: int, rng: np.random.Generator) -> float:
    """Return the p-value of the kernel error among those of drawn labels."""
    p = forecasts.vectors()
    features = np.ascontiguousarray(kernel_features(p, median_bandwidth(forecasts, "gaussian")))
    expected, steps = p.T @ features, label_steps(p)
    seen = _errors(forecasts.labels[None, :], p, features, expected)[0]
    blocks = np.r_[np.arange(0, resamples, max(1, _BLOCK // (expected.size + len(p)))), resamples]
    drawn = (drawn_labels(steps, rng.random((size, len(p)))) for size in np.diff(blocks))
    null = np.concatenate([_errors(labels, p, features, expected) for labels in drawn])
    return drawn_pvalue(float(seen), null)


def label_steps(p: Array) -> Array:
    """Return the cumulative probabilities of each row, row i from i to i + 1: increasing as a whole."""
    steps = np.cumsum(p, axis=1)
    return steps / steps[:, -1:] + np.arange(len(p))[:, None]


def drawn_labels(steps: Array, uniforms: Array) -> Integers:
    """Return labels drawn from the rows by uniform numbers, both of shape (resamples, n)."""
    n, k = steps.shape
    drawn = uniforms + np.arange(n)
    if k <= _FEW_CLASSES:
        labels = np.zeros(drawn.shape, np.int64)
        for step in steps.T[:-1]:
            labels += drawn >= step
        return labels
    wanted = np.ascontiguousarray(drawn.T)  # row by row, as the steps lie
    places = np.searchsorted(steps.ravel(), wanted, side="right").T
    return np.minimum(places - np.arange(n) * k, k - 1)


def _errors(labels: Integers, p: Array, features: Array, expected: Array) -> Array:
    """Sum over pairs of different rows, for each row of labels, but for what does not depend on the labels."""
    (count, n), k = labels.shape, p.shape[1]
    groups, rows = (np.arange(count)[:, None] * k + labels).ravel(), np.tile(np.arange(n), count)
    members = csr_array((np.ones(labels.size), (groups, rows)), (count * k, n))
    sums = (members @ features).reshape(count, k, -1)
    own = (features**2).sum(axis=1) * (1 - 2 * p[np.arange(n), labels])
    return (sums * (sums - 2 * expected)).sum(axis=(1, 2)) - own.sum(axis=1)
