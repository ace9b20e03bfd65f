"""The passes of cpp/matrix.hpp by matrix products, some rows at a time, for so many classes that a BLAS is faster."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ... import _core
from ...arrays import row_blocks
from ...passes import Block
from ...threads import get_threads
from ...types import Array, Floats
from ._frame import Frame

_SCORES = 1 << 20  # scores worked on at a time


def matrix_sums(block: Block, frame: Frame, stacked: Array) -> tuple[float, Array]:
    """Return the weighted log-loss and its gradient in the weights and intercepts, (side, K)."""
    loss, gradient, centres = 0.0, np.zeros_like(stacked), frame.centres(block)
    turned, intercept = stacked[:-1].astype(block.logits.dtype), stacked[-1].copy()
    for part in row_blocks(block.n, block.n_classes, _SCORES):
        z, c, w = block.logits[part], centres[part], None if block.weights is None else block.weights[part]
        x = frame.features(z, c)
        r = x @ turned
        losses = _core.softmax_residual(r, z, c, block.labels[part], w, frame.beta, intercept, get_threads())
        loss += float(losses.sum() if w is None else losses @ w)
        gradient[:-1] += x.T @ r
        gradient[-1] += r.sum(axis=0, dtype=np.float64)
    return loss, gradient


def matrix_moment(block: Block, frame: Frame, stacked: Array, shift: Array) -> Array:
    """Return Σ w (1 - Σ p²) x xᵀ, x less a shift and with a one at its end."""
    moment = np.zeros((len(stacked), len(stacked)))
    for x, v in _variances(block, frame, stacked):
        x[:, :-1] -= shift.astype(x.dtype)
        moment += x.T @ (x * v.sum(axis=1, keepdims=True))
    return moment


def matrix_along(block: Block, frame: Frame, stacked: Array, directions: Array) -> Array:
    """Return of each class Σ w p (1 - p) times the squares along the directions, and times what is its own."""
    k, found = stacked.shape[1], np.zeros((stacked.shape[1], directions.shape[1] + 6))
    for x, v in _variances(block, frame, stacked):
        own, sure = x[:, :k], x[:, k : k + 1] if len(stacked) > k + 1 else np.zeros((len(x), 1), dtype=x.dtype)
        found[:, :-6] += v.T @ (x @ directions.astype(x.dtype)) ** 2
        for column, feature in enumerate((own * own, own, 1.0, own * sure, sure, sure * sure), found.shape[1] - 6):
            found[:, column] += (v * feature).sum(axis=0, dtype=np.float64)
    return found


def _variances(block: Block, frame: Frame, stacked: Array) -> Iterator[tuple[Floats, Floats]]:
    """Yield (x, 1) and w p (1 - p) of some rows at a time."""
    centres, weights = frame.centres(block), block.weight_array
    turned, intercept = stacked[:-1].astype(block.logits.dtype), stacked[-1].copy()
    for part in row_blocks(block.n, block.n_classes, _SCORES):
        z, c = block.logits[part], centres[part]
        x = frame.features(z, c)
        p = x @ turned
        _core.softmax_residual(p, z, c, None, None, frame.beta, intercept, get_threads())
        yield np.column_stack([x, np.ones(len(x), dtype=x.dtype)]), p * (1 - p) * weights[part].astype(p.dtype)[:, None]
