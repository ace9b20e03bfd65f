"""Measuring calibration: a view, an estimator and a norm."""

from .estimators.calibration_error import calibration_error
from .estimators.canonical import canonical_error
from .estimators.curves import ReliabilityCurve, reliability_curve
from .estimators.kernel import skce
from .inference.intervals import Interval, frequency_interval
from .inference.planning import calibration_error_bound, required_samples
from .inference.testing import CalibrationTest, calibration_test
from .inference.uncertainty import bootstrap
from .measuring import Measurement, measure
from .names import ace, cwece, ece, ece_crossfit, ece_debiased, ece_kde, ece_sweep, ks_error, mce, smece
from .scores.accuracy import accuracy, sharpness, top_k_accuracy
from .scores.decomposition import Decomposition, brier_decomposition, nll_decomposition
from .scores.gain import Comparison, Gain, calibration_gain, compare_forecasts
from .scores.information import mutual_information
from .scores.proper import brier, nll
from .state import BinnedState

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
