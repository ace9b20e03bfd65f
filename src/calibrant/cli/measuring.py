"""What measuring computes from a data set, with a map or without. It needs no scikit-learn, which is slow to load."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ..arrays import softmax
from ..errors import InvalidInput
from ..files import Dataset, Rows
from ..files.assemble import other_classes
from ..metrics.measurement import Measurement
from ..metrics.measuring import measure
from ..plain import plain
from ..types import Integers
from ..validation import as_scores, column_order, is_first_of_two

if TYPE_CHECKING:
    from ..calibrator import Calibrator


def announce(calibrator: Calibrator, data: Dataset) -> None:
    """Tell a map on scores what the file says they are."""
    if calibrator.traits.needs == "scores":
        data.need_scores(calibrator.called)
        calibrator.set_params(inputs=data.kind)


def with_classes_of(fitted: Calibrator | None, data: Dataset) -> Dataset:
    """Return the data with the map's classes where embeddings do not say them; other labels are refused."""
    if fitted is None:
        return data
    if data.event is not None and fitted.classes_.dtype.kind in "OU" and set(data.classes) != set(fitted.classes_):
        raise InvalidInput(
            f"{data.path} has other labels than the map",
            seen=", ".join(map(str, data.classes)),
            allowed=", ".join(map(str, fitted.classes_)),
        )
    if data.kind != "embeddings" or data.classes.tolist() == fitted.classes_.tolist():
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
            f"{calibrator.called} needs embeddings, and {data.path} has none",
            allowed="a key named embeddings",
            hint="name the one that holds them with --embeddings",
        )
    return rows.embeddings


def replaces(calibrator: Calibrator, data: Dataset) -> bool:
    """Tell whether the map is one on embeddings that compares itself with the classifier, whose scores the file has."""
    return hasattr(calibrator, "classifier_") and calibrator.traits.needs == "embeddings" and data.kind != "embeddings"


def in_order_of(names: Any, classes: Any, data: Dataset, whose: str) -> Integers | None:
    """Return which column of the file is the first, second, … class of ``whose``; None where position decides.

    ``names`` are those of its columns, if it has any; ``classes`` its classes.
    """
    event = next(iter(data.parts.values())).scores.ndim == 1
    if event or data.kind == "embeddings" or len(classes) != len(data.class_names):
        return None
    with other_classes(data.path, whose):
        return column_order(data.class_names, names, classes)


def _places(fitted: Calibrator, data: Dataset) -> Integers | None:
    embedded = fitted.traits.needs == "embeddings"  # whose columns are no classes
    names = None if embedded else getattr(fitted, "feature_names_in_", None)
    return in_order_of(names, fitted.classes_, data, "the map was fitted on")


def refuse_moved_positions(data: Dataset, order: Integers | None) -> None:
    """Raise where labels are the numbers of columns, and the columns come in another order than they did before."""
    moved = order is not None and bool((order != np.arange(len(order))).any())
    if moved and data.has_labels_by_position:
        raise InvalidInput(
            f"{data.path} has its columns in another order, and labels that number them: what 0 means is not certain",
            seen=", ".join(list(data.class_names)[:6]),
            hint="write the labels as names, or put the columns into the order they had",
        )


def predict(fitted: Calibrator, data: Dataset, rows: Rows) -> NDArray[Any]:
    """Return a fitted map's probabilities, a column for each of the file's own classes, in their order.

    Names decide which is which. Logits and probabilities are both welcome, whatever the map was fitted on.
    """
    announce(fitted, data)
    if len(fitted.classes_) != len(data.classes):
        raise InvalidInput(
            "the map and the data have different numbers of classes",
            seen=f"{len(fitted.classes_)} in the map, {len(data.classes)} in {data.path}",
        )
    order, inputs = _places(fitted, data), inputs_of(fitted, data, rows)
    scores = rows.scores if order is None else rows.scores[:, order]
    classifier = getattr(fitted, "classifier_", None)
    if fitted.traits.needs != "embeddings":
        answer = fitted.predict_proba(data.named(scores) if scores.ndim == 1 else scores)
        if scores.ndim == 1 and is_first_of_two(data.alone, fitted.classes_):
            return answer[:, ::-1]
    elif replaces(fitted, data) and classifier is not None:
        classifier.set_params(inputs=data.kind)
        answer = cast(Any, fitted).predict_proba(inputs, classifier_scores=scores)
    else:
        answer = fitted.predict_proba(inputs)
    return answer if order is None else answer[:, np.argsort(order)]


