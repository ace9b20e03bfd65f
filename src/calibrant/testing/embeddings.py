"""Checks of maps on embeddings: the columns are features, any number of them, and the labels alone say the classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..calibrator import Calibrator
from ..threads import get_threads
from . import fits
from .answers import require_distributions, require_same_rows
from .problems import cloud, fitted, require, require_refusal, samples, threads

_FAR = 1e4


def answers_distributions_from_embeddings(calibrator: Calibrator) -> None:
    """Answer on the simplex, in the dtype asked in, near the rows, far from them and for equal rows."""
    for data in samples(calibrator):
        k, far = len(np.unique(data.labels)), np.full((2, data.scores.shape[1]), _FAR) * [[1], [-1]]
        for dtype in (np.float32, np.float64):
            map_ = fitted(calibrator, data.scores.astype(dtype), data.labels)
            for rows in (data.other, far, np.zeros_like(far)):
                p = map_.predict_proba(rows.astype(dtype))
                require_distributions(p, (len(rows), k))
                require(p.dtype == dtype, f"{np.dtype(dtype)} embeddings gave {p.dtype} probabilities")
            same = fitted(calibrator, np.ones((6, 2), dtype=dtype), [0, 1, 0, 1, 0, 0])
            require_distributions(same.predict_proba(np.ones((1, 2), dtype=dtype)), (1, 2))


def separates_what_is_separate(calibrator: Calibrator) -> None:
    """Find the class of points in clouds far apart."""
    data = cloud(200, 3, 4, seed=5)
    shift = np.eye(3, 4) * 20
    map_ = fitted(calibrator, data.scores + shift[data.labels], data.labels)
    right = map_.predict(data.scores + shift[data.labels]) == data.labels
    require(right.mean() > 0.95, f"only {right.mean():.2f} of rows in clouds far apart get their label")


def same_embeddings_same_bytes(calibrator: Calibrator) -> None:
    """Give the same bytes on one thread and two, and to a row alone and among others."""
    data = cloud(250, 4, 5)
    map_ = fitted(calibrator, data.scores, data.labels)
    wanted = map_.predict_proba(data.other).tobytes()
    with threads(1 if get_threads() > 1 else 2):
        require(map_.predict_proba(data.other).tobytes() == wanted, "one thread and two give different bits")
    require_same_rows(map_, data.other)


def labels_name_the_classes(calibrator: Calibrator) -> None:
    """Take any labels as classes, those of ``classes`` where given, and answer in the same."""
    data = cloud(120, 3, 5, seed=2)
    p = fitted(calibrator, data.scores, data.labels).predict_proba(data.other)
    names = np.array(["ant", "bee", "cat"])
    map_ = fitted(calibrator, data.scores, names[data.labels])
    np.testing.assert_array_equal(map_.predict_proba(data.other), p, err_msg="the labels' names changed the map")
    require(set(map_.predict(data.other)) <= set(names), "predict answers in other labels")
    wider = fitted(calibrator, data.scores, names[data.labels], classes=[*names, "dog"]).predict_proba(data.other)
    require(wider.shape == (len(data.other), 4), "a class without rows has no column")


def refuses_bad_embeddings(calibrator: Calibrator) -> None:
    """Refuse NaN, infinity, vectors, other columns, and labels that do not fit."""
    data = cloud(30, 3, 4)
    map_ = fitted(calibrator, data.scores, data.labels)
    bad: list[tuple[str, Any]] = [("NaN", data.scores * np.nan), ("infinity", data.scores * np.inf)]
    bad += [("a vector", data.scores[:, 0]), ("no rows", data.scores[:0]), ("None", None)]
    for what, rows in bad:
        require_refusal(what, "embeddings", lambda rows=rows: fitted(calibrator, rows, data.labels))
        require_refusal(what, "embeddings", lambda rows=rows: map_.predict_proba(rows))
    require_refusal("other columns", "features", lambda: map_.predict_proba(data.other[:, :2]))
    require_refusal("fewer labels", "y", lambda: fitted(calibrator, data.scores, data.labels[:-1]))
    require_refusal("one class", "y", lambda: fitted(calibrator, data.scores, 0 * data.labels))
    require_refusal("labels outside", "y", lambda: fitted(calibrator, data.scores, data.labels, classes=[0, 1]))


CHECKS = (
    *fits.OF_ALL,
    answers_distributions_from_embeddings,
    separates_what_is_separate,
    same_embeddings_same_bytes,
    labels_name_the_classes,
    refuses_bad_embeddings,
)
