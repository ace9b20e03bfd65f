"""Measuring calibration: a view, an estimator and a norm."""

from .calibration_error import calibration_error
from .names import ece
from .proper import brier, nll

__all__ = ["brier", "calibration_error", "ece", "nll"]
