"""A stream as plain numbers, none longer than what it decides."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from ..plain import short
from ..types import Array
from .checks import array, count, logs, need, number
from .settings import Settings
from .stream import Stream
from .sums import Sums

STEPS = 1000  # of a logarithm: money is rounded down to a thousandth part, so that saving never adds evidence
NOTHING = 16.0  # a bet this far below the money that joins it at the next batch is left out: e⁻¹⁶ of the sum
_WRITTEN = 1e-6  # of a step: what has been rounded down is not rounded down again


def stream_to(stream: Stream) -> dict[str, Any]:
    """Return a stream as JSON has it.

    ``total`` are the sums, the last of them Σ log L_j in thousandths; ``money`` the log M_j of each component in
    thousandths, null where there is none, without a component that betted everything at its first batch, which is
    Σ log L_j; ``lately`` (j, the largest sum over the last batches, the batch where these begin) where one is above 0.
    What is not betted yet follows from the number of batches.
    """
    later = np.array(stream.starts.decays) > 0
    joins = (stream.log_u + np.log(stream.starts.shares))[:, None]
    counts = stream.log_m >= joins - NOTHING if stream.starts.keeps_the_rest else np.isfinite(stream.log_m)
    money = zip(stream.log_m[later], counts[later], strict=True)
    reached = np.flatnonzero(stream.best > 0)
    *sums, ratios = (getattr(stream.total, part.name) for part in fields(Sums))
    return {
        "born": stream.born,
        "total": [*(short(value, 10) for value in sums), _steps(ratios)],
        "money": [[v if known else None for v, known in zip(_steps(m), kept, strict=True)] for m, kept in money],
        "lately": [[int(j), short(float(stream.best[j]), 5), int(stream.since[j])] for j in reached],
    }


def _steps(logs: Array) -> list[int]:
    """Return logarithms in whole thousandths, rounded down; that of nothing is never asked for."""
    known = np.where(np.isfinite(logs), logs, 0.0)
    return np.floor(known * STEPS + _WRITTEN).astype(np.int64).tolist()


def stream_from(entry: dict[str, Any], settings: Settings, batches: int) -> Stream:
    """Return the stream that was told, or raise where no monitor could have."""
    found = Stream.new(settings.alternatives, settings.starts, count(entry["born"]))
    need(1 <= found.born <= batches, "a stream began in a batch not yet seen")
    j = len(found.alternatives)
    found.total = _sums(entry["total"], j)
    decays = np.array(found.starts.decays)
    with np.errstate(divide="ignore"):
        found.log_u = np.log(decays) * (batches - found.born + 1)
    money = entry["money"]
    need(isinstance(money, list) and len(money) == np.count_nonzero(decays), "a stream has other bets than it says")
    found.log_m[decays == 0] = found.total.log_ratios
    found.log_m[decays > 0] = np.array([logs(part, j) for part in money]).reshape(-1, j) / STEPS
    seen: set[int] = set()
    for place, best, since in entry["lately"]:
        need(count(place) < j and place not in seen, "a change has no alternative of its own")
        need(1 <= count(since) <= batches, "a change began in a batch not yet seen")
        found.best[place], found.since[place] = number(best, 0.0, 1e300), since
        seen.add(place)
    return found


def _sums(values: Any, j: int) -> Sums:
    need(isinstance(values, list) and len(values) == len(fields(Sums)), "sums have another number of parts")
    rows, *middle, impossible, ratios = values
    weight, observed, expected, variance, squares, proxy = (number(v, 0.0) for v in middle)
    near = 1e-6 * (1 + weight)
    need(max(observed, expected, squares) <= weight + near, "more was observed or expected than there were rows")
    need(variance <= weight / 4 + near and proxy <= weight / 4 + near, "its variance is above that of even odds")
    told = weight, observed, expected, variance, squares, proxy
    return Sums(count(rows), *told, count(impossible), array(ratios, j) / STEPS)
