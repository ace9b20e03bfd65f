"""What a row of the table is: a name with its view, estimator, norm and words, as init / update / merge / finalise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from inspect import Parameter, signature
from typing import Any

import numpy as np

from ..cells.edges import fixed_edges
from ..cells.moments import Moments, moments_of
from ..cells.pairs import Pairs
from ..cells.summed import CELLS, FEWEST, SummedCells, short_list, summed
from ..errors import FileProblem, InvalidInput, reading_state
from ..types import Array
from .estimators.calibration_error import (
    check_estimator,
    check_options,
    default_norm,
    error_of,
    error_of_pairs,
    option_of,
    spelt,
)
from .estimators.norms import Norm
from .estimators.sums import FROM_SUMS, error_from_sums, group_sums, power_mean
from .inference.intervals import Interval
from .inference.means import loss_interval, share_interval
from .inference.resampling import Sampling, is_view
from .inference.uncertainty import error_interval, from_resamples
from .views.forecasts import Forecasts, read, select
from .views.thresholds import above

_EVERY = ("view", "norm", "squared", "estimator", "threshold", "marginals")  # what no estimator of an error asks for


@dataclass(frozen=True, eq=False)
class BinSums:
    """Sums of weights, scores and outcomes by group and bin of fixed edges: (3, groups, bins)."""

    sums: Array

    def __add__(self, other: BinSums) -> BinSums:
        return BinSums(self.sums + other.sums)

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, of numbers of 10 digits where they are not whole."""
        return {"sums": [[short_list(group, _DIGITS) for group in part] for part in self.sums]}

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> BinSums:
        """Return what `to_dict` told; what it cannot have told is refused."""
        with reading_state("sum by bin"):
            sums = np.array(given["sums"], dtype=np.float64)
            weights, scores, outcomes = sums
            most = weights * (1 + 1e-6) + 1e-9  # sums are rounded in another order than the weights
            good = sums.ndim == 3 and np.isfinite(sums).all() and (sums >= 0).all()
            if not good or (scores > most).any() or (outcomes > most).any():
                raise FileProblem("this is no sum by bin", seen="numbers that contradict each other")
            return cls(sums)


_DIGITS = 10  # of a sum by bin that is not whole
BINS = 20  # of equal width, whose edges the cells of one view have too: decisions at thresholds of .05, .1, … are exact


