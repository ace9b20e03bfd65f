"""Files that are read in batches: patterns, directories, and what is larger than the memory that may be used."""

from __future__ import annotations

import contextlib
import io
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import InvalidInput
from ..files.arrow_tables import pyarrow_module
from ..files.reading import ending, stream_bytes
from ..files.scanned.pipes import copied, is_pipe
from ..progress import pass_bar
from ..scanning import Scan, scan, watched
from ..scanning.memory import memory_bytes

_KINDS = {"logits": "logits", "probs": "probabilities", None: None}
_ARRAY = 4  # times its size that an array takes when it is read whole and worked on
_TABLE = 16  # the same of a table on disk: a cell of text becomes an object of some 70 bytes, and columns are packed
_GZ = 4  # times its size that a packed text has
_WHOLE_ONLY = {"embeddings": "--embeddings", "clusters": "--clusters", "allow_torch": "--allow-torch"}


def scan_data(file: str, names: dict[str, Any], memory: str | None, *, every_part: bool = False) -> Scan | None:
    """Return a file as a scan where it is to be read in batches; None where it is read whole.

    ``every_part``: of files with a split all rows are meant, unless a part is named.
    """
    room = memory_bytes(memory)
    held, given = None, file
    if file == "-":
        most = room // _TABLE
        first = stream_bytes(sys.stdin.buffer, most)
        if len(first) < most:
            sys.stdin = io.TextIOWrapper(io.BytesIO(first))  # to be read whole
            return None
        given, held = copied(sys.stdin.buffer, first)
    elif not _is_large(file, room, asked=memory is not None):
        return None
    for key, option in _WHOLE_ONLY.items():
        if names[key]:
            raise InvalidInput(f"{option} is for files that are read whole", seen=file, hint="allow more by --memory")
    own = {"scores": names["scores"], "label": names["labels"], "weight": names["weights"], "group": names["groups"]}
    found = scan(given, **own, part=names["part"], percent=names["percent"], memory=memory, spill=True)
    source: Any = found.source
    told = {"kind": _KINDS[names["kind"]], "event": names["event"], "every_part": every_part and names["part"] is None}
    source = replace(source, names=replace(source.names, **told), held=held or source.held)
    return replace(found, source=source, kind=_KINDS[names["kind"]])


def _is_large(file: str, room: int, *, asked: bool) -> bool:
    path = Path(file)
    if path.is_dir() or (any(c in file for c in "*?[") and not path.exists()):
        return True
    if is_pipe(file):
        return asked
    return path.is_file() and _size_when_read(path) > room


def _size_when_read(path: Path) -> int:
    """Return about how many bytes a file takes when it is read whole and worked on."""
    size, suffix = path.stat().st_size, ending(path.name)
    if suffix == ".npz":
        with contextlib.suppress(OSError, zipfile.BadZipFile), zipfile.ZipFile(path) as archive:
            size = max(size, sum(member.file_size for member in archive.infolist()))
    if suffix == ".parquet":
        return max(size * _TABLE, _ARRAY * 8 * _values_in(path))
    copies = _ARRAY if suffix in (".npy", ".npz") else _TABLE
    return size * copies * (_GZ if path.suffix.lower() == ".gz" else 1)


def _values_in(path: Path) -> int:
    """Return how many values a Parquet file holds; 0 where it cannot say, and reading it will."""
    try:
        told = pyarrow_module(f"reading {path}", "pyarrow.parquet").read_metadata(path)
    except Exception:  # pyarrow's errors are of many types, and missing it is told when the file is read
        return 0
    groups = (told.row_group(number) for number in range(told.num_row_groups))
    return sum(group.column(column).num_values for group in groups for column in range(group.num_columns))


@contextlib.contextmanager
def counting(words: str, quiet: bool) -> Iterator[list[int]]:
    """Show which pass is under way and how many rows it has seen; yields a list that has the rows of the last pass."""
    seen = [0]

    def note(number: int, rows: int, total: int | None) -> None:
        seen[0] = rows
        advance(number, rows, total)

    with pass_bar(words, quiet) as advance, watched(note):
        yield seen


def set_kind(calibrator: Any, data: Scan) -> None:
    """Tell a map on scores what those of the scan are."""
    if calibrator.traits.needs != "scores":
        raise InvalidInput(
            f"{calibrator.called} needs embeddings", hint="allow more memory by --memory to read them whole"
        )
    calibrator.set_params(inputs=data.kind_of())


def fit_scan(calibrator: Any, data: Scan, quiet: bool) -> Any:
    """Fit a fresh map by passes."""
    set_kind(calibrator, data)
    with counting("fitting", quiet):
        return calibrator.fit(data)
