"""Sums by bin, with the answers of another fitted map where bins answer by it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ... import _core
from ...arrays import log_odds, row_blocks
from ...calibrator import Calibrator
from ...passes import Block, Data
from ...threads import get_threads
from ...types import Array, Floats, Integers
from .base import BinaryMap


@dataclass(frozen=True, eq=False)
class Lender:
    """A fitted map that lends bins its answers: for all classes, or a binary map for each group of them."""

    maps: list[Any]
    groups: Integers | None

    def __call__(self, logits: Floats) -> Floats:
        """Return the answers (n, K)."""
        first = self.maps[0]
        if self.groups is None:
            return first._map(logits)
        return first._stacked(self.maps, np.maximum(self.groups, 0), logits.dtype).answers(log_odds(logits))


def fitted_lender(calibrator: Calibrator, data: Data, groups: Integers) -> Lender:
    """Fit a map to lend its answers; a binary map learns from the pairs of each group."""
    if isinstance(calibrator, BinaryMap):
        return Lender(calibrator._fit_groups(data, groups), groups)
    fitted = calibrator.unfitted()
    fitted.fit_data(data)
    return Lender([fitted], None)


def sums_of_groups(data: Data, groups: Integers, edges: list[Array], lender: Lender | None) -> list[Array]:
    """Return by group and bin: weight, weight of the positives, Σ σ(score), Σ lent answer; one pass for all groups."""
    longest = max(map(len, edges))
    padded = np.full((len(edges), longest), np.inf)
    for row, own in zip(padded, edges, strict=True):
        row[: len(own)] = own
    sums = data.reduce(partial(bin_sums, groups=groups, edges=padded, lender=lender))
    return [found[: len(own) + 1] for found, own in zip(sums, edges, strict=True)]


def bin_sums(block: Block, groups: Integers, edges: Array, lender: Lender | None) -> Array:
    """One pass: the sums (G, bins, 4) of the groups' pairs by edges (G, bins - 1)."""
    if lender is None:
        return _kernel(block, groups, edges, None)
    total = np.zeros((len(edges), edges.shape[1] + 1, 4))
    for rows in row_blocks(*block.logits.shape):
        part = block.take(rows)
        total += _kernel(part, groups, edges, np.ascontiguousarray(lender(part.logits), dtype=part.logits.dtype))
    return total


def _kernel(block: Block, groups: Integers, edges: Array, values: Floats | None) -> Array:
    return _core.bin_sums(block.logits, block.labels, block.weights, groups, values, edges, get_threads())
