"""Paths and patterns of files as a source of batches."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ...errors import CalibrantError, FileProblem, InvalidInput, blamed
from ...passes.batch import Batch, rows_in
from ..pieces import Names
from ..reading import ending
from .arrays import npy_batches, npz_batches
from .pipes import copied, is_pipe
from .tables import arrow_batches, text_batches

_HEAD = 64  # rows that show what a file is like
SCANNED: dict[str, Callable[[str, Names, int], Iterator[Batch]]] = {
    ".npy": npy_batches,
    ".npz": npz_batches,
    ".parquet": arrow_batches,
    ".arrow": arrow_batches,
    ".feather": arrow_batches,
    ".csv": text_batches,
    ".tsv": text_batches,
    ".jsonl": text_batches,
    ".ndjson": text_batches,
}


@dataclass(frozen=True, eq=False)
class FileSource:
    """Files, one behind the other."""

    paths: tuple[str, ...]
    names: Names  # what the user says of columns and keys
    bytes_a_batch: int
    held: Any = None  # keeps a temporary file
    is_cluster = False
    n_partitions = 0

    @property
    def words(self) -> str:
        """What to call it."""
        return self.paths[0] if len(self.paths) == 1 else f"{self.paths[0]} and {len(self.paths) - 1} more"

    def reduce(self, function: Callable[[Iterable[Batch]], Any]) -> Any:
        """Make one pass over all files."""
        return function(self.batches())

    def batches(self) -> Iterator[Batch]:
        """Yield the batches of all files."""
        rows = self.rows_a_batch
        for path in self.paths:
            yield from self._batches_of(path, rows)

    def _batches_of(self, path: str, rows: int) -> Iterator[Batch]:
        try:
            yield from self.reader(path)(path, self.names, rows)
        except (CalibrantError, MemoryError):
            raise
        except Exception as error:  # zipfile, zlib, NumPy and pyarrow have many types, all of them mean the file
            seen = f"{type(error).__name__}: {error}"[:200]
            raise FileProblem(f"{path} is damaged, or not what its name says", seen=seen) from error

    def head(self) -> Batch | None:
        """Return the first rows of the first file that has some."""
        for path in self.paths:
            for batch in self._batches_of(path, _HEAD):
                if len(batch.scores):
                    return batch
        return None

    @cached_property
    def rows_a_batch(self) -> int:
        """Rows of about so many bytes."""
        head = self.head()
        if head is None:
            return _HEAD
        return rows_in(self.bytes_a_batch, head.scores[:1])

    @staticmethod
    def reader(path: str) -> Callable[..., Iterator[Batch]]:
        """Return what reads a file of this ending."""
        return SCANNED[ending(path)]


def file_source(given: Any, names: Names, bytes_a_batch: int, spill: Any = None) -> FileSource:
    """Return the source of a path, a pattern, a directory or a list of them; with ``spill`` a pipe is copied first."""
    if spill is not None and not isinstance(given, (list, tuple)) and is_pipe(given):
        with open(os.fspath(given), "rb") as stream:
            path, held = copied(stream)
        return FileSource((path,), names, bytes_a_batch, held)
    paths = [path for one in (given if isinstance(given, (list, tuple)) else [given]) for path in _expanded(one)]
    for path in paths:
        if ending(path) not in SCANNED:
            raise FileProblem(
                f"{path} has an ending that cannot be scanned", seen=ending(path) or "none", allowed=", ".join(SCANNED)
            )
    if len(paths) > 1 and any(ending(path) == ".npy" for path in paths) and names.labels is not None:
        raise InvalidInput("several .npy files of scores need as many files of labels", hint="scan one, or use .npz")
    return FileSource(tuple(paths), names, bytes_a_batch)


def _expanded(given: Any) -> Sequence[str]:
    with blamed(f"cannot read {given!s:.200}", OSError):  # a name too long, a directory that changes while it is read
        return _files(os.fspath(given))


def _files(text: str) -> Sequence[str]:
    if any(c in text for c in "*?[") and not Path(text).exists():
        found = sorted(path for path in glob.glob(text, recursive=True) if Path(path).is_file())
        if not found:
            raise FileProblem(f"no file is like {text}", hint="put the pattern in quotes, and look at the directory")
        return found
    if Path(text).is_dir():
        found = [str(p) for p in sorted(Path(text).rglob("*")) if p.is_file() and not _hidden(p, Path(text))]
        if not found:
            raise FileProblem(f"the directory {text} has no files")
        return found
    if not Path(text).exists():
        raise FileProblem(f"cannot read {text}", seen="no such file")
    if is_pipe(text):
        raise InvalidInput(
            f"{text} can be read once, and a scan reads it several times",
            seen="a pipe",
            hint="pass spill=True, which copies it to a file of its own",
        )
    if not Path(text).is_file():
        raise FileProblem(f"cannot read {text}", seen="no regular file")
    return [text]


def _hidden(path: Path, room: Path) -> bool:
    """Files that writers leave beside the data: _SUCCESS, .crc, _temporary/."""
    return any(part.startswith((".", "_")) for part in path.relative_to(room).parts)
