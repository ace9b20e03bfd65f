"""How many threads the compiled core uses; results do not depend on it."""

from __future__ import annotations

import contextlib
import os
from functools import cache

from threadpoolctl import ThreadpoolController

from .errors import InvalidInput

__all__ = ["get_threads", "one_blas_thread", "set_threads"]

_chosen: list[int] = []


def _available() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else (os.cpu_count() or 1)


def get_threads() -> int:
    """Threads in use: what `set_threads` said, else ``CALIBRANT_THREADS``, else the cores this process may use."""
    if not _chosen:
        _chosen.append(_from_environment() or _available())
    return _chosen[0]


def set_threads(threads: int | None) -> None:
    """Use this many threads in the compiled core; None goes back to the default."""
    _chosen.clear()
    if threads is None:
        return
    if not isinstance(threads, int) or isinstance(threads, bool) or threads < 1:
        raise InvalidInput("threads must be a positive integer", seen=repr(threads), allowed="1, 2, …, or None")
    _chosen.append(threads)


def _from_environment() -> int:
    text = os.environ.get("CALIBRANT_THREADS", "")
    if not text:
        return 0
    if not text.isdigit() or int(text) < 1:
        raise InvalidInput("CALIBRANT_THREADS must be a positive integer", seen=repr(text))
    return int(text)


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # it looks through the libraries of the process, which takes milliseconds


def one_blas_thread() -> contextlib.AbstractContextManager[object]:
    """Return a context that keeps small products from waking the BLAS's threads, which contend with the core's own.

    Where fits run on several Python threads at once, the first of them decides (see threadpoolctl).
    """
    return _controller().limit(limits=1, user_api="blas")
