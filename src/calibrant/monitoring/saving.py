"""A monitor as plain JSON: written atomically, read with every number checked."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from ..errors import CalibrantError, FileProblem, blamed
from ..files.atomic import read_bytes, replacing
from ..plain import plain
from .changes import BETS, CELLS, Changes
from .checks import array, count, logs, need, number, text
from .findings import Alarm
from .process import LIFETIME
from .rows import MAIN
from .settings import Settings
from .state import MOST_STREAMS, State
from .streams import stream_from, stream_to
from .trail import MOST, Segment, Trail

FORMAT = 2
MOST_BYTES = 50_000_000  # far more than any monitor has; a larger file is none
KIND = "calibrant monitor"


def write_document(path: str | os.PathLike[str], document: dict[str, Any]) -> None:
    """Write a state; a kill at any moment leaves the old file or the new one."""
    told = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    with replacing(path) as out:
        out.write((told + "\n").encode(errors="surrogatepass"))


def read_document(path: str | os.PathLike[str], most: int | None = MOST_BYTES) -> Any:
    """Read JSON of at most so many bytes, and nothing that only resembles it."""
    data = read_bytes(path, -1 if most is None else most + 1)
    if most is not None and len(data) > most:
        raise FileProblem(f"{os.fspath(path)} is too large to be a saved monitor", seen=f"over {most:,} bytes")
    with blamed(f"{os.fspath(path)} is no saved monitor: it is not JSON", ValueError, RecursionError, most=80):
        return json.loads(data, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def state_to(state: State) -> dict[str, Any]:
    """Return a state as plain values, with a digest against damage."""
    body = {
        "settings": plain(asdict(state.settings)),
        "batches": state.batches,
        "streams": [
            {"name": name, "share": state.shares[name], **plain(stream_to(stream))}
            for name, stream in state.streams.items()
        ],
        "turns": state.turns,
        "classes": None if state.classes is None else state.classes.tolist(),
        "grouped": state.grouped,
        "trail": plain(state.trail.plain()),
        "highest": plain(state.highest),
        "alarm": None if state.alarm is None else plain(asdict(state.alarm)),
        "labels": [[number, label] for number, label in state.labels.items()],
        "changes": None if state.changes is None else state.changes.plain(),
        "files": state.files,
    }
    return {"kind": KIND, "format": FORMAT, "digest": digest_of(body), **body}


def digest_of(body: Any) -> str:
    """Return a digest of plain values, against damage; it is no signature."""
    return hashlib.sha256(
        json.dumps(body, sort_keys=True, ensure_ascii=False).encode(errors="surrogatepass")
    ).hexdigest()[:32]


def state_from(document: Any) -> State:
    """Return the state of a document; raise where no monitor could have written it."""
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise FileProblem("this is no saved monitor", seen=type(document).__name__, allowed=f'"kind": "{KIND}"')
    if document.get("format") != FORMAT:
        raise FileProblem(
            "this monitor was saved in a format that is not known",
            seen=repr(document.get("format"))[:40],
            allowed=str(FORMAT),
            hint="a newer version of calibrant may read it",
        )
    body = {key: value for key, value in document.items() if key not in ("kind", "format", "digest")}
    try:
        if digest_of(json.loads(json.dumps(body))) != document.get("digest"):
            raise FileProblem("this monitor was changed after it was saved: its digest does not fit")
        return _state(body)
    except CalibrantError as error:
        raise FileProblem(error.what, seen=error.seen, allowed=error.allowed, hint=error.hint) from error
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, AttributeError, RecursionError) as error:
        raise FileProblem("this is no whole monitor", seen=f"{type(error).__name__}: {error}"[:100]) from error


def _state(body: dict[str, Any]) -> State:
    known = {part.name for part in fields(Settings)}
    given = dict(body["settings"])
    need(set(given) == known, "its settings are not those of a monitor")
    given |= {name: tuple(given[name]) for name in ("offsets", "slopes", "centres")}
    settings = Settings(**given)
    state = State(settings, count(body["batches"]))
    need(len(body["streams"]) <= MOST_STREAMS, "it has too many streams")
    for entry in body["streams"]:
        name = text(entry["name"])
        need(name not in state.streams, "it has a stream twice")
        state.streams[name] = stream_from(entry, settings, state.batches)
        state.shares[name] = number(entry["share"], 0.0, 1.0)
    need(not state.streams or next(iter(state.streams)) == MAIN, "its first stream is not all rows")
    need(sum(state.shares.values()) <= 1 + 1e-9, "the shares of its streams exceed 1")
    state.turns = count(body["turns"])
    state.classes = None if body["classes"] is None else _classes(body["classes"])
    need(body["grouped"] in (None, True, False), "grouped is no truth value")
    state.grouped = body["grouped"]
    state.trail = Trail([_segment(entry) for entry in body["trail"]])
    need(len(state.trail.segments) <= MOST, "its trail is too long")
    need(sum(s.batches for s in state.trail.segments) == state.batches, "its trail has other batches than it says")
    state.highest = number(body["highest"], 0.0)
    state.alarm = None if body["alarm"] is None else _alarm(body["alarm"], state)
    state.labels = {count(number): text(label) for number, label in body["labels"]}
    state.changes = None if body["changes"] is None else _changes(body["changes"])
    need((state.changes is not None) <= (settings.question == "changed"), "it answers another question than it asks")
    state.files = [text(item) for item in body["files"]]
    need(state.log_e() <= state.highest + 1e-6, "its evidence is above the highest it says")
    need((state.highest >= settings.threshold) == (state.alarm is not None), "its alarm contradicts its evidence")
    return state


def _segment(entry: Any) -> Segment:
    batches, labels, rows, figures, log_e = entry
    first, last = labels * (3 - len(labels))
    figures = [rows, *figures] if len(figures) == 4 else figures
    weight, observed, expected, variance, squares = (number(v, 0.0) for v in figures)
    known = None if log_e is None else number(log_e)
    told = count(batches), text(first), text(last), count(rows)
    return Segment(*told, weight, observed, expected, variance, squares, known)


def _alarm(entry: dict[str, Any], state: State) -> Alarm:
    at, onset = count(entry["batch"]), count(entry["onset"])
    need(1 <= onset <= at <= state.batches, "its alarm was raised in a batch not yet seen")
    stream = text(entry["stream"])
    need(stream in state.streams, "its alarm is of a stream that it does not have")
    words = text(entry["label"]), text(entry["onset_label"])
    log_e = number(entry["log_e"], state.settings.threshold)
    return Alarm(at, words[0], count(entry["rows"]), log_e, stream, onset, words[1])


def _changes(entry: dict[str, Any]) -> Changes:
    places, ranks = array(entry["places"], CELLS), array(entry["ranks"], BETS)
    parts = len(LIFETIME.decays)
    rows = count(entry["rows"])
    need(bool((places >= 0).all() and (ranks >= 0).all()), "it has counted less than nothing")
    need(abs(places.sum() - rows) < 0.5, "it has counted other rows than it says")
    money = logs(entry["log_m"], parts)[:, None], logs(entry["log_u"], parts)
    return Changes(count(entry["seed"]), rows, places, ranks, *money, number(entry["best"]), count(entry["since"]))


def _classes(values: Any) -> Any:
    need(isinstance(values, list) and 2 <= len(values) <= 1_000_000, "its classes are no list")
    kinds = {type(v) for v in values}
    need(len(kinds) == 1 and kinds <= {int, str, bool, float}, "its classes are of different kinds")
    need(len(set(values)) == len(values), "a class is named twice")
    return np.asarray(values)
