"""Writing probabilities, replaced atomically or to standard output: beside the other columns of a table, or alone."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FileProblem, InvalidInput
from ..types import Integers
from .arrow_tables import pyarrow_module
from .atomic import replacing
from .dataset import Dataset
from .reading import ending
from .text_tables import Cells, Objects, Style

PREFIX = "calibrated_"
Parts = Mapping[str, NDArray[Any]]


def write_probabilities(path: str, data: Dataset, parts: Parts, prefix: str = PREFIX) -> None:
    """Write probabilities such that `read` understands the file.

    A table keeps its columns and rows as they are, and has new columns behind them: ``calibrated_<class>``, or
    ``calibrated_<column>`` for the probability of an event, ``calibrated_probs`` where the scores are lists. What comes
    from arrays is written as ``probs`` (in tables ``prob_<class>``), with the labels where there are some.
    """
    suffix = _default_ending(data) if path == "-" else ending(path)
    if suffix not in (*_ARRAYS, *_TABLES):
        raise FileProblem(
            f"{path} has an ending that is not known", seen=suffix or "none", allowed=", ".join((*_ARRAYS, *_TABLES))
        )
    content = _ARRAYS[suffix](data, parts) if suffix in _ARRAYS else _TABLES[suffix](_sheet(data, parts, prefix))
    if path.lower().endswith(".gz"):
        content = gzip.compress(content, mtime=0)
    if path == "-":
        sys.stdout.buffer.write(content)
        return
    with replacing(path) as out:
        out.write(content)


def _default_ending(data: Dataset) -> str:
    """Standard output gets the kind of text that came in."""
    return ".jsonl" if data.table is not None and isinstance(data.table.content, Objects) else ".csv"


# Arrays -----------------------------------------------------------------------------------------------------------


def _npz(data: Dataset, parts: Parts) -> bytes:
    arrays: dict[str, Any] = {}
    for name, probabilities in parts.items():
        end = f"_{name}" if name in ("val", "test", "train") else ""
        start = f"{name}_" if name and not end else ""
        arrays[f"{start}probs{end}"] = probabilities
        labels = data.parts[name].labels
        if labels is not None:
            arrays[f"{start}labels{end}"] = labels.astype(str) if labels.dtype == object else labels
    if not data.plain_classes or list(data.class_names) != [str(i) for i in range(len(data.classes))]:
        arrays["classes"] = np.asarray([str(name) for name in data.class_names])
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def _npy(data: Dataset, parts: Parts) -> bytes:
    if len(parts) > 1:
        raise FileProblem(
            "an .npy file holds one part", seen=", ".join(parts), hint="choose one with --part, or write .npz"
        )
    buffer = io.BytesIO()
    np.save(buffer, next(iter(parts.values())), allow_pickle=False)
    return buffer.getvalue()


# Tables -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Sheet:
    """A table to write: what was read, if it was one, the rows of it to keep, and the new columns for these."""

    table: Any
    rows: Integers
    new: dict[str, list[Any]]
    numeric: tuple[str, ...] = ()

    def old(self, column: str) -> list[Any]:
        """Return an old column for another format: numbers where they were read as such, else what stands there."""
        content = self.table.content
        if isinstance(content, Cells):
            if column in self.numeric:
                return self.table.numbers([column])[self.rows].tolist()
            place = content.header.index(column)
            return [content.rows[i][place] for i in self.rows]
        if isinstance(content, Objects):
            return [content.rows[i].get(column) for i in self.rows]
        return content.column(column).take(self.rows).to_pylist()

    @property
    def old_columns(self) -> list[str]:
        """The names of the old columns; of objects the keys, in the order they come up in."""
        if self.table is None:
            return []
        content = self.table.content
        if isinstance(content, Objects):
            return list(dict.fromkeys(key for row in content.rows for key in row))
        return list(self.table.columns)


def _sheet(data: Dataset, parts: Parts, prefix: str) -> Sheet:
    if data.table is None:
        new = _plain_columns(data, parts)
        return Sheet(None, np.arange(len(next(iter(new.values())))), new)
    places = [data.parts[name].places for name in parts]
    where = np.concatenate(
        [np.arange(len(p)) if at is None else at for p, at in zip(parts.values(), places, strict=True)]
    )
    order = np.argsort(where)
    new = _new_columns(data, np.concatenate(list(parts.values()))[order], prefix)
    sheet = Sheet(data.table, where[order], new, data.fit.sources)
    if taken := set(new) & set(sheet.old_columns):
        raise InvalidInput(
            f"{data.path} has a column {sorted(taken)[0]} already",
            hint="choose another beginning of the new names with --prefix",
        )
    return sheet


def _new_columns(data: Dataset, p: NDArray[Any], prefix: str) -> dict[str, list[Any]]:
    """What is added to a table: a column a class, one for an event, one of lists where the scores are lists."""
    rows = data.fit
    if rows.scores.ndim == 1:
        return {f"{prefix}{rows.sources[0]}": p[:, 1].tolist()}
    if len(rows.sources) == 1 and data.kind != "embeddings":
        return {f"{prefix}probs": p.tolist()}
    return {f"{prefix}{name}": p[:, i].tolist() for i, name in enumerate(data.class_names)}


def _plain_columns(data: Dataset, parts: Parts) -> dict[str, list[Any]]:
    """Columns of their own: prob_<class> each, then the label, then the part where there are several."""
    stacked = np.concatenate(list(parts.values()))
    columns = {f"prob_{name}": stacked[:, i].tolist() for i, name in enumerate(data.class_names)}
    labels = [data.parts[name].labels for name in parts]
    if all(found is not None for found in labels):
        columns["label"] = [label for found in labels if found is not None for label in found.tolist()]
    if len(parts) > 1:
        columns["split"] = [name for name, p in parts.items() for _ in range(len(p))]
    return columns


def _text(delimiter: str) -> Callable[[Sheet], bytes]:
    def write(sheet: Sheet) -> bytes:
        content = None if sheet.table is None else sheet.table.content
        own = content if isinstance(content, Cells) else None
        style = Style(delimiter, "\n", "") if own is None else own.style
        mark = style.delimiter if delimiter == "," else delimiter
        buffer = io.StringIO()
        buffer.write(style.mark)
        writer = csv.writer(buffer, delimiter=mark, lineterminator=style.line_end)
        writer.writerow([*sheet.old_columns, *sheet.new])
        new = shown_like(own, sheet.numeric, sheet.new.values())
        if own is not None:
            old: Iterator[Any] = (own.rows[i] for i in sheet.rows)
        else:
            old = zip(*(map(_cell, sheet.old(column)) for column in sheet.old_columns), strict=True)
        pairs = zip(old, new, strict=True) if sheet.old_columns else (((), row) for row in new)
        writer.writerows(chain(*pair) for pair in pairs)
        return buffer.getvalue().encode()

    return write


def shown_like(cells: Cells | None, columns: Sequence[str], new: Iterable[list[Any]]) -> Iterator[tuple[Any, ...]]:
    """Yield the cells that new columns add to each row, with decimal commas where these columns of a text have them."""
    commas = False
    if cells is not None and cells.style.delimiter != ",":
        places = [cells.header.index(column) for column in columns]
        commas = any("," in row[i] for row in cells.rows for i in places)
    return zip(*([_cell(value, commas) for value in values] for values in new), strict=True)


def _cell(value: Any, comma: bool = False) -> Any:
    if isinstance(value, (list, dict)):
        return json.dumps(value, ensure_ascii=False)
    if value is None:
        return ""
    return repr(value).replace(".", ",") if comma and isinstance(value, float) else value


def _jsonl(sheet: Sheet) -> bytes:
    if sheet.table is not None and isinstance(sheet.table.content, Objects):
        old: Any = (sheet.table.content.rows[i] for i in sheet.rows)
    elif sheet.old_columns:
        columns = [sheet.old(column) for column in sheet.old_columns]
        old = (dict(zip(sheet.old_columns, row, strict=True)) for row in zip(*columns, strict=True))
    else:
        old = ({} for _ in sheet.rows)
    new = (dict(zip(sheet.new, row, strict=True)) for row in zip(*sheet.new.values(), strict=True))
    lines = (json.dumps({**a, **b}, ensure_ascii=False, default=str) for a, b in zip(old, new, strict=True))
    return "".join(f"{line}\n" for line in lines).encode()


def _arrow_table(sheet: Sheet) -> Any:
    arrow = pyarrow_module("writing this format", "pyarrow")
    content = None if sheet.table is None else sheet.table.content
    if content is None or isinstance(content, (Cells, Objects)):
        return arrow.table({**{column: sheet.old(column) for column in sheet.old_columns}, **sheet.new})
    found = content.take(sheet.rows)
    for name, values in sheet.new.items():
        found = found.append_column(name, arrow.array(values))
    return found


def _parquet(sheet: Sheet) -> bytes:
    buffer = io.BytesIO()
    pyarrow_module("writing .parquet", "pyarrow.parquet").write_table(_arrow_table(sheet), buffer)
    return buffer.getvalue()


def _arrow(sheet: Sheet) -> bytes:
    table, buffer = _arrow_table(sheet), io.BytesIO()
    with pyarrow_module("writing .arrow", "pyarrow.ipc").new_file(buffer, table.schema) as writer:
        writer.write_table(table)
    return buffer.getvalue()


_ARRAYS = {".npz": _npz, ".npy": _npy}
_TABLES: dict[str, Callable[[Sheet], bytes]] = {
    ".csv": _text(","),
    ".tsv": _text("\t"),
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
    ".parquet": _parquet,
    ".arrow": _arrow,
    ".feather": _arrow,
}
