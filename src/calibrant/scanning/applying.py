"""A fitted map on batches: files to files, block by block, or a cluster's own lazy frame."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FileProblem, InvalidInput, blamed
from ..files.reading import ending
from ..files.scanned import FileSource
from ..passes.batch import Batch
from .passing import answer
from .watching import counted, tell_pass
from .writing import WRITERS


@dataclass(frozen=True)
class Answering:
    """The probabilities of a batch, also of one without rows; a class, so that it can be sent to where batches are."""

    maps: tuple[Any, ...]

    def __call__(self, batch: Batch) -> Any:
        """Return the probabilities of a batch."""
        if len(batch.scores):
            return np.asarray(answer(batch, self.maps).scores)
        scores = np.asarray(batch.scores)
        shape = (0,) if scores.ndim == 1 else (0, len(self.maps[-1].classes_))
        return np.zeros(shape, np.float32 if scores.dtype in (np.float16, np.float32) else np.float64)

    def names(self, batch: Batch) -> Sequence[Any]:
        """Return what each probability is called: as the column of its scores, where these have names, or the class."""
        classes = self.maps[-1].classes_.tolist()
        if batch.columns is None or len(batch.columns) != len(classes):
            return classes
        order = self.maps[0]._order(batch.columns)
        return batch.columns if order is None else [batch.columns[place] for place in order]


def apply(calibrator: Any, data: Any, to: Any = None, *, column: str = "calibrated") -> Any:
    """Apply a fitted map to a scan.

    Files become files of the same names, block by block. Tables keep their other columns, and have a list of
    probabilities behind them, a column a class where the scores are columns, or the probability of the one event.
    Everything is written beside the target and takes its place when it is complete, so that an interruption or a full
    disk leaves what was there before. A Dask array becomes a lazy Dask array, a Dask or Spark DataFrame a lazy one with
    a column more.

    Parameters
    ----------
    calibrator : Calibrator
    data : Scan
    to : path, optional
        A directory for several files, a file or a directory for one. Not for Dask and Spark.
    column : str
        The name of the new column, or what the names begin with where there are several: ``calibrated_ant``.
    """
    if not hasattr(calibrator, "classes_"):
        raise InvalidInput("apply needs a fitted map", seen=type(calibrator).__name__, hint="call fit first")
    if not hasattr(data, "source"):
        raise InvalidInput("apply needs a scan", seen=type(data).__name__, hint="pass calibrant.scan(…)")
    source, maps = data.source, (*data.maps, calibrator)
    if source.is_cluster:
        if to is not None:
            raise InvalidInput("apply on a cluster returns a lazy frame, and writes nothing", seen=f"to={to!r}")
        return source.answered(Answering(maps), column)
    if not isinstance(source, FileSource):
        raise InvalidInput("apply writes files from files", seen=source.words, hint="use predict_proba on its batches")
    if to is None:
        raise InvalidInput("apply needs a place for its files", hint='pass to="calibrated/"')
    several = len(source.paths) > 1 or str(to).endswith("/")
    _write_files(source, maps, Path(os.fspath(to)), column, is_room=several)
    return None


def _write_files(source: FileSource, maps: tuple[Any, ...], to: Path, column: str, *, is_room: bool) -> None:
    is_room = is_room or to.is_dir() or not to.suffix
    names = _names(source.paths) if is_room else [to.name]
    _refuse_place(to, source.paths, names, is_room=is_room)
    work = to.absolute().parent / f".{to.name}.{secrets.token_hex(4)}.tmp"
    try:
        with blamed(f"cannot write {to}", OSError):
            work.mkdir()
            tell_pass()
            for path, name in zip(source.paths, names, strict=True):
                _write_file(source, path, work / name, maps, column)
            _put_in_place(work if is_room else work / to.name, to)
    finally:
        _remove(work)


def _write_file(source: FileSource, path: str, target: Path, maps: tuple[Any, ...], column: str) -> None:
    kind = ending(path)
    if kind not in WRITERS or ending(target.name) != kind:
        raise FileProblem(
            f"apply writes files of the kind it reads, and {path} is {kind}",
            seen=target.name,
            allowed=", ".join(WRITERS),
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    extra = {"whole": True} if kind in (".parquet", ".arrow", ".feather") else {}
    names = replace(source.names, every_part=source.names.part is None)
    batches = counted(source.reader(path)(path, names, source.rows_a_batch, **extra))
    answering = Answering(maps)
    WRITERS[kind](((batch, answering(batch)) for batch in batches), target, column, answering.names)


def _names(paths: tuple[str, ...]) -> list[str]:
    """Return the names of the files to write: those of the files read, with directories where names alone are equal."""
    names = [Path(path).name for path in paths]
    if len(set(names)) == len(names):
        return names
    absolute = [os.path.abspath(path) for path in paths]
    room = os.path.commonpath([os.path.dirname(path) for path in absolute])
    return [os.path.relpath(path, room) for path in absolute]


def _refuse_place(to: Path, paths: tuple[str, ...], names: list[str], *, is_room: bool) -> None:
    """Refuse a place that cannot be written to, and one that holds what is not to be lost."""
    if not to.absolute().parent.is_dir():
        raise FileProblem(f"cannot write {to}", seen=f"no directory {to.parent}", hint="create it first")
    if not is_room or not to.exists():
        return
    if not to.is_dir():
        raise FileProblem(f"cannot write {len(names)} files to {to}", seen="a file", hint="name a directory")
    room = to.resolve()
    if any(room in Path(path).resolve().parents for path in paths):
        raise FileProblem(f"{to} holds the files that are read", hint="write to another directory")
    others = {str(path.relative_to(to)) for path in to.rglob("*") if path.is_file()} - set(names)
    if others:
        raise FileProblem(
            f"{to} holds other files, and would be replaced", seen=sorted(others)[0], hint="name an empty directory"
        )


def _put_in_place(work: Path, to: Path) -> None:
    if not to.is_dir():
        os.replace(work, to)
        return
    aside = to.absolute().parent / f".{to.name}.{secrets.token_hex(4)}.old"
    os.replace(to, aside)
    try:
        os.replace(work, to)
    except BaseException:
        os.replace(aside, to)
        raise
    _remove(aside)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
