"""What commands compute from a data set and a map: the seam between files and the library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import softmax
from ..calibrator import Calibrator
from ..errors import InvalidInput
from ..files import Dataset, Rows, read
from ..metrics import brier, ece, ece_sweep, nll
from ..metrics.summary import measure
from ..registry import make
from ..reports import Context
from ..selection import Comparison, compare
from ..validation import as_scores

__all__ = [
    "compared",
    "facts",
    "fit",
    "judge",
    "make_seeded",
    "measured_parts",
    "predict",
    "probabilities",
    "report_context",
]


def make_seeded(method: str, parameters: dict[str, Any], seed: int) -> Calibrator:
    """Make a map by name, with the seed where it has randomness."""
    made = make(method, **parameters)
    random = [p for p in made.get_params(deep=True) if p.rsplit("__", 1)[-1] == "random_state"]
    if random and "random_state" not in parameters:
        made.set_params(**dict.fromkeys(random, seed))
    return made


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


def fit(calibrator: Calibrator, data: Dataset) -> Calibrator:
    """Fit a fresh map on the rows for fitting."""
    calibrator.set_params(inputs=data.kind, classes=None if data.plain_classes else data.classes)
    rows = data.fit
    return calibrator.fit(inputs_of(calibrator, data, rows), data.labels(rows), sample_weight=rows.weights)


def predict(fitted: Calibrator, data: Dataset, rows: Rows) -> NDArray[Any]:
    """Return a fitted map's probabilities; logits and probabilities are both welcome, whatever it was fitted on."""
    fitted.set_params(inputs=data.kind)
    if len(fitted.classes_) != len(data.classes):
        raise InvalidInput(
            "the map and the data have different numbers of classes",
            seen=f"{len(fitted.classes_)} in the map, {len(data.classes)} in {data.path}",
        )
    return fitted.predict_proba(inputs_of(fitted, data, rows))


def probabilities(data: Dataset, rows: Rows, fitted: Calibrator | None = None) -> NDArray[Any]:
    """Return probabilities as they came or as a map corrects them: (n, K), or (n,) for the probability of an event."""
    raw = fitted is None
    found = softmax(as_scores(rows.scores, data.kind).logits) if raw else predict(fitted, data, rows)
    return found[:, 1] if rows.scores.ndim == 1 else found


def measured_parts(data: Dataset, fitted: Calibrator | None, seed: int) -> dict[str, dict[str, Any]]:
    """Measure the test part of a split, or each of several sets."""
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


def judge(fitted: Calibrator, data: Dataset, rows: Rows) -> dict[str, dict[str, float]]:
    """Return the metrics of some rows before and after a map."""
    return {"before": _plain_metrics(data, rows, None), "after": _plain_metrics(data, rows, fitted)}


def _plain_metrics(data: Dataset, rows: Rows, fitted: Calibrator | None) -> dict[str, float]:
    p, y = probabilities(data, rows, fitted), data.labels(rows)
    options: dict[str, Any] = {"sample_weight": rows.weights}
    options |= {"classes": data.classes} if p.ndim == 2 and not data.plain_classes else {}
    return {metric.__name__: float(metric(y, p, **options)) for metric in (nll, brier, ece, ece_sweep)}


def compared(data: Dataset, seed: int, progress: Any, settings: dict[str, Any], names: dict[str, Any]) -> Comparison:
    """Compare maps: on the test part or file where there is one and no number of folds was asked for."""
    rows, wanted = data.fit, settings["methods"]
    other = read(settings["test"], **names) if settings["test"] else data
    test = other.judged if settings["test"] else data.test
    if other.kind != data.kind:
        raise InvalidInput(f"{data.path} holds {data.kind}, {other.path} holds {other.kind}")
    use_test = test is not None and (settings["cv"] is None or settings["test"] is not None)
    return compare(
        rows.scores,
        data.labels(rows),
        methods=wanted if wanted in ("fast", "all") else [name.strip() for name in wanted.split(",")],
        cv=settings["cv"] or 5,
        repeats=settings["repeats"],
        test=(test.scores, other.labels(test), test.embeddings) if use_test and test is not None else None,
        inputs=data.kind,
        classes=None if data.plain_classes else data.classes,
        sample_weight=rows.weights,
        embeddings=rows.embeddings,
        metric=settings["metric"],
        preserve_accuracy=settings["preserve_accuracy"],
        sizes=settings["sizes"],
        random_state=seed,
        progress=progress,
    )


def report_context(data: Dataset, title: str | None, settings: dict[str, Any], seed: int) -> Context:
    """Return where the numbers of a report come from."""
    found: dict[str, Any] = {"file": data.path, "SHA-256": data.digest, "scores": data.kind}
    for name, rows in data.parts.items():
        prefix = f"{name}: " if name else ""
        for key, value in facts(data, rows).items():
            if key != "keys":
                found[prefix + key.replace("_", " ")] = value
    told = {key: value for key, value in settings.items() if value and value != _DEFAULTS.get(key)}
    words = [
        f"--{key.replace('_', '-')}" + ("" if value is True else f" {_word(value)}") for key, value in told.items()
    ]
    command = " ".join(["calibrant report", data.path, *words, f"--seed {seed}"])
    names = tuple(data.class_names)
    return Context(title or f"Calibration of {Path(data.path).name}", found, command, names, _warnings(data))


_DEFAULTS = {"methods": "fast", "repeats": 1, "metric": "nll"}


def _word(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _warnings(data: Dataset) -> tuple[str, ...]:
    found = []
    if data.test is None and len(data.parts) > 1:
        found.append(
            f"The file holds several sets ({', '.join(data.parts)}); this is about the first. Choose with --part."
        )
    for rows in data.parts.values():
        told = facts(data, rows)
        if rows.labels is not None and told["accuracy"] < 0.9 / len(data.classes):
            found.append(
                f"Accuracy is {told['accuracy']:.3f}, below chance: are the labels shifted or in another order?"
            )
    return tuple(found)


def facts(data: Dataset, rows: Rows) -> dict[str, Any]:
    """Return what a person should know of some rows before believing any figure."""
    scores = np.asarray(rows.scores)
    found: dict[str, Any] = {
        "rows": len(rows),
        "scores": f"{scores.dtype} {scores.shape}, {scores.min():.6g} to {scores.max():.6g}",
        "keys": dict(rows.keys or {}),
    }
    p = softmax(as_scores(rows.scores, data.kind).logits)
    found["exact_zeros"], found["exact_ones"] = int((p == 0).sum()), int((p == 1).sum())
    found["tied_rows"] = int(((p == p.max(axis=1, keepdims=True)).sum(axis=1) > 1).sum())
    if rows.labels is not None:
        found["classes_seen"] = len(np.unique(rows.labels))
        found["accuracy"] = float((data.classes[p.argmax(axis=1)] == rows.labels).mean())
    return found
