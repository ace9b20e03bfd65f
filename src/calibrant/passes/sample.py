"""A sample of the rows that depends on the set of rows alone: those with the smallest keys."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..types import Array, Floats, Integers, Mask
from .block import Block
from .folds import Keys, counted_keys

if TYPE_CHECKING:
    from .data import Data

_EXACT = np.uint64(0xD6E8FEB86659FD93)  # an odd multiplier, for the hash of all bits of a row
_ODD = np.uint64(0xBF58476D1CE4E5B9)  # an odd multiplier that mixes well (of splitmix64)
_HASHED = 1 << 17  # scores that are hashed in one go: copies of them stay in the second-level cache
_FOLDS = np.uint64(10)  # a multiple of the numbers of folds of which the first judges: exact keys leave rows in theirs
_COLUMNS = ("keys", "logits", "labels", "weights")  # of a row each


def bottom_rows(data: Data, most: int, *, exact: bool = False) -> Block:
    """Return the rows of the ``most`` smallest keys, or exact keys; all, as they are, where there are no more."""
    if data.n <= most:
        return data.rows()
    return data.reduce(partial(_bottom, most=most, exact=exact)).block(most, data.n_classes)


@dataclass(frozen=True, eq=False)
class Bottom:
    """One row for each of the smallest keys, in order, with the weight of all rows of that key.

    ``end``: of all keys below it the rows are here; None where that goes for every key.
    """

    keys: NDArray[np.uint64]
    logits: Floats
    labels: Integers
    weights: Array
    most: int
    end: int | None = None

    def __add__(self, other: Bottom) -> Bottom:
        both = (np.concatenate([getattr(self, name), getattr(other, name)]) for name in _COLUMNS)
        keys, logits, labels, weights = both
        ends = [end for end in (self.end, other.end) if end is not None]
        return _reduced(keys, logits, labels, weights, max(self.most, other.most), min(ends, default=None))

    def covers(self, rows: int) -> bool:
        """Tell whether so many smallest keys are here, or all there are."""
        return self.end is None or self.count >= rows

    @property
    def count(self) -> int:
        """How many of the smallest keys are here."""
        return len(self.keys) if self.end is None else int(np.searchsorted(self.keys, np.uint64(self.end)))

    def first(self, most: int) -> Bottom:
        """Return the rows of at most so many keys: what one of many partitions need send."""
        if len(self.keys) <= most:
            return self
        end = int(self.keys[most])
        return replace(self.chosen(slice(0, most)), end=end if self.end is None else min(end, self.end))

    def block(self, rows: int, n_classes: int) -> Block:
        """Return the rows of the ``rows`` smallest keys."""
        some = slice(0, rows)
        return Block(np.ascontiguousarray(self.logits[some]), self.labels[some], self.weights[some], n_classes)

    def chosen(self, which: Mask | slice) -> Bottom:
        """Return some of the rows."""
        return replace(self, **{name: getattr(self, name)[which] for name in _COLUMNS})


def _bottom(block: Block, most: int, exact: bool) -> Bottom:
    keys = counted_keys(block)
    counted = block if block.weights is None else block.take(np.flatnonzero(block.weights > 0))
    return bottom_of(exact_keys(keys, counted.logits) if exact else keys, counted, most)


def exact_keys(keys: Keys, logits: Floats) -> Keys:
    """Return keys that tell apart rows which are not equal to the last bit, in the same folds.

    Keys are blind to rounding, and scores of one dimension share them by the dozen: as one row they would judge a fit
    with the spread of far fewer rows than they are.
    """
    step = max(1, _HASHED // logits.shape[1])
    hashes = [bit_hash(logits[first : first + step]) for first in range(0, len(logits), step)]
    with np.errstate(over="ignore"):
        mixed = (keys ^ np.concatenate([keys[:0], *hashes])) * _ODD
        mixed ^= mixed >> np.uint64(31)
        return np.minimum(mixed, ~_FOLDS) // _FOLDS * _FOLDS + keys % _FOLDS


def bottom_of(keys: NDArray[np.uint64], block: Block, most: int, end: int | None = None) -> Bottom:
    """Return the rows of a block of the smallest keys; every row has a weight.

    ``end``: of keys from here on enough are known already that are smaller.
    """
    rows = np.arange(block.n) if end is None else np.flatnonzero(keys < np.uint64(end))
    chosen = _smallest(keys, rows, most + 1)
    weights = block.weight_array[chosen]
    return _reduced(keys[chosen], block.logits[chosen], block.labels[chosen], weights, most, end)


def _smallest(keys: NDArray[np.uint64], rows: Integers, most: int) -> Integers:
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
    logits: Floats,
    labels: Integers,
    weights: Array,
    most: int,
    end: int | None = None,
) -> Bottom:
    """Keep the smallest keys, one row each: of rows that share a key, the one whose bits hash lowest."""
    order = np.argsort(keys, kind="stable")
    first = _first_of_keys(keys[order])
    if len(first) < len(keys):
        order = _lowest_first(order, first, bit_hash(logits), weights)
    if len(first) > most:  # the first key that is left out
        cut = int(keys[order][first[most]])
        end = cut if end is None else min(end, cut)
    total = np.add.reduceat(weights[order], first)[:most] if len(first) else weights
    kept = order[first[:most]]
    return Bottom(keys[kept], np.ascontiguousarray(logits[kept]), labels[kept], total, most, end)


def _lowest_first(order: Integers, first: Integers, hashes: NDArray[np.uint64], weights: Array) -> Integers:
    """Return rows in the order of their keys, of those that share one the row of the lowest hash before the others."""
    sizes = np.diff(np.append(first, len(order)))
    group = np.repeat(np.arange(len(first)), sizes)
    if (weights != np.floor(weights)).any():  # fractions add up to other last bits in another order
        return order[np.lexsort((hashes[order], group))]
    lowest = np.minimum.reduceat(hashes[order], first)
    there = np.flatnonzero(hashes[order] == lowest[group])
    there = there[_first_of_keys(group[there])]
    order = order.copy()
    order[there], order[first] = order[first], order[there]
    return order


def _first_of_keys(ordered: NDArray[Any]) -> Integers:
    """Return where each key begins among keys in order."""
    return np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(ordered)])


def bit_hash(logits: Floats) -> NDArray[np.uint64]:
    """Return a hash of all bits of each row."""
    bits = np.ascontiguousarray(logits, dtype=np.float64).view(np.uint64)
    bits = bits ^ (bits >> np.uint64(47))  # numbers such as 0.5 have no low bits, which products would never get
    multipliers = np.cumprod(np.full(bits.shape[1], _EXACT, dtype=np.uint64), dtype=np.uint64)
    return (bits * multipliers).sum(axis=1, dtype=np.uint64)
