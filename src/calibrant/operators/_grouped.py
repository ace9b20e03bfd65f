"""What maps on rows with groups share: the common map that is fitted first, and what their own numbers gain on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import best_column, softmax
from ..calibrator import Calibrator
from ..errors import InvalidInput
from ..fits.report import FitReport
from ..passes import Block, Data
from ..scanning import Scan
from ..traits import Traits
from ..types import Array, Floats
from ..validation import as_weights, floored


class Begun(NamedTuple):
    """The rows that have a weight, their groups, the common map's logits of them, and its report."""

    rows: Block
    groups: NDArray[Any]
    logits: Array
    report: FitReport

    def loss(self, logits: Array) -> float:
        """Return the mean log-loss of softmax of logits of the rows."""
        likely = softmax(logits)[np.arange(self.rows.n), self.rows.labels]
        return -float(self.rows.weight_array @ np.log(np.maximum(likely, 1e-300))) / self.rows.total_weight


class GroupedMap(Calibrator):
    """Base of maps that correct a common map by the groups of rows, which `fit` and `predict_proba` are told."""

    map: Calibrator
    map_: Calibrator

    def _traits_with(self, growth: str) -> Traits:
        """Those of the common map, with numbers of its own; rows are seen in memory."""
        inner = self.map.traits
        return Traits(inner.shape, "nothing", inner.calibrates, f"{inner.parameters} + {growth}", inner.needs, "sample")

    def _begin(self, scores: Any, y: Any, sample_weight: Any, groups: Callable[[int], NDArray[Any]]) -> Begun:
        """Check the rows, read the groups of so many of them, and fit the common map."""
        given = self._given(scores, y, sample_weight)
        block = given.data.rows()
        lengths = np.shape(sample_weight)  # of rows without a weight as well, which the block has not
        named = groups(lengths[0] if lengths else block.n)
        weights = as_weights(sample_weight, len(named))
        self.classes_, self.zero_, self.n_samples_ = given.classes, given.zero, given.data.n
        self._remember_columns(given.columns, given.data.columns)
        self.map_ = self.map.unfitted()
        report = self.map_.fit_data(replace(given.data, classes=given.classes), check=True)
        return Begun(block, named if weights is None else named[weights > 0], self._common(block.logits), report)

    def _common(self, logits: Floats) -> Array:
        """Return what the common map says, as logits."""
        return self.map_.link_logits(logits).astype(np.float64)

    def _gained(self, common: FitReport, gain: float, rounds: int, numbers: float, total: float) -> FitReport:
        """Take from the common map's held-out loss what the groups gain, less what their rows determine (Akaike)."""
        held = None if common.held_out_after is None else common.held_out_after - gain + numbers / total
        return FitReport(
            common.iterations + rounds,
            common.converged,
            common.loss,
            common.loss_before,
            common.loss_after - gain,
            common.held_out_before,
            held,
            common.held_out_error,
            messages=common.messages,
        )

    def _refuse_scan(self, scores: Any) -> None:
        if isinstance(scores, Scan):
            raise self._not_by_blocks("a scan")

    def _not_by_blocks(self, seen: str) -> InvalidInput:
        return InvalidInput(
            f"{type(self).__name__} needs the groups of each row, and all rows in memory",
            seen=seen,
            hint="fit it on arrays or a frame, with groups=…; put the other maps inside it, not around it",
        )

    def _fit(self, data: Data) -> FitReport:
        raise self._not_by_blocks("rows without groups, as a part of another map")

    def predict_proba(self, scores: Any, groups: Any = None) -> Floats:
        """Return calibrated probabilities; rows of groups that were not seen get the common map."""
        return self._answers(scores, groups)[0]

    def predict(self, scores: Any, groups: Any = None) -> NDArray[Any]:
        """Return the most probable class of each row."""
        p, logits = self._answers(scores, groups)
        return self.classes_[best_column(p, logits)]

    def _answers(self, scores: Any, groups: Any) -> tuple[Floats, Floats]:
        """Return probabilities, and the logits that they were made of."""
        scores, groups = self._parted(scores, groups)
        valid = self._scores_to_map(scores)
        z = self._corrected(self._common(floored(valid.logits)), groups)  # of zeros that are kept, as the fit saw them
        return self._masked(softmax(z).astype(valid.logits.dtype), valid), valid.logits

    def _parted(self, scores: Any, groups: Any) -> tuple[Any, Any]:
        """Return the scores without a column of groups, and the groups."""
        return scores, groups

    def _corrected(self, z: Array, groups: Any) -> Array:
        """Return the common map's logits as the groups correct them."""
        raise NotImplementedError

    def _map(self, logits: Floats) -> Floats:
        """The common map: for rows of no known group."""
        return self.map_._map(logits)
