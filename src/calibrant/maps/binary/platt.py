"""Platt scaling: a sigmoid of the score."""

from __future__ import annotations

import numpy as np

from ...declared import declared, parameter
from ...traits import Traits
from ...types import Array
from ._regression import SMOOTH, SMOOTHING
from .logistic import LogisticMap


@declared
class PlattScaling(LogisticMap):
    """q = σ(a λ + c), with a and c minimising the log-loss (Platt 1999).

    λ are log-odds, so a = 1, c = 0 leaves the scores alone. Newton steps with exact derivatives.

    Parameters
    ----------
    smooth_targets : float
        s: outcomes 1 and 0 become (n₊ + s)/(n₊ + 2s) and s/(n₋ + 2s), with n₊ and n₋ the (weighted) numbers of
        positives and negatives. Keeps the fit finite where the classes can be separated. Platt has s = 1 (or True),
        which makes good models timid where rows are few; 0 (or False) leaves the outcomes alone.
    inputs, classes, saturated
        See `Calibrator`.

    Attributes
    ----------
    coefficients_ : array of shape (3,)
        (a, a, c).
    """

    _identifier = "platt-scaling"
    _traits = Traits("binary", "nothing", "each class", "2")
    smooth_targets: float = parameter(SMOOTHING, default=SMOOTH)

    @property
    def _basis(self) -> Array:
        return np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
