"""The rows a comparison works on, and how they are divided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput
from ..passes import Sample
from ..validation import as_labels, as_matrix, as_scores, as_weights, floored

__all__ = ["Problem", "Split", "folds", "make_problem", "subsample"]

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Problem:
    """Validated rows.

    Attributes
    ----------
    logits : array of shape (n, K)
        As predictions see them: -inf where a class cannot be.
    sample : Sample
        As fits see them.
    embeddings : Sample or None
        The same rows for maps on embeddings.
    classes : array of shape (K,)
    """

    logits: NDArray[np.floating]
    sample: Sample
    embeddings: Sample | None
    classes: NDArray[Any]

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.sample.n

    @property
    def k(self) -> int:
        """Number of classes."""
        return self.sample.n_classes


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to fit on and rows to judge on; rows of a test set are counted after those of the calibration set."""

    fit: Rows
    judge: Rows


def make_problem(
    scores: Any, y: Any, inputs: str, classes: Any, sample_weight: Any = None, embeddings: Any = None, name: str = ""
) -> Problem:
    """Check what a user gives to `compare`."""
    valid = as_scores(scores, inputs, f"{name}scores")
    n, k = valid.logits.shape
    labels, known = as_labels(y, k, n, classes, valid.columns, f"{name}y")
    weights = as_weights(sample_weight, n)
    sample = Sample(floored(valid), labels, weights, k)
    vectors = None
    if embeddings is not None:
        matrix, _ = as_matrix(embeddings, f"{name}embeddings")
        if len(matrix) != n or not np.isfinite(matrix).all():
            raise InvalidInput(
                f"{name}embeddings must be finite, one row each", seen=f"shape {matrix.shape} for {n} rows"
            )
        vectors = Sample(matrix, labels, weights, k)
    if weights is not None and not weights.all():
        rows = np.flatnonzero(weights)
        vectors = None if vectors is None else vectors.take(rows)
        return Problem(np.ascontiguousarray(valid.logits[rows]), sample.take(rows), vectors, known)
    return Problem(valid.logits, sample, vectors, known)


def folds(labels: NDArray[np.int64], count: int, rng: np.random.Generator) -> list[Split]:
    """Deal the rows into stratified folds, at random within each class."""
    order = rng.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    fold = np.empty(len(labels), dtype=np.int64)
    fold[order] = np.arange(len(labels)) % count
    return [Split(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(count)]


def subsample(rows: Rows, labels: NDArray[np.int64], size: int, rng: np.random.Generator) -> Rows:
    """Return about ``size`` of the rows, stratified: what is dealt first in each class."""
    order = rng.permutation(len(rows))
    order = order[np.argsort(labels[rows[order]], kind="stable")]
    picked = np.linspace(0, len(rows) - 1, min(size, len(rows))).round().astype(np.int64)
    return np.sort(rows[order[picked]])
