"""An estimator with the map that corrects it, and how its scores are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_method_params

from .calibrator import Calibrator
from .errors import InvalidInput, blamed
from .types import Array, Floats, Integers

# What each method gives, and the score of a class that the estimator has never seen.
METHODS = {"decision_function": "logits", "predict_log_proba": "logits", "predict_proba": "probabilities"}
_NEVER = {"logits": -np.inf, "probabilities": 0.0}
# Log-probabilities below this, beside which another class has a probability of one in every digit, go on by their
# logarithm: naive Bayes says -1e8 as easily as -100, no scale of log-odds survives both, but their order tells much.
_SURE = float(np.log(np.finfo(np.float64).epsneg))

# Dealt once more, folds of few rows gain some per cent in log-loss; from 200 rows on that is not worth the time.
FOLDS, _TIMES, _HELD = 5, 4, 400


@dataclass(frozen=True, eq=False)
class Held:
    """Scores of rows that an estimator was not trained on, with their label indices and weights."""

    scores: Floats
    labels: Integers
    weights: Array | None

    @staticmethod
    def joined(parts: list[Held]) -> Held:
        """Return the rows of all parts as one."""
        weights = [part.weights for part in parts if part.weights is not None]
        return Held(
            np.concatenate([part.scores for part in parts]),
            np.concatenate([part.labels for part in parts]),
            np.concatenate(weights) if weights else None,
        )


@dataclass(frozen=True, eq=False)
class FittedPair:
    """A fitted estimator and the fitted map behind it."""

    estimator: Any
    calibrator: Calibrator
    classes: NDArray[Any]
    response_method: str

    def scores(self, X: Any) -> Floats:
        """Return the estimator's scores, one column a class."""
        return scores_of(self.estimator, X, self.classes, self.response_method)

    def predict_proba(self, X: Any) -> Floats:
        """Return the calibrated probabilities."""
        return self.calibrator.predict_proba(self.scores(X))


def pick_method(estimator: Any, wanted: str) -> str:
    """Return the method asked for, or with "auto" the first of `METHODS` that the estimator has."""
    names = tuple(METHODS) if wanted == "auto" else (wanted,)
    for name in names:
        if hasattr(estimator, name):
            return name
    raise InvalidInput(
        f"CalibratedModel: estimator {type(estimator).__name__} has no {' or '.join(names)}",
        hint="SVC gives scores by decision_function" if wanted != "auto" else "",
    )


def scores_of(estimator: Any, X: Any, classes: NDArray[Any], method: str) -> Floats:
    """Scores with one column for each of ``classes``, in their order, whatever the estimator has seen of them."""
    with np.errstate(divide="ignore"):  # the logarithm of an exact zero is -inf, and that is what it should be
        answer = getattr(estimator, method)(X)
    scores = as_numbers(answer, f"{method} of {type(estimator).__name__}")
    if scores.ndim == 1:
        scores = np.stack([np.zeros_like(scores), scores], axis=1)
    seen = classes_of(estimator)
    by_pairs = method == "decision_function" and len(seen) == 3 and _answers_by_pairs(estimator)
    if scores.ndim != 2 or scores.shape[1] != len(seen) or by_pairs:
        columns = "a column for each of the three pairs of" if by_pairs else f"shape {scores.shape} for {len(seen)}"
        raise InvalidInput(
            f"CalibratedModel: {method} of {type(estimator).__name__} must give one column a class",
            seen=f"{columns} classes",
            hint='SVC needs decision_function_shape="ovr"',
        )
    if method == "predict_log_proba":
        scores = _drawn_together(scores)
    if np.array_equal(seen, classes):
        return scores
    full = np.full((len(scores), len(classes)), _NEVER[METHODS[method]], dtype=scores.dtype)
    full[:, np.searchsorted(classes, seen)] = scores
    return full


def _answers_by_pairs(estimator: Any) -> bool:
    """Tell whether a fitted SVC, alone or in a search or a pipeline, has decision values of pairs of classes."""
    for name in ("best_estimator_", "_final_estimator"):
        estimator = getattr(estimator, name, estimator)
    return getattr(estimator, "decision_function_shape", "") == "ovo"


