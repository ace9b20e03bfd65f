"""A monitor as plain JSON: written atomically, read with every number checked."""

from __future__ import annotations

import hashlib
import json
import math
import os
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from ..errors import CalibrantError, FileProblem
from ..files.atomic import replacing
from ..types import Array
from .changes import BETS, CELLS, Changes
from .findings import Alarm
from .process import LIFETIME
from .rows import MAIN
from .settings import Settings
from .state import MOST_STREAMS, State
from .stream import Stream
from .sums import Sums
from .trail import MOST, Segment, Trail

__all__ = ["FORMAT", "digest_of", "read_document", "state_from", "state_to", "write_document"]

FORMAT = 1
MOST_BYTES = 50_000_000  # far more than any monitor has; a larger file is none
KIND = "calibrant monitor"


def write_document(path: str | os.PathLike[str], document: dict[str, Any]) -> None:
    """Write a state; a kill at any moment leaves the old file or the new one."""
    with replacing(path) as out:
        out.write((json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n").encode(errors="surrogatepass"))


def read_document(path: str | os.PathLike[str], most: int | None = MOST_BYTES) -> Any:
    """Read JSON of at most so many bytes, and nothing that only resembles it."""
    try:
        with open(path, "rb") as file:
            data = file.read(-1 if most is None else most + 1)
    except OSError as error:
        raise FileProblem(f"cannot read {os.fspath(path)}", seen=error.strerror or str(error)) from error
    if most is not None and len(data) > most:
        raise FileProblem(f"{os.fspath(path)} is too large to be a saved monitor", seen=f"over {most:,} bytes")
    try:
        return json.loads(data, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        words = str(error)[:80] or type(error).__name__
        raise FileProblem(f"{os.fspath(path)} is no saved monitor: it is not JSON", seen=words) from error


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def state_to(state: State) -> dict[str, Any]:
    """Return a state as plain values, with a digest against damage."""
    body = {
        "settings": {name: _finite(value) for name, value in asdict(state.settings).items()},
        "batches": state.batches,
        "streams": [
            {"name": name, "share": state.shares[name], **_finite(stream.plain())}
            for name, stream in state.streams.items()
        ],
        "turns": state.turns,
        "classes": None if state.classes is None else state.classes.tolist(),
        "grouped": state.grouped,
        "trail": _finite(state.trail.plain()),
        "highest": _finite(state.highest),
        "alarm": None if state.alarm is None else _finite(asdict(state.alarm)),
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


def _finite(value: Any) -> Any:
    """Return the value with infinity as text: JSON has no number for it."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return "inf" if isinstance(value, float) and value == math.inf else value


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
    _need(set(given) == known, "its settings are not those of a monitor")
    given |= {name: tuple(given[name]) for name in ("offsets", "slopes", "centres")}
    settings = Settings(**given)
    state = State(settings, _count(body["batches"]))
    _need(len(body["streams"]) <= MOST_STREAMS, "it has too many streams")
    for entry in body["streams"]:
        name = _text(entry["name"])
        _need(name not in state.streams, "it has a stream twice")
        state.streams[name] = _stream(entry, settings, state.batches)
        state.shares[name] = _number(entry["share"], 0.0, 1.0)
    _need(not state.streams or next(iter(state.streams)) == MAIN, "its first stream is not all rows")
    _need(sum(state.shares.values()) <= 1 + 1e-9, "the shares of its streams exceed 1")
    state.turns = _count(body["turns"])
    state.classes = None if body["classes"] is None else _classes(body["classes"])
    _need(body["grouped"] in (None, True, False), "grouped is no truth value")
    state.grouped = body["grouped"]
    state.trail = Trail([_segment(entry) for entry in body["trail"]])
    _need(len(state.trail.segments) <= MOST, "its trail is too long")
    _need(sum(s.batches for s in state.trail.segments) == state.batches, "its trail has other batches than it says")
    state.highest = _number(body["highest"], 0.0)
    state.alarm = None if body["alarm"] is None else _alarm(body["alarm"], state)
    state.labels = {_count(number): _text(label) for number, label in body["labels"]}
    state.changes = None if body["changes"] is None else _changes(body["changes"])
    _need((state.changes is not None) <= (settings.question == "changed"), "it answers another question than it asks")
    state.files = [_text(item) for item in body["files"]]
    _need(state.log_e() <= state.highest + 1e-9, "its evidence is above the highest it says")
    _need((state.highest >= settings.threshold) == (state.alarm is not None), "its alarm contradicts its evidence")
    return state


def _stream(entry: dict[str, Any], settings: Settings, batches: int) -> Stream:
    j, parts = len(settings.alternatives), len(settings.starts.decays)
    found = Stream.new(settings.alternatives, settings.starts, _count(entry["born"]))
    _need(1 <= found.born <= batches, "a stream began in a batch not yet seen")
    found.total = _sums(entry["total"], j)
    found.log_m = np.array([_logs(part, j) for part in entry["log_m"]])
    found.log_u = _logs(entry["log_u"], parts)
    _need(found.log_m.shape == (parts, j), "a stream has another size than its settings say")
    _need(bool((found.log_u <= 1e-12).all()), "a stream has more money than one unit")
    found.best = _array(entry["best"], j)
    found.since = np.array([_count(item) for item in entry["since"]], dtype=np.int64)
    _need(found.since.shape == (j,) and bool((found.since <= batches).all()), "a change began in a batch not yet seen")
    if settings.promise == "lifetime":
        first = found.log_m[0]  # all money of this part is on since the stream began
        fits = np.isneginf(first).all() or np.allclose(first, found.total.log_ratios, rtol=1e-9, atol=1e-6)
        _need(bool(fits), "a stream's evidence contradicts its sums")
    return found


def _sums(values: Any, j: int) -> Sums:
    _need(isinstance(values, list) and len(values) == len(fields(Sums)), "sums have another number of parts")
    rows, *middle, impossible, ratios = values
    weight, observed, expected, variance, squares, proxy = (_number(v, 0.0) for v in middle)
    near = 1e-6 * (1 + weight)
    _need(max(observed, expected, squares) <= weight + near, "more was observed or expected than there were rows")
    _need(variance <= weight / 4 + near and proxy <= weight / 4 + near, "its variance is above that of even odds")
    return Sums(
        _count(rows), weight, observed, expected, variance, squares, proxy, _count(impossible), _array(ratios, j)
    )


def _segment(entry: Any) -> Segment:
    batches, first, last, rows, *figures, log_e = entry
    weight, observed, expected, variance, squares = (_number(v, 0.0) for v in figures)
    known = None if log_e is None else _number(log_e)
    told = _count(batches), _text(first), _text(last), _count(rows)
    return Segment(*told, weight, observed, expected, variance, squares, known)


def _alarm(entry: dict[str, Any], state: State) -> Alarm:
    at, onset = _count(entry["batch"]), _count(entry["onset"])
    _need(1 <= onset <= at <= state.batches, "its alarm was raised in a batch not yet seen")
    stream = _text(entry["stream"])
    _need(stream in state.streams, "its alarm is of a stream that it does not have")
    words = _text(entry["label"]), _text(entry["onset_label"])
    log_e = _number(entry["log_e"], state.settings.threshold)
    return Alarm(at, words[0], _count(entry["rows"]), log_e, stream, onset, words[1])


def _changes(entry: dict[str, Any]) -> Changes:
    places, ranks = _array(entry["places"], CELLS), _array(entry["ranks"], BETS)
    parts = len(LIFETIME.decays)
    rows = _count(entry["rows"])
    _need(bool((places >= 0).all() and (ranks >= 0).all()), "it has counted less than nothing")
    _need(abs(places.sum() - rows) < 0.5, "it has counted other rows than it says")
    money = _logs(entry["log_m"], parts)[:, None], _logs(entry["log_u"], parts)
    return Changes(_count(entry["seed"]), rows, places, ranks, *money, _number(entry["best"]), _count(entry["since"]))


def _need(truth: bool, words: str) -> None:
    if not truth:
        raise FileProblem(f"this is no monitor that calibrant saved: {words}")


def _number(value: Any, low: float = -math.inf, high: float = math.inf) -> float:
    value = math.inf if value == "inf" else value
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high
    _need(good, f"{str(value)[:40]!r} is not a number in its range")
    return float(value)


def _count(value: Any) -> int:
    good = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
    _need(good, f"{str(value)[:40]!r} is not a count")
    return value


def _text(value: Any) -> str:
    _need(isinstance(value, str) and len(value) <= 1000, "a name is not a short text")
    return value


def _array(values: Any, n: int) -> Array:
    _need(isinstance(values, list) and len(values) == n, "a list has another length than it should have")
    found = np.array([_number(v) for v in values])
    _need(bool(np.isfinite(found).all()), "a sum is infinite")
    return found


def _logs(values: Any, n: int) -> Array:
    _need(isinstance(values, list) and len(values) == n, "a list has another length than it should have")
    return np.array([-math.inf if v is None else _number(v) for v in values])


def _classes(values: Any) -> Any:
    _need(isinstance(values, list) and 2 <= len(values) <= 1_000_000, "its classes are no list")
    kinds = {type(v) for v in values}
    _need(len(kinds) == 1 and kinds <= {int, str, bool, float}, "its classes are of different kinds")
    _need(len(set(values)) == len(values), "a class is named twice")
    return np.asarray(values)
