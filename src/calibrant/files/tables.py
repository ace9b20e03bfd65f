"""Tables: .csv, .tsv, .parquet and .arrow. Score columns are named by a prefix, a list or a pattern."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..errors import FileProblem, InvalidInput, MissingExtra
from .assemble import Names, Piece
from .roles import SCORE_ROLES, part_name, role_of, score_prefix

__all__ = ["read_arrow", "read_csv", "read_parquet"]

Found = tuple[list[Piece], list[str]]


@dataclass(frozen=True)
class Table:
    """Columns by name: ``numbers`` gives one column or an (n, m) block of several, ``values`` one of any type."""

    path: str
    columns: Sequence[str]
    numbers: Callable[[Sequence[str]], NDArray[Any]]
    values: Callable[[str], NDArray[Any]]


def table_pieces(table: Table, names: Names) -> Found:
    """Find scores, labels and the rest among the columns; a column ``split`` divides the rows into parts."""
    pieces: list[Piece] = []
    for key, role, columns in _score_columns(table, names):
        block = table.numbers(columns)
        pieces.append(Piece(key, role, "", block, None if len(columns) == 1 else _without_pattern(columns, key)))
    taken = {piece.key for piece in pieces}
    for role in ("labels", "embeddings", "weights", "groups"):
        column = _one_column(table, role, getattr(names, role), taken)
        if column is not None:
            numeric = role in ("embeddings", "weights")
            values = table.numbers([column]) if numeric else table.values(column)
            pieces.append(Piece(column, role, "", _as_labels(values) if role == "labels" else values))
    split = next((c for c in table.columns if c.lower() == "split"), None)
    return _divide(pieces, table.values(split) if split is not None else None), list(table.columns)


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


def _named_scores(table: Table, wanted: str) -> tuple[str, str, list[str]]:
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
            seen=", ".join(list(table.columns)[:12]),
            hint="--scores takes a column, a prefix, a pattern such as 'p_*', or a list a,b,c",
        )
    prefix, whole = score_prefix(columns[0]), role_of(columns[0])
    role = prefix[1] if prefix else whole[0] if whole else "scores"
    return wanted, role if role in SCORE_ROLES else "scores", columns


def _one_column(table: Table, role: str, wanted: str | None, taken: set[str]) -> str | None:
    if wanted is not None:
        if wanted not in table.columns:
            raise InvalidInput(
                f"{table.path} has no column {wanted!r}",
                seen=", ".join(list(table.columns)[:12]),
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
        Piece(piece.key, piece.role, str(part), piece.values[parts == part], piece.columns)
        for part in dict.fromkeys(parts.tolist())
        for piece in pieces
    ]


def _as_labels(values: NDArray[Any]) -> NDArray[Any]:
    """Labels read as text become integers where every one is written as such, and 0/1 where they are truth values."""
    if values.dtype.kind not in "OU":
        return values
    items = values.tolist()
    if not all(isinstance(item, str) for item in items):
        return values
    if all(item.lstrip("-").isdigit() for item in items):
        return np.asarray([int(item) for item in items])
    if {item.lower() for item in items} <= {"true", "false"}:
        return np.asarray([item.lower() == "true" for item in items])
    return np.asarray(items)


# CSV --------------------------------------------------------------------------------------------------------------


def read_csv(file: BinaryIO, path: str, names: Names) -> Found:
    """Read a table with a line of column names. Separators: comma, else semicolon or tab where there is no comma."""
    try:
        text = file.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileProblem(f"{path} is not a text file in UTF-8", seen=str(error)[:120]) from error
    if "\0" in text:
        raise FileProblem(f"{path} is not a text file", seen="a zero byte")
    first = text.split("\n", 1)[0]
    delimiter = next((d for d in ",;\t" if d in first), ",")
    try:
        lines = [row for row in csv.reader(io.StringIO(text), delimiter=delimiter, strict=True) if row]
    except csv.Error as error:
        raise FileProblem(f"{path} is not a table", seen=str(error)) from error
    if not lines:
        raise InvalidInput(f"{path} is empty", allowed="a line of column names and at least one row")
    header, rows = [name.strip() for name in lines[0]], lines[1:]
    _check_table(path, header, rows)
    place = {name: i for i, name in enumerate(header)}

    def numbers(columns: Sequence[str]) -> NDArray[Any]:
        picked = [place[c] for c in columns]
        try:
            block = np.array([[float(row[i]) for i in picked] for row in rows])
            return block if len(picked) > 1 else block[:, 0]
        except ValueError:
            raise _no_number(path, rows, columns, picked) from None

    def values(column: str) -> NDArray[Any]:
        return np.asarray([row[place[column]].strip() for row in rows])

    return table_pieces(Table(path, header, numbers, values), names)


def _check_table(path: str, header: list[str], rows: list[list[str]]) -> None:
    if not rows:
        raise InvalidInput(f"{path} has column names but no rows", seen=f"{len(header)} columns")
    if len(set(header)) != len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise InvalidInput(f"{path} has two columns of one name", seen=repr(twice))
    for i, row in enumerate(rows):
        if len(row) != len(header):
            raise InvalidInput(f"{path}: row {i} has the wrong number of cells", seen=f"{len(row)} for {len(header)}")


def _no_number(path: str, rows: list[list[str]], columns: Sequence[str], picked: list[int]) -> InvalidInput:
    for r, row in enumerate(rows):
        for column, i in zip(columns, picked, strict=True):
            try:
                float(row[i])
            except ValueError:
                seen = repr(row[i][:40]) if row[i].strip() else "an empty cell"
                return InvalidInput(f"{path}: column {column} must hold numbers", seen=f"{seen} in row {r}")
    raise AssertionError("every cell is a number")


# Parquet and Arrow ------------------------------------------------------------------------------------------------


def read_parquet(file: BinaryIO, path: str, names: Names) -> Found:
    """Read a Parquet file; needs the extra ``parquet``."""
    return _read_with_pyarrow(path, names, lambda: _pyarrow(path, "pyarrow.parquet").read_table(file))


def read_arrow(file: BinaryIO, path: str, names: Names) -> Found:
    """Read an Arrow (Feather) file or stream; needs the extra ``parquet``."""

    def load() -> Any:
        ipc = _pyarrow(path, "pyarrow.ipc")
        data = file.read()
        reader = ipc.open_file(data) if data[:6] == b"ARROW1" else ipc.open_stream(data)
        return reader.read_all()

    return _read_with_pyarrow(path, names, load)


def _pyarrow(path: str, module: str) -> Any:
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtra(f"reading {path} needs pyarrow", hint='pip install "calibrant[parquet]"') from error


def _read_with_pyarrow(path: str, names: Names, load: Callable[[], Any]) -> Found:
    try:
        table = load()
    except MissingExtra:
        raise
    except Exception as error:  # pyarrow's errors are of many types, all of them mean the file
        raise FileProblem(f"{path} is damaged, or not what its name says", seen=str(error)[:200]) from error

    def values(column: str) -> NDArray[Any]:
        found = table.column(column)
        if found.null_count:
            row = next(i for i, valid in enumerate(found.is_valid().to_pylist()) if not valid)
            raise InvalidInput(f"{path}: column {column} has missing values", seen=f"row {row}")
        items = found.to_pylist() if _is_nested(found.type) else found.to_numpy()
        return _matrix(path, column, items) if isinstance(items, list) else items

    def numbers(columns: Sequence[str]) -> NDArray[Any]:
        blocks = [values(column) for column in columns]
        return blocks[0] if len(blocks) == 1 else np.column_stack(blocks)

    return table_pieces(Table(path, table.column_names, numbers, values), names)


def _is_nested(kind: Any) -> bool:
    return str(kind).startswith(("list", "fixed_size_list", "large_list"))


def _matrix(path: str, column: str, items: list[Any]) -> NDArray[Any]:
    lengths = {len(item) for item in items}
    if len(lengths) > 1:
        row = next(i for i, item in enumerate(items) if len(item) != len(items[0]))
        raise InvalidInput(f"{path}: column {column} has rows of different lengths", seen=f"row {row}")
    return np.asarray(items, dtype=np.float64)
