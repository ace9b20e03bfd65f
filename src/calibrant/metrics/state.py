"""Metrics as small states: init, update, merge, finalise. The plain function is that, run once."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..cells.edges import fixed_edges
from ..cells.moments import Moments
from ..cells.pairs import Pairs
from ..cells.summed import CELLS, check_cells
from ..errors import FileProblem, InvalidInput, reading_state
from .estimators.calibration_error import default_norm, error_of_pairs
from .estimators.norms import Norm
from .estimators.sums import FROM_SUMS, power_mean
from .metric import BinSums, GroupCells, Metric, Part
from .table import TABLE, row_of
from .views.blocks import refuse_other_classes
from .views.forecasts import in_known_order
from .views.thresholds import Threshold

FORMAT = 2
_PARTS: dict[str, Any] = {"bins": BinSums, "cells": GroupCells, "moments": Moments}


def state(name: str, *, cells: int = CELLS, **options: Any) -> State:
    """Return an empty state of a metric, to be updated with blocks of rows.

    Parameters
    ----------
    name : str
        Of a metric in `calibrant.metrics`.
    cells : int
        How many cells scores are summed in where bins are not fixed: more are finer, and as many times as large.
    **options
        Those that the function takes.

    Examples
    --------
    >>> first, second = state("ece", bins=10), state("ece", bins=10)
    >>> total = first.update([1, 0], [0.75, 0.25]) + second.update([1, 1], [0.75, 0.25])
    >>> total.finalise()
    0.25
    """
    row = row_of(name)
    if row is None:
        raise InvalidInput("a state is that of a metric by its name", seen=repr(name)[:80], allowed='such as "ece"')
    row.check(options)
    check_cells(cells)
    return State(row, options, cells)


class State:
    """What a metric keeps of the rows so far: a few KB, whatever their number. ``+`` merges two.

    Sums by bin, where edges are fixed, and moments, where the metric is a mean, are exact. All else keeps up to 256
    distinct scores as they are, and sums of cells of a grid of 192 where there are more (`calibrant.cells.summed`).
    """

    def __init__(self, metric: Metric, options: dict[str, Any], cells: int = CELLS) -> None:
        self.metric = metric
        self.options = options
        self.cells = cells
        self.part: Part | None = None
        self.classes: Any = None
        self.is_event: bool | None = None

    def update(self, y_true: Any, y_prob: Any, *, sample_weight: Any = None, classes: Any = None) -> Any:
        """Add rows, and return the state itself."""
        options = dict(self.options)
        y_prob, classes = in_known_order(y_prob, classes, self.classes)
        forecasts = self.metric.read(y_true, y_prob, sample_weight, classes, options, whole=False)
        return self._add(self.metric.part(forecasts, self.cells, **options), forecasts.classes, forecasts.is_event)

    def merge(self, other: Any) -> Any:
        """Add the rows of another state, and return the state itself."""
        if type(self) is not type(other) or self._settings() != other._settings():
            raise InvalidInput("states of different metrics, views, edges or thresholds cannot be merged")
        return self if other.part is None else self._add(other.part, other.classes, other.is_event)

    def __add__(self, other: Any) -> Any:
        return self._empty().merge(self).merge(other)

    def finalise(self, **options: Any) -> float:
        """Return the figure of all rows so far."""
        found = {name: value for name, value in {**self.options, **options}.items() if name != "marginals"}
        return self.metric.defined(self.metric.value(self._known(), **found))

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, strings and numbers, as JSON can hold them."""
        kind = next((name for name, made in _PARTS.items() if isinstance(self.part, made)), None)
        return {
            "format": FORMAT,
            "metric": self.metric.name,
            "cells": self.cells,
            "options": {name: _plain(value) for name, value in self.options.items()},
            "classes": None if self.classes is None else _plain(self.classes),
            "is_event": self.is_event,
            "kind": kind,
            "part": None if self.part is None else self.part.to_dict(),
        }

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> State:
        """Return the state that `to_dict` told; what it cannot have told is refused."""
        with reading_state("state of a metric"):
            if given.get("format") != FORMAT or given.get("metric") not in TABLE:
                raise InvalidInput("this is no state of a metric", seen=repr(given)[:80], allowed=f"format {FORMAT}")
            cells = given.get("cells", CELLS)
            made = state(given["metric"], cells=cells, **given["options"])
            if given["part"] is None:
                return made
            classes, is_event = np.asarray(given["classes"]), bool(given["is_event"])
            grid = {"cells": cells} if given["kind"] == "cells" else {}
            part = _PARTS[given["kind"]].from_dict(given["part"], **grid)
            # A row of any such classes is kept in sums of the same kind and size.
            row = (classes[-1:], np.full(1, 0.5) if is_event else np.full((1, len(classes)), 1 / len(classes)))
            like = made._empty().update(*row, classes=classes)
            if _is_empty(part) or type(like.part) is not type(part) or _size(like.part) != _size(part):
                raise FileProblem("this is no state of a metric", seen="sums of another metric, or of other classes")
            made.part, made.classes, made.is_event = part, like.classes, is_event
            return made

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        return f"State({self.metric.name!r}{', ' + shown if shown else ''}{'' if self.part else ', no rows'})"

    def _settings(self) -> Any:
        return self.metric.name, self.cells, {name: _plain(value) for name, value in self.options.items()}

    def _empty(self) -> Any:
        return State(self.metric, self.options, self.cells)

    def _known(self) -> Any:
        if self.part is None:
            raise InvalidInput("a state without rows has no figure", hint="call update first")
        return self.part

    def _add(self, part: Part, classes: Any, is_event: bool | None) -> Any:
        if self.part is None:
            self.part, self.classes, self.is_event = part, classes, is_event
            return self
        many = isinstance(part, (BinSums, GroupCells)) and _groups(part) > 1
        same = classes if many or len(classes) != len(self.classes) else self.classes
        refuse_other_classes(bool(self.is_event), self.classes, bool(is_event), same)
        self.part = self.part + part  # pyright: ignore[reportOperatorIssue]  # parts of one metric are of one kind
        return self


