"""A stream that can be read once, written to a file of its own so that it can be read again."""

from __future__ import annotations

import contextlib
import os
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FileProblem, InvalidInput
from ..files.arrow_tables import pyarrow_module
from ..files.pieces import Names, listed
from ..files.scanned import FileSource, file_source
from ..passes.batch import Batch
from ..validation.arrays import as_array, as_matrix


def spilled(
    given: Any, as_batches: Callable[[Iterable[Any]], Iterator[Batch]], names: Names, bytes_a_batch: int, spill: Any
) -> FileSource:
    """Write a one-shot stream to an Arrow file and return that as a source.

    ``spill`` is the file, which stays, or True for one that goes with the scan.
    """
    pyarrow_module("spilling a stream", "pyarrow")
    path = _place(spill)
    batches = iter(given)
    first = list(islice(batches, 1))
    framed = hasattr(given, "read_next_batch") or any(map(_is_frame, first))
    given = chain(first, batches)
    try:
        _write(path, _tables(given) if framed else _as_record_batches(as_batches(given)))
    except BaseException as error:
        with contextlib.suppress(OSError):
            path.unlink()
        if type(error).__module__.startswith("pyarrow"):
            raise InvalidInput("a batch of the stream cannot be spilled", seen=str(error)[:200]) from error
        if isinstance(error, OSError):
            raise FileProblem(f"cannot spill the stream to {path}", seen=error.strerror or str(error)) from error
        raise
    source = file_source(path, names if framed else Names(), bytes_a_batch)
    if spill is True:
        weakref.finalize(source, _forget, str(path))
    return source


def _place(spill: Any) -> Path:
    if spill is not True:
        return Path(os.fspath(spill))
    handle, name = tempfile.mkstemp(prefix="calibrant-", suffix=".arrow")
    os.close(handle)
    return Path(name)


def _forget(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def _write(path: Path, batches: Iterator[Any]) -> None:
    ipc = pyarrow_module("spilling a stream", "pyarrow.ipc")
    table = pyarrow_module("spilling a stream", "pyarrow").Table
    first = next(batches, None)
    if first is None:
        raise FileProblem("the stream to spill has no rows")
    with ipc.new_file(str(path), first.schema) as writer:
        for number, batch in enumerate(chain([first], batches)):
            if not _holds(first.schema, batch.schema):
                raise InvalidInput(
                    "the batches of a stream that is spilled must have the same columns of the same types",
                    seen=_columns(batch.schema) + f", in batch {number}",
                    allowed=_columns(first.schema) + ", as in the first",
                )
            if not batch.schema.equals(first.schema):
                (batch,) = table.from_batches([batch]).cast(first.schema).combine_chunks().to_batches()
            writer.write_batch(batch)


def _holds(first: Any, other: Any) -> bool:
    """Tell whether columns of these types can hold all numbers of the others."""
    types = pyarrow_module("spilling a stream", "pyarrow.types")

    def wide(one: Any, two: Any) -> bool:
        numbers = all(types.is_integer(kind) or types.is_floating(kind) for kind in (one, two))
        return numbers and np.can_cast(two.to_pandas_dtype(), one.to_pandas_dtype())

    pairs = zip(first.types, other.types, strict=False)
    return first.names == other.names and all(one.equals(two) or wide(one, two) for one, two in pairs)


def _columns(schema: Any) -> str:
    return listed([f"{field.name} {field.type}" for field in schema])


def _is_frame(batch: Any) -> bool:
    return hasattr(batch, "__arrow_c_stream__") or hasattr(batch, "__arrow_c_array__")


def _tables(frames: Iterable[Any]) -> Iterator[Any]:
    """Yield frames as record batches: their columns keep their names, and those are read as in files."""
    arrow = pyarrow_module("spilling a stream", "pyarrow")
    names: list[str] = []
    for number, frame in enumerate(frames):
        if not _is_frame(frame):
            raise InvalidInput(f"batch {number} of the scan is no frame, as the first is", seen=type(frame).__name__)
        table = arrow.table(frame)
        names = names or [name for name in table.schema.names if not name.startswith("__index_level_")]
        missing = [name for name in names if name not in table.schema.names]
        if missing:
            raise InvalidInput(f"batch {number} of the scan lacks columns of the first", seen=listed(missing))
        yield from table.select(names).replace_schema_metadata().combine_chunks().to_batches()


def _as_record_batches(batches: Iterable[Batch]) -> Iterator[Any]:
    arrow = pyarrow_module("spilling a stream", "pyarrow")
    for batch in batches:
        matrix, _ = as_matrix(batch.scores, "scores")
        wide = matrix.reshape(len(matrix), -1)
        scores = arrow.FixedSizeListArray.from_arrays(arrow.array(wide.ravel()), wide.shape[1])
        columns = {"scores": scores, "label": arrow.array(np.asarray(as_array(batch.labels, "labels")[0]))}
        if batch.weights is not None:
            columns["weight"] = arrow.array(np.asarray(as_array(batch.weights, "sample_weight")[0], dtype=np.float64))
        if batch.groups is not None:
            columns["group"] = arrow.array(np.asarray(as_array(batch.groups, "groups")[0]))
        yield arrow.record_batch(columns)
