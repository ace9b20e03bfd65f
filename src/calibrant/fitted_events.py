"""Estimators of several events a row, and the map fitted on their held-out probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from .calibrator import Calibrator
from .errors import InvalidInput
from .fitted_pair import as_numbers, pick_method, shared_weights, splits_of, unfitted_copy
from .maps.binary.logit_spline import LogitSpline
from .operators.multi_label import MultiLabel
from .types import Array, Floats


@dataclass(frozen=True, eq=False)
class EventPair:
    """A fitted estimator of several events, and the map of their probabilities."""

    estimator: Any
    calibrator: MultiLabel

    def predict_proba(self, X: Any) -> Floats:
        """Return the calibrated probability of each event: (n, L)."""
        return self.calibrator.predict_proba(event_scores(self.estimator, X))


def are_several(y: Any) -> bool:
    """Tell whether y has a column for each of several events."""
    try:
        shape = np.asarray(y).shape
    except ValueError:  # rows of different lengths, which are refused where labels are read
        return False
    return len(shape) == 2 and shape[1] > 1


def event_map(calibrator: Calibrator, default: bool) -> MultiLabel:
    """Return the map to fit; where the user chose none, a logit spline for each event."""
    if isinstance(calibrator, MultiLabel):
        return calibrator.unfitted().set_params(inputs="probabilities")
    if not default:
        raise InvalidInput(
            "CalibratedModel: y has several columns, which need a MultiLabel for the calibrator",
            seen=type(calibrator).__name__,
            hint="MultiLabel(LogitSpline())",
        )
    return MultiLabel(LogitSpline(), inputs="probabilities")


def fit_events(
    model: Any,
    X: Any,
    outcomes: Any,
    weights: Array | None,
    calibrator: MultiLabel,
    prefit: bool,
    params: dict[str, Any],
) -> list[EventPair]:
    """Hold rows out, fit the map on the probabilities of all of them, and return the estimators with it."""
    everything = np.arange(len(outcomes))
    if prefit:
        estimators, scores, rows = [model.estimator], event_scores(model.estimator, X), everything
    else:
        splits = splits_of(model.cv, X, outcomes, len(outcomes), classifier=False)
        weights = shared_weights(weights, splits, len(outcomes))
        estimators = [_fitted(model.estimator, X, outcomes, train, params) for train, _ in splits]
        parts = zip(estimators, splits, strict=True)
        scores = np.concatenate([event_scores(e, _safe_indexing(X, test)) for e, (_, test) in parts])
        rows = np.concatenate([test for _, test in splits])
        if not model.ensemble:
            estimators = [_fitted(model.estimator, X, outcomes, everything, params)]
    fitted = calibrator.fit(scores, outcomes[rows], None if weights is None else weights[rows])
    return [EventPair(estimator, fitted) for estimator in estimators]


def event_scores(estimator: Any, X: Any) -> Floats:
    """Return the probability of each event, (n, L), from a matrix of them or from a list of (n, 2), one an event."""
    answer = getattr(estimator, pick_method(estimator, "predict_proba"))(X)
    whose = f"predict_proba of {type(estimator).__name__}"
    if isinstance(answer, (list, tuple)):
        names = getattr(estimator, "classes_", [np.array([0, 1])] * len(answer))
        try:
            answer = np.stack(
                [_of_event(as_numbers(p, whose), own) for p, own in zip(answer, names, strict=True)], axis=1
            )
        except (IndexError, ValueError) as error:
            raise InvalidInput(
                f"CalibratedModel: {whose} must give two columns an event", seen=str(error)[:120]
            ) from error
    scores = as_numbers(answer, whose)
    if scores.ndim != 2:
        raise InvalidInput(f"CalibratedModel: {whose} must give one column an event", seen=f"shape {scores.shape}")
    return scores


def _of_event(p: Floats, names: Any) -> Floats:
    """The column of the event that happens; zeros where the estimator has never seen it."""
    known = np.asarray(names).tolist()
    return p[:, known.index(1)] if 1 in known else np.zeros(len(p))


def _fitted(estimator: Any, X: Any, y: Any, rows: Any, params: dict[str, Any]) -> Any:
    return unfitted_copy(estimator).fit(_safe_indexing(X, rows), y[rows], **params)
