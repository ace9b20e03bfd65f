"""Measuring calibration: a view, an estimator and a norm."""

from .accuracy import accuracy, sharpness, top_k_accuracy
from .calibration_error import calibration_error
from .canonical import canonical_error
from .decomposition import Decomposition, brier_decomposition, nll_decomposition
from .gain import Comparison, Gain, calibration_gain, compare_forecasts
from .kernel import skce
from .names import ace, cwece, ece, ece_crossfit, ece_debiased, ece_kde, ece_sweep, ks_error, mce, smece
from .proper import brier, nll
from .state import BinnedState

__all__ = [
    "BinnedState",
    "Comparison",
    "Decomposition",
    "Gain",
    "accuracy",
    "ace",
    "brier",
    "brier_decomposition",
    "calibration_error",
    "calibration_gain",
    "canonical_error",
    "compare_forecasts",
    "cwece",
    "ece",
    "ece_crossfit",
    "ece_debiased",
    "ece_kde",
    "ece_sweep",
    "ks_error",
    "mce",
    "nll",
    "nll_decomposition",
    "sharpness",
    "skce",
    "smece",
    "top_k_accuracy",
]
