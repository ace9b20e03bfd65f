"""The one function behind every calibration error: a view, an estimator and a norm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import InvalidInput
from .binned import binned
from .edges import make_edges
from .norms import Norm, check_norm, norm_of
from .thresholds import Threshold, above
from .views import Forecasts, read, select

__all__ = ["ESTIMATORS", "calibration_error", "error_of"]

ESTIMATORS: dict[str, Callable[..., float]] = {"binned": binned}

# Estimators whose edges come from all entries of a class, before a threshold hides some of them.
BY_EDGES = ("binned", "debiased", "label_binned")


def calibration_error(
    y_true: Any,
    y_prob: Any,
    *,
    view: Any = "top_label",
    threshold: Threshold = None,
    estimator: str = "binned",
    norm: Norm = 1,
    sample_weight: Any = None,
    classes: Any = None,
    marginals: bool = False,
    **options: Any,
) -> float:
    """How far probabilities are from frequencies.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Class labels; 0/1 outcomes where ``y_prob`` is one-dimensional.
    y_prob : array-like of shape (n, K) or (n,)
        Probabilities of the classes, or of one event.
    view : {"top_label", "class_wise", "marginals"} or a class, default "top_label"
        Top label: the largest probability of a row and whether that class is right. Class-wise: each class against
        the rest, and the power mean over classes in the order of the norm (the plain mean for norm 1, the largest for
        "max"). Marginals: class-wise over rows that need not sum to one. A class: that one against the rest. One
        event's probabilities are pairs already, and every view takes them as they are.
    threshold : None, "1/K", "prior", "kcal" or a number
        For class-wise views: only entries above it count (edges are those of all entries);
        "prior" is each class's frequency, "kcal" max(0.01, 1/K) (paper 001). Classes with no entry are left out.
    estimator : str
        One of "binned", "label_binned", "sweep", "debiased", "kde", "smooth", "ks", "exact".
    norm : {1, 2, "max"}
        With the final root: norm 2 is a root mean square.
    sample_weight : array-like of shape (n,), optional
        A weight of 2 is the row twice.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    marginals : bool
        Allow rows that do not sum to one, in any view.
    **options
        Of the estimator: ``bins``, ``edges``, ``bandwidth``, …

    Examples
    --------
    >>> calibration_error([0, 1, 1, 1], [0.25, 0.75, 0.75, 0.75], bins=10)
    0.25
    """
    if estimator not in ESTIMATORS:
        raise InvalidInput("no such estimator", seen=repr(estimator), allowed=", ".join(ESTIMATORS))
    check_norm(norm)
    everything = isinstance(view, str) and view == "marginals"
    forecasts = read(y_true, y_prob, sample_weight, classes=classes, marginals=marginals or everything)
    return error_of(
        forecasts,
        view="class_wise" if everything else view,
        threshold=threshold,
        estimator=estimator,
        norm=norm,
        **options,
    )


def error_of(
    forecasts: Forecasts, *, view: Any, threshold: Threshold, estimator: str, norm: Norm, **options: Any
) -> float:
    """Calibration error of validated forecasts."""
    compute = ESTIMATORS[estimator]
    edges, bins = options.get("edges", "equal_width"), options.get("bins", 15)
    if not (isinstance(view, str) and view == "class_wise"):
        if threshold is not None:
            raise InvalidInput("threshold needs a class-wise view", seen=f"view={view!r}", allowed="view='class_wise'")
        return compute(select(forecasts, view), norm=norm, **options)
    errors = []
    for everything, kept in above(forecasts, threshold):
        if threshold is not None and estimator in BY_EDGES:
            options["edges"] = make_edges(edges, bins, everything)
        errors.append(compute(kept, norm=norm, **options))
    return norm_of(np.full(len(errors), 1 / max(1, len(errors))), np.array(errors), norm)
