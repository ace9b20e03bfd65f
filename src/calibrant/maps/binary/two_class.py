"""A chain or mixture of maps on one score, as one such map: what a lift nests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from ...arrays import log_odds
from ...calibrator import Calibrator
from ...declared import attribute, declared, parameter
from ...formulas import Term, as_rows
from ...invariants import Fitted
from ...passes import Block, Data
from ...traits import Traits
from ...types import Floats, Integers
from .base import BinaryMap, Learnt

_SMALL = 2_000_000  # scores that are held at once whatever their share


@declared
class TwoClassMap(BinaryMap):
    """Any calibrator of two classes as a map on one score: log-odds λ are the logits (0, λ).

    `OneVsRest` makes one of a chain or mixture of binary maps; used by itself it adds nothing.

    Parameters
    ----------
    calibrator : Calibrator
        Cloned, not changed.
    inputs, classes, saturated
        See `Calibrator`.

    Attributes
    ----------
    parts_ : list of Calibrator
        The fitted calibrator alone.
    """

    _identifier = "two-class-map"
    calibrator: Calibrator = parameter()
    parts_: list[Calibrator] = attribute(Fitted(1, classes=2))

    @property
    def traits(self) -> Traits:
        """Those of the calibrator."""
        return self.calibrator.traits

    def _learn(self, data: Data, groups: Integers) -> list[Learnt]:
        learnt: list[Learnt] = []
        for batch in _batches(data.n, groups):
            columns = np.flatnonzero(np.isin(groups, batch))
            scores = data.viewed(ScoreView(columns), len(columns) + 1, len(columns))
            for g in batch:
                fitted = self.calibrator.unfitted()
                report = fitted.fit_data(scores.viewed(PairView(np.flatnonzero(groups[columns] == g)), 2, 2))
                learnt.append(Learnt({"parts_": [fitted]}, report))
        return learnt

    def _map_scores(self, log_odds: Floats) -> Floats:
        p = self.parts_[0]._map(two_logits(np.ascontiguousarray(log_odds).ravel()))
        return cast("Floats", p[:, 1].reshape(log_odds.shape))

    def _lifted_formula(self, maps: list[BinaryMap], groups: Integers, odds: Term) -> Term:
        return as_rows([maps[group]._score_formula(odds.column(k)) for k, group in enumerate(groups.tolist())])

    def _score_formula(self, odds: Term) -> Term:
        return self.parts_[0]._formula(as_rows([(-odds).at_most(0.0), odds.at_most(0.0)])).column(1)

    def _count_parameters(self) -> float:
        return self.parts_[0].n_parameters_


@dataclass(frozen=True, eq=False)
class ScoreView:
    """The log-odds of some classes in place of the logits; the label of all other classes is the one after the last."""

    columns: Integers

    def __call__(self, block: Block) -> Block:
        """Return the block with so many columns, and a class more."""
        place = np.full(block.n_classes, len(self.columns))
        place[self.columns] = np.arange(len(self.columns))
        odds = np.ascontiguousarray(log_odds(block.logits)[:, self.columns])
        return Block(odds, place[block.labels], block.weights, len(self.columns) + 1)


@dataclass(frozen=True, eq=False)
class PairView:
    """Of what `ScoreView` shows, the pairs (log-odds of a class, is it the label) of some classes as rows of two."""

    columns: Integers

    def __call__(self, block: Block) -> Block:
        """Return the pairs of a block, row by row."""
        outcomes = block.labels[:, None] == self.columns
        weights = None if block.weights is None else np.repeat(block.weights, len(self.columns))
        logits = two_logits(block.logits[:, self.columns].ravel())
        return Block(logits, outcomes.ravel().astype(np.int64), weights, 2)


def two_logits(odds: Floats) -> Floats:
    """Return two columns, finite or -inf, with these log-odds: the larger is zero."""
    return np.stack([np.where(odds > 0, -odds, 0), np.where(odds > 0, 0, odds)], axis=1)


def _batches(n: int, groups: Integers) -> list[list[int]]:
    """Groups in batches of a quarter of the classes, so that their scores need a quarter of the input's memory."""
    most = max(len(groups) // 4, _SMALL // max(n, 1), 1)
    batches: list[list[int]] = []
    room = 0
    for g, size in enumerate(np.bincount(groups[groups >= 0])):
        if size > room or not batches:
            batches.append([])
            room = most
        batches[-1].append(g)
        room -= int(size)
    return batches
