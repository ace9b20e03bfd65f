"""Akaike's estimate from rows in memory; to be deleted once structured scaling is given Data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...arrays import row_subsample, softmax
from ...fits.judge import Comparison, judged, label_losses
from ...fits.report import FitReport
from ...passes import Block

__all__ = ["with_estimate"]

_JUDGED = 1000  # rows that tell the standard error of the held-out loss


def with_estimate(
    report: FitReport,
    sample: Block,
    losses: Callable[[NDArray[np.int64]], NDArray[np.float64]],
    effective: float,
) -> FitReport:
    """Fill in the held-out losses: what the rows determine costs as much again on other rows."""
    rows = np.arange(sample.n)[row_subsample(sample.n, _JUDGED)]
    weights, total = sample.weight_array[rows], sample.total_weight
    before = label_losses(softmax(sample.logits[rows]), sample.labels[rows])
    spread = judged(report, Comparison.of(before, losses(rows), weights))
    error = (spread.held_out_error or 0.0) * float(np.sqrt(weights.sum() / total))
    return replace(
        report,
        held_out_before=report.loss_before,
        held_out_after=report.loss_after + effective / total,
        held_out_error=float(np.hypot(error, np.sqrt(effective) / total)),
    )
