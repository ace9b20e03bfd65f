"""The rows a comparison works on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput
from ..passes import Block
from ..validation import as_array, as_labels, as_matrix, as_scores, as_weights, floored

__all__ = ["Problem", "make_problem"]


@dataclass(frozen=True, eq=False)
class Problem:
    """Validated rows.

    Attributes
    ----------
    logits : array of shape (n, K)
        As predictions see them: -inf where a class cannot be.
    sample : Block
        As fits see them.
    embeddings : Block or None
        The same rows for maps on embeddings.
    classes : array of shape (K,)
    groups : array of shape (n,) or None
        The number of each row's group: rows of one group are not independent.
    """

    logits: NDArray[np.floating]
    sample: Block
    embeddings: Block | None
    classes: NDArray[Any]
    groups: NDArray[np.int64] | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.sample.n

    @property
    def k(self) -> int:
        """Number of classes."""
        return self.sample.n_classes


def make_problem(
    scores: Any,
    y: Any,
    inputs: str,
    classes: Any,
    sample_weight: Any = None,
    embeddings: Any = None,
    groups: Any = None,
    name: str = "",
) -> Problem:
    """Check what a user gives to `compare`."""
    valid = as_scores(scores, inputs, f"{name}scores")
    n, k = valid.logits.shape
    labels, known = as_labels(y, k, n, classes, valid.columns, f"{name}y")
    weights = as_weights(sample_weight, n)
    sample = Block(floored(valid.logits), labels, weights, k)
    vectors = None if embeddings is None else Block(_vectors(embeddings, n, name), labels, weights, k)
    of_group = None if groups is None else _group_numbers(groups, n, name)
    if weights is not None and not weights.all():
        rows = np.flatnonzero(weights)
        vectors = None if vectors is None else vectors.take(rows)
        of_group = None if of_group is None else np.unique(of_group[rows], return_inverse=True)[1]
        return Problem(np.ascontiguousarray(valid.logits[rows]), sample.take(rows), vectors, known, of_group)
    return Problem(valid.logits, sample, vectors, known, of_group)


def _vectors(embeddings: Any, n: int, name: str) -> NDArray[np.floating]:
    matrix, _ = as_matrix(embeddings, f"{name}embeddings")
    if len(matrix) != n or not np.isfinite(matrix).all():
        raise InvalidInput(f"{name}embeddings must be finite, one row each", seen=f"shape {matrix.shape} for {n} rows")
    return matrix


def _group_numbers(groups: Any, n: int, name: str) -> NDArray[np.int64]:
    given, _ = as_array(groups, f"{name}groups")
    if given.shape != (n,):
        raise InvalidInput(f"{name}groups must name one group a row", seen=f"shape {given.shape} for {n} rows")
    if given.dtype.kind == "f" and np.isnan(given).any():
        raise InvalidInput(f"{name}groups contains NaN", seen=f"row {int(np.isnan(given).argmax())}")
    return np.unique(given.astype(str) if given.dtype.kind == "O" else given, return_inverse=True)[1]
