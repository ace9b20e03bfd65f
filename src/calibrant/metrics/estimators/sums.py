"""Sums by group and bin: all that a binned metric needs of the rows, and what turns them into an error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import _core
from ...cells.edges import Edges
from ...cells.summed import binned_classes
from ...errors import InvalidInput
from ...threads import get_threads
from ...types import Array
from ..views.blocks import CellForecasts
from ..views.forecasts import select
from ..views.thresholds import Threshold, threshold_values
from .binned import bin_sums, binned_of
from .debiased import debiased_of
from .norms import Norm, norm_of

# What turns (3, groups, bins) sums into an error for each group, for the estimators that need nothing else.
FROM_SUMS: dict[str, Callable[[Array, Norm], Array]] = {
    "binned": binned_of,
    "debiased": debiased_of,
}


def group_sums(forecasts: Any, view: Any, edges: Edges, threshold: Threshold = None) -> Array:
    """Return (3, groups, bins) sums of weights, scores and outcomes, in one pass over the rows.

    A group is a class in the class-wise view; there is one group in the others.
    """
    if not (isinstance(view, str) and view == "class_wise"):
        return bin_sums(select(forecasts, view, ("class_wise", "marginals")), edges)[:, None]
    floors = threshold_values(forecasts, threshold)
    if forecasts.is_event:
        pairs = forecasts.top
        kept = pairs if floors is None else pairs.take(pairs.scores > floors[1])
        return bin_sums(kept, edges)[:, None]
    if isinstance(forecasts, CellForecasts):
        if floors is not None:
            raise InvalidInput("rows that came in blocks have no threshold", seen=repr(threshold), allowed="None")
        return binned_classes(forecasts.cells[1:], edges)[:3]
    floors = np.full(forecasts.probabilities.shape[1], -1.0) if floors is None else floors
    rows = forecasts.probabilities, forecasts.labels, forecasts.weights
    return _core.class_bins(*rows, edges, floors, get_threads())


def error_from_sums(sums: Array, estimator: str, norm: Norm) -> float:
    """Return the power mean over groups of their errors; groups without rows are left out."""
    return power_mean(FROM_SUMS[estimator](sums[:, sums[0].sum(axis=1) > 0], norm), norm)


def power_mean(errors: Sequence[float] | Array, norm: Norm) -> float:
    """Return the mean over classes in the order of the norm.

    For norm 1 the mean (Kull et al. 2019), for norm 2 the root mean square (the marginal calibration error of Kumar et
    al. 2019, Def. 2.4, with equal class weights), for "max" the largest.
    """
    return norm_of(np.full(len(errors), 1 / max(1, len(errors))), np.asarray(errors), norm)
