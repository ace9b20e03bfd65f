"""What one pass learns of rows that are not in memory, so that later passes need not ask.

How many rows and how much weight each class has, in all and in the first of five and of ten folds; how many rows each
cell of keys has, from which folds are planned; and two samples of the smallest keys: of all rows, where fits begin, and
of the first fold, where they are judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ..types import Integers
from .block import Block
from .folds import Keys, cell_counts, counted_keys
from .sample import Bottom, bottom_of, exact_keys
from .statistic import added
from .view import Counts, column_weights

_FIRST = (5, 10)  # numbers of folds of which the first is held out where there are many rows: `exact_keys` knows them


_COPIES = 4  # times their size that samples take at most, as measured

_JUDGED, _LEAST_JUDGED, _MOST_JUDGED = 1 << 21, 2048, 1 << 16  # scores of rows that judge a fit; rows at least, at most


def judged_rows(columns: int) -> int:
    """Return how many rows held out tell enough of a fit."""
    return int(np.clip(_JUDGED // columns, _LEAST_JUDGED, _MOST_JUDGED))


@dataclass(frozen=True)
class SampleSize:
    """Rows of the two samples."""

    rows: int
    held: int


@dataclass(frozen=True, eq=False)
class Survey:
    """The statistic of the pass."""

    counts: Counts
    firsts: tuple[Counts, ...]
    cells: Integers
    sample: Bottom
    held: Bottom

    def __add__(self, other: Survey) -> Survey:
        return added(self, other, "counts", "firsts", "cells", "sample", "held")

    @property
    def need(self) -> int:
        """Bytes that a look takes for the samples: both, and what is merged into them."""
        return _COPIES * (self.sample.logits.nbytes + self.held.logits.nbytes)

    def sent(self, size: SampleSize) -> Survey:
        """Return what one of many partitions sends over a network."""
        return replace(self, sample=self.sample.first(size.rows), held=self.held.first(size.held))

    @property
    def known(self) -> Known:
        """What the pass has found out."""
        folds = {
            count: Known(own, judging=_chosen(self.held, count, inside=True))
            for count, own in zip(_FIRST, self.firsts, strict=True)
        }
        return Known(self.counts, self.cells, self.sample, None, folds)


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of rows without looking at them."""

    counts: Counts  # (K,): weight, and number, of the rows of each class
    cells: Integers | None = None  # rows by cell of their keys
    sample: Bottom | None = None  # the rows of the smallest keys
    judging: Bottom | None = None  # the rows of the smallest exact keys, where these are rows held out
    # The first of so many folds, where a row's fold is its key modulo their number.
    folds: Mapping[int, Known] = field(default_factory=dict)

    def pilot(self, rows: int, n_classes: int, *, exact: bool = False) -> Block | None:
        """Return the rows of the ``rows`` smallest keys, or exact keys, or None where fewer are known."""
        sample = self.judging if exact else self.sample
        if sample is None or not sample.covers(min(rows, int(self.counts[1].sum()))):
            return None
        return sample.block(rows, n_classes)

    def first_fold(self, count: int, *, inside: bool) -> Known | None:
        """Return what is known of the first of ``count`` folds, or of all others."""
        if count not in self.folds:
            return None
        if inside:
            return self.folds[count]
        sample = None if self.sample is None else _chosen(self.sample, count, inside=False)
        own = self.folds[count].counts
        return Known((self.counts[0] - own[0], self.counts[1] - own[1]), sample=sample)


def survey_of(block: Block, size: SampleSize, before: Survey | None = None) -> Survey:
    """One pass: everything that a `Survey` holds. What was seen before tells which rows no sample will keep."""
    ends = (None, None) if before is None else (before.sample.end, before.held.end)
    keys = counted_keys(block)
    counted = block if block.weights is None else block.take(np.flatnonzero(block.weights > 0))
    firsts = tuple(column_weights(_rows_of_first(counted, keys, count)) for count in _FIRST)
    held = np.flatnonzero(keys % np.uint64(_FIRST[0]) == 0)
    judging = counted.take(held)
    return Survey(
        column_weights(counted),
        firsts,
        cell_counts(block),
        bottom_of(keys, counted, size.rows, ends[0]),
        bottom_of(exact_keys(keys[held], judging.logits), judging, size.held, ends[1]),
    )


def _rows_of_first(block: Block, keys: Keys, count: int) -> Block:
    """Labels and weights of the first fold; its scores are not looked at."""
    chosen = np.flatnonzero(keys % np.uint64(count) == 0)
    weights = None if block.weights is None else block.weights[chosen]
    return Block(block.logits[:0], block.labels[chosen], weights, block.n_classes)


def _chosen(sample: Bottom, count: int, *, inside: bool) -> Bottom:
    return sample.chosen((sample.keys % np.uint64(count) == 0) == inside)
