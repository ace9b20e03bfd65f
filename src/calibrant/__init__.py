"""Make a classifier's probabilities true."""

from .calibrator import Calibrator
from .errors import CalibrantError, CalibrationWarning
from .maps.scaling.temperature import TemperatureScaling
from .maps.scaling.trivial import Identity, Uniform
from .operators.chain import Chain
from .registry import make
from .threads import get_threads, set_threads

__version__ = "0.1.0"

__all__ = [
    "CalibrantError",
    "CalibrationWarning",
    "Calibrator",
    "Chain",
    "Identity",
    "TemperatureScaling",
    "Uniform",
    "get_threads",
    "make",
    "set_threads",
]
