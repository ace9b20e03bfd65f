"""What Hoki needs to know of a row: its share γ and what a confidence would cost it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..arrays import row_blocks, softmax
from ..fits.judge import raw_losses
from ..passes import Block, Rows
from ..passes.folds import row_keys
from ..threads import get_threads

__all__ = ["LAWS", "Seen", "kept_shares", "rows_seen", "spread"]

Array = NDArray[np.float64]
Floats = NDArray[np.floating]
LAWS = {"gaussian": 0, "uniform": 1}
_NODES = {"gaussian": 64, "uniform": 256}  # of the quadrature: γ is right to 1e-9, to 1e-5 where the density has edges
_LEAST = 1e-300  # probability that a loss counts at least: about the smallest that a double holds with all its digits


@dataclass(frozen=True, eq=False)
class Seen:
    """A few numbers a row, sorted by their values: sums over them know neither row order nor blocks.

    Attributes
    ----------
    keys : uint64 array
        Hashes of the rows' content.
    kept : array
        γ, the share of noise vectors that leave the top label alone.
    right : array
        One where the top label is the label, else zero.
    confidence : array
        The raw probability of the top class.
    before : array
        The log-loss of the raw probabilities.
    rest : array
        The label's share of what the top class leaves.
    weights : array
    """

    keys: NDArray[np.uint64]
    kept: Array
    right: Array
    confidence: Array
    before: Array
    rest: Array
    weights: Array

    @classmethod
    def of(cls, found: Rows) -> Seen:
        """Sort what `rows_seen` found; rows without a weight are left out."""
        keys, kept, right, confidence, before, rest, weights = found.columns
        order = np.lexsort((keys, rest, before, confidence, weights, right, kept))
        order = order[weights[order] > 0]
        return cls(*(column[order] for column in found.columns))

    def losses(self, confidence: Array, margin: float) -> Array:
        """Return the log-loss of each row where its top class gets this confidence, kept off 0 and 1 by a margin."""
        c = np.clip(confidence, margin, 1.0 - margin)
        return -np.log(np.maximum(np.where(self.right > 0, c, (1.0 - c) * self.rest), _LEAST))


def rows_seen(block: Block, law: str, scale: float, noise: NDArray[np.float32] | None) -> Rows:
    """One pass: the columns of `Seen`, in the order of the rows."""
    top = block.logits.argmax(axis=1)
    confidence, before, rest = np.empty(block.n), np.empty(block.n), np.empty(block.n)
    for part in row_blocks(*block.logits.shape):
        z, labels = block.logits[part], block.labels[part]
        p, rows = softmax(z), np.arange(len(z))
        confidence[part] = p[rows, top[part]]
        before[part] = raw_losses("nll", z, labels)
        rest[part] = spread(p, rows, top[part], np.zeros(len(z)))[rows, labels]
    kept, right = kept_shares(block.logits, law, scale, noise), (top == block.labels).astype(np.float64)
    return Rows(block.kept(row_keys), kept, right, confidence, before, rest, block.weight_array)


def kept_shares(logits: Floats, law: str, scale: float, noise: NDArray[np.float32] | None) -> Array:
    """Return the probability that noise leaves each row's top label alone; without noise vectors it is integrated."""
    logits = np.ascontiguousarray(logits)
    if noise is None:
        return _core.keep_probabilities(logits, LAWS[law], scale, _NODES[law], get_threads())
    return _core.keep_shares(logits, noise.astype(logits.dtype, copy=False), scale, get_threads())


def spread(p: Floats, rows: NDArray[np.int64], top: NDArray[np.int64], confidence: Array) -> Array:
    """Give the top class its confidence and share the rest out as ``p`` does, evenly where ``p`` leaves nothing."""
    rest = p.astype(np.float64)
    rest[rows, top] = 0.0
    total = rest.sum(axis=1)
    empty = total <= 0
    rest[empty] = 1.0
    rest[rows, top] = 0.0
    total[empty] = p.shape[1] - 1
    rest *= ((1.0 - confidence) / total)[:, None]
    rest[rows, top] = confidence
    return rest
