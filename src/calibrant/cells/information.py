"""Mutual information of bins and an outcome."""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from ..types import Array, Integers
from .fine import FineCells


def bin_information(weights: Array, positives: Array) -> Array:
    """Return Σ_y n_y log(n_y / n) of bins, in nats: what each adds to the mutual information."""
    negatives = np.maximum(weights - positives, 0.0)
    return xlogy(positives, positives) + xlogy(negatives, negatives) - xlogy(weights, weights)


def information_of(weights: Array, positives: Array) -> float:
    """Return the mutual information of bins and the outcome, in bits."""
    total, positive = weights.sum(), positives.sum()
    nats = (bin_information(weights, positives).sum() - bin_information(total, positive)) / total
    return max(0.0, float(nats / np.log(2.0)))


def partition_information(cells: FineCells, bounds: Integers) -> float:
    """Return the mutual information, in bits, of bins that begin at cell 0 and at the cells ``bounds``."""
    starts = np.concatenate([[0], bounds]).astype(np.int64)
    return information_of(np.add.reduceat(cells.weights, starts), np.add.reduceat(cells.outcomes, starts))
