"""Checks that bad input is refused with a ValueError that names the argument."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from ..calibrator import Calibrator
from .problems import fitted, problem, require_refusal, sizes


def bad_fits(k: int) -> list[tuple[str, str, dict[str, Any]]]:
    """Return what is wrong, the argument the message must name, and the arguments of fit to replace."""
    data = problem(30, k)
    scores, labels = data.scores, data.labels
    softened = np.exp(scores - scores.max(axis=1, keepdims=True))
    softened /= softened.sum(axis=1, keepdims=True)
    ones = np.ones(30)
    names = np.array(["ant", "bee", "cat"])

    def with_value(value: float) -> Any:
        copy = scores.copy()
        copy[4, 1] = value
        return copy

    return [
        ("NaN", "scores", {"scores": with_value(np.nan)}),
        ("+inf", "scores", {"scores": with_value(np.inf)}),
        ("a row of -inf", "scores", {"scores": np.where(np.arange(30)[:, None] == 4, -np.inf, scores)}),
        ("three dimensions", "scores", {"scores": scores[:, :, None]}),
        ("a number", "scores", {"scores": 1.0}),
        ("no rows", "scores", {"scores": scores[:0], "labels": labels[:0]}),
        ("no columns", "scores", {"scores": scores[:, :0]}),
        ("None", "scores", {"scores": None}),
        ("strings", "scores", {"scores": scores.astype(str).astype(object) + "x"}),
        ("complex numbers", "scores", {"scores": scores + 1j}),
        ("probabilities as logits", "scores", {"scores": softened}),
        ("logits as probabilities", "scores", {"inputs": "probabilities"}),
        (
            "vector of logits as probabilities",
            "scores",
            {"scores": scores[:, 0], "labels": labels % 2, "inputs": "probabilities"},
        ),
        ("vector of probabilities as logits", "scores", {"scores": softened[:, 0], "labels": labels % 2}),
        ("labels outside", "y", {"labels": labels + 7 * (np.arange(30) == 3)}),
        ("negative labels", "y", {"labels": labels - 5 * (np.arange(30) == 3)}),
        ("fractions as labels", "y", {"labels": labels + 0.5}),
        ("NaN labels", "y", {"labels": np.where(np.arange(30) == 3, np.nan, labels)}),
        ("missing labels", "y", {"labels": [None, *names[labels[1:]].tolist()]}),
        ("mixed labels", "label", {"labels": [*names[labels[:-1]].tolist(), 3]}),
        ("one-hot labels", "y", {"labels": np.eye(max(k, 2))[labels]}),
        ("no labels", "y", {"labels": None}),
        ("fewer labels", "y", {"labels": labels[:-1]}),
        ("one class", "y", {"labels": np.zeros(30, dtype=int)}),
        ("one class by weight", "y", {"sample_weight": (labels == 0) * 1.0}),
        ("labels outside the classes", "y", {"labels": names[labels], "classes": ["dog", "elk", "fox"][:k]}),
        ("too few classes", "classes", {"labels": names[labels], "classes": ["ant"]}),
        ("classes twice", "classes", {"labels": names[labels], "classes": ["ant"] * k}),
        ("negative weights", "sample_weight", {"sample_weight": ones - 2 * (np.arange(30) == 5)}),
        ("zero weights", "sample_weight", {"sample_weight": 0 * ones}),
        ("NaN weights", "sample_weight", {"sample_weight": ones * np.nan}),
        ("fewer weights", "sample_weight", {"sample_weight": ones[:-1]}),
        ("weights in two columns", "sample_weight", {"sample_weight": np.ones((30, 2))}),
        ("weights as words", "sample_weight", {"sample_weight": np.full(30, "many")}),
    ]


def refuses_bad_fits(calibrator: Calibrator) -> None:
    """Refuse every listed bad input of fit."""
    for k in sizes(calibrator, (2, 3)):
        data = problem(30, k)
        for what, argument, replaced in bad_fits(k):
            if k == 2 and what.startswith("one class") and calibrator.traits.shape == "binary":
                continue  # an event that never happened has an answer, and a warning
            given = {"scores": data.scores, "labels": data.labels, **replaced}
            require_refusal(what, argument, lambda given=given: fitted(calibrator, **given))


def refuses_bad_predictions(calibrator: Calibrator) -> None:
    """Refuse to predict before fit, and on scores unlike the ones fitted on."""
    k = sizes(calibrator, (2, 3))[-1]
    data = problem(30, k)
    try:
        calibrator.unfitted().predict_proba(data.other)
    except NotFittedError:
        pass
    else:
        raise AssertionError("predict_proba before fit was accepted")
    map_ = fitted(calibrator, data.scores, data.labels)
    bad = [("another number of columns", np.hstack([data.other, data.other])), ("NaN", data.other * np.nan)]
    bad += [("no rows", data.other[:0]), ("+inf", data.other * np.inf)]
    bad += [("one column of three", data.other[:, 0])] if k == 3 else []
    for what, scores in bad:
        for method in (map_.predict_proba, map_.predict):
            require_refusal(what, "scores", lambda method=method, scores=scores: method(scores))


CHECKS = (refuses_bad_fits, refuses_bad_predictions)
