"""Fewer rows that stand for a large calibration set."""

from __future__ import annotations

import numpy as np

from ..arrays import row_subsample
from ..fits.judge import label_losses
from ..types import Array, Floats, Integers
from .density import Support, class_probabilities

_CANDIDATES = 4000  # rows of a class among which prototypes are sought: its kernel matrix is this many squared


def quotas(totals: Array, counts: Integers, capacity: int) -> Integers:
    """How many of ``capacity`` rows each class keeps: by its weight, at least one of a class that has rows."""
    wanted = np.minimum(np.maximum(np.floor(totals / totals.sum() * capacity), counts > 0), counts).astype(np.int64)
    for c in np.argsort(-(counts - wanted) * totals, kind="stable"):
        spare = capacity - int(wanted.sum())
        wanted[c] += max(0, min(spare, int(counts[c] - wanted[c])))
    while wanted.sum() > max(capacity, int((counts > 0).sum())):
        wanted[int(np.argmax(wanted))] -= 1
    return wanted


def herd(points: Floats, labels: Integers, weights: Array, bandwidth: float, capacity: int) -> tuple[Integers, Array]:
    """Choose rows by kernel herding within each class; each chosen one takes the weight of the rows nearest to it.

    Herding adds the row whose kernel is nearest to what the mean kernel of the class still lacks: with t rows chosen it
    maximises mean_j k(x, x_j) - Σ_chosen k(x, x_s) / (t + 1). Returns the chosen rows in order, and their weights.
    """
    k = int(labels.max()) + 1
    wanted = quotas(np.bincount(labels, weights, k).astype(np.float64), np.bincount(labels, minlength=k), capacity)
    chosen, shares = [], []
    for c in range(k):
        rows = np.flatnonzero(labels == c)
        if wanted[c] == 0:
            continue
        own = points[rows].astype(np.float64)
        picked = _herd_class(own, weights[rows], bandwidth, int(wanted[c]))
        nearest = _distances(own, own[picked]).argmin(axis=1)
        chosen.append(rows[picked])
        shares.append(np.bincount(nearest, weights[rows], len(picked)).astype(np.float64))
    found, share = np.concatenate(chosen), np.concatenate(shares)
    order = np.argsort(found)
    return found[order], share[order]


def _herd_class(points: Array, weights: Array, bandwidth: float, count: int) -> Integers:
    candidates = np.arange(len(points))[row_subsample(len(points), max(_CANDIDATES, count))]
    own = points[candidates]
    kernel = np.exp(-_distances(own, own) / (2 * bandwidth**2))
    lacking = kernel @ weights[candidates] / weights[candidates].sum()
    taken, picked = np.zeros(len(own)), list[int]()
    free = np.zeros(len(own))
    for t in range(count):
        best = int(np.argmax(lacking - taken / (t + 1) + free))
        picked.append(best)
        taken += kernel[best]
        free[best] = -np.inf
    return candidates[np.array(picked)]


def _distances(a: Array, b: Array) -> Array:
    return np.maximum((a * a).sum(1)[:, None] - 2 * a @ b.T + (b * b).sum(1)[None, :], 0.0)


def compression_loss(
    points: Floats,
    labels: Integers,
    weights: Array,
    kept: Integers,
    shares: Array,
    bandwidth: float,
    k: int,
    most: int = 500,
) -> tuple[float, float]:
    """Mean log-loss of dropped rows: left out of the whole set, and predicted from what was kept."""
    dropped = np.setdiff1d(np.arange(len(points)), kept)
    rows = dropped[row_subsample(len(dropped), most)]
    whole = Support.of(points, labels, weights, k)
    place = np.argsort(whole.arrival)[rows]
    fewer = Support.of(points[kept], labels[kept], shares, k)
    exact = label_losses(class_probabilities(whole, points[rows], bandwidth, place), labels[rows])
    after = label_losses(class_probabilities(fewer, points[rows], bandwidth), labels[rows])
    worst = -np.log(1e-10)
    means = [float(np.average(np.minimum(x, worst), weights=weights[rows])) for x in (exact, after)]
    return means[0], means[1]
