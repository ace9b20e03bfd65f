"""The class-wise view of estimators that need the rows themselves: one error a class, and their mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...cells.edges import make_edges
from ..views.forecasts import Forecasts
from ..views.thresholds import Threshold, above
from .norms import Norm
from .sums import power_mean


def class_wise(
    forecasts: Forecasts,
    estimator: Callable[..., float],
    threshold: Threshold,
    norm: Norm,
    options: Mapping[str, Any],
) -> float:
    """Return the power mean over classes of each class's error.

    Classes without an entry above the threshold are left out.
    """
    return power_mean(list(_one_by_one(forecasts, estimator, threshold, norm, options)), norm)


def _one_by_one(
    forecasts: Forecasts, estimator: Callable[..., float], threshold: Threshold, norm: Norm, options: Mapping[str, Any]
) -> Iterator[float]:
    defaults = estimator.__kwdefaults__ or {}
    for everything, kept in above(forecasts, threshold):
        chosen = dict(options)
        if threshold is not None and "bins" in defaults:  # edges are those of all entries, whatever the threshold hides
            edges, bins = (options.get(name, defaults[name]) for name in ("edges", "bins"))
            chosen["edges"] = make_edges(edges, bins, everything)
        yield estimator(kept, norm=norm, **chosen)
