"""Projections of embeddings for KCal: plain arrays, whoever learnt them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import panels_of, products, row_subsample
from ..errors import InvalidInput
from ..formulas import Term
from ..passes import Block
from ..torch.projection import Progress, train_projection
from ..types import Array, Floats, Integers
from .density import Support, best_bandwidth, leave_one_out, spread_of

TRAINED = ("learned", "linear")
LEARNT = (*TRAINED, "lda", "pca")
FEWEST = 300  # rows below which training does not help: discriminant directions do better on new rows
_WIDTH_ROWS = 1000
_GRID = 2.0**20  # standardised rows are rounded to this: noise in their last bits changes no training


@dataclass(frozen=True, eq=False)
class Projection:
    """x → u + V·ELU(u), u = W (x - mean) / scale + b; V of no rows leaves the second term out."""

    mean: Array
    scale: Array
    weight: Array
    bias: Array
    mix: Array

    def __call__(self, rows: Floats) -> Floats:
        """Project rows, in their own precision."""
        kind = rows.dtype
        u = _product((rows - self.mean.astype(kind)) / self.scale.astype(kind), self.weight) + self.bias.astype(kind)
        if not len(self.mix):
            return u
        return u + _product(np.where(u > 0, u, np.expm1(np.minimum(u, 0))), self.mix)

    def formula(self, x: Term) -> Term:
        """Return what it makes of rows, as a formula."""
        u = ((x - self.mean) / self.scale).matmul(self.weight.T) + self.bias
        if not len(self.mix):
            return u
        return u + (u > 0.0).where(u, u.at_most(0.0).exp() - 1.0).matmul(self.mix.T)


def _product(rows: Floats, matrix: Array) -> Floats:
    return products(rows, panels_of(matrix, rows.dtype), len(matrix))


def as_points(found: Any, rows: Floats) -> Floats:
    """Check what a user's own projection made of the rows: finite numbers, a row for each; in the rows' precision."""
    points = np.asarray(found)
    if points.ndim != 2 or len(points) != len(rows) or not points.shape[1] or points.dtype.kind not in "fiub":
        seen, allowed = f"shape {points.shape} of {points.dtype}", f"numbers of shape ({len(rows)}, d)"
        raise InvalidInput("projection gave no point for each row", seen=seen, allowed=allowed)
    points = np.ascontiguousarray(points, dtype=rows.dtype)
    if not np.isfinite(points).all():
        row = int(np.flatnonzero(~np.isfinite(points).all(axis=1))[0])
        raise InvalidInput("projection gave NaN or infinity", seen=f"row {row}", allowed="finite values")
    return points


def merged(sample: Block) -> tuple[Block, Integers]:
    """Return the distinct rows in a fixed order with the sum of their weights, and which of them each row became.

    What is learnt from these depends neither on the order of the rows nor on whether a row counts two or comes twice.
    """
    order = np.lexsort([*sample.logits.T[::-1], sample.labels])
    rows, labels = sample.logits[order], sample.labels[order]
    new = np.ones(sample.n, dtype=bool)
    new[1:] = (np.diff(labels) != 0) | (rows[1:] != rows[:-1]).any(axis=1)
    place = np.empty(sample.n, dtype=np.int64)
    place[order] = np.cumsum(new) - 1
    weights = np.bincount(place, sample.weight_array).astype(np.float64)
    return Block(np.ascontiguousarray(rows[new]), labels[new], weights, sample.n_classes), place


def learn(
    how: str, sample: Block, dimensions: int, seed: int, progress: Progress | None = None
) -> tuple[Projection, list[float]]:
    """Learn a projection: "pca" and "lda" by linear algebra, "linear" and "learned" by training (needs torch)."""
    weights = sample.weight_array / sample.total_weight
    mean = weights @ sample.logits
    scale = np.sqrt(weights @ (sample.logits - mean) ** 2)
    scale = np.where(scale > 1e-12 * (1 + np.abs(mean)), scale, 1.0)
    rounded = np.rint((sample.logits - mean) / scale * _GRID) / _GRID
    standard, _ = merged(Block(rounded, sample.labels, sample.weights, sample.n_classes))
    weight = _signed(_pca(standard, dimensions) if how == "pca" else _lda(standard, dimensions))
    weight /= _width(standard, weight)
    bias, mix, losses = np.zeros(len(weight)), np.empty((0, len(weight))), list[float]()
    if how in TRAINED:
        found, losses = train_projection(
            standard.logits, standard.labels, standard.weight_array, weight, how == "learned", seed, progress
        )
        weight, bias = found[0], found[1]
        mix = found[2] if how == "learned" else mix
    return Projection(mean, scale, weight, bias, mix), losses


def _width(sample: Block, weight: Array) -> float:
    """The best bandwidth after a linear projection: divided by it, the kernel's best width is one, however learnt."""
    if sample.n < 2:
        return 1.0
    few = sample.take(row_subsample(sample.n, _WIDTH_ROWS))
    points = few.logits @ weight.T
    support = Support.of(points, few.labels, few.weights, few.n_classes)
    return best_bandwidth([leave_one_out(support, np.zeros(few.n))], spread_of(points, few.weights))


