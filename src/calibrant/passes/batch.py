"""Some rows as they come from a source, before anything is checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

_LEAST_BYTES = 32  # of a row, however few its scores: label, weight, key and losses are made of it in double precision


def rows_in(size: int, row: Any) -> int:
    """Return how many rows make a batch of so many bytes, from the scores of one."""
    return max(1, size // max(row.nbytes, _LEAST_BYTES))


@dataclass(frozen=True)
class Origin:
    """Where rows come from, for messages: a file, a partition or a batch, and the number of the first of them there.

    ``lines`` are those of a text that the rows begin in.
    """

    name: str = ""
    first: int = 0
    lines: Any = None
    part: int = 0  # the partition of a cluster

    def row(self, number: int) -> str:
        """Return what to call one of the rows."""
        where = f" of {self.name}" if self.name else ""
        if self.lines is not None:
            return f"line {self.lines[number]}{where}"
        return f"row {self.first + number}{where}"


@dataclass(frozen=True, eq=False)
class Batch:
    """Scores and what belongs to them, as arrays or whatever becomes one.

    ``content`` is the table they are from, where there is one: `apply` keeps its other columns. ``sources`` are the
    columns of it that hold the scores, ``places`` its rows that are meant (None: all), and ``kind`` is what the name of
    the scores says that they are. ``event`` names whose score a single column holds: the user, or else the column;
    ``event_told``: the user did.
    """

    scores: Any
    labels: Any = None
    weights: Any = None
    groups: Any = None
    columns: tuple[str, ...] | None = None
    origin: Origin = field(default_factory=Origin)
    content: Any = None
    sources: tuple[str, ...] = ()
    places: Any = None
    kind: str | None = None
    event: str | None = None
    event_told: bool = False

    @property
    def table_columns(self) -> list[str]:
        """The names of all columns of the table."""
        if hasattr(self.content, "schema"):
            return list(self.content.schema.names)
        return list(getattr(self.content, "header", ()))
