"""Measuring calibration: a view, an estimator and a norm; each metric is a row of `calibrant.metrics.table`."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from .bootstrapping import bootstrap
from .decisions.net_benefit import DecisionCurve, decision_curve
from .estimators.curves import ReliabilityCurve, reliability_curve
from .inference.intervals import Interval, frequency_interval
from .inference.planning import calibration_error_bound, required_samples
from .inference.testing import CalibrationTest, averaged_two_bin_test, calibration_test, ecce_test
from .measurement import Measurement
from .measuring import Measuring, measure
from .scores.decomposition import Decomposition, brier_decomposition, nll_decomposition
from .scores.gain import Comparison, Gain, calibration_gain, compare_forecasts
from .scores.information import mutual_information
from .state import BinnedState, State, state
from .table import FUNCTIONS

if TYPE_CHECKING:

    def __getattr__(name: str) -> Callable[..., float]: ...


globals().update(FUNCTIONS)
__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]  # metrics are named in the table
    "BinnedState",
    "CalibrationTest",
    "Comparison",
    "DecisionCurve",
    "Decomposition",
    "Gain",
    "Interval",
    "Measurement",
    "Measuring",
    "ReliabilityCurve",
    "State",
    "averaged_two_bin_test",
    "bootstrap",
    "brier_decomposition",
    "calibration_error_bound",
    "calibration_gain",
    "calibration_test",
    "compare_forecasts",
    "decision_curve",
    "ecce_test",
    "frequency_interval",
    "measure",
    "mutual_information",
    "nll_decomposition",
    "reliability_curve",
    "required_samples",
    "state",
    *FUNCTIONS,
]
