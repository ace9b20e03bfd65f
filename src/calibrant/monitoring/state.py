"""What a monitor has seen: streams, the trail, and whether the alarm was raised."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput
from .batch import Batch
from .changes import Changes
from .findings import Alarm
from .rows import MAIN, Rows
from .settings import Settings
from .stream import Stream
from .sums import Sums
from .trail import Segment, Trail

MOST_STREAMS = 500  # 1.3 KB each
RESERVED = 0.4  # of the groups' part, for groups that were not there in the first batch


@dataclass(eq=False)
class State:
    """Everything that changes in a monitor."""

    settings: Settings
    batches: int = 0
    # By name, in the order of appearance; the shares of the false-alarm rate sum to 1 at most.
    streams: dict[str, Stream] = field(default_factory=dict)
    shares: dict[str, float] = field(default_factory=dict)
    turns: int = 0  # how many batches after the first brought groups that were new
    classes: NDArray[Any] | None = None
    grouped: bool | None = None  # None before the first batch with rows
    trail: Trail = field(default_factory=lambda: Trail([]))
    highest: float = 0.0  # the largest log E so far
    alarm: Alarm | None = None  # the first one
    labels: dict[int, str] = field(default_factory=dict)  # the labels of batches where a change may have begun
    changes: Changes | None = None  # of ``question="changed"``
    files: list[str] = field(default_factory=list)  # digests of files it was fed by `calibrant watch`

    def add(self, batch: Batch | None, rows: Rows | None, label: str | None) -> None:
        """Take a batch: its sums and, for the question of change, its rows; None for one without rows."""
        self.batches += 1
        name = str(self.batches) if label is None else str(label)
        if batch is not None:
            self._make_streams(batch)
        nothing = Sums.nothing(len(self.settings.alternatives))
        given = {} if batch is None else batch.sums
        for key, stream in self.streams.items():
            stream.add(given.get(key, nothing), self.batches)
        if rows is not None and self.changes is not None:
            self.changes.add(rows, self.batches)
        self.labels[self.batches] = name
        self._forget_labels()
        self._look(name, given.get(MAIN, nothing))

    def _make_streams(self, batch: Batch) -> None:
        new = [name for name in batch.sums if name not in self.streams]
        if new and len(self.streams) + len(new) > MOST_STREAMS:
            raise InvalidInput(
                "there are too many streams to watch",
                seen=f"{len(self.streams) + len(new)} groups and classes",
                allowed=f"{MOST_STREAMS}",
                hint="merge small groups, or watch fewer",
            )
        if not self.streams:
            classes = [name for name in new if name.startswith("class ")]
            self.shares |= shares(MAIN, classes, [name for name in new if name.startswith("group ")])
        self._share_with([name for name in new if name not in self.shares])
        for name in new:
            self.streams[name] = Stream.new(self.settings.alternatives, self.settings.starts, self.batches)

    def _share_with(self, names: list[str]) -> None:
        """Give groups that come at once, later than the first batch, a part of what is reserved."""
        if names:
            self.turns += 1
            has_classes = any(known.startswith("class ") for known in self.shares)
            self.shares |= dict.fromkeys(names, newcomer_share(has_classes, self.turns, len(names)))

    def _look(self, label: str, sums: Sums) -> None:
        """Note the batch in the trail, and raise the alarm where the evidence says so."""
        log_e = self.log_e()
        self.highest = max(self.highest, log_e)
        figures = sums.weight, sums.observed, sums.expected, sums.variance, sums.squares
        kept = [float(f"{value:.7g}") for value in (*figures, log_e)]  # the digits of a picture
        self.trail.add(Segment(1, label, label, sums.rows, *kept))
        self._raise_alarm(label, log_e)

    def _raise_alarm(self, label: str, log_e: float) -> None:
        if self.alarm is not None or log_e < self.settings.threshold:
            return
        leading = self.leading()
        onset = self.onset()
        began = self.batches if onset is None else onset
        rows = self.streams[MAIN].total.rows if self.streams else 0
        self.alarm = Alarm(self.batches, label, rows, log_e, leading, began, self.labels.get(began, str(began)))

    def log_e_of(self, name: str) -> float:
        """Return the log E of one stream, before its share."""
        if self.changes is not None and name == MAIN:
            return self.changes.log_e
        return self.streams[name].log_e(self.settings.method == "closed", self.settings.alpha)

    def log_e(self) -> float:
        """Return log E of all streams together; the share of groups that have not come is kept as money."""
        if not self.streams:
            return 0.0
        if self.changes is not None:
            return self.changes.log_e
        parts = [math.log(self.shares[name]) + self.log_e_of(name) for name in self.streams]
        rest = 1 - sum(self.shares[name] for name in self.streams)
        if rest > 1e-12 and self.settings.starts.keeps_the_rest:
            parts.append(math.log(rest))
        return float("inf") if math.inf in parts else float(np.logaddexp.reduce(parts))

    def leading(self) -> str:
        """Return the stream that has most of the evidence."""
        if self.changes is not None or not self.streams:
            return MAIN
        return max(self.streams, key=lambda name: math.log(self.shares[name]) + self.log_e_of(name))

    def onset(self) -> int | None:
        """Return the batch where a change began most likely, by the leading stream."""
        if self.changes is not None:
            return self.changes.onset()
        return self.streams[self.leading()].onset() if self.streams else None

    def _forget_labels(self) -> None:
        needed = {self.batches} | ({self.changes.since} if self.changes is not None else set())
        for stream in self.streams.values():
            needed.update(np.unique(stream.since[stream.best > 0]).tolist())
        self.labels = {number: label for number, label in self.labels.items() if number in needed}

    def then(self, later: State) -> State:
        """Return the state that saw what this one saw and then what ``later`` saw."""
        found = State(self.settings, self.batches + later.batches, {}, dict(self.shares), self.turns)
        found.classes = self.classes if self.classes is not None else later.classes
        found.grouped = self.grouped if self.grouped is not None else later.grouped
        found.files = [*self.files, *later.files]
        if not self.streams:
            found.shares, found.turns = dict(later.shares), later.turns
        for name, stream in self.streams.items():
            other = later.streams.get(name) or _idle(stream, later.batches)
            found.streams[name] = stream.then(other, self.batches)
        new = {name: stream for name, stream in later.streams.items() if name not in found.streams}
        for born in sorted({stream.born for stream in new.values()}):
            found._share_with([n for n, stream in new.items() if stream.born == born and n not in found.shares])
        for name, stream in new.items():
            blank = Stream.new(stream.alternatives, stream.starts, stream.born + self.batches)
            found.streams[name] = blank.then(stream, self.batches)
        found.labels = self.labels | {number + self.batches: label for number, label in later.labels.items()}
        found._forget_labels()
        found.trail = self.trail.then(later.trail)
        found.highest, found.alarm = self.highest, self.alarm
        if later.batches:
            log_e = found.log_e()
            found.highest = max(found.highest, log_e)
            found._raise_alarm(found.labels[found.batches], log_e)
        return found


def _idle(stream: Stream, batches: int) -> Stream:
    """Return the stream of a group that had no rows in so many batches."""
    found = Stream.new(stream.alternatives, stream.starts, stream.born)
    nothing = Sums.nothing(len(stream.alternatives))
    for number in range(batches):
        found.add(nothing, number + 1)
    return found


# How the false-alarm rate is shared: Σ_s w_s E_s with Σ w_s ≤ 1 is an e-process like any single one.


def shares(main: str, classes: Sequence[str], groups: Sequence[str]) -> dict[str, float]:
    """Return the weight of each stream of the first batch.

    Half for all rows together, half for the others; the classes and the groups have equal parts of that.
    """
    families = [family for family in (classes, groups) if family]
    found = {main: 1.0 if not families else 0.5}
    for family in families:
        whole = 0.5 / len(families)
        if family is groups:
            whole *= 1 - RESERVED
        found |= {name: whole / len(family) for name in family}
    return found


def newcomer_share(has_classes: bool, turn: int, many: int) -> float:
    """Return the weight of each of ``many`` groups that come at once, the first, second, … time that new ones come."""
    whole = 0.5 / (2 if has_classes else 1) * RESERVED
    return whole / (turn * (turn + 1) * many)
