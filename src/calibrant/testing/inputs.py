"""Checks of the kinds of input that are welcome."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..calibrator import Calibrator
from .problems import fitted, problem, require, sizes


def vector_agrees_with_two_columns(calibrator: Calibrator) -> None:
    """Take (n,) log-odds or probabilities as the score of the second class."""
    data = problem(120, 2, seed=1)
    odds, other = (z[:, 1] - z[:, 0] for z in (data.scores, data.other))
    p = fitted(calibrator, data.scores, data.labels).predict_proba(data.other)
    for shape in ((-1,), (-1, 1)):
        q = fitted(calibrator, odds.reshape(shape), data.labels).predict_proba(other.reshape(shape))
        np.testing.assert_allclose(p, q, atol=1e-5, err_msg="(n,) scores differ from two columns")
    raw, raw_other = 1 / (1 + np.exp(-odds)), 1 / (1 + np.exp(-other))
    q = fitted(calibrator, raw, data.labels, inputs="probabilities").predict_proba(raw_other)
    np.testing.assert_allclose(p, q, atol=1e-5, err_msg="(n,) probabilities differ from two columns of logits")


def labels_of_any_kind(calibrator: Calibrator) -> None:
    """Take strings, numbers from one, booleans and objects as labels, and answer in the same."""
    k = sizes(calibrator, (2, 3))[-1]
    data = problem(150, k, seed=2)
    p = fitted(calibrator, data.scores, data.labels).predict_proba(data.other)
    names = np.array(["ant", "bee", "cat"])[:k]
    kinds: list[tuple[NDArray[Any], Any]] = [
        (names, None),
        (names.astype(object), None),
        (names[::-1], names[::-1]),
        (np.arange(1, k + 1), None),
        (np.arange(k) * 10 - 5, np.arange(k) * 10 - 5),
    ]
    kinds += [(np.array([False, True]), None)] if k == 2 else []
    for known, classes in kinds:
        map_ = fitted(calibrator, data.scores, known[data.labels], classes=classes)
        np.testing.assert_array_equal(map_.classes_, known, err_msg="classes_ are not the labels of the columns")
        np.testing.assert_array_equal(map_.predict_proba(data.other), p, err_msg="the labels' names changed the map")
        answer = map_.predict(data.other)
        require(set(answer.tolist()) <= set(known.tolist()), "predict answers in other labels")


def classes_may_be_missing(calibrator: Calibrator) -> None:
    """Fit when classes have no rows: every column still gets a valid probability."""
    if sizes(calibrator, (2, 6))[-1] == 2:
        return
    data = problem(150, 6, seed=3)
    seen = np.array([0, 2, 5])
    labels = seen[data.scores[:, seen].argmax(axis=1)]
    labels[::7] = seen[np.arange(len(labels[::7])) % 3]
    map_ = fitted(calibrator, data.scores, labels)
    p = map_.predict_proba(data.other)
    require(p.shape == data.other.shape and np.isfinite(p).all(), "a class without rows breaks the map")
    named = fitted(calibrator, data.scores, np.array(list("abcdef"))[labels], classes=list("abcdef"))
    np.testing.assert_array_equal(named.predict_proba(data.other), p)


class _Tensor:
    """What matters of a torch tensor: detach, cpu, numpy, and no implicit conversion."""

    def __init__(self, values: NDArray[Any]) -> None:
        self._values, self.dtype = values, f"torch.{values.dtype}"

    def detach(self) -> _Tensor:
        return self

    def cpu(self) -> _Tensor:
        return self

    def numpy(self) -> NDArray[Any]:
        return self._values


def frames_and_tensors(calibrator: Calibrator) -> None:
    """Take lists, pandas and polars frames (where installed), tensors, read-only and strided arrays."""
    k = sizes(calibrator, (2, 3))[-1]
    data = problem(90, k, seed=4)
    p = fitted(calibrator, data.scores, data.labels).predict_proba(data.other)
    names = ["ant", "bee", "cat"][:k]
    forms: list[tuple[Any, Any]] = [(np.ndarray.tolist, np.ndarray.tolist), (_Tensor, _Tensor)]
    forms += [(np.asfortranarray, np.array), (_read_only, _read_only)]
    for library in ("pandas", "polars"):
        if find_spec(library):
            module = import_module(library)
            forms.append((lambda z, m=module: m.DataFrame(dict(zip(names, z.T, strict=True))), module.Series))
    for scores_as, labels_as in forms:
        map_ = fitted(calibrator, scores_as(data.scores), labels_as(data.labels))
        q = map_.predict_proba(scores_as(data.other))
        np.testing.assert_array_equal(p, q, err_msg=f"{type(scores_as(data.other)).__name__} input changed the map")


def _read_only(values: NDArray[Any]) -> NDArray[Any]:
    copy = values.copy()
    copy.setflags(write=False)
    return copy


CHECKS = (vector_agrees_with_two_columns, labels_of_any_kind, classes_may_be_missing, frames_and_tensors)
