"""What measuring computes from a data set, with a map or without. It needs no scikit-learn, which is slow to load."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from ..arrays import softmax
from ..errors import InvalidInput
from ..files import Dataset, Rows
from ..metrics.summary import measure
from ..validation import as_scores

if TYPE_CHECKING:
    from ..calibrator import Calibrator

__all__ = ["announce", "inputs_of", "measured_parts", "predict", "probabilities", "with_classes_of"]


def announce(calibrator: Calibrator, data: Dataset) -> None:
    """Tell a map on scores what the file says they are."""
    if calibrator.traits.needs == "scores":
        data.need_scores(type(calibrator).__name__)
        calibrator.set_params(inputs=data.kind)


def with_classes_of(fitted: Calibrator | None, data: Dataset) -> Dataset:
    """Return the data with the classes of the map where embeddings alone do not say them."""
    if fitted is None or data.kind != "embeddings" or data.classes.tolist() == fitted.classes_.tolist():
        return data
    known = fitted.classes_.tolist()
    if strange := [c for c in data.classes.tolist() if c not in known]:
        raise InvalidInput(f"{data.path} has labels that the map does not know", seen=", ".join(map(str, strange[:6])))
    return replace(data, classes=fitted.classes_, class_names=[str(c) for c in known])


def inputs_of(calibrator: Calibrator, data: Dataset, rows: Rows) -> NDArray[Any]:
    """Return what the map takes: the scores, or the embeddings."""
    if calibrator.traits.needs != "embeddings":
        return rows.scores
    if rows.embeddings is None:
        raise InvalidInput(
            f"{type(calibrator).__name__} needs embeddings, and {data.path} has none",
            allowed="a key named embeddings",
            hint="name the one that holds them with --embeddings",
        )
    return rows.embeddings


def predict(fitted: Calibrator, data: Dataset, rows: Rows) -> NDArray[Any]:
    """Return a fitted map's probabilities; logits and probabilities are both welcome, whatever it was fitted on."""
    announce(fitted, data)
    if len(fitted.classes_) != len(data.classes):
        raise InvalidInput(
            "the map and the data have different numbers of classes",
            seen=f"{len(fitted.classes_)} in the map, {len(data.classes)} in {data.path}",
        )
    return fitted.predict_proba(inputs_of(fitted, data, rows))


def probabilities(data: Dataset, rows: Rows, fitted: Calibrator | None = None) -> NDArray[Any]:
    """Return probabilities as they came or as a map corrects them: (n, K), or (n,) for the probability of an event."""
    raw = fitted is None
    if raw:
        data.need_scores("measuring without a map")
    found = softmax(as_scores(rows.scores, data.kind).logits) if raw else predict(fitted, data, rows)
    return found[:, 1] if rows.scores.ndim == 1 else found


def measured_parts(data: Dataset, fitted: Calibrator | None, seed: int) -> dict[str, dict[str, Any]]:
    """Measure the test part of a split, or each of several sets."""
    data = with_classes_of(fitted, data)
    chosen = {"test": data.test} if data.test is not None else dict(data.parts)
    return {name: measured(data, rows, fitted, seed) for name, rows in chosen.items()}


def measured(data: Dataset, rows: Rows, fitted: Calibrator | None, seed: int) -> dict[str, Any]:
    """Measure some rows: figures with intervals, the test and the verdict, as plain values."""
    p, y = probabilities(data, rows, fitted), data.labels(rows)
    classes = data.classes if p.ndim == 2 and not data.plain_classes else None
    found = measure(y, p, sample_weight=rows.weights, classes=classes, random_state=seed)
    figures = {"accuracy" if p.ndim == 2 else "event_rate": found.accuracy, **found.metrics}
    return {
        "rows": found.n,
        "classes": found.n_classes,
        "verdict": found.verdict,
        "confidence": found.confidence,
        "metrics": {name: {"value": i.estimate, "low": i.low, "high": i.high} for name, i in figures.items()},
        "test": {"tested": found.test.tested, "statistic": found.test.statistic, "pvalue": found.test.pvalue},
    }
