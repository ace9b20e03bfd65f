"""Predictions that wait for their labels."""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import FileProblem, InvalidInput, blamed, reading_state
from ..parameters import Integer, is_one_of
from ..validation import as_array
from .monitor import Monitor
from .saving import FORMAT, digest_of, read_document, write_document

KIND = "calibrant pending"


@dataclass(eq=False)
class _Waiting:
    """The rows of one batch of predictions, and the labels that have come."""

    label: str
    ids: list[Hashable]
    p: Any
    groups: Any
    weights: Any
    outcomes: dict[Hashable, Any] = field(default_factory=dict)


class Pending:
    """Keeps predictions until their labels arrive, and feeds whole batches to a monitor in the order they were made.

    Why whole batches: where labels of one kind arrive sooner (a default is known on the day, its absence only at the
    end), what has arrived first is no fair sample, and a monitor fed with it would raise false alarms.

    Examples
    --------
    >>> from calibrant.monitoring import Monitor, Pending
    >>> pending, monitor = Pending(), Monitor()
    >>> pending.predicted(["a", "b"], [0.2, 0.7], label="Monday")
    >>> pending.labelled(["b"], [1])
    >>> pending.feed(monitor), pending.waiting
    (0, 1)
    >>> pending.labelled(["a"], [0])
    >>> pending.feed(monitor), pending.waiting
    (1, 0)
    """

    def __init__(self) -> None:
        self._batches: list[_Waiting] = []
        self._home: dict[Hashable, _Waiting] = {}
        self.lost = 0  # rows that were closed without a label

    @property
    def waiting(self) -> int:
        """How many rows have no label yet."""
        return sum(len(batch.ids) - len(batch.outcomes) for batch in self._batches)

    def predicted(self, ids: Any, p: Any, *, groups: Any = None, sample_weight: Any = None, label: str = "") -> None:
        """Keep the predictions of a batch; each row has an id of its own."""
        names, values = _ids(ids), _rows(p, "p")
        own = None if groups is None else _rows(groups, "groups")
        weights = None if sample_weight is None else _rows(sample_weight, "sample_weight")
        lengths = {len(part) for part in (values, own, weights) if part is not None} | {len(names)}
        if len(lengths) > 1:
            raise InvalidInput("ids, p, groups and weights differ in length", seen=", ".join(map(str, lengths)))
        twice = [name for name in names if name in self._home]
        if twice or len(set(names)) < len(names):
            raise InvalidInput("an id is waiting already", seen=str(twice[0]) if twice else "an id twice in one batch")
        if label is not None and not isinstance(label, str):
            raise InvalidInput("label is no name of a batch", seen=repr(label)[:80], allowed="text")
        batch = _Waiting(label or str(len(self._batches) + 1), names, values, own, weights)
        self._batches.append(batch)
        self._home |= dict.fromkeys(names, batch)

    def labelled(self, ids: Any, y: Any) -> None:
        """Take labels as they arrive, in any order."""
        names, labels = _ids(ids), _rows(y, "y").tolist()
        if len(names) != len(labels):
            raise InvalidInput("ids and y differ in length", seen=f"{len(names)} and {len(labels)}")
        unknown = [name for name in names if name not in self._home]
        if unknown:
            raise InvalidInput("a label came for an id that is not waiting", seen=str(unknown[0])[:60])
        for name, label in zip(names, labels, strict=True):
            outcomes = self._home[name].outcomes
            if name in outcomes and outcomes[name] != label:
                raise InvalidInput("a second, other label came for an id", seen=str(name)[:60])
            outcomes[name] = label

    def feed(self, monitor: Monitor, *, close: str | None = None) -> int:
        """Give the monitor every batch whose labels are all there, oldest first, and return how many.

        A batch waits for those before it. ``close="drop"`` ends the waiting for the oldest batch: its rows without a
        label are left out and counted in ``lost``. Do so only where it does not depend on the outcome which these are.
        """
        if not is_one_of(close, (None, "drop")):
            raise InvalidInput("close is not known", seen=repr(close), allowed='None or "drop"')
        if not isinstance(monitor, Monitor):
            raise InvalidInput("feed needs a Monitor", seen=type(monitor).__name__)
        fed = 0
        for batch in self._ready(close):
            have = [i for i, name in enumerate(batch.ids) if name in batch.outcomes]
            y = np.asarray([batch.outcomes[batch.ids[i]] for i in have])
            parts = {"groups": batch.groups, "sample_weight": batch.weights}
            rest = {key: None if part is None else part[have] for key, part in parts.items()}
            monitor.update(y, batch.p[have], **rest, label=batch.label)
            self._batches.remove(batch)
            self._home = {name: home for name, home in self._home.items() if home is not batch}
            self.lost += len(batch.ids) - len(have)
            fed += 1
        return fed

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what waits as JSON; ids are numbers or texts."""
        batches = []
        for batch in self._batches:
            arrays = [None if part is None else part.tolist() for part in (batch.p, batch.groups, batch.weights)]
            batches.append([batch.label, batch.ids, *arrays, [list(pair) for pair in batch.outcomes.items()]])
        how: dict[str, Any] = {"problem": InvalidInput, "most": 80, "hint": "ids and labels as text"}
        with blamed("what waits cannot be saved", TypeError, ValueError, **how):
            body = json.loads(json.dumps({"lost": self.lost, "batches": batches}, allow_nan=False))
        if body["batches"] != batches:
            raise InvalidInput("what waits cannot be saved", seen="an id or label that JSON would change")
        write_document(path, {"kind": KIND, "format": FORMAT, "digest": digest_of(body), **body})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Pending:
        """Return what `save` wrote; a file that was changed since is refused."""
        told = read_document(path, most=None)
        known = isinstance(told, dict) and told.get("kind") == KIND and told.get("format") == FORMAT
        body: dict[str, Any] = {name: told.get(name) for name in ("lost", "batches")} if known else {}
        if not known or digest_of(body) != told.get("digest"):
            raise FileProblem(f"{os.fspath(path)} is no saved Pending, or was changed", allowed=f'"kind": "{KIND}"')
        with reading_state("saved Pending"):
            made = cls()
            made.lost = int(body["lost"])
            good = Integer(0).accepts(body["lost"])
            for label, ids, p, groups, weights, outcomes in body["batches"]:
                good &= isinstance(label, str) and isinstance(ids, list) and isinstance(outcomes, list)
                made.predicted(ids, p, groups=groups, sample_weight=weights, label=label)
                if outcomes:
                    made.labelled(*zip(*outcomes, strict=True))
            if not good:
                raise FileProblem("this is no saved Pending", seen="values of another kind")
            return made

    def _ready(self, close: str | None) -> Iterator[_Waiting]:
        for number, batch in enumerate(list(self._batches)):
            if len(batch.outcomes) < len(batch.ids) and not (close == "drop" and number == 0):
                return
            yield batch


def _rows(values: Any, name: str) -> Any:
    """Return an array with a row of each prediction."""
    found, _ = as_array(values, name)
    if not found.ndim:
        raise InvalidInput(f"{name} must have an entry for each row", seen=repr(values)[:60])
    return found


def _ids(values: Any) -> list[Hashable]:
    """Return the names of rows, by which labels are told to which they belong."""
    found = _rows(values, "ids").tolist()
    wrong = [name for name in found if not isinstance(name, Hashable)]
    if wrong:
        raise InvalidInput("ids must be texts or numbers, one for each row", seen=repr(wrong[0])[:60])
    return found