@dataclass(frozen=True, eq=False)
class GroupCells:
    """Sums by cell of each group: one, or one a class."""

    groups: tuple[SummedCells, ...]

    def __add__(self, other: GroupCells) -> GroupCells:
        return GroupCells(tuple(a + b for a, b in zip(self.groups, other.groups, strict=True)))

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists."""
        return {"groups": [group.to_dict() for group in self.groups]}

    @classmethod
    def from_dict(cls, given: dict[str, Any], cells: int = CELLS) -> GroupCells:
        """Return what `to_dict` told of so many cells; what it cannot have told is refused."""
        with reading_state("group of summed cells"):
            shape = _shape_of(len(given["groups"]), cells)
            return cls(tuple(SummedCells.from_dict(group, *shape) for group in given["groups"]))

    @classmethod
    def of(cls, groups: Sequence[Pairs], cells: int = CELLS) -> GroupCells:
        """Return the sums of the pairs of one group, or one a class."""
        return cls(tuple(summed(pairs, *_shape_of(len(groups), cells)) for pairs in groups))


def _shape_of(groups: int, cells: int) -> tuple[int, int]:
    """Return bins and cells of each of so many groups: all together have as many as one would, each 16 at least."""
    return (BINS, cells) if groups < 2 else (1, max(FEWEST, cells // groups))


Part = BinSums | GroupCells | Moments


@dataclass(frozen=True, eq=False)
class Metric:
    """One row of the table.

    Attributes
    ----------
    name : str
    words : str
        What it means, in a sentence; {said} and {seen} are a probability and a frequency, or confidence and accuracy.
    about : str
        Where it comes from, and how it differs from others of that name.
    view : str
    norm : 1, 2, "max" or None
    """

    name: str
    words: str
    about: str = ""
    view: Any = "top_label"
    norm: Norm | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def has_bins(self) -> bool:
        """Whether a number of bins can be asked for."""
        return False

    def read(
        self,
        y_true: Any,
        y_prob: Any,
        sample_weight: Any,
        classes: Any,
        options: dict[str, Any],
        *,
        whole: bool = True,
    ) -> Forecasts:
        """Check input once; what only says how to read it is taken out of the options."""
        marginals = bool(options.pop("marginals", False)) if options else False
        marginals = marginals or options.get("view", self.view) == "marginals"
        return read(y_true, y_prob, sample_weight, classes=classes, marginals=marginals, whole=whole)

    def given(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the row's own options with those of a call."""
        return {"view": self.view, **self.options, **options}

    def check(self, options: Mapping[str, Any]) -> None:
        """Refuse options that the metric does not have."""
        function: Any = getattr(self, "estimator", None) or getattr(self, "rows", None)
        _, *own = signature(function).parameters.values()  # the first takes the rows
        names = {"view": None, "marginals": None, **{option.name: option.default for option in own}}
        if unknown := sorted(set(options) - set(names)):
            raise InvalidInput(f"{self.name} has no option {unknown[0]!r}", allowed=", ".join(names))
        if missing := [name for name, default in names.items() if default is Parameter.empty and name not in options]:
            raise InvalidInput(f"{self.name} needs a {missing[0]}", seen="none", hint=f"pass {missing[0]}=…")

    def of(self, forecasts: Any, **options: Any) -> float:
        """Return the figure of validated forecasts."""
        raise NotImplementedError

    def part(self, forecasts: Forecasts, cells: int = CELLS, **options: Any) -> Part:
        """Return what a state of so many cells keeps of validated forecasts."""
        raise InvalidInput(f"{self.name} has no state: it looks at pairs of rows", hint="call it on all rows at once")

    def value(self, part: Any, **options: Any) -> float:
        """Return the figure of what a state has kept."""
        raise NotImplementedError

    def defined(self, value: float) -> float:
        """Return a figure, and refuse one that its rows do not have."""
        if value != value:
            hint = "an area needs both outcomes, a slope scores that differ; measure says which figures there are"
            raise InvalidInput(f"{self.name} is not defined for these rows", hint=hint)
        return value

    def interval(self, forecasts: Any, confidence: float, sampling: Sampling, **options: Any) -> Interval:
        """Return the figure of validated forecasts with its interval."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Error(Metric):
    """A calibration error: a view, an estimator and a norm of `calibration_error`."""

    estimator: str = "binned"

    @property
    def has_bins(self) -> bool:
        """Whether the estimator has bins to be chosen."""
        return self.estimator in ("binned", "label_binned", "debiased")

    @cached_property
    def _own(self) -> dict[str, Any]:
        return {"view": self.view, "estimator": self.estimator, "norm": self.norm, **self.options}

    def given(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of `calibration_error`."""
        if not options:
            return self._own.copy()
        found = spelt({**self._own, **options})
        check_estimator(found["estimator"], found["norm"])
        check_options(found["estimator"], {name: value for name, value in found.items() if name not in _EVERY})
        return found

    def check(self, options: Mapping[str, Any]) -> None:
        """Refuse options that neither views nor the estimator have."""
        self.given(options)

    def of(self, forecasts: Any, **options: Any) -> float:
        """Return the calibration error."""
        return error_of(forecasts, **self.given(options))

    def part(self, forecasts: Forecasts, cells: int = CELLS, **options: Any) -> Part:
        """Return sums by bin where edges are fixed, else sums by cell."""
        found = self.given(options)
        threshold, by_class = found.get("threshold"), is_view(found, "class_wise", "marginals")
        edges = self._edges(found)
        if edges is not None:
            return BinSums(group_sums(forecasts, "class_wise" if by_class else found["view"], edges, threshold))
        groups = [kept for _, kept in above(forecasts, None)] if by_class else [select(forecasts, found["view"])]
        return GroupCells.of(groups, cells)

    def value(self, part: BinSums | GroupCells, **options: Any) -> float:
        """Return the calibration error of what a state has kept."""
        found = self.given(options)
        norm = default_norm(found["estimator"]) if found["norm"] is None else found["norm"]
        if isinstance(part, BinSums):
            value = error_from_sums(part.sums, found["estimator"], norm)
        else:
            kept = {name: value for name, value in found.items() if name not in _EVERY}
            groups = [group.pairs for group in part.groups if group.table.size]
            errors = [error_of_pairs(pairs, estimator=found["estimator"], norm=norm, **kept) for pairs in groups]
            value = power_mean(errors, norm)
        return value**2 if found.get("squared") else value

    def _edges(self, found: dict[str, Any]) -> Array | None:
        """Return edges that do not depend on the data, for estimators that need nothing but sums by bin."""
        if found.get("threshold") is not None and not is_view(found, "class_wise", "marginals"):
            raise InvalidInput(
                "threshold needs a class-wise view", seen=f"view={found['view']!r}", allowed="view='class_wise'"
            )
        sturges = "sturges" in (found.get("bins"), found.get("edges") if isinstance(found.get("edges"), str) else "")
        edges = None
        if found["estimator"] in FROM_SUMS and not sturges:
            edges = fixed_edges(option_of(found, "edges"), option_of(found, "bins"), 0)
        if found.get("threshold") == "prior" or (found.get("threshold") is not None and edges is None):
            raise InvalidInput(
                "a state needs edges and thresholds that do not depend on the data",
                seen=f"edges={found.get('edges')!r}, threshold={found['threshold']!r}",
                allowed="with a threshold: equal width or given edges, and no threshold 'prior'",
            )
        return edges

    def interval(self, forecasts: Any, confidence: float, sampling: Sampling, **options: Any) -> Interval:
        """Return the calibration error with its interval; see `calibrant.metrics.bootstrap`."""
        found = self.given(options)
        squared = found.pop("squared", False)
        interval = error_interval(forecasts, found, error_of(forecasts, **found), confidence, sampling)
        return interval.squared() if squared else interval


