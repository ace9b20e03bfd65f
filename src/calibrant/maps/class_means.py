"""One kernel a class, at the mean of its rows: what is left of a density where rows a class are few.

In many dimensions a density needs many rows; a mean needs few. Along discriminant directions rows spread alike around
the mean of their class, so that one kernel there is a normal density of the class. With 25 rows of each of 202 classes
it has a log-loss of 1.83 on other rows where a kernel on every row has 2.5 (docs/methods/kcal.md).
"""

from __future__ import annotations

import numpy as np

from ..passes import Block
from ..types import Array, Floats, Integers
from .density import Support, Trial

_FEW = 50  # rows a class, on average, up to which means are tried: with more, kernels on rows won on every set tried
_ENOUGH = 6  # rows a class, on average, from which folds can tell


def are_few(sample: Block) -> bool:
    """Tell whether the classes have so few rows that a mean may serve better than a density."""
    seen = len(np.unique(sample.labels))
    return _ENOUGH * seen <= sample.n <= _FEW * seen


def class_means(points: Floats, labels: Integers, weights: Array, k: int) -> tuple[Floats, Integers, Array]:
    """Return the mean of each class that has rows, the class, and the weight of its rows."""
    totals = np.bincount(labels, weights, k).astype(np.float64)
    seen = np.flatnonzero(totals > 0)
    sums = np.zeros((k, points.shape[1]))
    np.add.at(sums, labels, points * weights[:, None])
    return (sums[seen] / totals[seen, None]).astype(points.dtype), seen, totals[seen]


def around_means(points: Floats, sample: Block) -> Support:
    """Return the support that has one point a class, of rows that were projected to ``points``."""
    return Support.of(*class_means(points, sample.labels, sample.weight_array, sample.n_classes), sample.n_classes)


def clearly_lower(trials: list[Trial], bandwidth: float, others: list[Trial], their_bandwidth: float) -> bool:
    """Tell whether the mean loss is lower by more than two standard errors of the rows' differences."""
    own, theirs = _losses(trials, bandwidth), _losses(others, their_bandwidth)
    if len(own) == len(theirs):
        apart = theirs - own
        return bool(apart.mean() > 2.0 * apart.std() / np.sqrt(len(apart)))
    error = np.hypot(own.std() / np.sqrt(len(own)), theirs.std() / np.sqrt(len(theirs)))
    return bool(theirs.mean() - own.mean() > 2.0 * error)


def _losses(trials: list[Trial], bandwidth: float) -> Array:
    return np.concatenate([trial.losses(bandwidth) for trial in trials])
