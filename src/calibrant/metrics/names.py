"""Metrics with a name: each picks a view, an estimator and a norm; keywords of `calibration_error` change it."""

from __future__ import annotations

from typing import Any

from .estimators.calibration_error import calibration_error

__all__ = ["ace", "cwece", "ece", "ece_crossfit", "ece_debiased", "ece_kde", "ece_sweep", "ks_error", "mce", "smece"]


def ece(y_true: Any, y_prob: Any, **options: Any) -> float:
    """Expected calibration error: top label, 15 bins of equal width, norm 1 (Naeini et al. 2015; Guo et al. 2017).

    netcal, torchmetrics and others bin by (lo, hi] or put p = 1 into a bin of its own; ours are [lo, hi) with the last
    one closed. Without scores on an edge the values agree. pycalib's has 100 bins on [1/K, 1] and compares with
    their middles.

    Examples
    --------
    >>> ece([1, 0], [0.75, 0.25])
    0.25
    """
    return calibration_error(y_true, y_prob, **options)


def mce(y_true: Any, y_prob: Any, **options: Any) -> float:
    """Maximum calibration error: the largest gap among 15 bins of equal width (Naeini et al. 2015)."""
    return calibration_error(y_true, y_prob, **{"norm": "max", **options})


def ace(y_true: Any, y_prob: Any, **options: Any) -> float:
    """Adaptive calibration error: class-wise, 15 bins of equal mass, norm 1 (Nixon et al. 2019).

    Bins count by their mass, which for equal mass without ties is the same as equally. netcal's ACE is another thing:
    top label, equal width, with bins that are not empty counted equally.
    """
    return calibration_error(y_true, y_prob, **{"view": "class_wise", "edges": "equal_mass", **options})


def cwece(y_true: Any, y_prob: Any, **options: Any) -> float:
    """Class-wise calibration error: the mean over classes with 15 bins of equal width, norm 1 (Kull et al. 2019).

    Paper 002 uses ``bins=100, threshold="1/K"``; paper 001 ``bins=20, edges="equal_mass", threshold="kcal"``. Some
    libraries report the sum over classes.
    """
    return calibration_error(y_true, y_prob, **{"view": "class_wise", **options})


def ece_sweep(y_true: Any, y_prob: Any, **options: Any) -> float:
    """Monotonic sweep calibration error: top label, equal mass, norm 1 (paper 003, §4).

    The authors' code defaults to norm 2; Table 4 of the paper has norm 1.
    """
    return calibration_error(y_true, y_prob, **{"estimator": "sweep", **options})


def ece_crossfit(y_true: Any, y_prob: Any, **options: Any) -> float:
    """Cross-fitted isotonic calibration error: top label, 5 folds, norm 2; the least biased one (see `crossfit`)."""
    return calibration_error(y_true, y_prob, **{"estimator": "crossfit", **options})


def ece_debiased(y_true: Any, y_prob: Any, **options: Any) -> float:
    """Debiased calibration error: top label, 15 bins of equal mass, norm 2 (Kumar et al. 2019)."""
    return calibration_error(y_true, y_prob, **{"estimator": "debiased", **options})


def ece_kde(y_true: Any, y_prob: Any, **options: Any) -> float:
    """Kernel density estimate of the calibration error: top label, probability space, norm 1 (paper 000, §4.1)."""
    return calibration_error(y_true, y_prob, **{"estimator": "kde", **options})


def smece(y_true: Any, y_prob: Any, **options: Any) -> float:
    """Smooth calibration error of the top label (Błasiok and Nakkiran 2023)."""
    return calibration_error(y_true, y_prob, **{"estimator": "smooth", **options})


def ks_error(y_true: Any, y_prob: Any, **options: Any) -> float:
    """Kolmogorov–Smirnov calibration error of the top label (Gupta et al. 2021)."""
    return calibration_error(y_true, y_prob, **{"estimator": "ks", **options})
