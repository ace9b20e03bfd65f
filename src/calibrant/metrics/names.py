"""Metrics with a name: each picks a view, an estimator and a norm."""

from __future__ import annotations

from typing import Any

from .calibration_error import calibration_error

__all__ = ["ece"]


def ece(y_true: Any, y_prob: Any, **options: Any) -> float:
    """Expected calibration error: top label, 15 bins of equal width, norm 1 (Naeini et al. 2015; Guo et al. 2017).

    Any keyword of `calibration_error` can be changed. Differences: torchmetrics puts p = 1 into a bin of its own and
    bins by (lo, hi]; ours are [lo, hi) with the last one closed.

    Examples
    --------
    >>> ece([1, 0], [0.75, 0.25])
    0.25
    """
    return calibration_error(y_true, y_prob, **options)
