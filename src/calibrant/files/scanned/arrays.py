"""Arrays read batch by batch: .npy and stored .npz members as windows of a map, compressed members as a stream."""

from __future__ import annotations

import mmap
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from ...errors import FileProblem, InvalidInput, blamed
from ...passes.batch import Batch, Origin
from ..assemble import chosen_scores
from ..pieces import Names, Piece, named_pieces
from ..roles import SCORE_ROLES

Item = TypeVar("Item")


@dataclass(frozen=True)
class Stored:
    """An array in a file: where its numbers begin, and of what shape and type they are.

    ``member`` is the name of a compressed member of an archive, whose numbers have no place of their own.
    """

    path: str
    key: str
    shape: tuple[int, ...]
    dtype: Any
    offset: int
    fortran: bool = False
    member: str = ""

    def windows(self, rows: int) -> Iterator[NDArray[Any]]:
        """Yield so many rows at a time; a window of a mapped file is let go before the next."""
        if self.member:
            yield from self._streamed(rows)
            return
        width = int(np.prod(self.shape[1:], dtype=np.int64)) * self.dtype.itemsize
        for first in range(0, self.shape[0], rows):
            yield _fetched(self._window(first, min(rows, self.shape[0] - first), width))

    def _window(self, first: int, count: int, width: int) -> NDArray[Any]:
        if self.fortran:  # columns lie one behind the other: a slice of each
            whole = np.memmap(self.path, self.dtype, "r", self.offset, self.shape, order="F")
            return np.ascontiguousarray(whole[first : first + count])
        shape = (count, *self.shape[1:])
        with blamed(f"{self.path} is cut short, or was changed meanwhile", OSError, ValueError, most=120):
            return np.memmap(self.path, self.dtype, "r", self.offset + first * width, shape)

    def _streamed(self, rows: int) -> Iterator[NDArray[Any]]:
        width = int(np.prod(self.shape[1:], dtype=np.int64)) * self.dtype.itemsize
        with zipfile.ZipFile(self.path) as archive, archive.open(self.member) as file:
            file.read(self.offset)
            for first in range(0, self.shape[0], rows):
                count = min(rows, self.shape[0] - first)
                data = file.read(count * width)
                if len(data) < count * width:
                    raise FileProblem(f"{self.path}: {self.key} is cut short", seen=f"after row {first}")
                yield np.frombuffer(data, self.dtype).reshape(count, *self.shape[1:])


def _fetched(window: NDArray[Any]) -> NDArray[Any]:
    """Return a window whose pages are in memory: reading a byte of each fetches it, and holds no lock of Python's."""
    if isinstance(window, np.memmap) and window.dtype.kind in "fiub":
        np.asarray(window).reshape(-1).view(np.uint8)[:: mmap.PAGESIZE].max(initial=0)
    return window


def stored_npy(path: str) -> Stored:
    """Return what the header of a .npy file says."""
    with blamed(f"cannot read {path}", OSError), Path(path).open("rb") as file:
        return _stored(file, path, Path(path).name, 0)


def _stored(file: Any, path: str, key: str, begin: int, member: str = "") -> Stored:
    with blamed(f"{path}: {key} is not an array, or is damaged", ValueError, most=120):
        version = npy_format.read_magic(file)
        read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
        shape, fortran, dtype = read(file)
        offset = file.tell()
    if dtype.hasobject:
        raise FileProblem(
            f"{path}: {key} holds Python objects (a pickle), which could run any code; calibrant never loads them",
            hint="save numbers or strings: array.astype(float) or array.astype(str)",
        )
    if member and fortran and len(shape) > 1:
        raise FileProblem(f"{path}: {key} is compressed and stored column by column", hint="save it in C order")
    return Stored(path, key, shape or (1,), dtype, begin + offset, fortran and len(shape) > 1, member)


