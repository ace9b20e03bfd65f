"""The contract as checks that anyone can run, on our maps and on their own."""

from .contract import ContractBroken, calibrator_checks, check_calibrator
from .estimator_checks import NOT_APPLICABLE, expected_failed_checks
from .merging import check_merging

__all__ = [
    "NOT_APPLICABLE",
    "ContractBroken",
    "calibrator_checks",
    "check_calibrator",
    "check_merging",
    "expected_failed_checks",
]
