"""A fitted map on batches: files to files, block by block, or a cluster's own lazy frame."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FileProblem, InvalidInput
from ..files.arrow_tables import pyarrow_module
from ..files.reading import ending
from ..files.scanned import FileSource
from ..passes.batch import Batch
from .reading import is_one_score, named, naming_rows
from .watching import counted, tell_pass

__all__ = ["answer", "apply"]


def answer(batch: Batch, maps: tuple[Any, ...]) -> Batch:
    """Return a batch with a map's probabilities in place of its scores; each next map gets those of the one before.

    One score a row, of an event, gives one probability.
    """
    scores, one = named(batch), is_one_score(np.shape(batch.scores))
    with naming_rows(batch.origin):
        for fitted in maps:
            if not len(batch.scores):
                return batch
            scores = fitted.predict_proba(scores)
            scores = scores[:, 1] if one and fitted.traits.needs == "scores" else scores
    return replace(batch, scores=scores, columns=None)


@dataclass(frozen=True)
class _Answer:
    """The probabilities of a batch."""

    maps: tuple[Any, ...]

    def __call__(self, batch: Batch) -> Any:
        return answer(batch, self.maps).scores


def apply(calibrator: Any, data: Any, to: Any = None, *, column: str = "calibrated") -> Any:
    """Apply a fitted map to a scan.

    Files become files, block by block: tables keep their other columns and have a new one, a list of probabilities
    (.csv: one column a class). Everything is written beside the target and takes its place when it is complete, so that
    an interruption or a full disk leaves what was there before. A Dask array becomes a lazy Dask array, a Spark
    DataFrame one with a column more.

    Parameters
    ----------
    calibrator : Calibrator
    data : Scan
    to : path, optional
        A directory for several files; a file for one. Not for Dask and Spark.
    column : str
        The name of the new column.
    """
    source, maps = data.source, (*data.maps, calibrator)
    kind = type(source).__name__
    if kind == "DaskSource":
        from .engines.dask import lazily

        if not hasattr(source.given, "map_blocks"):
            raise InvalidInput("apply on Dask takes arrays", seen=type(source.given).__name__)
        return lazily(calibrator.predict_proba, source.given, len(calibrator.classes_))
    if kind == "SparkSource":
        from .engines.spark import answered

        return answered(source, _Answer(maps), column)
    if not isinstance(source, FileSource):
        raise InvalidInput("apply writes files from files", seen=source.words, hint="use predict_proba on its batches")
    if to is None:
        raise InvalidInput("apply needs a place for its files", hint='pass to="calibrated/"')
    _write_files(source, maps, Path(os.fspath(to)), column, is_room=len(source.paths) > 1 or str(to).endswith("/"))
    return None


def _write_files(source: FileSource, maps: tuple[Any, ...], to: Path, column: str, *, is_room: bool) -> None:
    is_room = is_room or to.is_dir() or not to.suffix
    if not to.absolute().parent.is_dir():
        raise FileProblem(f"cannot write {to}", seen=f"no directory {to.parent}", hint="create it first")
    work = to.absolute().parent / f".{to.name}.{secrets.token_hex(4)}.tmp"
    try:
        if is_room:
            work.mkdir()
        with tell_pass():
            for path in source.paths:
                target = work / Path(path).name if is_room else work
                _write_file(source, path, target, maps, column, ending(path if is_room else str(to)))
        _put_in_place(work, to)
    except BaseException as error:
        _remove(work)
        if isinstance(error, OSError) and not isinstance(error, FileProblem):
            raise FileProblem(f"cannot write {to}", seen=error.strerror or str(error)) from error
        raise


def _put_in_place(work: Path, to: Path) -> None:
    if to.is_dir():
        aside = to.absolute().parent / f".{to.name}.{secrets.token_hex(4)}.old"
        os.replace(to, aside)
        try:
            os.replace(work, to)
        except BaseException:
            os.replace(aside, to)
            raise
        _remove(aside)
    else:
        os.replace(work, to)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _write_file(source: FileSource, path: str, target: Path, maps: tuple[Any, ...], column: str, kind: str) -> None:
    extra = {"whole": True} if ending(path) in (".parquet", ".arrow", ".feather") else {}
    batches = counted(source.reader(path)(path, source.names, source.rows_a_batch, **extra))
    pairs = ((batch, np.asarray(answer(batch, maps).scores)) for batch in batches if len(batch.scores))
    writers = {".parquet": _parquet, ".arrow": _arrow, ".feather": _arrow, ".npy": _npy, ".csv": _csv, ".tsv": _csv}
    if kind not in writers:
        raise FileProblem(f"apply cannot write {kind or 'this kind of'} files", allowed=", ".join(writers))
    writers[kind](pairs, target, column, maps[-1])


def _tables(pairs: Iterator[tuple[Batch, Any]], column: str) -> Iterator[Any]:
    arrow = pyarrow_module("writing tables", "pyarrow")
    for batch, p in pairs:
        lists = arrow.FixedSizeListArray.from_arrays(arrow.array(p.ravel()), p.shape[1]).cast(
            arrow.list_(arrow.from_numpy_dtype(p.dtype))
        )
        content = batch.content
        names = [*content.schema.names, column] if hasattr(content, "schema") else [column]
        old = content.columns if hasattr(content, "schema") else []
        yield arrow.record_batch([*old, lists], names=names)


def _parquet(pairs: Iterator[tuple[Batch, Any]], target: Path, column: str, _: Any) -> None:
    parquet = pyarrow_module("writing .parquet", "pyarrow.parquet")
    _streamed(_tables(pairs, column), lambda schema: parquet.ParquetWriter(str(target), schema))


def _arrow(pairs: Iterator[tuple[Batch, Any]], target: Path, column: str, _: Any) -> None:
    ipc = pyarrow_module("writing .arrow", "pyarrow.ipc")
    _streamed(_tables(pairs, column), lambda schema: ipc.new_file(str(target), schema))


def _streamed(batches: Iterator[Any], start: Any) -> None:
    writer = None
    try:
        for batch in batches:
            writer = writer or start(batch.schema)
            writer.write_batch(batch)
    finally:
        if writer is not None:
            writer.close()


def _npy(pairs: Iterator[tuple[Batch, Any]], target: Path, _: str, __: Any) -> None:
    rows, columns, dtype = 0, 0, np.dtype(np.float32)
    with target.open("wb") as file:
        for _batch, p in pairs:
            if not rows:
                columns, dtype = p.shape[1], p.dtype
                file.write(_header(2**62, columns, dtype))
            rows += len(p)
            file.write(np.ascontiguousarray(p, dtype=dtype).tobytes())
        file.seek(0)
        file.write(_header(rows, columns, dtype, len(_header(2**62, columns, dtype))))


def _header(rows: int, columns: int, dtype: Any, length: int = 128) -> bytes:
    text = repr(
        {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": (rows, columns)}
    )
    body = text.encode().ljust(length - 11) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(body).to_bytes(2, "little") + body


def _csv(pairs: Iterator[tuple[Batch, Any]], target: Path, column: str, fitted: Any) -> None:
    import csv

    with target.open("w", newline="", encoding="utf-8") as file:
        writer = None
        for batch, p in pairs:
            cells = batch.content
            if writer is None:
                writer = csv.writer(file, delimiter=cells.delimiter)
                writer.writerow([*cells.header, *(f"{column}_{c}" for c in fitted.classes_.tolist())])
            writer.writerows([*row, *map(repr, new)] for row, new in zip(cells.rows, p.tolist(), strict=True))
