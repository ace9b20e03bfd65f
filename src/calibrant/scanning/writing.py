"""Files of probabilities, written batch by batch: tables with their other columns, arrays alone."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput
from ..files.arrow_tables import pyarrow_module
from ..files.writing import shown_like
from ..passes.batch import Batch

Names = Callable[[Batch], Sequence[Any]]
Answered = Iterator[tuple[Batch, NDArray[Any]]]  # batches, each with its probabilities: (n, K), or (n,) of one event


def new_columns(batch: Batch, p: NDArray[Any], column: str, names: Names) -> dict[str, NDArray[Any]]:
    """Return what is added to a table, by name.

    ``column`` is the name for a list and for the probability of one event. Where the scores are K columns it is what K
    names begin with: ``calibrated_ant``. One that ends in ``_`` is a beginning everywhere, as on the command line.
    ``names`` says what these K are called.
    """
    begins = column.endswith("_")
    if p.ndim == 1:
        new = {f"{column}{batch.sources[0]}" if begins and batch.sources else column: p}
    elif len(batch.sources) == 1:
        new = {f"{column}probs" if begins else column: p}
    else:
        prefix = column if begins else f"{column}_"
        new = {f"{prefix}{c}": np.ascontiguousarray(p[:, i]) for i, c in enumerate(names(batch))}
    if taken := set(new) & set(batch.table_columns):
        raise InvalidInput(
            f"{batch.origin.name or 'the table'} has a column {sorted(taken)[0]} already", hint="choose another name"
        )
    return new


# Arrow ----------------------------------------------------------------------------------------------------------------


def arrow_column(p: NDArray[Any]) -> Any:
    """Return probabilities as an Arrow array, a list a row where they are several."""
    arrow = pyarrow_module("writing tables", "pyarrow")
    flat = arrow.array(np.ascontiguousarray(p).ravel())
    if p.ndim == 1:
        return flat
    ends = arrow.array(np.arange(len(p) + 1, dtype=np.int32) * p.shape[1])
    return arrow.ListArray.from_arrays(ends, flat)


def _tables(pairs: Answered, column: str, names: Names) -> Iterator[Any]:
    arrow = pyarrow_module("writing tables", "pyarrow")
    for batch, p in pairs:
        new = new_columns(batch, p, column, names)
        old = batch.content
        old = old if batch.places is None else old.take(arrow.array(batch.places))
        yield arrow.record_batch([*old.columns, *map(arrow_column, new.values())], names=[*old.schema.names, *new])


def _parquet(pairs: Answered, target: Path, column: str, names: Names) -> None:
    parquet = pyarrow_module("writing .parquet", "pyarrow.parquet")
    _streamed(_tables(pairs, column, names), lambda schema: parquet.ParquetWriter(str(target), schema))


def _arrow(pairs: Answered, target: Path, column: str, names: Names) -> None:
    ipc = pyarrow_module("writing .arrow", "pyarrow.ipc")
    _streamed(_tables(pairs, column, names), lambda schema: ipc.new_file(str(target), schema))


def _streamed(batches: Iterator[Any], start: Callable[[Any], Any]) -> None:
    writer = None
    try:
        for batch in batches:
            writer = writer or start(batch.schema)
            writer.write_batch(batch)
    finally:
        if writer is not None:
            writer.close()


# Text -----------------------------------------------------------------------------------------------------------------


def _text(target: Path, name: str) -> io.TextIOWrapper:
    raw = gzip.open(target, "wb") if name.lower().endswith(".gz") else target.open("wb")  # noqa: SIM115
    return io.TextIOWrapper(cast("BinaryIO", raw), encoding="utf-8", newline="")


def _csv(pairs: Answered, target: Path, column: str, names: Names) -> None:
    with _text(target, target.name) as file:
        writer = None
        for batch, p in pairs:
            cells = batch.content
            rows = cells.rows if batch.places is None else [cells.rows[i] for i in batch.places]
            new = new_columns(batch, p, column, names)
            if writer is None:
                file.write(cells.style.mark)
                writer = csv.writer(file, delimiter=cells.style.delimiter, lineterminator=cells.style.line_end)
                writer.writerow([*cells.header, *new])
            added = shown_like(cells, batch.sources, (part.tolist() for part in new.values()))
            writer.writerows([*row, *some] for row, some in zip(rows, added, strict=True))


def _jsonl(pairs: Answered, target: Path, column: str, names: Names) -> None:
    with _text(target, target.name) as file:
        for batch, p in pairs:
            rows = batch.content.rows if batch.places is None else [batch.content.rows[i] for i in batch.places]
            new = new_columns(batch, p, column, names)
            values = zip(*(part.tolist() for part in new.values()), strict=True)
            for row, some in zip(rows, values, strict=True):
                told = {**row, **dict(zip(new, some, strict=True))}
                file.write(json.dumps(told, ensure_ascii=False, default=str) + "\n")


# Arrays ---------------------------------------------------------------------------------------------------------------


def _npy(pairs: Answered, target: Path, _: str, __: Any) -> None:
    rows, shape, dtype = 0, (), np.dtype(np.float32)
    with target.open("wb") as file:
        for _batch, p in pairs:
            if not rows:
                shape, dtype = p.shape[1:], p.dtype
                file.write(_header(0, shape, dtype))
            rows += len(p)
            file.write(np.ascontiguousarray(p, dtype=dtype).tobytes())
        file.seek(0)
        file.write(_header(rows, shape, dtype))


def _npz(pairs: Answered, target: Path, _: str, __: Any) -> None:
    """Write probs and, where there are some, labels; the answers wait in a file, as their number comes first."""
    labels, work = [], target.with_suffix(".part.npy")

    def kept() -> Answered:
        for batch, p in pairs:
            labels.append(np.zeros(0) if batch.labels is None else np.array(batch.labels))
            yield batch, p

    try:
        _npy(kept(), work, "", None)
        with zipfile.ZipFile(target, "w") as archive:
            archive.write(work, "probs.npy")
            if any(map(len, labels)):
                with archive.open("labels.npy", "w") as file:
                    np.lib.format.write_array(file, np.concatenate(labels), allow_pickle=False)
    finally:
        work.unlink(missing_ok=True)


def _header(rows: int, shape: tuple[int, ...], dtype: Any) -> bytes:
    descr = np.lib.format.dtype_to_descr(np.dtype(dtype))
    text = repr({"descr": descr, "fortran_order": False, "shape": (rows, *shape)})
    body = text.encode().ljust(117) + b"\n"  # 128 bytes in all, whatever the number of rows is
    return b"\x93NUMPY\x01\x00" + len(body).to_bytes(2, "little") + body


WRITERS: dict[str, Callable[[Answered, Path, str, Names], None]] = {
    ".parquet": _parquet,
    ".arrow": _arrow,
    ".feather": _arrow,
    ".npy": _npy,
    ".npz": _npz,
    ".csv": _csv,
    ".tsv": _csv,
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
}
