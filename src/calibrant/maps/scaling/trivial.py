"""The two ends every other map lies between: leave the scores alone, or know nothing."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ...arrays import softmax
from ...calibrator import Calibrator
from ...fits.judge import Answer, compare_losses, judged
from ...fits.report import FitReport
from ...formulas import Term
from ...passes import Data
from ...traits import Traits
from ...types import Floats


class _Constant(Calibrator):
    def _fit(self, data: Data) -> FitReport:
        found = data.reduce(partial(compare_losses, before=softmax, after=self._answer))
        return judged(FitReport(0, True, "nll", found.before, found.after), found)

    @property
    def _answer(self) -> Answer:
        return self._map


class Identity(_Constant):
    """Leaves the scores alone: softmax of the logits, or the probabilities as they came."""

    _identifier = "identity"
    _state: ClassVar[Mapping[str, Any]] = {}
    _traits = Traits("scaling", "ranking", "full", "0")

    @property
    def _answer(self) -> Answer:
        return softmax

    def _map(self, logits: Floats) -> Floats:
        return softmax(logits)

    def _map_logits(self, logits: Floats) -> Floats:
        return logits

    def _formula(self, z: Term) -> Term:
        return z.softmax()

    def _logits_formula(self, z: Term) -> Term:
        return z


class Uniform(_Constant):
    """Answers 1/K for every class: what a model that knows nothing should say."""

    _identifier = "uniform"
    _state: ClassVar[Mapping[str, Any]] = {}
    _traits = Traits("scaling", "ranking", "full", "0")

    def _map(self, logits: Floats) -> Floats:
        return np.full_like(logits, 1.0 / logits.shape[1])

    def _formula(self, z: Term) -> Term:
        return (z * 0.0).is_nan().where(1.0, 1.0) / float(z.width)  # as many rows as there are scores
