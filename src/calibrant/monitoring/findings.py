"""What a monitor says: figures, a verdict in words, and what to do."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from ..errors import count_of
from ..plain import visible

if TYPE_CHECKING:
    from .state import State

ENOUGH = 200  # rows since a change that are enough to fit two parameters on


@dataclass(frozen=True)
class Alarm:
    """The moment when the evidence reached 1/α.

    Attributes
    ----------
    batch, label, rows : int, str, int
        When: the number and the name of the batch, and the rows seen until then.
    log_e : float
        The evidence then; infinite where an event of probability 0 happened.
    stream : str
        Which stream had most of it.
    onset, onset_label : int, str
        The batch where it began most likely, as seen then: an estimate without error control.
    """

    batch: int
    label: str
    rows: int
    log_e: float
    stream: str
    onset: int
    onset_label: str


@dataclass(frozen=True)
class StreamFindings:
    """One stream: all rows, one class or one group.

    ``gap`` is observed - expected a row; ``low`` and ``high`` are the ends of its confidence sequence: they hold at all
    times at once, for this stream by itself. ``offset_low`` and ``offset_high`` are those of a step on the log-odds
    that would make the probabilities true, if one has held all along; None where nothing bounds it yet. ``blamed``
    streams have evidence enough to raise the alarm on their own, at the one false-alarm rate of the whole monitor.
    """

    name: str
    rows: int
    observed: float
    expected: float
    gap: float
    low: float
    high: float
    share: float
    log_e: float
    blamed: bool
    onset: int | None
    shape: str
    size: float
    impossible: int
    offset_low: float | None = None
    offset_high: float | None = None

    @property
    def offset_words(self) -> str:
        """The ends of the offset's confidence sequence, in words."""
        if self.offset_low is None and self.offset_high is None:
            return "not known yet"
        low, high = ("…" if end is None else f"{end:+.2f}" for end in (self.offset_low, self.offset_high))
        return f"{low} to {high}"


@dataclass(frozen=True)
class Findings:
    """What a monitor has found so far.

    Attributes
    ----------
    alarm : bool
    question, promise, alpha : str, str, float
    batches, rows : int
    log_e, highest : float
        The evidence now, and the most there has been; the alarm is at log(1/α).
    pvalue : float
        1/highest E, at most 1: an anytime-valid p-value. None for ``promise="run_length"``.
    alarmed : Alarm or None
    onset : int or None
        The batch where a change began most likely, as seen now.
    onset_label : str
    rows_since : int
        Rows from there on: what a new fit could use.
    streams : tuple of StreamFindings
        All rows first, then classes and groups, those with most evidence first.
    action : {"none", "shift", "refit", "by group", "look"}
    verdict, advice : str
    """

    alarm: bool
    question: str
    promise: str
    alpha: float
    batches: int
    rows: int
    log_e: float
    highest: float
    pvalue: float | None
    alarmed: Alarm | None
    onset: int | None
    onset_label: str
    rows_since: int
    streams: tuple[StreamFindings, ...]
    action: str
    verdict: str
    advice: str

    @property
    def all_rows(self) -> StreamFindings:
        """The stream of all rows."""
        return self.streams[0]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self)

    def __str__(self) -> str:
        return visible(f"{self.verdict} {self.advice}", kept="")


def findings_of(state: State) -> Findings:
    """Return what a state says."""
    s = state.settings
    streams = _streams(state)
    onset = state.onset()
    found = Findings(
        alarm=state.alarm is not None,
        question=s.question,
        promise=s.promise,
        alpha=s.alpha,
        batches=state.batches,
        rows=streams[0].rows if streams else 0,
        log_e=state.log_e(),
        highest=state.highest,
        pvalue=min(1.0, math.exp(-state.highest)) if s.promise == "lifetime" else None,
        alarmed=state.alarm,
        onset=onset,
        onset_label="" if onset is None else state.labels.get(onset, str(onset)),
        rows_since=_rows_since(state, onset),
        streams=streams,
        action="none",
        verdict="",
        advice="",
    )
    action = _action_of(found)
    return replace(found, action=action, verdict=_verdict_on(found), advice=_advice_on(found, action))


def _streams(state: State) -> tuple[StreamFindings, ...]:
    s, found = state.settings, []
    for name, stream in state.streams.items():
        gap, low, high = stream.gap(s.level)
        log_e = state.log_e_of(name)
        shape, size = stream.shape()
        blamed = state.changes is None and math.log(state.shares[name]) + log_e >= s.threshold
        t = stream.total
        figures = (t.rows, t.observed, t.expected, gap, low, high, state.shares[name], log_e, blamed)
        found.append(StreamFindings(name, *figures, stream.onset(), shape, size, t.impossible, *stream.offset(s.level)))
    return (*found[:1], *sorted(found[1:], key=lambda one: -one.log_e))


