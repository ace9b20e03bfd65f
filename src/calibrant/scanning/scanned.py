"""A scan: rows that need not fit in memory, which go wherever arrays go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput
from ..metrics.measuring import Measuring, measure
from ..metrics.state import state
from ..passes import Block, Data, in_memory, in_passes
from ..passes.room import Room
from ..passes.statistic import Rows
from ..passes.survey import Survey
from .looking import SAMPLES, Seen, Source, Wanted, looked_at
from .memory import batch_bytes
from .passing import Mapped, SourcePasses, forecasts, known_classes, updated
from .reading import Reading
from .watching import tell_pass

HELD = 8_000_000  # scores that are read into memory at once (32 or 64 MB): up to there a fit is that of arrays
_KEPT = 0.6  # of what samples take while they are drawn: so much stays, by folds too
_COMPARED, _LEAST_COMPARED = 90, 1000  # bytes a score that maps are compared on takes; rows that are enough
HELD_BY_CLUSTERS = 1 << 19  # the same of one partition that sends them: a megabyte or two
_MEASURED_IN = 512  # cells: intervals are drawn from them, in a time that grows with their number
_CELLS = 1 << 14  # of one metric, for all classes together: it has no interval
_FETCHED = 4  # times that in all are fetched by a pass of their own: up to there maps are judged by five folds


@dataclass(frozen=True, eq=False)
class Given:
    """What a fit is given: the data, its classes, the names of its columns, and what a zero is read as (log ε)."""

    data: Data
    classes: NDArray[Any]
    columns: tuple[Any, ...] | None
    zero: float
    one_score: bool = False


@dataclass(frozen=True, eq=False)
class Scan:
    """Rows of a source, read anew for every pass. `calibrant.scan` makes one.

    Attributes
    ----------
    source : Source
    kind : {"logits", "probabilities"} or None
        What the scores are, where their name says it.
    maps : tuple of Calibrator
        Fitted maps that the scores are read through; see `mapped`.
    sample : int or None
        Fits and measurements look at so many rows only.
    grouped : bool
        Whether rows belong to groups, of which `calibrant.measure` is to tell figures.
    memory : int or None
        Bytes that rows held in memory may take, with what fits make of them.
    room : Room or None
        Memory that the user allowed.
    """

    source: Source
    kind: str | None = None
    maps: tuple[Any, ...] = ()
    sample: int | None = None
    memory: int | None = None
    grouped: bool = False
    room: Room | None = None
    _looks: dict[Any, tuple[Reading, Seen]] = field(default_factory=dict, repr=False)

    def mapped(self, calibrator: Any) -> Scan:
        """Return the rows as a fitted map answers them: their scores are its probabilities.

        Lazily: they are computed at every pass, and nothing of n × K is stored.
        """
        if not hasattr(calibrator, "predict_proba") or not hasattr(calibrator, "classes_"):
            raise InvalidInput("mapped needs a fitted map", seen=type(calibrator).__name__, hint="call fit first")
        return replace(self, maps=(*self.maps, calibrator), _looks={})

    def given(
        self, inputs: str, classes: Any, *, saturated: str | None, embedded: bool, ordered: bool = False
    ) -> Given:
        """Look at all rows by one pass, and return them as data whose blocks are checked and read anew at each pass.

        ``saturated`` says what a zero means, as for `Calibrator`; None leaves it as it came. ``ordered``: it
        is read as no more than the smallest probability that is not zero.
        """
        inputs = "probabilities" if self.maps else inputs
        embedded = embedded and not self.maps
        reading, seen = self.looked(inputs, classes, saturated, embedded, ordered)
        classes = known_classes(reading)
        zero = np.nan if reading.embedded else seen.zero(len(classes))
        return Given(self._data(reading, seen), classes, reading.names, zero, reading.one_score)

    def looked(
        self,
        inputs: str,
        classes: Any,
        saturated: str | None,
        embedded: bool,
        ordered: bool = False,
        survey: bool = True,
    ) -> tuple[Reading, Seen]:
        """Return how rows are read and what one pass over all of them has seen; once for each way to read them.

        Without a ``survey`` nothing can be fitted to what was seen.
        """
        told = None if classes is None else tuple(np.asarray(classes).tolist())
        key = inputs, told, saturated, embedded, ordered, True
        if not survey and key not in self._looks:
            key = (*key[:-1], False)
        if key not in self._looks:
            known = None if classes is None else np.asarray(classes)
            start = Reading(
                inputs,
                embedded,
                0,
                None,
                np.dtype(np.float32),
                known,
                exact=saturated == "exact",
                floors=saturated is not None,
                ordered=ordered,
                known=tuple(self.maps[-1].classes_.tolist()) if self.maps else (),
            )
            tell_pass()
            self._looks[key] = looked_at(self.seen_source, start, self._wanted(survey))
        return self._looks[key]

    def kind_of(self, inputs: str | None = None) -> str:
        """Return what the scores are: as the caller says, as the scan was told, or as their name in a file says."""
        head = None if self.maps or inputs or self.kind else self.source.head()
        kind = "probabilities" if self.maps else inputs or self.kind or (head and head.kind)
        if kind is None:
            raise InvalidInput(
                "whether the scan holds logits or probabilities is not said",
                hint='pass inputs="logits" or inputs="probabilities"',
            )
        return kind

    def sampled(self, inputs: str, classes: Any, most: Callable[[int], int]) -> tuple[Given, Block, str]:
        """Return rows in memory, zeros as they came, and what sample they are in words: none where they are all.

        ``most`` says how many rows of so many columns there may be; a ``sample`` that the user asked for counts more.
        """
        given = self.given(inputs, classes, saturated=None, embedded=False)
        rows = self.sample or self._compared(most, self.looked(inputs, classes, None, False)[1])
        block = (given.data if given.data.n <= rows and given.data.in_memory else given.data.pilot(rows)).rows()
        seen = self.looked(inputs, classes, None, False)[1]
        if seen.survey is None or np.isclose(block.total_weight, seen.survey.counts[0].sum(), rtol=1e-12):
            return given, block, ""
        return given, block, f"a sample of {block.n:,} of {seen.rows:,} rows, chosen by a hash of their content"

    def _compared(self, most: Callable[[int], int], seen: Seen) -> int:
        """Return how many rows there is room for beside the samples."""
        columns = seen.reading.columns
        if self.memory is None or seen.survey is None:
            return most(columns)
        left = max(self.memory - seen.survey.need, 0)
        return min(most(columns), max(left // (_COMPARED * columns), _LEAST_COMPARED))

    @property
    def seen_source(self) -> Source:
        """The source as the maps show it."""
        return Mapped(self.source, self.maps) if self.maps else self.source

    def _wanted(self, survey: bool) -> Wanted:
        cluster = self.source.is_cluster
        most = HELD_BY_CLUSTERS if cluster else HELD
        sends = self.source.n_partitions if cluster else None
        return Wanted(most, sends, self.sample or 0, survey, None if cluster else self.room, self.memory)

    def measured(self, inputs: str | None, classes: Any, settings: dict[str, Any]) -> Any:
        """Measure the rows: exactly where they are few, else by sums of cells, in one pass more than the first look."""
        if settings["profile"] == "multilabel":
            raise InvalidInput("a scan has one label a row, and the profile multilabel several", hint="pass arrays")
        if self.grouped and self.sample is not None:
            raise InvalidInput("a sample of a scan has no groups", hint="leave out sample= or group=")
        reading, seen, block = self._rows(inputs, classes)
        if block is not None and not self.grouped:
            y, p, classes = forecasts(block, reading)
            return measure(y, p, sample_weight=block.weights, classes=classes, **settings)
        return self._summed(reading, seen, partial(Measuring, **settings, cells=_MEASURED_IN), self.grouped)

    def metric(self, name: str, *, inputs: str | None = None, classes: Any = None, **options: Any) -> float:
        """Return one metric of all rows, by the pass of a first look and one more; see `calibrant.metrics.state`."""
        make = partial(state, name, cells=_CELLS, **options)
        reading, seen, block = self._rows(inputs, classes)
        if block is None:
            return self._summed(reading, seen, make)
        y, p, classes = forecasts(block, reading)
        return make().update(y, p, sample_weight=block.weights, classes=classes).finalise()

    def _rows(self, inputs: str | None, classes: Any) -> tuple[Reading, Seen, Block | None]:
        """Look at all rows, and return those to measure where they are in memory: few, or the sample asked for."""
        reading, seen = self.looked(self.kind_of(inputs), classes, None, False, survey=self.sample is not None)
        if self.sample is not None:
            return reading, seen, self._data(reading, seen).rows()
        return reading, seen, None if seen.few is None else _block(seen.few, len(known_classes(reading)))

    def _summed(self, reading: Reading, seen: Seen, make: Callable[[], Any], grouped: bool = False) -> Any:
        function = partial(updated, reading=reading, make=make, grouped=grouped)
        tell_pass(seen.rows)
        return self.seen_source.reduce(function).finalise()

    def _data(self, reading: Reading, seen: Seen) -> Data:
        data = self._all_data(reading, seen)
        return data if self.sample is None else data.pilot(self.sample)

    def _all_data(self, reading: Reading, seen: Seen) -> Data:
        classes = known_classes(reading)
        if seen.few is not None:
            return in_memory(_block(seen.few, len(classes)))
        if seen.survey is None:
            raise InvalidInput("sample_weight is zero everywhere", allowed="at least one positive weight")
        passes = SourcePasses(self.seen_source, reading, seen.rows)
        room = None if self.room is None or self.source.is_cluster else _left(self.room, seen.survey)
        data = in_passes(passes, len(classes), reading.columns, reading.dtype, seen.survey.known, room)
        fetched = self.source.is_cluster and seen.rows * reading.columns <= _FETCHED * HELD_BY_CLUSTERS
        return in_memory(data.rows()) if fetched and self.sample is None else data


def _left(room: Room, survey: Survey) -> Room:
    """Return the room that samples leave to passes: while these are drawn they take more than later."""
    batches = 3 * batch_bytes(room.allowed)  # the one worked on, the next, and what becomes of it
    room.taking(survey.need + batches, SAMPLES)
    return room.left_by(_KEPT * survey.need + batches)


def _block(few: Rows, n_classes: int) -> Block:
    logits, labels, weights = few.columns
    return Block(np.ascontiguousarray(logits), labels, None if (weights == 1.0).all() else weights, n_classes)


def refuse_beside_a_scan(y: Any, sample_weight: Any) -> None:
    """Raise where labels or weights are given twice."""
    if y is not None or sample_weight is not None:
        name = "y" if y is not None else "sample_weight"
        raise InvalidInput(f"{name} was given beside a scan, which brings its own", hint="pass the scan alone")
