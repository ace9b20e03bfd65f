"""Make a classifier's probabilities true."""

# The public names are loaded when they are first used, so that `calibrant --help` need not import NumPy. A new name
# goes into the block for type checkers and, by the module it lives in, into _PLACES; a test compares the two.
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .blocked_imports import survive_blocked_imports

if TYPE_CHECKING:
    from .calibrated_model import CalibratedModel as CalibratedModel
    from .calibrator import Calibrator as Calibrator
    from .errors import CalibrantError as CalibrantError
    from .errors import CalibrationWarning as CalibrationWarning
    from .exports.writing import export as export
    from .loading import load as load
    from .maps.binary.bayesian_binning import BayesianBinning as BayesianBinning
    from .maps.binary.beta import BetaCalibration as BetaCalibration
    from .maps.binary.binning import Binning as Binning
    from .maps.binary.isotonic import Isotonic as Isotonic
    from .maps.binary.isotonic_centred import CentredIsotonic as CentredIsotonic
    from .maps.binary.logit_spline import LogitSpline as LogitSpline
    from .maps.binary.platt import PlattScaling as PlattScaling
    from .maps.binary.quadratic import QuadraticScaling as QuadraticScaling
    from .maps.binary.spline import SplineCalibration as SplineCalibration
    from .maps.binary.venn_abers import VennAbers as VennAbers
    from .maps.kernel import KCal as KCal
    from .maps.perturbation import Hoki as Hoki
    from .maps.scaling.binwise import BinwiseTemperatureScaling as BinwiseTemperatureScaling
    from .maps.scaling.dirichlet import DirichletCalibration as DirichletCalibration
    from .maps.scaling.ensemble import EnsembleTemperatureScaling as EnsembleTemperatureScaling
    from .maps.scaling.gaussian_process import GaussianProcessCalibration as GaussianProcessCalibration
    from .maps.scaling.matrix import MatrixScaling as MatrixScaling
    from .maps.scaling.order_preserving import OrderPreservingScaling as OrderPreservingScaling
    from .maps.scaling.temperature import TemperatureScaling as TemperatureScaling
    from .maps.scaling.trivial import Identity as Identity
    from .maps.scaling.trivial import Uniform as Uniform
    from .maps.scaling.vector import VectorScaling as VectorScaling
    from .metrics.measuring import measure as measure
    from .monitoring.expected import estimate_performance as estimate_performance
    from .operators.by_group import ByGroup as ByGroup
    from .operators.chain import Chain as Chain
    from .operators.mixture import Mixture as Mixture
    from .operators.multi_label import MultiLabel as MultiLabel
    from .operators.multicalibrated import Multicalibrated as Multicalibrated
    from .operators.one_vs_rest import OneVsRest as OneVsRest
    from .operators.prior_shift import PriorShift as PriorShift
    from .operators.structured import StructuredScaling as StructuredScaling
    from .operators.top_label import TopLabel as TopLabel
    from .registry import make as make
    from .reports.write import report as report
    from .scanning import scan as scan
    from .scanning.applying import apply as apply
    from .selection.auto import AutoCalibrator as AutoCalibrator
    from .selection.compare import compare as compare
    from .threads import get_threads as get_threads
    from .threads import set_threads as set_threads

__version__ = "0.2.0"

survive_blocked_imports()

_PLACES = {
    "BetaCalibration": "maps.binary.beta",
    "BayesianBinning": "maps.binary.bayesian_binning",
    "Binning": "maps.binary.binning",
    "AutoCalibrator": "selection.auto",
    "BinwiseTemperatureScaling": "maps.scaling.binwise",
    "ByGroup": "operators.by_group",
    "CalibrantError": "errors",
    "CalibratedModel": "calibrated_model",
    "CalibrationWarning": "errors",
    "Calibrator": "calibrator",
    "CentredIsotonic": "maps.binary.isotonic_centred",
    "Chain": "operators.chain",
    "DirichletCalibration": "maps.scaling.dirichlet",
    "EnsembleTemperatureScaling": "maps.scaling.ensemble",
    "GaussianProcessCalibration": "maps.scaling.gaussian_process",
    "Hoki": "maps.perturbation",
    "Identity": "maps.scaling.trivial",
    "Isotonic": "maps.binary.isotonic",
    "LogitSpline": "maps.binary.logit_spline",
    "Mixture": "operators.mixture",
    "KCal": "maps.kernel",
    "MatrixScaling": "maps.scaling.matrix",
    "MultiLabel": "operators.multi_label",
    "Multicalibrated": "operators.multicalibrated",
    "OneVsRest": "operators.one_vs_rest",
    "OrderPreservingScaling": "maps.scaling.order_preserving",
    "PlattScaling": "maps.binary.platt",
    "PriorShift": "operators.prior_shift",
    "QuadraticScaling": "maps.binary.quadratic",
    "StructuredScaling": "operators.structured",
    "SplineCalibration": "maps.binary.spline",
    "TemperatureScaling": "maps.scaling.temperature",
    "TopLabel": "operators.top_label",
    "Uniform": "maps.scaling.trivial",
    "VennAbers": "maps.binary.venn_abers",
    "VectorScaling": "maps.scaling.vector",
    "estimate_performance": "monitoring.expected",
    "apply": "scanning.applying",
    "compare": "selection.compare",
    "export": "exports.writing",
    "get_threads": "threads",
    "load": "loading",
    "make": "registry",
    "measure": "metrics.measuring",
    "report": "reports.write",
    "scan": "scanning",
    "set_threads": "threads",
}
# Importable as attributes: calibrant.metrics.ece
_ROOMS = {
    "files",
    "metrics",
    "monitoring",
    "plots",
    "simulation",
    "testing",
}

__all__ = list(_PLACES)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in _PLACES or name in _ROOMS:
        survive_blocked_imports()
    if name in _PLACES:
        value = getattr(import_module(f".{_PLACES[name]}", __name__), name)
        globals()[name] = value
        return value
    if name in _ROOMS:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_PLACES])