@dataclass(frozen=True, eq=False)
class Figure(Metric):
    """A figure of the scores and outcomes of one event, with its own way to an interval.

    ``estimator`` takes pairs and options; ``law`` pairs, confidence, sampling and options, and returns an Interval.
    Where there is no law, the estimator is resampled.
    """

    estimator: Callable[..., float] = field(default=lambda pairs: np.nan)
    law: Callable[..., Interval] | None = None

    def of(self, forecasts: Any, **options: Any) -> float:
        """Return the figure."""
        found = self.given(options)
        return self.estimator(select(forecasts, found.pop("view")), **found)

    def part(self, forecasts: Forecasts, cells: int = CELLS, **options: Any) -> Part:
        """Return sums by cell."""
        return GroupCells.of([select(forecasts, self.given(options)["view"])], cells)

    def value(self, part: GroupCells, **options: Any) -> float:
        """Return the figure of the cells."""
        found = self.given(options)
        found.pop("view")
        return self.estimator(part.groups[0].pairs, **found)

    def interval(self, forecasts: Any, confidence: float, sampling: Sampling, **options: Any) -> Interval:
        """Return the figure with its interval."""
        found = self.given(options)
        pairs = select(forecasts, found.pop("view"))
        if self.law is not None:
            return self.law(pairs, confidence, sampling, **found)
        estimate = self.estimator(pairs, **found)
        values = np.array([self.estimator(drawn, **found) for drawn in sampling.pairs(pairs)])
        return from_resamples(estimate, values, confidence)


@dataclass(frozen=True, eq=False)
class Mean(Metric):
    """A mean over rows: ``rows`` takes forecasts and options, and returns a number a row."""

    rows: Callable[..., Array] = field(default=lambda forecasts: np.zeros(0))
    share: bool = False

    def _rows(self, forecasts: Forecasts, options: Mapping[str, Any]) -> Array:
        return self.rows(forecasts, **{**self.options, **options})

    def of(self, forecasts: Any, **options: Any) -> float:
        """Return the mean."""
        return moments_of(self._rows(forecasts, options), forecasts.weights).mean

    def part(self, forecasts: Forecasts, cells: int = CELLS, **options: Any) -> Part:
        """Return the moments of the rows."""
        return moments_of(self._rows(forecasts, options), forecasts.weights)

    def value(self, part: Moments, **options: Any) -> float:
        """Return the mean."""
        return part.mean

    def interval(self, forecasts: Any, confidence: float, sampling: Sampling, **options: Any) -> Interval:
        """Return the mean with Student's interval, or a share with Clopper and Pearson's."""
        if not isinstance(forecasts, Forecasts):  # rows that came in blocks
            return loss_interval(forecasts.losses[self.name], forecasts.top, confidence)
        values = self._rows(forecasts, options)
        if self.share:
            return share_interval(replace(forecasts.top, outcomes=values), confidence)
        return loss_interval(values, forecasts.top, confidence)


@dataclass(frozen=True, eq=False)
class Vector(Metric):
    """A figure of whole probability vectors, which are compared with each other: there is no state of it.

    ``estimator`` takes forecasts and options. ``law`` takes forecasts, estimate, resampled values, confidence, sampling
    and options.
    """

    estimator: Callable[..., float] = field(default=lambda forecasts: np.nan)
    law: Callable[..., Interval] | None = None

    def of(self, forecasts: Any, **options: Any) -> float:
        """Return the figure."""
        return self.estimator(forecasts, **{**self.options, **options})

    def interval(self, forecasts: Any, confidence: float, sampling: Sampling, **options: Any) -> Interval:
        """Return the figure with its resampled interval."""
        found = {**self.options, **options}
        estimate = self.estimator(forecasts, **found)
        values = np.array([self.estimator(drawn, **found) for drawn in sampling.forecasts(forecasts)])
        if self.law is not None:
            return self.law(forecasts, estimate, values, confidence, sampling, **found)
        return from_resamples(estimate, values, confidence)
