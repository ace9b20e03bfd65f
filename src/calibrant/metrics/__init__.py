"""Measuring calibration: a view, an estimator and a norm."""

from .accuracy import accuracy, sharpness, top_k_accuracy
from .calibration_error import calibration_error
from .canonical import canonical_error
from .curves import ReliabilityCurve, reliability_curve
from .decomposition import Decomposition, brier_decomposition, nll_decomposition
from .gain import Comparison, Gain, calibration_gain, compare_forecasts
from .information import mutual_information
from .intervals import Interval, frequency_interval
from .kernel import skce
from .names import ace, cwece, ece, ece_crossfit, ece_debiased, ece_kde, ece_sweep, ks_error, mce, smece
from .planning import calibration_error_bound, required_samples
from .proper import brier, nll
from .state import BinnedState
from .summary import Measurement, measure
from .testing import CalibrationTest, calibration_test
from .uncertainty import bootstrap

__all__ = [
    "BinnedState",
    "CalibrationTest",
    "Comparison",
    "Decomposition",
    "Gain",
    "Interval",
    "Measurement",
    "ReliabilityCurve",
    "accuracy",
    "ace",
    "bootstrap",
    "brier",
    "brier_decomposition",
    "calibration_error",
    "calibration_error_bound",
    "calibration_gain",
    "calibration_test",
    "canonical_error",
    "compare_forecasts",
    "cwece",
    "ece",
    "ece_crossfit",
    "ece_debiased",
    "ece_kde",
    "ece_sweep",
    "frequency_interval",
    "ks_error",
    "mce",
    "measure",
    "mutual_information",
    "nll",
    "nll_decomposition",
    "reliability_curve",
    "required_samples",
    "sharpness",
    "skce",
    "smece",
    "top_k_accuracy",
]
