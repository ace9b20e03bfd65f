"""Writing a file so that a kill at any moment leaves the old one or the new one, and reading one that has an end."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import FileProblem, InvalidInput, blamed


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file beside ``path``; it takes the place of ``path`` when the block ends without an error.

    Links are followed, and what is no regular file (a pipe, a terminal) is written to as it is.
    """
    check_target(path)
    target = Path(os.path.realpath(path))
    with blamed(f"cannot write {path}", OSError):
        is_other = target.exists() and not target.is_file()
        with open(target, "wb") if is_other else _beside(target) as out:
            yield out


def check_path(path: Any) -> None:
    """Refuse what names no file: a number would be taken for a file that is open already."""
    if not isinstance(path, (str, os.PathLike)) or "\0" in os.fsdecode(path):
        raise InvalidInput("this is no path of a file", seen=repr(path)[:80])


def read_bytes(path: str | os.PathLike[str], most: int = -1, *, pipes: bool = False) -> bytes:
    """Return the first bytes of a file, or all: of no device, which has no end, and of a pipe on request alone."""
    check_path(path)
    what = f"cannot read {path!s:.200}"
    try:
        with blamed(what, OSError, UnicodeError):  # half a character in a name
            mode = os.stat(path).st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or (pipes and stat.S_ISFIFO(mode))):
                raise FileProblem(what, seen="no regular file", hint="copy it to a file first")
            with open(path, "rb") as file:
                return file.read(most)
    except MemoryError as error:
        raise FileProblem(f"{path!s:.200} is larger than the memory") from error


def check_target(path: str | os.PathLike[str]) -> None:
    """Refuse a place that cannot be written to: before the work, not after it."""
    check_path(path)
    with blamed(f"cannot write {path!s:.200}", OSError, UnicodeError):
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise FileProblem(f"cannot write {path}", seen="a directory", hint="name a file inside it")
        if not target.parent.is_dir():
            raise FileProblem(f"cannot write {target}", seen=f"no directory {target.parent}", hint="create it first")
        if target.exists() and not os.access(target, os.W_OK):
            raise FileProblem(f"cannot write {target}", seen="the file is there and write-protected")


@contextlib.contextmanager
def _beside(target: Path) -> Iterator[BinaryIO]:
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    _sync_directory(target.parent)


def _sync_directory(directory: Path) -> None:
    """Make the new name itself survive a power cut, where the system lets a directory be opened."""
    with contextlib.suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
