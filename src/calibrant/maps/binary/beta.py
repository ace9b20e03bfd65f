"""Beta calibration: a sigmoid with a slope of its own at either end of the unit interval."""

from __future__ import annotations

import numpy as np

from ...declared import declared, parameter
from ...parameters import OneOf
from ...traits import Traits
from ...types import Array
from ._regression import SMOOTH, SMOOTHING
from .logistic import LogisticMap

_BASES = {
    "abm": np.eye(3),
    "ab": np.array([[1.0, 0.0], [0.0, 1.0], [np.log(2), -np.log(2)]]),
    "am": np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]),
    "a": np.array([[1.0], [1.0], [0.0]]),
}


@declared
class BetaCalibration(LogisticMap):
    """q = σ(a log p - b log(1 - p) + c), a and b not negative (Kull, Silva Filho & Flach 2017).

    The map that is right when the scores of either outcome have beta distributions. a = b = 1, c = 0 leaves the scores
    alone, which Platt scaling of raw probabilities cannot.

    Parameters
    ----------
    form : {"abm", "ab", "am", "a"}
        Which are free, in the paper's words, where m is the p that becomes ½: c = b log(1 - m) - a log m. "ab" keeps
        m = ½, "am" keeps a = b (a sigmoid of the log-odds), "a" both.
    smooth_targets : float
        s: outcomes 1 and 0 become (n₊ + s)/(n₊ + 2s) and s/(n₋ + 2s), as in Platt scaling.
    inputs, classes, saturated
        See `Calibrator`.

    Attributes
    ----------
    coefficients_ : array of shape (3,)
        (a, b, c).
    """

    _identifier = "beta-calibration"
    _traits = Traits("binary", "nothing", "each class", "3")
    form: str = parameter(OneOf(*_BASES), default="abm")
    smooth_targets: float = parameter(SMOOTHING, default=SMOOTH)

    @property
    def _basis(self) -> Array:
        return _BASES[self.form]

    @property
    def _nonnegative(self) -> tuple[int, ...]:
        return (0, 1) if self.form in ("abm", "ab") else (0,)
