"""Tables read batch by batch: Parquet and Arrow by pyarrow, text by lines. Names decide, as for files read whole."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidInput, blamed
from ...passes.batch import Batch, Origin
from ...validation import says_nothing
from ..arrow_tables import arrow_table, pyarrow_module
from ..assemble import chosen_scores, unrounded
from ..event import column_of_event, plain_labels, refuse_event_of_several
from ..pieces import Names, Piece
from ..roles import SCORE_ROLES
from ..tables import Table, table_pieces
from ..text_tables import csv_tables, jsonl_tables, other_letters

_DECODED = 4  # times its size that a batch of Parquet takes while it is decoded: levels, and values as they grow
_TEXT = 8  # times its size as numbers that a batch of text takes: a cell is an object of some 70 bytes
_FEW = 64  # rows that are read at once, whatever they take
_AHEAD = 1 << 22  # bytes of a Parquet file that are read ahead, of all columns together


def batch_of_table(table: Table, names: Names, origin: Origin) -> Batch:
    """Return the rows of a table, or of one part of its split, as a batch."""
    found = table_pieces(_undivided(table) if names.every_part else table, names)
    if any(piece.part for piece in found.pieces) and names.part is None:
        raise InvalidInput(
            f"{table.path} has a column split, and a scan reads one part",
            seen=", ".join(dict.fromkeys(piece.part for piece in found.pieces)),
            hint='say which: part="val"',
        )
    own = [piece for piece in found.pieces if names.part is None or piece.part == names.part]
    if not own:
        return Batch(np.zeros((0, 1)), np.zeros(0), origin=origin)
    scores = chosen_scores(table.path, [p for p in own if p.role in SCORE_ROLES], names)
    others = {role: _only(own, role) for role in ("labels", "weights", "groups", "embeddings")}
    scores = scores or others["embeddings"]
    if scores is None:
        raise InvalidInput(
            f"{table.path} has no scores", seen=", ".join(list(table.columns)[:12]), hint="name the column: scores=…"
        )
    percent = names.percent or scores.percent
    kind = scores.role if scores.role != "scores" else names.kind or ("probabilities" if percent else None)
    scores = unrounded(table.path, scores, str(kind), names) if percent else scores
    columns = scores.columns if scores.columns is not None and not says_nothing(scores.columns) else None
    labels = others["labels"]
    refuse_event_of_several([scores], names)
    places = scores.places
    lines = None if table.lines is None else np.asarray(table.lines)[slice(None) if places is None else places]
    return Batch(
        scores.values,
        None if labels is None else plain_labels(labels).values,
        _values(others["weights"]),
        _values(others["groups"]),
        columns,
        replace(origin, lines=lines),
        table.content,
        scores.sources,
        places,
        kind if kind in ("logits", "probabilities") else None,
        column_of_event(own, names),
        names.event is not None,
    )


def _undivided(table: Table) -> Table:
    """Return a table without the column that divides its rows into parts."""
    return replace(table, columns=[column for column in table.columns if column.lower() != "split"])


def _only(pieces: Sequence[Piece], role: str) -> Piece | None:
    return next((piece for piece in pieces if piece.role == role), None)


def _values(piece: Piece | None) -> NDArray[Any] | None:
    return None if piece is None else piece.values


# Arrow --------------------------------------------------------------------------------------------------------------


def arrow_batches(path: str, names: Names, rows: int, *, whole: bool = False) -> Iterator[Batch]:
    """Yield the batches of a .parquet, .arrow or .feather file; ``whole``: with the columns that play no role."""
    first = 0
    what = f"{path} is damaged, or not what its name says"
    with (
        blamed(f"cannot read {path}", OSError),
        blamed(what, pyarrow_module(f"reading {path}", "pyarrow").ArrowException),
    ):
        for part in _record_batches(path, names, rows, whole):
            part.validate(full=True)  # what a damaged file says of its own memory is checked before it is followed
            batch = batch_of_table(arrow_table(path, part, first), names, Origin(path, first))
            first += part.num_rows
            yield batch


def record_batches(batches: Iterator[Any], name: str, names: Names, rows: int, part: int = 0) -> Iterator[Batch]:
    """Yield batches of a stream of Arrow record batches, which may be that of a partition of a cluster."""
    first = 0
    for large in batches:
        for start in range(0, large.num_rows, rows):
            some = large.slice(start, rows)
            yield batch_of_table(arrow_table(name, some, first), names, Origin(name, first, part=part))
            first += some.num_rows


def _record_batches(path: str, names: Names, rows: int, whole: bool) -> Iterator[Any]:
    if path.lower().endswith(".parquet"):
        parquet = pyarrow_module(f"reading {path}", "pyarrow.parquet")
        with parquet.ParquetFile(path) as file:
            schema, columns = file.schema_arrow, len(file.schema)
            wanted = None if whole else wanted_columns(path, schema.names, names, schema)
        # Without a buffer of their own, columns of a group of rows are read whole: as large as the file may be.
        buffered = {"buffer_size": max(_AHEAD // columns, 4096), "pre_buffer": False}
        with parquet.ParquetFile(path, **buffered) as file:
            yield from file.iter_batches(batch_size=max(min(rows, _FEW), rows // _DECODED), columns=wanted)
            if whole and not file.metadata.num_rows:
                yield _empty(file.schema_arrow)
        return
    ipc, arrow = pyarrow_module(f"reading {path}", "pyarrow.ipc"), pyarrow_module(f"reading {path}", "pyarrow")
    with arrow.OSFile(path) as file:
        if file.read(6) != b"ARROW1":
            file.seek(0)
            for large in ipc.open_stream(file):
                yield from (large.slice(start, rows) for start in range(0, large.num_rows, rows))
            return
        reader = ipc.open_file(file)
        count, schema = reader.num_record_batches, reader.schema
    if whole and not count:
        yield _empty(schema)
    for number in range(count):
        yield from _slices(lambda i=number: ipc.open_file(arrow.memory_map(path)).get_batch(i), rows)


def _slices(mapped: Callable[[], Any], rows: int) -> Iterator[Any]:
    """Yield so many rows at a time of a batch that is mapped anew for each: what was read of a map stays in memory."""
    arrow = pyarrow_module("reading tables", "pyarrow")
    before, start = arrow.total_allocated_bytes(), 0
    large = mapped()
    unpacked = arrow.total_allocated_bytes() > before  # a compressed batch is in memory as a whole
    total = large.num_rows
    while start < total:
        large = mapped() if large is None else large
        part = large.slice(start, rows)
        large = large if unpacked else None
        yield part
        del part
        start += rows


def _empty(schema: Any) -> Any:
    arrow = pyarrow_module("reading tables", "pyarrow")
    return arrow.RecordBatch.from_arrays([arrow.array([], kind) for kind in schema.types], schema=schema)


def empty_batch(name: str, names: Names, schema: Any) -> Batch:
    """Return a batch without rows, which shows what columns there are."""
    return batch_of_table(arrow_table(name, _empty(schema), 0), names, Origin(name))


def wanted_columns(path: str, columns: Sequence[str], names: Names, schema: Any) -> list[str]:
    """Return the columns that play a role, in their order: the others need not be read."""
    arrow = pyarrow_module(f"reading {path}", "pyarrow")
    found = table_pieces(_undivided(arrow_table(path, arrow.Table.from_batches([], schema), 0)), names)
    used = {source for piece in found.pieces for source in (piece.sources or (piece.key,))}
    return [column for column in columns if column in used or column.lower() == "split"]


# Text ---------------------------------------------------------------------------------------------------------------


def text_batches(path: str, names: Names, rows: int) -> Iterator[Batch]:
    """Yield the batches of a .csv, .tsv or .jsonl file, with .gz behind or without."""
    rows = max(min(rows, _FEW), rows // _TEXT)
    make = jsonl_tables if ".jsonl" in path.lower() or ".ndjson" in path.lower() else csv_tables
    try:
        with blamed(f"cannot read {path}", OSError, EOFError, zlib.error), _opened(path) as file:
            first = 0
            for table in make(file, path, names, rows):
                yield batch_of_table(table, names, Origin(path, first))
                first += len(table.lines or ())
    except UnicodeDecodeError as error:
        raise other_letters(path, error) from error


@contextmanager
def _opened(path: str) -> Iterator[TextIO]:
    packed = path.lower().endswith(".gz")
    with gzip.open(path, "rb") if packed else Path(path).open("rb") as raw:
        yield io.TextIOWrapper(cast("BinaryIO", raw), encoding="utf-8", newline="")
