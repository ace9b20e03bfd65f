"""Measuring calibration: a view, an estimator and a norm."""

from .calibration_error import calibration_error
from .names import ace, cwece, ece, ece_crossfit, ece_debiased, ece_kde, ece_sweep, ks_error, mce, smece
from .proper import brier, nll

__all__ = [
    "ace",
    "brier",
    "calibration_error",
    "cwece",
    "ece",
    "ece_crossfit",
    "ece_debiased",
    "ece_kde",
    "ece_sweep",
    "ks_error",
    "mce",
    "nll",
    "smece",
]
