"""The words: what was found, and when to refit."""

from __future__ import annotations

import math

from ..errors import count_of
from .findings import Findings, StreamFindings

ENOUGH = 200  # rows since a change that are enough to fit two parameters on


def action_of(found: Findings) -> str:
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


def verdict_on(found: Findings) -> str:
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


def advice_on(found: Findings, action: str) -> str:
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
