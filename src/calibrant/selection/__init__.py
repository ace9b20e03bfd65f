"""Compare maps by cross-validation, and choose one."""

from .auto import AutoCalibrator
from .compare import compare
from .result import Comparison, Row

__all__ = ["AutoCalibrator", "Comparison", "Row", "compare"]
