"""What readers find in a file: arrays that play a role, as the user's words and the names in the file say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from ..errors import InvalidInput
from ..types import Integers
from .roles import SCORE_ROLES, role_of


@dataclass(frozen=True)
class Names:
    """What the user says about names and kinds; None leaves it to the names in the file."""

    kind: str | None = None
    scores: str | None = None
    labels: str | None = None
    embeddings: str | None = None
    weights: str | None = None
    groups: str | None = None
    clusters: str | None = None
    part: str | None = None
    percent: bool = False
    every_part: bool = False
    event: str | None = None
    unlabelled: bool = False  # labels that are missing from some rows of a table are left out
    several: bool = False  # events that need not exclude each other: a column of labels for each of the scores
    known: tuple[Any, ...] = ()  # the classes of a map: the columns of scores are as many, and labels may lack some
    whose: str = "the map"  # these are


@dataclass(frozen=True, eq=False)
class Piece:
    """An array of a file with its role."""

    key: str
    role: str
    part: str
    values: NDArray[Any]
    columns: tuple[str, ...] | None = None  # the class names of a table's score columns
    sources: tuple[str, ...] = ()  # the columns of a table that the values are in
    places: Integers | None = None  # where in a table these rows are; None for all of them
    percent: bool = False  # whether the file writes the values with a percent sign
    # How far rounding has moved each number at most, relative to it, where the file's type is coarser than float32.
    rounding: float = 0.0


@dataclass(frozen=True, eq=False)
class Found:
    """What a reader found: pieces that play a role, all keys or columns, and the table they are from, if any."""

    pieces: list[Piece]
    keys: list[str]
    table: Any = None


def named_pieces(path: str, keys: Sequence[str], names: Names) -> dict[str, tuple[str, str]]:
    """Return the (role, part) of each key that has one; what the user named counts, then what the key says."""
    found: dict[str, tuple[str, str]] = {}
    chosen = {
        role: getattr(names, role) for role in ("scores", "labels", "embeddings", "weights", "groups", "clusters")
    }
    for role, key in chosen.items():
        if key is not None and key not in keys:
            raise InvalidInput(f"{path} has no key {key!r}", seen=listed(keys), hint=f"it was named by --{role}")
    for key in keys:
        said = role_of(key)
        by_user = next((role for role, name in chosen.items() if name == key), None)
        if by_user == "scores":
            found[key] = (said[0] if said and said[0] in SCORE_ROLES else "scores", "")
        elif by_user is not None:
            found[key] = (by_user, "")
        elif said is not None and chosen.get("scores" if said[0] in SCORE_ROLES else said[0]) is None:
            found[key] = said
    return found


_LONGEST = 60  # characters of a name in a message: what is wrong stays in sight


def listed(names: Sequence[str], most: int = 12) -> str:
    """Return names for a message, long ones cut.

    Examples
    --------
    >>> listed(["ant", "bee"])
    'ant, bee'
    """
    shown = ", ".join(n if len(n) <= _LONGEST else n[: _LONGEST - 1] + "…" for n in map(str, names[:most]))
    return (shown + (", …" if len(names) > most else "")) or "nothing"
