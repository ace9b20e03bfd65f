"""Forecasts that came in blocks: what measuring keeps of rows that do not fit in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...cells.moments import Moments
from ...cells.pairs import Pairs
from ...cells.summed import CELLS, SummedCells, summed, summed_classes
from ...errors import FileProblem, InvalidInput
from ...parameters import Integer
from .forecasts import Forecasts, of_event


@dataclass(frozen=True, eq=False)
class CellForecasts:
    """Sums by cell of the top label (or event) and of each class, and moments of the losses; ``+`` merges.

    It answers where `Forecasts` does that metrics of one view ask for; what needs whole vectors cannot be asked.

    Attributes
    ----------
    n : int
        Rows that have a weight.
    cells : tuple of SummedCells
        Of the top label or event; then of each class, for classes, in bins of equal width.
    losses : dict of Moments
    classes : array of shape (K,)
    is_event : bool
    """

    n: int
    cells: tuple[SummedCells, ...]
    losses: dict[str, Moments]
    classes: NDArray[Any]
    is_event: bool

    @cached_property
    def top(self) -> Pairs:
        """The pairs of the top label, or of the event."""
        return self.cells[0].pairs

    @property
    def rows(self) -> float:
        """As how many rows these count."""
        return self.top.rows

    def one_class(self, column: int) -> Pairs:
        """Return the pairs of one class."""
        if self.is_event:
            return of_event(self.top, column)
        return self.cells[1 + column].pairs

    def each_class(self) -> Iterator[Pairs]:
        """Yield the pairs of each class; one event is its own only class."""
        yield from ([self.top] if self.is_event else (part.pairs for part in self.cells[1:]))

    def pooled(self) -> Pairs:
        """Refuse: entries of one row were not kept together."""
        raise InvalidInput("rows that came in blocks have no pooled view", allowed="top_label, class_wise or a class")

    def __add__(self, other: CellForecasts) -> CellForecasts:
        refuse_other_classes(self.is_event, self.classes, other.is_event, other.classes)
        cells = tuple(a + b for a, b in zip(self.cells, other.cells, strict=True))
        losses = {name: self.losses[name] + other.losses[name] for name in self.losses}
        return CellForecasts(self.n + other.n, cells, losses, self.classes, self.is_event)

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, strings and numbers."""
        return {
            "n": self.n,
            "cells": [part.to_dict() for part in self.cells],
            "losses": {name: found.to_dict() for name, found in self.losses.items()},
            "classes": self.classes.tolist(),
            "is_event": self.is_event,
        }

    @classmethod
    def from_dict(cls, given: dict[str, Any], bins: int, cells: int = CELLS) -> CellForecasts:
        """Return what `to_dict` told of views with so many bins and cells; what it cannot have told is refused."""
        top, *others = given["cells"]
        by_class = (SummedCells.from_dict(part, bins, 0) for part in others)
        parts = (SummedCells.from_dict(top, bins, cells), *by_class)
        losses = {name: Moments.from_dict(found) for name, found in given["losses"].items()}
        classes, is_event = np.asarray(given["classes"]), bool(given["is_event"])
        good = classes.ndim == 1 and len(parts) == (1 if is_event else 1 + len(classes))
        good = good and all(part.pairs.total > 0 for part in parts)  # every view has seen every row
        if not good or set(losses) != {"brier", "nll"} or not Integer(0).accepts(given["n"]):
            raise FileProblem("this is no state of a measurement", seen="parts that do not belong together")
        return cls(given["n"], parts, losses, classes, is_event)


def summarised(forecasts: Forecasts, losses: dict[str, Moments], bins: int = 15, cells: int = CELLS) -> CellForecasts:
    """Return the sums of validated rows, of which ``losses`` are known already."""
    classes = ()
    if not forecasts.is_event:
        classes = summed_classes(forecasts.probabilities, forecasts.labels, forecasts.weights, bins)
    parts = (summed(forecasts.top, bins, cells), *classes)
    return CellForecasts(forecasts.top.counted().n, parts, losses, forecasts.classes, forecasts.is_event)


def refuse_other_classes(is_event: bool, classes: Any, other_event: bool, others: Any) -> None:
    """Refuse to merge what is about other classes."""
    if is_event != other_event:
        kinds = {True: "probabilities of one event, (n,)", False: "probabilities of classes, (n, K)"}
        raise InvalidInput(
            "one event and classes cannot be in one state: their scores mean different things",
            seen=kinds[other_event],
            allowed=kinds[is_event],
        )
    if len(classes) != len(others):
        raise InvalidInput(
            "rows with another number of classes cannot be added to this state",
            seen=str(len(others)),
            allowed=str(len(classes)),
        )
    if not np.array_equal(classes, others):
        raise InvalidInput(
            "rows with other classes cannot be added to this state",
            seen=repr(others.tolist())[:80],
            allowed=repr(classes.tolist())[:80],
            hint="pass classes=[…] with the label of each column to every update",
        )
