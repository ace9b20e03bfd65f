"""What ``calibrant watch`` does: a state is made or resumed, fed with the batches of a file, and saved."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FileProblem, InvalidInput
from ..files import Dataset, Rows
from ..files.pieces import listed
from ..monitoring import Findings, Monitor
from .measuring import in_order_of, probabilities


class State:
    """A monitor and the file it lives in."""

    def __init__(self, path: str, settings: dict[str, Any], restart: bool) -> None:
        self.path, self.seen = path, _content(path)
        self.created = self.seen is None
        if self.created:
            self.monitor = Monitor(**settings)
            return
        self.monitor = Monitor.load(path)
        for name, value in settings.items():
            known = getattr(self.monitor.settings, name)
            if known != value:
                raise InvalidInput(
                    f"{path} was made with another --{name.replace('_', '-')}",
                    seen=f"{value}, {known} in the state",
                    hint="leave the option away, or begin another state",
                )
        if restart:
            self.monitor = self.monitor.restarted()

    def save(self) -> None:
        """Write the state, unless another run has done so meanwhile."""
        if _content(self.path) != self.seen:
            raise FileProblem(
                f"{self.path} was changed by another run while this one was at work: nothing was written",
                hint="run it again, one at a time",
            )
        self.monitor.save(self.path)


def _content(path: str) -> str | None:
    place = Path(path)
    return hashlib.sha256(place.read_bytes()).hexdigest() if place.is_file() else None


def feed(monitor: Monitor, data: Dataset, fitted: Any, how: dict[str, Any]) -> int:
    """Give the monitor the batches of a file, as the options in ``how`` say, and return how many these were."""
    if monitor.was_fed(data.digest) and not how["again"]:
        raise InvalidInput(
            f"{data.path} was fed to this monitor before",
            seen="the same content",
            hint="--again counts its rows once more",
        )
    rows = data.judged
    p, y = probabilities(data, rows, fitted), data.labels(rows)
    p = _in_order(monitor, data, p)
    if p.ndim == 1 and data.event is not None and monitor.classes is not None and monitor.classes.tolist() == [0, 1]:
        y = (y == data.classes[1]).astype(int)  # a state that has seen outcomes
    elif monitor.classes is None:
        if not data.plain_classes:
            monitor.classes = data.classes
    elif strange := [str(label) for label in data.classes.tolist() if label not in monitor.classes.tolist()]:
        raise InvalidInput(
            f"{data.path} has other labels than the state",
            seen=listed(strange),
            allowed=listed(monitor.classes.tolist()),
            hint="name by --event the label of one column" if p.ndim == 1 else "",
        )
    groups = rows.groups if how["groups"] or monitor.grouped else None
    count = 0
    for label, own in _batches(data, rows, how):
        parts = {"groups": groups, "sample_weight": rows.weights}
        told = {key: None if part is None else part[own] for key, part in parts.items()}
        monitor.update(y[own], p[own], **told, label=label)
        count += 1
    monitor.note_file(data.digest)
    return count


def _in_order(monitor: Monitor, data: Dataset, p: NDArray[Any]) -> NDArray[Any]:
    if monitor.classes is None:
        return p
    if p.ndim == 1:
        return 1 - p if data.classes.tolist() == monitor.classes.tolist()[::-1] else p
    order = in_order_of(None, monitor.classes, data, "the monitor watches")
    return p if order is None else p[:, order]


def _batches(data: Dataset, rows: Rows, how: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the name and the rows of each batch: by a column, by so many rows, or the whole file."""
    name = how["label"] or Path(data.path).name.split(".")[0]
    if how["batch"] is not None:
        values = _column(data, rows, how["batch"])
        for value in dict.fromkeys(values):
            yield value, np.flatnonzero(np.asarray(values) == value)
    elif how["batch_rows"] is not None:
        for number, start in enumerate(range(0, len(rows), how["batch_rows"])):
            yield f"{name}-{number + 1}", slice(start, start + how["batch_rows"])
    else:
        yield name, slice(None)


def _column(data: Dataset, rows: Rows, column: str) -> list[str]:
    if data.table is None or column not in data.table.columns:
        raise InvalidInput(
            f"{data.path} has no column {column!r}",
            seen="no table" if data.table is None else listed(list(data.table.columns)),
            hint="it was named by --batch; files of arrays are cut by --batch-rows",
        )
    values = np.asarray(data.table.values(column))
    values = values if rows.places is None else values[rows.places]
    return [str(value) for value in values.tolist()]


def figures(found: Findings) -> dict[str, Any]:
    """Return what gates may ask about."""
    one = found.streams[0] if found.streams else None
    e = math.exp(min(found.log_e, 700.0))
    told: dict[str, Any] = {"alarm": {"value": float(found.alarm)}, "e": {"value": e}}
    told["impossible"] = {"value": float(max((s.impossible for s in found.streams), default=0))}
    told["rows"] = {"value": float(found.rows)}
    ends = ("gap", "low", "high")
    gap, low, high = (None if one is None else getattr(one, name) for name in ends)
    told["gap"] = {"value": gap, "low": low, "high": high}
    return {"metrics": told, "test": {"pvalue": found.pvalue}}