def npy_batches(path: str, names: Names, rows: int) -> Iterator[Batch]:
    """Yield the batches of a .npy file of scores; labels, weights and groups are other .npy files that are named."""
    others = {role: getattr(names, role) for role in ("labels", "weights", "groups")}
    arrays = {"scores": stored_npy(path)}
    arrays |= {role: stored_npy(str(other)) for role, other in others.items() if other is not None}
    yield from _side_by_side(arrays, path, rows, names.kind)


def npz_batches(path: str, names: Names, rows: int) -> Iterator[Batch]:
    """Yield the batches of an .npz file."""
    damaged = blamed(f"{path} is not an .npz file, or is damaged", zipfile.BadZipFile)
    with blamed(f"cannot read {path}", OSError), damaged, zipfile.ZipFile(path) as archive:
        members = {name[:-4]: archive.getinfo(name) for name in archive.namelist() if name.endswith(".npy")}
        roles = named_pieces(path, list(members), names)
        own = {key: role for key, (role, part) in roles.items() if names.part is None or part == names.part}
        pieces = [Piece(key, role, "", np.zeros(0)) for key, role in own.items() if role in SCORE_ROLES]
        scores = chosen_scores(path, pieces, names)
        if scores is None:
            raise InvalidInput(f"{path} has no scores", seen=", ".join(members), hint="name the key: scores=…")
        chosen = {"scores": scores.key}
        for role in ("labels", "weights", "groups"):
            found = [key for key, other in own.items() if other == role]
            if len(found) > 1:
                raise InvalidInput(f"{path} has several {role}", seen=", ".join(found), hint="name one of them")
            chosen |= {role: found[0]} if found else {}
        arrays = {role: _member(archive, members[key], path, key) for role, key in chosen.items()}
    said = own[scores.key]
    yield from _side_by_side(arrays, path, rows, names.kind if said == "scores" else said)


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: str, key: str) -> Stored:
    """Return where a member lies; a stored one begins behind its local header, whose length is its own."""
    with archive.open(info) as file:
        if info.compress_type != zipfile.ZIP_STORED:
            return _stored(file, path, key, 0, info.filename)
        raw = archive.fp
        assert raw is not None
        raw.seek(info.header_offset)
        header = raw.read(30)
        begin = info.header_offset + 30 + int.from_bytes(header[26:28], "little")
        return _stored(file, path, key, begin + int.from_bytes(header[28:30], "little"))


def _side_by_side(arrays: dict[str, Stored], path: str, rows: int, kind: str | None) -> Iterator[Batch]:
    count = arrays["scores"].shape[0]
    for stored in arrays.values():
        if stored.shape[0] != count:
            raise InvalidInput(
                f"{path}: {arrays['scores'].key} and {stored.key} have inconsistent numbers of rows",
                seen=f"{count} and {stored.shape[0]}",
            )
    first = 0
    for windows in one_ahead(_windows_of(arrays, rows)):
        yield Batch(**windows, origin=Origin(path, first), kind=kind)
        first += len(windows["scores"])
        del windows  # before the next but one is made


def _windows_of(arrays: dict[str, Stored], rows: int) -> Iterator[dict[str, Any]]:
    """Yield the windows of arrays of one length, side by side; `zip` would hold some of them."""
    started = {role: stored.windows(rows) for role, stored in arrays.items()}
    for _ in range(0, arrays["scores"].shape[0], rows):
        yield {role: next(windows) for role, windows in started.items()}


def one_ahead(items: Iterator[Item]) -> Iterator[Item]:
    """Yield what an iterator yields; a thread makes the next item while the last is worked on.

    So two items are there at a time. What goes wrong with an item is raised where it is asked for. The thread ends with
    the iteration, also where that is given up; a system that has no thread to spare makes each item when it is asked.
    """
    end = object()
    with ThreadPoolExecutor(1, "calibrant-ahead") as thread:
        try:
            coming = thread.submit(next, items, end)
        except RuntimeError:
            yield from items
            return
        while (item := coming.result()) is not end:
            coming = thread.submit(next, items, end)
            yield item  # type: ignore[misc]  # the end is no item
            del item  # before the one after the next is made
