"""The passes of cpp/matrix.hpp by matrix products in blocks of rows, for so many classes that a BLAS is faster.

Each function takes the arguments of its namesake in the compiled core. What only steers the solver, `matrix_moment` and
`matrix_along`, is taken from a choice of the rows where there are many.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ... import _core
from ...arrays import row_subsample
from ._frame import Frame

__all__ = ["matrix_along", "matrix_moment", "matrix_sums"]

Array = NDArray[np.float64]
Scores = NDArray[np.floating]
_BLOCK = 1 << 20  # scores worked on at a time
_ROWS = 20_000  # rows that tell the curvature


def matrix_sums(
    logits: Scores,
    centres: Array,
    labels: NDArray[np.int64],
    row_weights: Array | None,
    beta: float,
    floor: float,
    centred: bool,
    mean: float,
    scale: float,
    weights: Array,
    threads: int,
) -> tuple[float, Array]:
    """Return the weighted log-loss and its gradient in the weights."""
    frame, loss, gradient = _frame(beta, floor, centred, mean, scale), 0.0, np.zeros_like(weights)
    turned = weights[:-1].astype(logits.dtype)
    for part in _parts(logits):
        z, c, w = logits[part], centres[part], None if row_weights is None else row_weights[part]
        x = frame.features(z, c)
        r = x @ turned
        losses = _core.softmax_residual(r, z, c, labels[part], w, beta, weights[-1].copy(), threads)
        loss += float(losses.sum() if w is None else losses @ w)
        gradient[:-1] += x.T @ r
        gradient[-1] += r.sum(axis=0, dtype=np.float64)
    return loss, gradient


def matrix_moment(
    logits: Scores,
    centres: Array,
    row_weights: Array | None,
    beta: float,
    floor: float,
    centred: bool,
    mean: float,
    scale: float,
    weights: Array,
    threads: int,
) -> Array:
    """Return Σ w (1 - Σ p²) x xᵀ, x with a one at its end."""
    moment = np.zeros((len(weights), len(weights)))
    frame = _frame(beta, floor, centred, mean, scale)
    for x, v in _variances(logits, centres, row_weights, frame, weights, threads):
        moment += x.T @ (x * v.sum(axis=1, keepdims=True))
    return moment


def matrix_along(
    logits: Scores,
    centres: Array,
    row_weights: Array | None,
    beta: float,
    floor: float,
    centred: bool,
    mean: float,
    scale: float,
    weights: Array,
    directions: Array,
    threads: int,
) -> Array:
    """Return of each class Σ w p (1 - p) times the squares along the directions, and times what is its own."""
    k, found = weights.shape[1], np.zeros((weights.shape[1], directions.shape[1] + 6))
    frame = _frame(beta, floor, centred, mean, scale)
    for x, v in _variances(logits, centres, row_weights, frame, weights, threads):
        own, sure = x[:, :k], x[:, k : k + 1] if len(weights) > k + 1 else np.zeros((len(x), 1), dtype=x.dtype)
        found[:, :-6] += v.T @ (x @ directions.astype(x.dtype)) ** 2
        for column, feature in enumerate((own * own, own, 1.0, own * sure, sure, sure * sure), found.shape[1] - 6):
            found[:, column] += (v * feature).sum(axis=0, dtype=np.float64)
    return found


def _frame(beta: float, floor: float, centred: bool, mean: float, scale: float) -> Frame:
    return Frame(beta, floor, centred, (mean, 1.0 / scale) if scale else None)


def _variances(
    logits: Scores, centres: Array, row_weights: Array | None, frame: Frame, weights: Array, threads: int
) -> Iterator[tuple[Scores, Scores]]:
    """Yield blocks of (x, 1) and of w p (1 - p) from some of the rows, weighted up to all of them."""
    some = row_subsample(len(logits), _ROWS)
    given = np.ones(len(logits)) if row_weights is None else row_weights
    z, c, w = logits[some], centres[some], given[some]
    w = w * (given.sum() / max(float(w.sum()), 1e-300))
    turned = weights[:-1].astype(logits.dtype)
    for part in _parts(z):
        block = np.ascontiguousarray(z[part])
        x = frame.features(block, c[part])
        p = x @ turned
        _core.softmax_residual(p, block, c[part], None, None, frame.beta, weights[-1].copy(), threads)
        yield np.column_stack([x, np.ones(len(x), dtype=x.dtype)]), p * (1 - p) * w[part].astype(p.dtype)[:, None]


def _parts(logits: Scores) -> list[slice]:
    step = max(1, _BLOCK // logits.shape[1])
    return [slice(i, i + step) for i in range(0, len(logits), step)]
