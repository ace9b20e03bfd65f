"""What fitting computes from a data set."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..calibrator import Calibrator
from ..files import Dataset, Rows
from ..metrics import brier, ece, ece_sweep, nll
from ..selection import AutoCalibrator
from ..types import Array
from .measuring import announce, inputs_of, probabilities, replaces


def fit(calibrator: Calibrator, data: Dataset) -> Calibrator:
    """Fit a fresh map on the rows for fitting."""
    embedded = calibrator.traits.needs == "embeddings"  # whose columns say nothing of the classes
    calibrator.set_params(classes=None if data.plain_classes and not embedded else data.classes)
    announce(calibrator, data)
    rows = data.fit
    inputs, y = inputs_of(calibrator, data, rows), data.labels(rows)
    if isinstance(calibrator, AutoCalibrator):  # the choice of compare, in the same folds
        chooser: AutoCalibrator = calibrator
        return chooser.fit(data.named(inputs), y, sample_weight=rows.weights, groups=rows.together)
    if not embedded:
        return calibrator.fit(data.named(inputs), y, sample_weight=rows.weights)
    beside = {"classifier_scores": rows.scores, "classifier_inputs": data.kind} if replaces(calibrator, data) else {}
    return calibrator.fit(inputs, y, sample_weight=rows.weights, **beside)


def judge(fitted: Calibrator, data: Dataset, rows: Rows) -> dict[str, dict[str, float]]:
    """Return the metrics of some rows before and after a map; before is the class frequencies without scores."""
    return {"before": _plain_metrics(data, rows, None), "after": _plain_metrics(data, rows, fitted)}


def _plain_metrics(data: Dataset, rows: Rows, fitted: Calibrator | None) -> dict[str, float]:
    y = data.labels(rows)
    known = fitted is not None or data.kind != "embeddings"
    p = probabilities(data, rows, fitted) if known else _frequencies(data, len(rows))
    options: dict[str, Any] = {"sample_weight": rows.weights}
    options |= {} if data.plain_classes else {"classes": data.classes}
    return {metric.__name__: float(metric(y, p, **options)) for metric in (nll, brier, ece, ece_sweep)}


def _frequencies(data: Dataset, n: int) -> Array:
    """The share of each class in the rows for fitting, n times: what is known where there are no scores."""
    y, weights = data.labels(data.fit), data.fit.weights
    own = np.ones(len(y)) if weights is None else weights
    share = np.array([own[y == c].sum() for c in data.classes]) / own.sum()
    share = np.maximum(share, 1e-10)  # a class of the test rows alone
    return np.tile(share / share.sum(), (n, 1))
