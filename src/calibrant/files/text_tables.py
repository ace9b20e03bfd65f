"""Tables that people open in an editor: .csv, .tsv and .jsonl. What is wrong in them is named by its line."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, BinaryIO, TextIO

import numpy as np
from numpy.typing import NDArray

from ..errors import FileProblem, InvalidInput
from ..types import Array
from .pieces import Found, Names
from .tables import Table, as_lists, table_pieces

_MARK = "\ufeff"  # the byte order mark, which Excel looks for


@dataclass(frozen=True)
class Style:
    """How a table is written: what separates cells, how lines end, and the mark that spreadsheets put before UTF-8."""

    delimiter: str
    line_end: str
    mark: str


@dataclass(frozen=True, eq=False)
class Cells:
    """The text of a .csv or .tsv file: its cells, and how they are written."""

    header: list[str]
    rows: list[list[str]]
    style: Style


@dataclass(frozen=True, eq=False)
class Objects:
    """The objects of a .jsonl file, one a line."""

    rows: list[dict[str, Any]]


def read_csv(file: BinaryIO, path: str, names: Names) -> Found:
    """Read a table with a line of column names.

    Cells are separated by what is most frequent in the first line: comma, semicolon or tab. Where it is no comma, a
    comma in a number is a decimal one.
    """
    (table,) = csv_tables(io.StringIO(_text(file, path), newline=""), path, names, None)
    return table_pieces(table, names)


def csv_tables(file: TextIO, path: str, names: Names, rows: int | None) -> Iterator[Table]:
    """Yield tables of so many rows, or of all."""
    header, style, numbered = csv_text_rows(file, path)
    some = list(islice(numbered, rows))
    if not some:
        raise InvalidInput(f"{path} has column names but no rows", seen=f"{len(header)} columns")
    while some:
        yield _csv_table(path, header, [row for _, row in some], [line for line, _ in some], style, names)
        some = list(islice(numbered, rows))


def _csv_table(
    path: str, header: list[str], rows: list[list[str]], lines: list[int], style: Style, names: Names
) -> Table:
    place = {name: i for i, name in enumerate(header)}

    def percent(columns: Sequence[str]) -> bool:
        return all("%" in rows[0][place[c]] for c in columns)

    def numbers(columns: Sequence[str]) -> NDArray[Any]:
        picked = [place[c] for c in columns]
        try:
            block = np.array([[float(row[i]) for i in picked] for row in rows])
        except ValueError:
            sign, cells = _sign(names, percent(columns)), [[row[i] for i in picked] for row in rows]
            block = _numbers(path, columns, cells, style.delimiter != ",", sign, lines)
        return block if len(picked) > 1 else block[:, 0]

    def values(column: str) -> NDArray[Any]:
        return np.asarray([row[place[column]].strip() for row in rows])

    def items(column: str) -> list[Any]:
        return [row[place[column]] for row in rows]

    return Table(path, header, values, Cells(header, rows, style), lines, percent, items, numbers)


def _text(file: BinaryIO, path: str) -> str:
    data = file.read()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise other_letters(path, error, f" in line {line}") from error
    if "\0" in text:
        raise FileProblem(f"{path} is not a text file", seen="a zero byte")
    return text


def other_letters(path: str, error: UnicodeDecodeError, where: str = "") -> FileProblem:
    """Return what is said of a text in another encoding."""
    return FileProblem(
        f"{path} is not a text file in UTF-8",
        seen=f"byte 0x{error.object[error.start]:02x}{where}",
        hint='save it in UTF-8, in Excel as "CSV UTF-8"',
    )


def _delimiter(line: str) -> str:
    """What separates the names in the first line: the most frequent of comma, semicolon and tab outside quotes."""
    return max(",;\t", key="".join(line.split('"')[::2]).count)


def csv_text_rows(file: TextIO, path: str) -> tuple[list[str], Style, Iterator[tuple[int, list[str]]]]:
    """Return the names, the style, and the rows with the line that each begins in; editors count lines from 1."""
    skipped, line = 0, file.readline()
    first = line.removeprefix(_MARK)
    mark = line[: len(line) - len(first)]
    while first and not first.strip():
        skipped, first = skipped + 1, file.readline()
    if "\0" in first:
        raise FileProblem(f"{path} is not a text file", seen="a zero byte")
    if not first:
        raise InvalidInput(f"{path} is empty", allowed="a line of column names and at least one row")
    style = Style(_delimiter(first), "\r\n" if first.endswith("\r\n") else "\n", mark)
    rows = _cells(path, chain([first], file), style.delimiter, skipped)
    _, names = next(rows)
    header = [name.strip() for name in names]
    if len(set(header)) != len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise InvalidInput(f"{path} has two columns of one name", seen=repr(twice))
    return header, style, rows


def _cells(path: str, text: Iterable[str], delimiter: str, before: int) -> Iterator[tuple[int, list[str]]]:
    reader, width, skipped = csv.reader(text, delimiter=delimiter, strict=True), 0, before
    try:
        for row in reader:
            if row:
                width = width or len(row)
                if len(row) != width:
                    raise InvalidInput(
                        f"{path}: line {before + 1} has the wrong number of cells",
                        seen=f"{len(row)} for {width} columns",
                    )
                yield before + 1, row
            before = skipped + reader.line_num
    except csv.Error as error:
        seen = f"{error} in line {skipped + reader.line_num}"
        raise FileProblem(f"{path} is not a table", seen=seen) from error


def _sign(names: Names, percent: bool) -> str:
    """Whether there "must" or "may" be a percent sign."""
    return "must" if percent else "may" if names.percent else ""


def _numbers(
    path: str, columns: Sequence[str], cells: list[list[str]], commas: bool, sign: str, lines: list[int]
) -> Array:
    """Numbers that may have decimal commas, and a percent sign where there "must" or "may" be one."""
    block = np.empty((len(cells), len(columns)))
    for r, row in enumerate(cells):
        for c, cell in enumerate(row):
            text = cell.replace(",", ".") if commas else cell
            text, percent, rest = text.strip().partition("%")
            try:
                if rest or (percent and not sign) or (sign == "must" and not percent):
                    raise ValueError
                block[r, c] = float(text)
            except ValueError:
                raise InvalidInput(
                    f"{path}: column {columns[c]} must hold numbers",
                    seen=f"{repr(cell[:40]) if cell.strip() else 'an empty cell'} in line {lines[r]}",
                    hint="a percent sign belongs in every cell, or say --percent" if "%" in "".join(row) else "",
                ) from None
    return block


def read_jsonl(file: BinaryIO, path: str, names: Names) -> Found:
    """Read one JSON object a line; a list is a row of scores, and ``{"probs": {"ant": …}}`` a column ``probs.ant``."""
    found = next(jsonl_tables(io.StringIO(_text(file, path)), path, names, None), None)
    if found is None:
        raise InvalidInput(f"{path} is empty", allowed="one JSON object a line")
    return table_pieces(found, names)


def jsonl_tables(file: TextIO, path: str, names: Names, rows: int | None) -> Iterator[Table]:
    """Yield tables of so many lines, or of all."""
    numbered = ((number, words) for number, words in enumerate(file, start=1) if words.strip())
    while some := list(islice(numbered, rows)):
        yield _jsonl_table(path, some, names)


def _jsonl_table(path: str, numbered: Sequence[tuple[int, str]], names: Names) -> Table:
    rows = [_object(path, line, words.removeprefix(_MARK) if line == 1 else words) for line, words in numbered]
    lines = [line for line, _ in numbered]
    flat = [_flat(row) for row in rows]
    columns = list(dict.fromkeys(key for row in flat for key in row))

    def values(column: str) -> NDArray[Any]:
        for row, line in zip(flat, lines, strict=True):
            if row.get(column) is None:
                raise InvalidInput(f"{path}: {column} is missing", seen=f"line {line}")
        items = [row[column] for row in flat]
        if any(isinstance(item, list) for item in items):
            return as_lists(path, column, [item if isinstance(item, list) else [item] for item in items], lines)
        same = len({str if isinstance(item, str) else float for item in items}) == 1
        return np.asarray(items) if same else np.asarray(items, dtype=object)

    def items(column: str) -> list[Any]:
        return [row.get(column) for row in flat]

    def percent(columns: Sequence[str]) -> bool:
        return all("%" in str(flat[0].get(c)) for c in columns)

    def numbers(columns: Sequence[str]) -> NDArray[Any]:
        found = [values(column) for column in columns]
        if any(part.dtype.kind in "OU" for part in found):  # in quotes, as language models answer
            cells = [[str(row[c]) for c in columns] for row in flat]
            found = list(_numbers(path, columns, cells, False, _sign(names, percent(columns)), lines).T)
        return found[0] if len(found) == 1 else np.column_stack(found)

    return Table(path, columns, values, Objects(rows), lines, percent, items, numbers)


def _object(path: str, line: int, words: str) -> dict[str, Any]:
    try:
        row = json.loads(words)
        if "\\ud" in words.lower():  # may be half a character, which no file could be written with
            json.dumps(row, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise FileProblem(f"{path}: line {line} is not JSON", seen=str(error)[:120]) from error
    if not isinstance(row, dict):
        raise FileProblem(f"{path}: line {line} is no JSON object", seen=type(row).__name__, allowed='{"name": …}')
    return row


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in row.items():
        inside = value.items() if isinstance(value, dict) else ()
        found |= {f"{key}.{name}": item for name, item in inside} if inside else {key: value}
    return found
