"""A sample of the rows that depends on the set of rows alone: those with the smallest keys."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .block import Block
from .folds import row_keys

if TYPE_CHECKING:
    from .data import Data

__all__ = ["bottom_rows"]

_EXACT = np.uint64(0xD6E8FEB86659FD93)  # an odd multiplier, for the hash of all bits of a row


def bottom_rows(data: Data, most: int) -> Block:
    """Return the rows of the ``most`` smallest keys; all of them, as they are, where there are no more."""
    if data.n <= most:
        return data.rows()
    found = data.reduce(partial(_bottom, most=most))
    return Block(found.logits, found.labels, found.weights, data.n_classes)


@dataclass(frozen=True, eq=False)
class _Bottom:
    """One row for each of the smallest keys, in order, with the weight of all rows of that key."""

    keys: NDArray[np.uint64]
    logits: NDArray[np.floating]
    labels: NDArray[np.int64]
    weights: NDArray[np.float64]
    most: int

    def __add__(self, other: _Bottom) -> _Bottom:
        keys = np.concatenate([self.keys, other.keys])
        logits = np.concatenate([self.logits, other.logits])
        labels = np.concatenate([self.labels, other.labels])
        weights = np.concatenate([self.weights, other.weights])
        return _reduced(keys, logits, labels, weights, self.most)


def _bottom(block: Block, most: int) -> _Bottom:
    keys, weights = block.kept(row_keys), block.weight_array
    chosen = np.arange(block.n) if block.weights is None else np.flatnonzero(weights > 0)
    chosen = _smallest(keys, chosen, most)
    return _reduced(keys[chosen], block.logits[chosen], block.labels[chosen], weights[chosen], most)


def _smallest(keys: NDArray[np.uint64], rows: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Return the rows of the ``most`` smallest keys, in order; a first cut looks at no more keys than are likely."""
    for likely in (most + most // 4, len(rows)):
        few = rows
        if likely < len(rows):
            few = rows[keys[rows] <= np.partition(keys[rows], likely)[likely]]  # ties at the cut stay together
        few = few[np.argsort(keys[few], kind="stable")]
        first = _first_of_keys(keys[few])
        if len(first) > most:
            return few[: first[most]]
    return few


def _reduced(
    keys: NDArray[np.uint64],
    logits: NDArray[np.floating],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64],
    most: int,
) -> _Bottom:
    """Keep the smallest keys, one row each: of rows that share a key, the one whose bits hash lowest."""
    order = np.argsort(keys, kind="stable")
    first = _first_of_keys(keys[order])
    if len(first) == len(keys) <= most:  # no two rows share a key
        return _Bottom(keys[order], logits[order], labels[order], weights[order], most)
    if len(first) < len(keys):
        order = np.lexsort((_bit_hash(logits), keys))
    total = np.add.reduceat(weights[order], first)[:most]
    kept = order[first[:most]]
    return _Bottom(keys[kept], np.ascontiguousarray(logits[kept]), labels[kept], total, most)


def _first_of_keys(ordered: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return where each key begins among keys in order."""
    return np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))


def _bit_hash(logits: NDArray[np.floating]) -> NDArray[np.uint64]:
    bits = np.ascontiguousarray(logits, dtype=np.float64).view(np.uint64)
    multipliers = np.cumprod(np.full(bits.shape[1], _EXACT, dtype=np.uint64), dtype=np.uint64)
    return (bits * multipliers).sum(axis=1, dtype=np.uint64)
