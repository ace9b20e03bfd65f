"""What fitting computes from a data set."""

from __future__ import annotations

from typing import Any

from ..calibrator import Calibrator
from ..files import Dataset, Rows
from ..metrics import brier, ece, ece_sweep, nll
from .measuring import announce, inputs_of, probabilities

__all__ = ["fit", "judge"]


def fit(calibrator: Calibrator, data: Dataset) -> Calibrator:
    """Fit a fresh map on the rows for fitting."""
    embedded = calibrator.traits.needs == "embeddings"  # whose columns say nothing of the classes
    calibrator.set_params(classes=None if data.plain_classes and not embedded else data.classes)
    announce(calibrator, data)
    rows = data.fit
    return calibrator.fit(inputs_of(calibrator, data, rows), data.labels(rows), sample_weight=rows.weights)


def judge(fitted: Calibrator, data: Dataset, rows: Rows) -> dict[str, dict[str, float]]:
    """Return the metrics of some rows before and after a map."""
    return {"before": _plain_metrics(data, rows, None), "after": _plain_metrics(data, rows, fitted)}


def _plain_metrics(data: Dataset, rows: Rows, fitted: Calibrator | None) -> dict[str, float]:
    p, y = probabilities(data, rows, fitted), data.labels(rows)
    options: dict[str, Any] = {"sample_weight": rows.weights}
    options |= {"classes": data.classes} if p.ndim == 2 and not data.plain_classes else {}
    return {metric.__name__: float(metric(y, p, **options)) for metric in (nll, brier, ece, ece_sweep)}
