"""Tables: what the names of columns say. Score columns are named by a prefix, a list or a pattern."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput, blamed
from ..types import Array
from .pieces import Found, Names, Piece, listed
from .roles import SCORE_ROLES, part_name, role_of, score_prefix


@dataclass(frozen=True, eq=False)
class Table:
    """A table as it was read."""

    path: str
    columns: Sequence[str]
    # ``values`` gives a column of any type; ``items`` is a list of what stands in it, None or an empty text where
    # nothing does. ``block`` reads columns of numbers, where that is more than to put their values side by side.
    values: Callable[[str], NDArray[Any]]
    content: Any  # what the reader of this format has read, for `calibrant.files.writing`, which adds columns to it
    # The line of the file that each row begins in, for files that people open in an editor.
    lines: Sequence[int] | None = None
    percent: Callable[[Sequence[str]], bool] | None = None  # tells whether columns are written with a percent sign
    items: Callable[[str], list[Any]] | None = None
    block: Callable[[Sequence[str]], NDArray[Any]] | None = None

    def numbers(self, columns: Sequence[str]) -> NDArray[Any]:
        """Return one column of numbers, or an (n, m) block of several."""
        if self.block is not None:
            return self.block(columns)
        found = [self.values(column) for column in columns]
        for column, values in zip(columns, found, strict=True):
            if values.dtype.kind in "mM":
                raise InvalidInput(f"{self.path}: column {column} must hold numbers", seen=str(values.dtype))
        return found[0] if len(found) == 1 else np.column_stack(found)


def table_pieces(table: Table, names: Names) -> Found:
    """Find scores, labels and the rest among the columns; a column ``split`` divides the rows into parts."""
    pieces: list[Piece] = []
    for key, role, columns in _score_columns(table, names):
        classes = None if len(columns) == 1 else _without_pattern(columns, key)
        percent = table.percent is not None and table.percent(columns)
        with _saying_why(given=names.scores is not None):
            numbers = table.numbers(columns)
        pieces.append(Piece(key, role, "", numbers, classes, tuple(columns), percent=percent))
    taken = {piece.key for piece in pieces}
    if names.several:
        pieces.append(_several_labels(table, names.labels, {c for piece in pieces for c in piece.sources}))
    for role in ("labels", "embeddings", "weights", "groups", "clusters")[int(names.several) :]:
        column = _one_column(table, role, getattr(names, role), taken)
        if column is not None:
            numeric = role in ("embeddings", "weights")
            values = table.numbers([column]) if numeric else table.values(column)
            values = _as_labels(values) if role == "labels" else values
            if not (role == "labels" and names.unlabelled and any(v is None or v != v for v in values.tolist())):
                pieces.append(Piece(column, role, "", values))
    split = next((c for c in table.columns if c.lower() == "split"), None)
    return Found(_divide(pieces, None if split is None else table.values(split)), list(table.columns), table)


@contextmanager
def _saying_why(*, given: bool) -> Iterator[None]:
    """Let an error about columns that nobody named as scores say why they are read."""
    try:
        yield
    except InvalidInput as error:
        if given or error.hint:
            raise
        hint = "its name says that it holds scores; if it does not, choose their columns with --scores"
        raise InvalidInput(error.what, seen=error.seen, allowed=error.allowed, hint=hint) from error


def _without_pattern(columns: Sequence[str], key: str) -> tuple[str, ...]:
    """The class names: the columns without what their prefix or pattern fixes at either end."""
    if "," in key:
        return tuple(columns)
    wild = [i for i, c in enumerate(key) if c in "*?["]
    before, after = (key[: wild[0]], key[wild[-1] + 1 :]) if wild else (key, "")
    return tuple(c.removeprefix(before).removesuffix(after if "[" not in key else "") for c in columns)


def _score_columns(table: Table, names: Names) -> list[tuple[str, str, list[str]]]:
    """(key, role, columns) of each group of columns that may be the scores."""
    if names.scores is not None:
        return [_named_scores(table, names.scores)]
    groups: dict[tuple[str, str], list[str]] = {}
    for column in table.columns:
        whole, prefix = role_of(column), score_prefix(column)
        if whole is not None and whole[0] in SCORE_ROLES and whole[1] == "":
            groups.setdefault((column, whole[0]), []).append(column)
        elif prefix is not None:
            groups.setdefault(prefix, []).append(column)
    return [(key, role, columns) for (key, role), columns in groups.items()]


def _several_labels(table: Table, wanted: str | None, taken: set[str]) -> Piece:
    """The columns of labels, one for each event; NaN where an outcome is not known."""
    if wanted is None:
        known = [c for c in table.columns if c not in taken]
        found = {c: score_prefix(c, ("labels",)) for c in known}
        prefixes = list(dict.fromkeys(prefix[0] for prefix in found.values() if prefix))
        alone = [c for c in known if role_of(c) == ("labels", "")]
        if len(prefixes) + len(alone) != 1:
            raise InvalidInput(
                f"{table.path}: which columns hold the labels is not said by their names",
                seen=listed(list(table.columns)),
                hint="name them by --labels: a prefix, a pattern such as 'y_*', or a list a,b,c",
            )
        wanted = (prefixes + alone)[0]
    columns = _named_columns(table, wanted, "labels")
    blocks = [_outcomes(table, column) for column in columns]
    values = blocks[0] if len(blocks) == 1 and blocks[0].ndim == 2 else np.column_stack(blocks)
    own = _without_pattern(columns, wanted) if len(columns) > 1 else None
    return Piece(wanted, "labels", "", values, own, tuple(columns))


_UNKNOWN = ("", "nan", "na", "null", "none", "?")
_WHOLE = re.compile("0|-?[1-9][0-9]{0,17}")  # as numbers are written, and no larger than int64 holds: 007 is a name


def _outcomes(table: Table, column: str) -> Array:
    """Return a column of 0, 1, truth values or nothing; of lists, a matrix."""
    items = table.values(column).tolist() if table.items is None else table.items(column)
    if items and isinstance(items[0], list):
        return as_lists(table.path, column, items, table.lines)
    words = {"true": 1.0, "false": 0.0, **dict.fromkeys(_UNKNOWN, np.nan)}
    found = np.empty(len(items))
    for row, item in enumerate(items):
        text = str(item).strip().lower()
        try:
            found[row] = words[text] if text in words else float(text)
        except ValueError:
            where = f"row {row}" if table.lines is None else f"line {table.lines[row]}"
            raise InvalidInput(
                f"{table.path}: column {column} must hold outcomes",
                seen=f"{text[:40]!r} in {where}",
                allowed="0, 1, or an empty cell where not known",
            ) from None
    return found


def _named_scores(table: Table, wanted: str) -> tuple[str, str, list[str]]:
    columns = _named_columns(table, wanted, "scores")
    prefix, whole = score_prefix(columns[0]), role_of(columns[0])
    role = prefix[1] if prefix else whole[0] if whole else "scores"
    return wanted, role if role in SCORE_ROLES else "scores", columns


def _named_columns(table: Table, wanted: str, role: str) -> list[str]:
    if wanted in table.columns:
        columns = [wanted]
    elif "," in wanted:
        columns = [part.strip() for part in wanted.split(",")]
    elif any(c in wanted for c in "*?["):
        columns = [c for c in table.columns if fnmatchcase(c, wanted)]
    else:
        columns = [c for c in table.columns if c.startswith(wanted)]
    missing = [c for c in columns if c not in table.columns]
    if missing or not columns:
        raise InvalidInput(
            f"{table.path} has no column {missing[0] if missing else wanted!r}",
            seen=listed(list(table.columns)),
            hint=f"--{role} takes a column, a prefix, a pattern such as 'p_*', or a list a,b,c",
        )
    return columns


def _one_column(table: Table, role: str, wanted: str | None, taken: set[str]) -> str | None:
    if wanted is not None:
        if wanted not in table.columns:
            raise InvalidInput(
                f"{table.path} has no column {wanted!r}",
                seen=listed(list(table.columns)),
                hint=f"it was named by --{role}",
            )
        return wanted
    found = [c for c in table.columns if role_of(c) == (role, "") and c not in taken]
    if len(found) > 1:
        raise InvalidInput(
            f"{table.path} has several columns of {role}", seen=", ".join(found), hint=f"choose by --{role}"
        )
    return found[0] if found else None


def _divide(pieces: list[Piece], split: NDArray[Any] | None) -> list[Piece]:
    if split is None:
        return pieces
    parts = np.asarray([part_name(str(value)) for value in split.tolist()])
    return [
        replace(piece, part=str(part), values=piece.values[parts == part], places=np.flatnonzero(parts == part))
        for part in dict.fromkeys(parts.tolist())
        for piece in pieces
    ]


def _as_labels(values: NDArray[Any]) -> NDArray[Any]:
    """Labels read as text become integers or truth values where every one is written so, and None where not known."""
    if values.dtype.kind not in "OU":
        return values
    items = values.tolist()
    if not all(isinstance(item, str) for item in items):
        return values
    known = [item for item in items if item.lower() not in _UNKNOWN]
    if known and all(map(_WHOLE.fullmatch, known)):
        told: dict[str, Any] = {item: int(item) for item in known}
    elif known and {item.lower() for item in known} <= {"true", "false"}:
        told = {item: item.lower() == "true" for item in known}
    else:  # among words, NA may be one
        told = {item: item for item in items if item}
    return np.asarray([told.get(item) for item in items], dtype=None if len(set(items)) == len(told) else object)


def as_lists(path: str, column: str, items: list[Any], lines: Sequence[int] | None = None) -> Array:
    """Return lists, one a row and all of one length, as a matrix; ``lines`` are those of the rows in a text."""
    lengths = {len(item) for item in items}
    if len(lengths) > 1:
        row = next(i for i, item in enumerate(items) if len(item) != len(items[0]))
        where = f"row {row}" if lines is None else f"line {lines[row]}"
        raise InvalidInput(f"{path}: column {column} has rows of different lengths", seen=where)
    what = f"{path}: column {column} must hold lists of numbers"
    with blamed(what, TypeError, ValueError, problem=InvalidInput, most=80):
        return np.asarray(items, dtype=np.float64)