def _span(sample: Block, dimensions: int) -> Array | None:
    """Return an orthonormal basis, by column, of the rows and some directions more; None where it would not be smaller.

    A few rows of many columns differ in no other direction, and a decomposition there takes the cube of their number,
    not that of the columns.
    """
    rows = sample.logits[sample.weight_array > 0]
    if 2 * (len(rows) + dimensions) > rows.shape[1]:
        return None
    return np.linalg.qr(np.concatenate([rows.T, np.eye(rows.shape[1], dimensions)], axis=1))[0]


def _pca(sample: Block, dimensions: int) -> Array:
    basis = _span(sample, dimensions)
    rows = sample.logits if basis is None else sample.logits @ basis
    values, vectors = np.linalg.eigh((rows.T * sample.weight_array) @ rows / sample.total_weight)
    directions = vectors[:, np.argsort(values)[::-1][:dimensions]]
    return (directions if basis is None else basis @ directions).T


def _signed(directions: Array) -> Array:
    """Turn each direction so that its largest component is positive: a sign left to chance would steer training."""
    largest = np.abs(directions).argmax(axis=1)
    return directions * np.where(directions[np.arange(len(directions)), largest] < 0, -1.0, 1.0)[:, None]


def _lda(sample: Block, dimensions: int) -> Array:
    """Whiten within classes, shrunk a little; then the directions between the class means, padded by others."""
    basis, columns, weights = _span(sample, dimensions), sample.logits.shape[1], sample.weight_array
    rows = sample.logits if basis is None else sample.logits @ basis
    classes, place = np.unique(sample.labels, return_inverse=True)
    counts = np.bincount(place, weights)
    totals = np.zeros((len(classes), rows.shape[1]))
    np.add.at(totals, place, rows * weights[:, None])
    means = totals / counts[:, None]
    centred = rows - means[place]
    within = (centred.T * weights) @ centred / max(1.0, counts.sum() - len(classes))
    share = max(0.1, columns / (columns + max(1.0, counts.sum() - len(classes))))
    shrunk = (1.0 - share) * within + share * max(np.trace(within) / columns, 1e-6) * np.eye(len(within))
    values, vectors = np.linalg.eigh(shrunk)
    whiten = vectors / np.sqrt(np.maximum(values, 1e-12))
    between = (means - counts @ means / counts.sum()) @ whiten * np.sqrt(counts / counts.sum())[:, None]
    _, _, directions = np.linalg.svd(between, full_matrices=True)
    found = whiten @ directions[:dimensions].T
    return (found if basis is None else basis @ found).T
