"""What Hoki needs to know of a row: its share γ under noise, and what a confidence would cost it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..arrays import row_blocks, softmax
from ..fits.judge import raw_losses
from ..passes import Block, Rows
from ..passes.folds import fine_keys, row_keys, score_keys
from ..threads import get_threads
from ..types import Array, Floats, Integers

LAWS = {"gaussian": 0, "uniform": 1}
NODES = {"gaussian": 64, "uniform": 256}  # of the quadrature: γ is right to 1e-9, to 1e-5 where the density has edges
_LEAST = 1e-300  # probability that a loss counts at least: about the smallest that a double holds with all its digits


@dataclass(frozen=True, eq=False)
class Noise:
    """A law of noise: its scale, and vectors in units of it, (K, draws); without these γ is integrated."""

    law: str
    scale: float
    vectors: NDArray[np.float32] | None
    _packed: dict[Any, tuple[Floats, Floats]] = field(default_factory=dict, repr=False)

    def shares(self, logits: Floats) -> Array:
        """Return γ, the probability that the noise leaves each row's top label alone."""
        logits = np.ascontiguousarray(logits)
        if self.vectors is None:
            return _core.keep_probabilities(logits, LAWS[self.law], self.scale, NODES[self.law], get_threads())
        if logits.dtype not in self._packed:
            self._packed[logits.dtype] = _core.pack_noise(self.vectors.astype(logits.dtype, copy=False))
        packed, reach = self._packed[logits.dtype]
        return _core.keep_shares(logits, packed, reach, self.vectors.shape[1], self.scale, get_threads())

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave out what can be laid out anew."""
        return Noise, (self.law, self.scale, self.vectors)


@dataclass(frozen=True, eq=False)
class Seen:
    """A few numbers a row, sorted by their values: sums over them know neither row order nor blocks.

    Attributes
    ----------
    keys : uint64 array
        Hashes of the rows' content.
    fine : uint64 array
        Hashes of all digits of it.
    scores : uint64 array
        Hashes of all digits of the scores.
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
    fine: NDArray[np.uint64]
    scores: NDArray[np.uint64]
    kept: Array
    right: Array
    confidence: Array
    before: Array
    rest: Array
    weights: Array

    @classmethod
    def of(cls, found: Rows) -> Seen:
        """Sort what `rows_seen` found; rows without a weight are left out."""
        keys, _, _, kept, right, confidence, before, rest, weights = found.columns
        order = np.lexsort((keys, rest, before, confidence, weights, right, kept))
        order = order[weights[order] > 0]
        return cls(*(column[order] for column in found.columns))

    def losses(self, confidence: Array, margin: float) -> Array:
        """Return the log-loss of each row where its top class gets this confidence, kept off 0 and 1 by a margin."""
        c = np.clip(confidence, margin, 1.0 - margin)
        return -np.log(np.maximum(np.where(self.right > 0, c, (1.0 - c) * self.rest), _LEAST))


def rows_seen(block: Block, noise: Noise) -> Rows:
    """One pass: the columns of `Seen`, in the order of the rows."""
    top = block.logits.argmax(axis=1)
    confidence, before, rest = np.empty(block.n), np.empty(block.n), np.empty(block.n)
    for part in row_blocks(*block.logits.shape):
        z, labels = block.logits[part], block.labels[part]
        p, rows = softmax(z), np.arange(len(z))
        confidence[part] = p[rows, top[part]]
        before[part] = raw_losses("nll", z, labels)
        rest[part] = _label_shares(p, rows, top[part], labels)
    kept, right = noise.shares(block.logits), (top == block.labels).astype(np.float64)
    hashes = block.kept(row_keys), fine_keys(block), score_keys(block)
    return Rows(*hashes, kept, right, confidence, before, rest, block.weight_array)


def _label_shares(p: Floats, rows: Integers, top: Integers, labels: Integers) -> Array:
    """The label's share of what the top class leaves; an even one where ``p`` leaves nothing."""
    others = p.astype(np.float64)
    others[rows, top] = 0.0
    total = others.sum(axis=1)
    share = others[rows, labels] / np.where(total > 0, total, 1.0)
    return np.where(total > 0, share, 1.0 / (p.shape[1] - 1))
