"""The class-wise view: one error a class, and their mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..threads import get_threads
from .binned import binned, gaps
from .debiased import debiased, debiased_of
from .edges import Edges, fixed_edges, make_edges
from .label_binned import label_binned
from .norms import Norm, norm_of
from .thresholds import Threshold, above, threshold_values
from .views import Forecasts

__all__ = ["class_sums", "class_wise"]

# What turns a class's sums by bin into its error, for estimators that need nothing else.
_FROM_SUMS: dict[Callable[..., float], Callable[[NDArray[np.float64], Norm], float]] = {
    binned: lambda sums, norm: norm_of(*gaps(sums), norm),
    debiased: debiased_of,
}


def class_wise(
    forecasts: Forecasts,
    estimator: Callable[..., float],
    threshold: Threshold,
    norm: Norm,
    options: Mapping[str, Any],
) -> float:
    """Return the power mean over classes, in the order of the norm, of each class's error.

    For norm 1 the mean (Kull et al. 2019), for norm 2 the root of the mean square (the marginal calibration error of
    Kumar et al. 2019, Def. 2.4, with equal class weights), for "max" the largest. Classes without an entry above the
    threshold are left out.
    """
    edges = fixed_edges(options.get("edges", _default_edges(estimator)), options.get("bins", 15), forecasts.n)
    if estimator in _FROM_SUMS and edges is not None and not forecasts.is_event:
        sums = class_sums(forecasts, edges, threshold)
        kept = sums[0].sum(axis=1) > 0
        errors = [_FROM_SUMS[estimator](sums[:, k], norm) for k in np.flatnonzero(kept)]
    else:
        errors = list(_one_by_one(forecasts, estimator, threshold, norm, options))
    return norm_of(np.full(len(errors), 1 / max(1, len(errors))), np.array(errors), norm)


def class_sums(forecasts: Forecasts, edges: Edges, threshold: Threshold = None) -> NDArray[np.float64]:
    """Return (3, K, bins): sums of weights, scores and outcomes of each class in each bin, in one pass."""
    floors = threshold_values(forecasts, threshold)
    floors = np.full(forecasts.probabilities.shape[1], -1.0) if floors is None else floors
    return _core.class_bins(forecasts.probabilities, forecasts.labels, forecasts.weights, edges, floors, get_threads())


def _default_edges(estimator: Callable[..., float]) -> Any:
    return (estimator.__kwdefaults__ or {}).get("edges")


def _one_by_one(
    forecasts: Forecasts, estimator: Callable[..., float], threshold: Threshold, norm: Norm, options: Mapping[str, Any]
) -> Any:
    by_edges = estimator in (binned, debiased, label_binned)
    for everything, kept in above(forecasts, threshold):
        chosen = dict(options)
        if threshold is not None and by_edges:  # edges are those of all entries, whatever the threshold hides
            edges = options.get("edges", _default_edges(estimator))
            chosen["edges"] = make_edges(edges, options.get("bins", 15), everything)
        yield estimator(kept, norm=norm, **chosen)