def probabilities(data: Dataset, rows: Rows, fitted: Calibrator | None = None) -> NDArray[Any]:
    """Return probabilities as they came or as a map corrects them: (n, K), or (n,) for the probability of an event."""
    if fitted is None:
        data.need_scores("measuring without a map")
        found = softmax(as_scores(rows.scores, data.kind).logits)
    else:
        refuse_moved_positions(data, _places(fitted, data))
        found = predict(fitted, data, rows)
    return found[:, 1] if rows.scores.ndim == 1 else found


def measured_parts(
    data: Dataset, fitted: Calibrator | None, seed: int, profile: str = "default", *, by_group: bool = False
) -> dict[str, Measurement]:
    """Measure the test part of a split, or each of several sets.

    Groups that were asked for have figures of their own. Those that only stand in the file say which rows depend on
    each other, as `compare` takes them, where there are no clusters.
    """
    chosen = {"test": data.test} if data.test is not None else dict(data.parts)
    if not by_group:
        chosen = {
            name: replace(rows, groups=None, clusters=rows.groups if rows.clusters is None else rows.clusters)
            for name, rows in chosen.items()
        }
    return {name: _measured(data, rows, fitted, seed, profile) for name, rows in chosen.items()}


def _measured(data: Dataset, rows: Rows, fitted: Calibrator | None, seed: int, profile: str) -> Measurement:
    if profile == "multilabel":
        p = rows.scores if fitted is None and data.kind == "probabilities" else _each_event(data, rows, fitted)
        classes = data.class_names
    else:
        p = probabilities(data, rows, fitted)
        classes = None if data.plain_classes else data.classes
    return measure(
        data.labels(rows),
        p,
        sample_weight=rows.weights,
        groups=rows.groups,
        clusters=rows.clusters,
        classes=classes,
        random_state=seed,
        profile=profile,
    )


def _each_event(data: Dataset, rows: Rows, fitted: Calibrator | None) -> NDArray[Any]:
    """Return probabilities of events that need not exclude each other, from logits or from a map of such."""
    if fitted is None:
        return expit(np.asarray(rows.scores, dtype=np.float64))
    announce(fitted, data)
    found = fitted.predict_proba(rows.scores)
    if found.shape != rows.scores.shape:
        raise InvalidInput("this map is not one of several events", seen=fitted.called, hint="fit MultiLabel on them")
    return found


def plain_figures(found: Measurement) -> dict[str, Any]:
    """Return figures with intervals, the test and the verdict as plain values."""
    figures = {
        name: {"value": i.estimate, "low": i.low, "high": i.high, "norm": i.norm, "note": i.note, "wide": i.wide}
        for name, i in found.figures.items()
    }
    test = {name: getattr(found.test, name) for name in ("tested", "statistic", "pvalue", "floor")}
    return {
        "rows": found.n,
        "classes": found.n_classes,
        "event": found.is_event,
        "verdict": found.verdict,
        "shape": found.shape,
        "confidence": found.confidence,
        "metrics": figures,
        "wide": found.wide,
        "test": test,
        **({} if found.profile == "default" else {"profile": found.profile}),
        **({} if found.labels is None else {"labels": plain(found.labels.to_dict(), nan="nan")}),
        **({} if found.group_findings is None else {"groups": plain(found.group_findings.to_dict(), nan="nan")}),
    }
