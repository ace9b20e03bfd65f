"""Views: functions from a block to what a fit should see of it.

A view is a module-level function with its parameters, so that it can be sent to where the rows are. One that counts as
it goes along has a method ``start``, which a pass calls for a function of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..types import Array, Integers
from .block import Block
from .folds import FoldPlan

View = Callable[[Block], Block]
Counts = tuple[Array, Integers]  # weight, and number, of the rows of each class
_COPIED = 2_000_000  # scores of a block up to which the rows left are copied; beyond, others get a weight of zero


def start(view: Any) -> Callable[[Block], Block]:
    """Return the view as the function of one pass."""
    return view.start() if hasattr(view, "start") else view


@dataclass(frozen=True)
class MapView:
    """Rows read through a fitted map: its answer takes the place of the scores."""

    fitted: Any  # has link_logits

    def __call__(self, block: Block) -> Block:
        """Return the block with the map's answers."""
        return block.with_logits(self.fitted.link_logits(block.logits))


@dataclass(frozen=True, eq=False)
class FoldView:
    """The rows of one fold, or all others."""

    plan: FoldPlan
    fold: int
    inside: bool

    def __call__(self, block: Block) -> Block:
        """Return what is chosen of all rows at once."""
        return self.start()(block)

    def start(self) -> Callable[[Block], Block]:
        """Return the view of one pass."""
        folds = self.plan.start()

        def view(block: Block) -> Block:
            chosen = (folds(block) == self.fold) == self.inside
            if self.inside or block.logits.size <= _COPIED:
                return block.take(np.flatnonzero(chosen))
            return block.with_weights(np.where(chosen, block.weight_array, 0.0))

        return view


def column_weights(block: Block) -> Counts:
    """One pass: the weight and the number of rows of each class."""
    counted = block.labels if block.weights is None else block.labels[block.weights > 0]
    weights = np.bincount(block.labels, block.weights, minlength=block.n_classes).astype(np.float64)
    return weights, np.bincount(counted, minlength=block.n_classes)
