"""One map on the confidence of the top label; the other classes share what it leaves."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import keep_top, log_odds, softmax
from ..calibrator import Calibrator
from ..declared import attribute, declared, parameter
from ..fits.judge import mean_losses
from ..fits.report import FitReport
from ..formulas import Term
from ..formulas import log_odds as log_odds_formula
from ..invariants import Fitted
from ..maps.binary.base import BinaryMap
from ..maps.binary.two_class import two_logits
from ..parameters import OneOf
from ..passes import Block, Data
from ..traits import Traits
from ..types import Floats, Integers
from ._lift import Lift


@declared
class TopLabel(Lift):
    """Fits a binary map on (confidence of the top label, is it right), and scales the other classes to the rest.

    The surrogate problem of Le Coz, Herbin & Adjed 2024 ("top versus all"): one event a row, whatever K, so few rows
    do. The top label gets the map's answer q, the others their shares of 1 - q.

    Parameters
    ----------
    binary_map : BinaryMap, or a chain or mixture of them
        Cloned, not changed.
    keep_label : bool
        Let q be no less than makes the top label stay on top: q ≥ r / (1 - s + r), s and r the two largest
        probabilities. So the order of every row's classes is kept. False lets others overtake it.
    inputs, classes, saturated
        See `Calibrator`.

    Attributes
    ----------
    map_ : BinaryMap
        The fitted map.
    """

    _identifier = "top-label"
    binary_map: Calibrator = parameter()
    keep_label: bool = parameter(OneOf(True, False), default=True)
    map_: BinaryMap = attribute(Fitted(classes=2), counted=True)

    @property
    def traits(self) -> Traits:
        """Those of the binary map, but that the order of classes is kept."""
        inner = self.binary_map.traits
        promise = "ranking" if self.keep_label else "nothing"
        return Traits("scaling", promise, "top label", inner.parameters, sees=inner.sees)

    def predict_confidence(self, scores: Any) -> Floats:
        """Return the calibrated probability that the top label is right, before it is kept on top: (n,)."""
        return self._confidence(self._scores_to_map(scores).logits)[1]

    def _fit(self, data: Data) -> FitReport:
        self.map_ = self._lifted.unfitted()
        report = self.map_.fit_data(data.viewed(top_view, 2, 2))
        losses = mean_losses(data, softmax, self._map)
        return FitReport(report.iterations, report.converged, "nll", *losses, messages=report.messages)

    def _confidence(self, logits: Floats) -> tuple[Integers, Floats]:
        """Return the places of the top labels and the map's answer for each."""
        top = logits.argmax(axis=1)
        odds = log_odds(np.ascontiguousarray(logits))[np.arange(len(top)), top]
        return top, self.map_._map_scores(np.ascontiguousarray(odds))

    def _map(self, logits: Floats) -> Floats:
        top, answer = self._confidence(logits)
        rows = np.arange(len(top))
        others = logits.astype(np.float64)
        others[rows, top] = -np.inf
        alone = np.isneginf(others).all(axis=1)
        others[alone] = 0.0
        others[rows, top] = -np.inf
        rest = softmax(others)  # how the others share what the top label leaves
        second = rest.max(axis=1)
        q = answer.astype(np.float64)
        if self.keep_label:
            q = np.maximum(q, second / (1 + second))
        q = np.where(alone, 1.0, q)
        found = rest * (1 - q)[:, None]
        found[rows, top] = q
        tied = logits == logits[rows, top][:, None]  # for the top: they share alike
        found = np.where(tied, (found * tied).sum(axis=1, keepdims=True) / tied.sum(axis=1, keepdims=True), found)
        answers = found.astype(logits.dtype)
        return keep_top(answers, logits) if self.keep_label else answers

    def _formula(self, z: Term) -> Term:
        first = z.first_top()
        others = first.where(-np.inf, z)
        most = others.row_max()
        alone = most.equals(-np.inf)
        e = (others - most.at_least(-1e300)).exp()
        rest = e / alone.where(1.0, e.row_sum())
        second = rest.row_max()
        q = self.map_._score_formula(first.where(log_odds_formula(z), 0.0).row_sum())
        if self.keep_label:
            q = q.at_least(second / (1.0 + second))
        q = alone.where(1.0, q)
        found = first.where(q, rest * (1.0 - q))
        tied = z >= z.row_max()
        return tied.where(tied.where(found, 0.0).row_sum() / tied.where(1.0, 0.0).row_sum(), found)


def top_view(block: Block) -> Block:
    """Return a block of two classes: the log-odds of the top label, and whether it is right."""
    top = block.logits.argmax(axis=1)
    odds = log_odds(block.logits)[np.arange(block.n), top]
    return Block(two_logits(odds), (top == block.labels).astype(np.int64), block.weights, 2)