def _groups(part: BinSums | GroupCells) -> int:
    return part.sums.shape[1] if isinstance(part, BinSums) else len(part.groups)


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


class BinnedState(State):
    """Sums by bin that add up over batches, streams and partitions, and that several estimators can finish.

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
        super().__init__(TABLE["calibration_error"], {"view": view, "edges": made, "threshold": threshold})

    def __repr__(self) -> str:
        bins = len(self.options["edges"]) - 1
        weight = 0.0 if self.part is None else float(self.part.sums[0].sum())  # pyright: ignore
        groups = "" if self.part is None else f", {_groups(self.part)} group(s) of total weight {weight:g}"  # pyright: ignore
        return f"BinnedState(view={self.options['view']!r}, {bins} bins{groups})"

    def _empty(self) -> BinnedState:
        return BinnedState(**self.options)

    def finalise(self, estimator: str = "binned", *, norm: Norm | None = None, **options: Any) -> float:  # pyright: ignore
        """Return the calibration error of all rows so far.

        ``binned`` and ``debiased`` on the state's own edges are exact. Other estimators, and other edges, see each bin
        as so many rows at its mean score.
        """
        part = self._known()
        choice = self.metric.given({"estimator": estimator, "norm": norm})
        if estimator in FROM_SUMS and not options:
            return self.metric.value(part, **choice)
        groups = [group for group in part.sums.transpose(1, 0, 2) if group[0].sum() > 0]
        errors = [error_of_pairs(_pairs_of(g), estimator=estimator, norm=choice["norm"], **options) for g in groups]
        return power_mean(errors, choice["norm"] or default_norm(estimator))


def _pairs_of(sums: Any) -> Pairs:
    """Return pairs with the same sums: two rows a bin, one for what happened and one for what did not."""
    weight, score, outcome = sums[:, sums[0] > 0]
    scores = np.clip(score / weight, 0, 1)
    ones = np.repeat([1.0, 0.0], len(weight))
    return Pairs(np.r_[scores, scores], ones, np.r_[outcome, np.maximum(weight - outcome, 0)])


def _is_empty(part: Part) -> bool:
    """Whether sums are those of no rows, which a state has only where it has no sums."""
    if isinstance(part, GroupCells):
        return any(not group.table.size for group in part.groups)
    return isinstance(part, BinSums) and not part.sums[0].any()


def _size(part: Any) -> Any:
    """Return how many groups, and bins of each, a state keeps sums of."""
    return part.sums.shape if isinstance(part, BinSums) else len(part.groups) if isinstance(part, GroupCells) else None
