"""One change of one place: what it is, and what of it stays the same when other lines of the file change."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Change:
    """A small change to a file.

    Attributes
    ----------
    path
        The file, from the root of the project.
    line
        Where it is, from 1.
    kind
        Which kind of change: operator, comparison, constant, sign, dropped term, …
    before, after
        The statement as it was, and as it becomes.
    number
        Which of the file's changes it is, in the order in which they are found.
    twin
        Which of the changes with the same texts in this file it is.
    """

    path: str
    line: int
    kind: str
    before: str
    after: str
    number: int
    twin: int

    @property
    def room(self) -> str:
        """The room of the source tree: a folder of the package, or ``cpp``."""
        parts = self.path.split("/")
        return "cpp" if parts[0] == "cpp" else parts[2] if len(parts) > 3 else "calibrant"

    @property
    def key(self) -> str:
        """A name that stays while the statement and its change stay, whatever happens around it."""
        text = "\0".join([self.path, self.kind, self.before, self.after, str(self.twin)])
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def rank(self, seed: int) -> str:
        """Return the change's place in the order of a seed, by which a sample is drawn."""
        return hashlib.sha256(f"{seed} {self.key}".encode()).hexdigest()


def sample(changes: list[Change], count: int, seed: int) -> list[Change]:
    """Draw changes: every room by its size, in each room the kinds in turn, in each kind by the seed's order."""
    rooms: dict[str, list[Change]] = {}
    for change in changes:
        rooms.setdefault(change.room, []).append(change)
    drawn: list[Change] = []
    for room in sorted(rooms):
        share = max(1, round(count * len(rooms[room]) / len(changes)))
        drawn += _in_turn(rooms[room], seed)[:share]
    return drawn


def _in_turn(changes: list[Change], seed: int) -> list[Change]:
    kinds: dict[str, list[Change]] = {}
    for change in sorted(changes, key=lambda c: c.rank(seed)):
        kinds.setdefault(change.kind, []).append(change)
    turns = [(turn, kind, change) for kind, some in kinds.items() for turn, change in enumerate(some)]
    return [change for _, _, change in sorted(turns, key=lambda t: t[:2])]
