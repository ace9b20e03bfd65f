"""A chain or mixture of maps on one score, as one such map: what a lift nests."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ...calibrator import Calibrator
from ...fits.report import FitReport
from ...passes import Block
from ...traits import Traits
from .base import BinaryMap, Pairs

__all__ = ["TwoClassMap"]


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
    parts_: list[Calibrator]

    def __init__(
        self, calibrator: Calibrator, *, inputs: str = "logits", classes: Any = None, saturated: str = "small"
    ) -> None:
        self.calibrator = calibrator
        self.inputs = inputs
        self.classes = classes
        self.saturated = saturated

    @property
    def traits(self) -> Traits:
        """Those of the calibrator."""
        return self.calibrator.traits

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self.calibrator._check_parameters()

    def _fit_pairs(self, pairs: Pairs) -> FitReport:
        self.parts_ = [self.calibrator.unfitted()]
        labels = pairs.outcomes.astype(np.int64)
        return self.parts_[0].fit_sample(Block(_logits(pairs.log_odds), labels, pairs.weights, 2))

    def _map_scores(self, log_odds: NDArray[np.floating]) -> NDArray[np.floating]:
        p = self.parts_[0]._map(_logits(np.ascontiguousarray(log_odds).ravel()))
        return cast("NDArray[np.floating]", p[:, 1].reshape(log_odds.shape))


def _logits(log_odds: NDArray[np.floating]) -> NDArray[np.floating]:
    """Two finite or -inf columns with these log-odds."""
    return np.stack([np.where(log_odds > 0, -log_odds, 0), np.where(log_odds > 0, 0, log_odds)], axis=1)
