"""Watching probabilities as labels arrive."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput, count_of
from ..validation import as_array
from ..validation.labels import known_classes
from .alternatives import CENTRES, OFFSETS, SLOPES
from .batch import Batch, batch_of
from .changes import Changes
from .checks import LONGEST
from .findings import Alarm, Findings, findings_of
from .rows import Rows, has_no_rows, read_rows
from .saving import read_document, state_from, state_to, write_document
from .settings import Settings
from .state import State
from .trail import Point, points_of

MOST_FILES = 50  # digests kept; an older file fed again is not noticed


class Monitor:
    """Tells, batch by batch, whether probabilities are still true, with a false-alarm rate over its whole life.

    It bets against the probabilities (Shafer 2021; an e-process): on each of a list of alternatives, from the first
    batch and from later ones, and raises the alarm when one unit of money has become 1/α. If y ~ Bernoulli(p) given
    the past, the chance that this ever happens is at most α, however long and however often one looks (Ville 1939).

    Parameters
    ----------
    alpha : float
        The probability of ever raising a false alarm (``promise="lifetime"``), or one over the batches to a false
        alarm on average (``promise="run_length"``).
    question : {"calibrated", "changed"}
        "calibrated": are the probabilities true? "changed": do the rows still behave as they did, true or not? The
        second is a test of exchangeability: it needs no truth to begin with, and constant errors never alarm.
    promise : {"lifetime", "run_length"}
        "run_length" is quicker to see late changes, and will raise a false alarm one day.
    method : {"grid", "closed"}
        "closed" is the normal mixture over all offsets in closed form: no restarts, and blunt for rare events.
    restarts : bool
        Whether bets also begin later than in the first batch. Without, late changes take long to be seen.
    classes : array-like of shape (K,), optional
        The label of each column, or (negative, positive), where they are not 0 … K-1.
    each_class : bool, optional
        Watch every class by itself beside the most probable one; by default up to 20 classes.
    clip : float
        Move probabilities into [clip, 1 - clip] first. With 0, an event of probability 0 that happens is an alarm.
    weights : {"importance", "counts"}
        "importance": a row of weight w counts as the part w / weight_unit of one row, at most one. "counts": it stands
        for w rows that were seen.
    weight_unit : float
    offsets, slopes, centres : sequence of float
        The alternatives: steps on the log-odds, relative changes of their slope, and the log-odds that slopes turn
        around.
    random_state : int
        For ``question="changed"`` only, which breaks ties at random.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.monitoring import Monitor
    >>> rng = np.random.default_rng(0)
    >>> monitor = Monitor(alpha=0.05)
    >>> for week in range(40):
    ...     p = rng.beta(2, 5, 200)
    ...     truth = p if week < 20 else p / (p + 1.6 * (1 - p))
    ...     _ = monitor.update(rng.random(200) < truth, p, label=f"week {week}")
    >>> monitor.alarm, monitor.alarmed.label, monitor.alarmed.onset_label
    (True, 'week 22', 'week 21')
    """

    def __init__(
        self,
        alpha: float = 0.05,
        *,
        question: str = "calibrated",
        promise: str = "lifetime",
        method: str = "grid",
        restarts: bool = True,
        classes: Any = None,
        each_class: bool | None = None,
        clip: float = 0.0,
        weights: str = "importance",
        weight_unit: float = 1.0,
        offsets: Sequence[float] = OFFSETS,
        slopes: Sequence[float] = SLOPES,
        centres: Sequence[float] = CENTRES,
        random_state: int = 0,
    ) -> None:
        self.settings = Settings(
            alpha=alpha,
            question=question,
            promise=promise,
            method=method,
            restarts=restarts,
            each_class=each_class,
            clip=clip,
            weights=weights,
            weight_unit=weight_unit,
            offsets=_in_a_row("offsets", offsets),
            slopes=_in_a_row("slopes", slopes),
            centres=_in_a_row("centres", centres),
            random_state=random_state,
        )
        self._state = State(self.settings)
        self._state.classes = _known(classes)

    def update(
        self, y: Any, p: Any = None, *, groups: Any = None, sample_weight: Any = None, label: str | None = None
    ) -> Monitor:
        """Take one batch of labels that have arrived, with the probabilities that were said, and return self.

        Parameters
        ----------
        y : array-like of shape (n,), or Batch
            Labels; or a sum of shards from `batch`. A batch without rows is one in which time goes on.
        p : array-like of shape (n,) or (n, K)
            The probabilities as they were said, whatever has become of the model since. The order of rows within a
            batch does not matter (but for ``question="changed"``).
        groups : array-like of shape (n,), optional
            Watched one by one too, at one false-alarm rate for all. Given with every batch or with none.
        sample_weight : array-like of shape (n,), optional
        label : str, optional
            The name of the batch, such as a date; else its number.
        """
        label = None if label is None else str(label)
        _refuse_long([] if label is None else [label])
        if isinstance(y, Batch):
            self._admit(y)
            self._state.add(y, None, label)
        elif has_no_rows(y):
            self._state.add(None, None, label)
        else:
            rows = self._read(y, p, groups, sample_weight)
            batch = batch_of(rows, self.settings)
            self._admit(batch)
            self._state.add(batch, rows, label)
        return self

    def batch(self, y: Any, p: Any, *, groups: Any = None, sample_weight: Any = None) -> Batch:
        """Return the sums of some rows of a batch, for `update`; add those of several workers first.

        The monitor itself does not change.
        """
        if self.settings.question == "changed":
            raise InvalidInput('question="changed" needs rows in order, so a batch cannot come in shards')
        rows = self._read(y, p, groups, sample_weight)
        return batch_of(rows, self.settings)

    def _read(self, y: Any, p: Any, groups: Any, sample_weight: Any) -> Rows:
        s, state = self.settings, self._state
        if s.question == "changed" and (sample_weight is not None or groups is not None):
            raise InvalidInput('question="changed" takes no groups and no weights', hint="watch each group by itself")
        how = {"clip": s.clip, "unit": s.weight_unit, "counts": s.weights == "counts"}
        return read_rows(y, p, groups, sample_weight, classes=state.classes, **how)

    def _admit(self, batch: Batch) -> None:
        """Refuse a batch that does not fit the earlier ones, or whose names a file would not hold."""
        _refuse_long(batch.sums)
        state = self._state
        if batch.settings != self.settings:
            raise InvalidInput("this batch was summed by a monitor with other settings")
        if state.classes is not None and batch.classes != tuple(state.classes.tolist()):
            raise InvalidInput(
                "this batch has other classes than earlier ones",
                seen=", ".join(map(str, batch.classes[:6])),
                allowed=", ".join(map(str, state.classes.tolist()[:6])),
            )
        if state.grouped is not None and batch.grouped != state.grouped:
            raise InvalidInput(
                "groups must be given with every batch or with none",
                seen="groups here" if batch.grouped else "none here",
                hint="" if batch.grouped else "name them: groups=…",
            )
        state.classes, state.grouped = np.asarray(batch.classes), batch.grouped
        if self.settings.question == "changed" and state.changes is None:
            state.changes = Changes.new(self.settings.random_state)

    @property
    def alarm(self) -> bool:
        """Whether the alarm was ever raised."""
        return self._state.alarm is not None

    @property
    def alarmed(self) -> Alarm | None:
        """When the alarm was raised, and what was known then."""
        return self._state.alarm

    @property
    def classes(self) -> NDArray[Any] | None:
        """The classes, in the order of the columns; None before they are known."""
        return self._state.classes

    @classes.setter
    def classes(self, classes: Any) -> None:
        if self._state.batches:
            raise InvalidInput("the classes of a monitor cannot change once it has seen rows")
        self._state.classes = _known(classes)

    @property
    def grouped(self) -> bool:
        """Whether groups are watched."""
        return bool(self._state.grouped)

    def was_fed(self, digest: str) -> bool:
        """Tell whether a file with this digest was noted among the last 50."""
        return digest[:16] in self._state.files

    def note_file(self, digest: str) -> None:
        """Note the digest of a file that was fed, so that it is not counted twice."""
        self._state.files = [*self._state.files, digest[:16]][-MOST_FILES:]

    @property
    def batches(self) -> int:
        """How many batches were taken."""
        return self._state.batches

    @property
    def log_e(self) -> float:
        """The logarithm of the evidence against the probabilities; the alarm is at log(1/α)."""
        return self._state.log_e()

    def history(self) -> list[Point]:
        """Return what happened when: at most 30 points, oldest first; where watching was long, of several batches."""
        return points_of(self._state.trail.segments, self.settings.level)

    def findings(self) -> Findings:
        """Return what was found so far: figures, a verdict in words, and what to do."""
        return findings_of(self._state)

    def restarted(self) -> Monitor:
        """Return a new monitor with these settings, for after a refit; it has a false-alarm rate of its own."""
        found = Monitor.__new__(Monitor)
        found.settings = self.settings
        found._state = State(self.settings, classes=self._state.classes)
        return found

    def __add__(self, later: Monitor) -> Monitor:
        """Return the monitor that took the batches of this one and then those of ``later``.

        Evidence, sums and the onset are those of one pass. An alarm that one pass would have raised inside ``later``,
        and that has gone since, is not known.
        """
        if not isinstance(later, Monitor):
            return NotImplemented
        if self.settings != later.settings:
            raise InvalidInput("monitors with different settings cannot be merged")
        if self.settings.question == "changed":
            raise InvalidInput('question="changed" needs all rows in order, so its monitors cannot be merged')
        self._refuse_other(later)
        found = self.restarted()
        found._state = self._state.then(later._state)
        return found

    def _refuse_other(self, later: Monitor) -> None:
        one, two = self._state, later._state
        if not one.streams or not two.streams:
            return
        same = one.classes is not None and two.classes is not None and one.classes.tolist() == two.classes.tolist()
        if not same or one.grouped != two.grouped:
            raise InvalidInput("monitors of different classes, or with and without groups, cannot be merged")

    def to_dict(self) -> dict[str, Any]:
        """Return the whole state as plain values for JSON, with the version of its format."""
        return state_to(self._state)

    @classmethod
    def from_dict(cls, document: Any) -> Monitor:
        """Return the monitor that `to_dict` described; what no monitor could have written is refused."""
        state = state_from(document)
        found = cls.__new__(cls)
        found.settings, found._state = state.settings, state
        return found

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state as JSON; the file is replaced atomically."""
        write_document(path, self.to_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Monitor:
        """Read a state that `save` wrote, and go on watching."""
        return cls.from_dict(read_document(path))

    def __repr__(self) -> str:
        state = "ALARM" if self.alarm else "no alarm"
        level = f"log E {self.log_e:.2f} of {self.settings.threshold:.2f}"
        return f"<Monitor: {count_of(self.batches, 'batch')}, {state}, {level}>"


def _in_a_row(name: str, given: Any) -> tuple[Any, ...]:
    try:
        return tuple(given)
    except TypeError as error:
        raise InvalidInput(f"{name} cannot be used", seen=repr(given)[:80], allowed="numbers in a list") from error


def _known(classes: Any) -> NDArray[Any] | None:
    """Return classes that a saved state can have."""
    if classes is None:
        return None
    given = as_array(classes, "classes")[0]
    known = known_classes(given, max(2, given.size))
    kinds = {type(one) for one in known.tolist()}
    if len(kinds) != 1 or not kinds <= {int, str, bool, float}:
        raise InvalidInput("classes must be words or numbers, all of a kind", seen=repr(known.tolist())[:80])
    return known


def _refuse_long(names: Iterable[str]) -> None:
    """Refuse names that a saved state would not be read with again."""
    for name in names:
        if len(name) > LONGEST:
            raise InvalidInput(
                "the names of batches, groups and classes are too long to be watched",
                seen=f"{len(name):,} letters",
                allowed=f"{LONGEST:,} in all",
            )
