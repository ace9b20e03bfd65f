"""A batch as sums, stream by stream: what a worker sends who has seen some of its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import InvalidInput
from .rows import MAIN, Rows
from .settings import Settings
from .sums import Sums, sums_of


@dataclass(frozen=True, eq=False)
class Batch:
    """Sums of some rows of one batch; ``+`` adds what other workers saw of the same batch.

    Made by `Monitor.batch`, taken by `Monitor.update`. It has no rows in it, only a few numbers a stream.
    """

    sums: Mapping[str, Sums]
    classes: tuple[Any, ...]
    settings: Settings

    @property
    def rows(self) -> int:
        """How many rows were seen."""
        return self.sums[MAIN].rows

    @property
    def grouped(self) -> bool:
        """Whether its rows have groups."""
        return any(name.startswith("group ") for name in self.sums)

    def __add__(self, other: Batch) -> Batch:
        if not isinstance(other, Batch):
            return NotImplemented
        same = self.settings == other.settings and self.classes == other.classes
        if not same or self.grouped != other.grouped:
            raise InvalidInput("these shards are of monitors with other settings, classes or groups")
        names = [*self.sums, *(name for name in other.sums if name not in self.sums)]
        nothing = Sums.nothing(len(self.settings.alternatives))
        sums = {name: self.sums.get(name, nothing) + other.sums.get(name, nothing) for name in names}
        return Batch(sums, self.classes, self.settings)


def batch_of(rows: Rows, settings: Settings) -> Batch:
    """Return the sums of some rows."""
    alternatives, counts = settings.alternatives, settings.weights == "counts"
    p, happened = rows.main
    sums = {MAIN: sums_of(p, happened, rows.weights, alternatives, counts)}
    if rows.p.ndim == 2 and settings.wants_classes(rows.p.shape[1]):
        for name, q, came in rows.of_classes():
            sums[name] = sums_of(q, came, rows.weights, alternatives, counts)
    for name, own in rows.of_groups():
        w = None if rows.weights is None else rows.weights[own]
        sums[name] = sums_of(p[own], happened[own], w, alternatives, counts)
    return Batch(sums, tuple(rows.classes.tolist()), settings)
