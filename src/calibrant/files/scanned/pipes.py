"""Bytes that can be read once, from standard input or a pipe, copied to a file so that they can be read again."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any

from ...errors import blamed
from ..reading import arriving, ending_by_content, stream_bytes


def is_pipe(path: Any) -> bool:
    """Tell whether a path is a pipe or a socket: what it gives can be read once, and ends, as a device does not."""
    place = Path(os.fspath(path))
    return place.is_fifo() or place.is_socket()


def copied(stream: Any, first: bytes = b"") -> tuple[str, Any]:
    """Copy ``first`` and what is left of a stream to a temporary file; return its path and what holds it.

    When the second is gone, so is the file.
    """
    held = _Held()
    path = Path(tempfile.mkdtemp(prefix="calibrant-"))
    weakref.finalize(held, shutil.rmtree, str(path), ignore_errors=True)
    with blamed("cannot copy the stream to a file", OSError):
        first = first or stream_bytes(stream, 1 << 16)
        target = path / f"input{ending_by_content(first)}"
        with contextlib.closing(stream), target.open("wb") as file:
            file.write(first)
            file.writelines(arriving(stream))
    return str(target), held


class _Held:
    """Whoever has this has the file."""
