"""A chain or mixture of maps on one score, as one such map: what a lift nests."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ...calibrator import Calibrator
from ...passes import Data
from ...traits import Traits
from .base import BinaryMap, Learnt, PairView, two_logits

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

    def _learn(self, data: Data, groups: NDArray[np.int64]) -> list[Learnt]:
        learnt: list[Learnt] = []
        for g in range(int(groups.max()) + 1):
            fitted = self.calibrator.unfitted()
            report = fitted.fit_data(data.viewed(PairView(np.flatnonzero(groups == g)), 2, 2))
            learnt.append(Learnt({"parts_": [fitted]}, report))
        return learnt

    def _map_scores(self, log_odds: NDArray[np.floating]) -> NDArray[np.floating]:
        p = self.parts_[0]._map(two_logits(np.ascontiguousarray(log_odds).ravel()))
        return cast("NDArray[np.floating]", p[:, 1].reshape(log_odds.shape))

    def _count_parameters(self) -> float:
        return self.parts_[0].n_parameters_
