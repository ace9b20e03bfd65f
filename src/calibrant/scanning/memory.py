"""How much memory a scan may take, and how large its batches are therefore."""

from __future__ import annotations

import os
import re
from typing import Any

from ..errors import InvalidInput
from ..parameters import Number

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
_SHARE = 24  # a batch, the next, what becomes of it and what kernels make beside it take a few times its size
_LARGEST = 1 << 25  # bytes of a batch beyond which nothing gets faster
_SMALLEST = 1 << 16
_TEXT = re.compile(r"\s*([0-9]*\.?[0-9]+|[0-9]+\.)\s*([KMGT]?I?)B?\s*")
_BYTES = Number(1, 2.0**62)
_UNKNOWN = 2 * 10**9  # where a system does not say what is free


def memory_bytes(given: Any = None) -> int:
    """Return bytes from a number or a text such as "500MB"; by default a quarter of what is free.

    Examples
    --------
    >>> memory_bytes("500MB"), memory_bytes("1.5 GiB"), memory_bytes(10**9)
    (500000000, 1610612736, 1000000000)
    """
    if given is None:
        return _free() // 4
    found = _TEXT.fullmatch(given.upper()) if isinstance(given, str) else None
    amount = float(found[1]) * _UNITS.get(found[2], 0) if found else given
    if not _BYTES.accepts(amount):
        allowed = 'such as "500MB" or "2GiB"'
        raise InvalidInput("memory is not a number of bytes", seen=repr(given)[:80], allowed=allowed)
    return int(amount)


def batch_bytes(memory: int) -> int:
    """Return the bytes of scores of one batch."""
    return max(_SMALLEST, min(_LARGEST, memory // _SHARE))


def _free() -> int:
    try:
        with open("/proc/meminfo") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return _UNKNOWN
