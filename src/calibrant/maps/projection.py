"""Projections of embeddings for KCal: plain arrays, whoever learnt them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..torch.projection import Progress, train_projection

__all__ = ["Projection", "learn"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Projection:
    """x → u + V·ELU(u), u = W (x - mean) / scale + b; V of no rows leaves the second term out."""

    mean: Array
    scale: Array
    weight: Array
    bias: Array
    mix: Array

    def __call__(self, rows: NDArray[np.floating]) -> NDArray[np.floating]:
        """Project rows, in their own precision."""
        kind = rows.dtype
        u = ((rows - self.mean.astype(kind)) / self.scale.astype(kind)) @ self.weight.T.astype(kind)
        u += self.bias.astype(kind)
        if not len(self.mix):
            return u
        return u + np.where(u > 0, u, np.expm1(np.minimum(u, 0))) @ self.mix.T.astype(kind)


def learn(
    how: str,
    rows: NDArray[np.floating],
    labels: NDArray[np.int64],
    dimensions: int,
    seed: int,
    progress: Progress | None = None,
) -> tuple[Projection, list[float]]:
    """Learn a projection: "pca" and "lda" by linear algebra, "linear" and "learned" by training (needs torch)."""
    mean, scale = rows.mean(axis=0, dtype=np.float64), rows.std(axis=0, dtype=np.float64)
    scale = np.where(scale > 0, scale, 1.0)
    standard = (rows - mean) / scale
    weight = _pca(standard, dimensions) if how == "pca" else _lda(standard, labels, dimensions)
    bias, mix, losses = np.zeros(len(weight)), np.empty((0, len(weight))), []
    if how in ("learned", "linear"):
        found, losses = train_projection(standard, labels, weight, how == "learned", seed, progress=progress)
        weight, bias = found[0], found[1]
        mix = found[2] if how == "learned" else mix
    return Projection(mean, scale, weight, bias, mix), losses


def _pca(rows: Array, dimensions: int) -> Array:
    values, vectors = np.linalg.eigh(rows.T @ rows / len(rows))
    return vectors[:, np.argsort(values)[::-1][:dimensions]].T


def _lda(rows: Array, labels: NDArray[np.int64], dimensions: int) -> Array:
    """Whiten within classes, shrunk a little; then the directions between the class means, padded by others."""
    classes = np.unique(labels)
    means = np.stack([rows[labels == c].mean(axis=0) for c in classes])
    centred = rows - means[np.searchsorted(classes, labels)]
    within = centred.T @ centred / max(1, len(rows) - len(classes))
    shrunk = 0.9 * within + 0.1 * np.trace(within) / len(within) * np.eye(len(within))
    values, vectors = np.linalg.eigh(shrunk)
    whiten = vectors / np.sqrt(np.maximum(values, 1e-12))
    counts = np.bincount(np.searchsorted(classes, labels))
    between = (means - np.average(means, axis=0, weights=counts)) @ whiten * np.sqrt(counts / len(rows))[:, None]
    _, _, directions = np.linalg.svd(between, full_matrices=True)
    return (whiten @ directions[:dimensions].T).T
