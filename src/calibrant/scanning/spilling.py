"""A stream that can be read once, written to a file of its own so that it can be read again."""

from __future__ import annotations

import contextlib
import os
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FileProblem
from ..files.arrow_tables import pyarrow_module
from ..files.pieces import Names
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
    is_arrow = hasattr(given, "read_next_batch")
    try:
        _write(path, iter(given) if is_arrow else _as_record_batches(as_batches(given)))
    except BaseException as error:
        with contextlib.suppress(OSError):
            path.unlink()
        if isinstance(error, OSError):
            raise FileProblem(f"cannot spill the stream to {path}", seen=error.strerror or str(error)) from error
        raise
    source = file_source(path, names if is_arrow else Names(), bytes_a_batch)
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
    first = next(batches, None)
    if first is None:
        raise FileProblem("the stream to spill has no rows")
    with ipc.new_file(str(path), first.schema) as writer:
        writer.write_batch(first)
        for batch in batches:
            writer.write_batch(batch)


def _as_record_batches(batches: Iterable[Batch]) -> Iterator[Any]:
    arrow = pyarrow_module("spilling a stream", "pyarrow")
    for batch in batches:
        matrix, _ = as_matrix(batch.scores, "scores")
        wide = matrix.reshape(len(matrix), -1)
        scores = arrow.FixedSizeListArray.from_arrays(arrow.array(wide.ravel()), wide.shape[1])
        columns = {"scores": scores, "label": arrow.array(np.asarray(as_array(batch.labels, "labels")[0]))}
        if batch.weights is not None:
            columns["weight"] = arrow.array(np.asarray(as_array(batch.weights, "sample_weight")[0], dtype=np.float64))
        yield arrow.record_batch(columns)
