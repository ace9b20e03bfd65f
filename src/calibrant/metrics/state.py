"""Binned metrics as small states: init, update, merge, finalise. The plain function is that, run once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cells.edges import fixed_edges
from ..cells.pairs import Pairs
from ..errors import InvalidInput
from .estimators.calibration_error import check_estimator, default_norm, error_of_pairs
from .estimators.norms import Norm
from .estimators.sums import FROM_SUMS, error_from_sums, group_sums, power_mean
from .views.forecasts import read
from .views.thresholds import Threshold

__all__ = ["BinnedState"]


class BinnedState:
    """Sums by bin that add up over batches, streams and partitions.

    The size is 3 × groups × bins numbers, whatever the number of rows; a group is a class in the class-wise view, and
    there is one group in the others.

    Parameters
    ----------
    view : {"top_label", "class_wise", "marginals", "pooled"} or a class
    edges : {"equal_width", "sturges"} or array-like
        Edges that do not depend on the scores. For estimators that choose their own bins (equal mass, sweep, KS, …)
        take many: ``bins=4096`` answers like the rows themselves up to the width of a cell.
    bins : int
    threshold : None, "1/K", "kcal" or a number
        "prior" would need all labels first.

    Examples
    --------
    >>> first = BinnedState().update([1, 0], [0.75, 0.25])
    >>> second = BinnedState().update([1, 1], [0.75, 0.25])
    >>> first.merge(second).finalise()
    0.25
    """

    def __init__(
        self, *, view: Any = "top_label", edges: Any = "equal_width", bins: Any = 15, threshold: Threshold = None
    ) -> None:
        made = fixed_edges(edges, bins, 0)
        if made is None or bins == "sturges" or threshold == "prior":
            raise InvalidInput(
                "a state needs edges and thresholds that do not depend on the data",
                seen=f"edges={edges!r}, bins={bins!r}, threshold={threshold!r}",
                allowed="equal width or given edges, a number of bins, no threshold 'prior'",
                hint="take bins=4096 and pass edges='equal_mass' to finalise",
            )
        if threshold is not None and not (isinstance(view, str) and view in ("class_wise", "marginals")):
            raise InvalidInput("threshold needs a class-wise view", seen=f"view={view!r}", allowed="view='class_wise'")
        self.view, self.edges, self.threshold = view, made, threshold
        self.sums: NDArray[np.float64] | None = None
        self.classes: NDArray[Any] | None = None
        self.is_event: bool | None = None

    def __repr__(self) -> str:
        weight = 0.0 if self.sums is None else float(self.sums[0].sum())
        groups = "" if self.sums is None else f", {self.sums.shape[1]} group(s) of total weight {weight:g}"
        return f"BinnedState(view={self.view!r}, {len(self.edges) - 1} bins{groups})"

    def update(self, y_true: Any, y_prob: Any, *, sample_weight: Any = None, classes: Any = None) -> BinnedState:
        """Add rows, and return the state itself."""
        marginals = isinstance(self.view, str) and self.view == "marginals"
        forecasts = read(y_true, y_prob, sample_weight, classes=classes, marginals=marginals)
        view = "class_wise" if marginals else self.view
        sums = group_sums(forecasts, view, self.edges, self.threshold)
        return self._add(sums, forecasts.classes, forecasts.is_event)

    def merge(self, other: BinnedState) -> BinnedState:
        """Add the rows of another state, and return the state itself."""
        if not np.array_equal(self.edges, other.edges) or self.view != other.view or self.threshold != other.threshold:
            raise InvalidInput("states of different views, edges or thresholds cannot be merged")
        return self if other.sums is None else self._add(other.sums, other.classes, other.is_event)

    def finalise(self, estimator: str = "binned", *, norm: Norm | None = None, **options: Any) -> float:
        """Return the calibration error of all rows so far.

        ``binned`` and ``debiased`` on the state's own edges are exact. Other estimators, and other edges, see each bin
        as so many rows at its mean score.
        """
        if self.sums is None:
            raise InvalidInput("a state without rows has no error", hint="call update first")
        check_estimator(estimator, norm)
        chosen = default_norm(estimator) if norm is None else norm
        if estimator in FROM_SUMS and not options:
            return error_from_sums(self.sums, estimator, chosen)
        groups = [group for group in self.sums.transpose(1, 0, 2) if group[0].sum() > 0]
        errors = [error_of_pairs(_pairs_of(g), estimator=estimator, norm=chosen, **options) for g in groups]
        return power_mean(errors, chosen)

    def _add(self, sums: NDArray[np.float64], classes: Any, is_event: bool | None) -> BinnedState:
        if self.is_event not in (None, is_event):
            kinds = {True: "probabilities of one event, (n,)", False: "probabilities of classes, (n, K)"}
            raise InvalidInput(
                "one event and classes cannot be in one state: their scores mean different things",
                seen=kinds[bool(is_event)],
                allowed=kinds[bool(self.is_event)],
            )
        if self.sums is not None and self.sums.shape != sums.shape:
            raise InvalidInput("rows with another number of classes cannot be added to this state")
        if self.classes is not None and len(sums[0]) > 1 and not np.array_equal(self.classes, classes):
            raise InvalidInput(
                "rows with other classes cannot be added to this state",
                seen=repr(classes.tolist())[:80],
                allowed=repr(self.classes.tolist())[:80],
                hint="pass classes=[…] with the label of each column to every update",
            )
        self.classes, self.is_event = classes, is_event
        self.sums = sums if self.sums is None else self.sums + sums
        return self


def _pairs_of(sums: NDArray[np.float64]) -> Pairs:
    """Return pairs with the same sums: two rows a bin, one for what happened and one for what did not."""
    weight, score, outcome = sums[:, sums[0] > 0]
    scores = np.clip(score / weight, 0, 1)
    ones = np.repeat([1.0, 0.0], len(weight))
    return Pairs(np.r_[scores, scores], ones, np.r_[outcome, np.maximum(weight - outcome, 0)])