def _rows_since(state: State, onset: int | None) -> int:
    """Return how many rows came from the onset on, as finely as the trail knows it."""
    if onset is None:
        return 0
    rows, number = 0, state.batches
    for segment in reversed(state.trail.segments):
        if number < onset:
            break
        rows, number = rows + segment.rows, number - segment.batches
    return rows


def _action_of(found: Findings) -> str:
    """Return what to do, in one word."""
    if not found.alarm:
        return "none"
    if any(one.impossible for one in found.streams):
        return "look"
    if found.question == "changed":
        return "look"
    leading = max(found.streams, key=lambda one: math.log(one.share) + one.log_e)
    if leading.name.startswith("group "):
        return "by group"
    return "shift" if leading.shape == "offset" and leading is found.all_rows else "refit"


def _verdict_on(found: Findings) -> str:
    """Return what was found, in words."""
    if not found.streams:
        return "Nothing was seen yet."
    watched = f"{count_of(found.batches, 'batch')}, {count_of(found.rows, 'row')}"
    level = f"the evidence is {_times(found.log_e)} (alarm at {1 / found.alpha:,.3g})"
    if found.alarmed is None:
        what = "that anything changed" if found.question == "changed" else "that the probabilities are not true"
        return f"No alarm in {watched}: no evidence {what}; {level}. {_counted(found.all_rows)}"
    at = found.alarmed
    which = "" if at.stream == found.all_rows.name else f", by {at.stream}"
    if math.isinf(at.log_e):
        many = sum(one.impossible for one in found.streams[:1]) or max(one.impossible for one in found.streams)
        return (
            f"Alarm in batch {at.label}{which}: an event of probability 0 happened ({many:,} so far). "
            f"{_counted(found.all_rows)}"
        )
    what = "the rows no longer behave as they did" if found.question == "changed" else "the probabilities are not true"
    now = f" ({found.onset_label} as seen now)" if found.onset_label not in ("", at.onset_label) else ""
    began = f"It began most likely with batch {at.onset_label}{now}."
    one = next(one for one in found.streams if one.name == at.stream)
    of = f"Of {one.name}: o" if which else "O"
    counted = of + _counted(one)[1:]
    return f"Alarm in batch {at.label}{which}, after {count_of(at.rows, 'row')}: {what}. {began} {counted}"


def _counted(one: StreamFindings) -> str:
    side = "" if one.low <= 0 <= one.high else " (too low)" if one.gap > 0 else " (too high)"
    return (
        f"Observed {one.observed:,.6g}, expected {one.expected:,.6g}: {one.gap:+.4f} a row{side}, "
        f"between {one.low:+.4f} and {one.high:+.4f} at all times."
    )


def _times(log_e: float) -> str:
    if math.isinf(log_e):
        return "infinite"
    return f"{math.exp(log_e):.3g}" if log_e < 25 else f"1e{log_e / math.log(10):.0f}"


def _advice_on(found: Findings, action: str) -> str:
    """Return what to do, in words."""
    if action == "none":
        return "Go on watching."
    since = f"batch {found.onset_label}" if found.onset is not None else "the change"
    rows = f"the {count_of(found.rows_since, 'row')} since {since}"
    few = found.onset is not None and found.rows_since < ENOUGH
    wait = f" These are few: wait for {ENOUGH}, or shrink hard." if few else ""
    if action == "look":
        if found.question == "changed":
            return f"Look at what changed around {since}; measure the rows since then, and start the monitor anew."
        return (
            "Look at the model: a probability of exactly 0 or 1 is a promise that was broken. Correct it with a map, "
            "or pass clip=1e-6 where zeros only stand for small probabilities."
        )
    if action == "by group":
        names = ", ".join(one.name for one in found.streams if one.blamed and one.name.startswith("group "))
        return f"Refit for {names} on rows since the change; other groups show none. Then start the monitor anew.{wait}"
    if action == "shift":
        size = found.all_rows.size
        return (
            f"Refit on {rows}: a shift of the log-odds (about {size:+.2g}) explains it best, so few parameters are "
            f"enough (platt). Then start the monitor anew.{wait}"
        )
    return (
        f"Refit the map on {rows}: not only the level is wrong (calibrant compare chooses). Then start the monitor "
        f"anew.{wait}"
    )