def as_numbers(answer: Any, whose: str) -> Floats:
    """Return what a model answered as an array of numbers."""
    try:
        scores = np.asarray(answer)
        if scores.dtype.kind not in "biufO":
            raise TypeError(f"an array of {scores.dtype}")
        return scores if scores.dtype in (np.float32, np.float64) else scores.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"CalibratedModel: {whose} must give numbers", seen=str(error)[:120]) from error


def classes_of(estimator: Any) -> NDArray[Any]:
    """Return the classes that a fitted estimator has scores of."""
    if not hasattr(estimator, "classes_"):
        raise InvalidInput(f"CalibratedModel: estimator {type(estimator).__name__} has no classes_ once it is fitted")
    return np.asarray(estimator.classes_)


def unfitted_copy(estimator: Any) -> Any:
    """Return a copy of the estimator that is not fitted."""
    with blamed("CalibratedModel: estimator cannot be copied", TypeError, problem=InvalidInput):
        return clone(estimator)


def splits_of(cv: Any, X: Any, y: Any, n: int, *, classifier: bool, **params: Any) -> list[tuple[Integers, Integers]]:
    """Return the rows to fit on and to hold out, split by split; what is no such split is refused."""
    allowed: dict[str, Any] = {
        "allowed": "a number of folds, a splitter, pairs of (train, test)",
        "problem": InvalidInput,
    }
    with blamed("CalibratedModel: cv does not split the rows", TypeError, ValueError, IndexError, **allowed):
        automatic = isinstance(cv, str) and cv == "auto"
        how: Any = (_dealings(y) if classifier else FOLDS) if automatic else cv
        splitter: Any = check_cv(how, y, classifier=classifier)
        found = [(np.arange(n)[train], np.arange(n)[test]) for train, test in splitter.split(X, y, **params)]
    if not found or not all(train.size and test.size and train.ndim == test.ndim == 1 for train, test in found):
        raise InvalidInput(
            "CalibratedModel: cv gives no rows to fit on, or none to hold out", seen=f"{len(found)} splits"
        )
    return found


def _dealings(y: Any) -> list[tuple[Integers, Integers]]:
    """Return five stratified folds, dealt again until some `_HELD` scores are held out, `_TIMES` at most.

    A class of fewer rows than folds, of which scikit-learn warns each time, is dealt once.
    """
    rarest = np.unique(y, return_counts=True)[1].min()
    times = range(1, min(_TIMES, _HELD // len(y)) if rarest >= FOLDS else 1)
    again = [StratifiedKFold(FOLDS, shuffle=True, random_state=seed) for seed in times]
    return [split for dealing in (StratifiedKFold(FOLDS), *again) for split in dealing.split(np.zeros(len(y)), y)]


def _drawn_together(logs: Floats) -> Floats:
    """Return t - log(1 + t - l) for log-probabilities l below t = log 2⁻⁵³; a class that is ruled out stays so."""
    least = logs.dtype.type(_SURE)
    beyond = np.maximum(least - logs, 0)
    return np.where(beyond > 0, least - np.log1p(beyond), logs)


def fit_map(calibrator: Calibrator, held: Held, method: str, classes: NDArray[Any]) -> Calibrator:
    """Return a copy of the map, told what the scores are, fitted on the held-out rows."""
    copy = calibrator.unfitted().set_params(inputs=METHODS[method], classes=classes)
    return copy.fit(held.scores, classes[held.labels], held.weights)


def hold_out(
    estimator: Any, X: Any, y: Any, train: Any, test: Any, classes: NDArray[Any], method: str, params: Any
) -> tuple[Any, Floats]:
    """Fit the estimator on one part of the rows and score the other."""
    chosen = _check_method_params(X, params=params, indices=train)
    estimator.fit(_safe_indexing(X, train), _safe_indexing(y, train), **chosen)
    return estimator, scores_of(estimator, _safe_indexing(X, test), classes, method)


def shared_weights(weights: Array | None, splits: list[Any], n: int) -> Array | None:
    """Return the weights of n rows, each divided by how often it is held out: under repeated folds it counts once."""
    times = np.zeros(n)
    for _, test in splits:
        times[test] += 1.0
    if times.max() <= 1.0:
        return weights
    return (1.0 if weights is None else weights) / np.maximum(times, 1.0)
