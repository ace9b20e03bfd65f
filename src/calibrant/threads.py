"""How many threads the compiled core uses; results do not depend on it."""

from __future__ import annotations

import contextlib
import contextvars
import os
from collections.abc import Callable, Iterator
from functools import cache
from threading import Lock
from typing import ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

from .errors import InvalidInput

Arguments = ParamSpec("Arguments")
Value = TypeVar("Value")

MOST = 1024  # threads that the compiled core takes
_chosen: int | None = None  # for the whole process
_limit: contextvars.ContextVar[int | None] = contextvars.ContextVar("calibrant_thread_limit", default=None)
_limits_the_blas = Lock()  # held by the one caller whose limit the BLAS has


def get_threads() -> int:
    """Threads in use: what `set_threads` said, else ``CALIBRANT_THREADS``, else the cores this process may use.

    No more than `thread_limit` allows the caller.
    """
    global _chosen
    threads = _chosen
    if threads is None:
        threads = _chosen = _from_environment() or _available()
    limit = _limit.get()
    return threads if limit is None else min(limit, threads)


def set_threads(threads: int | None) -> None:
    """Use this many threads in the compiled core; None goes back to the default."""
    global _chosen
    if threads is not None and (not isinstance(threads, int) or isinstance(threads, bool) or not _sensible(threads)):
        raise InvalidInput("threads must be a positive integer", seen=repr(threads), allowed=f"1 … {MOST}, or None")
    _chosen = threads


def _available() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return min(len(affinity(0)) if affinity else (os.cpu_count() or 1), MOST)


def _sensible(threads: int) -> bool:
    return 1 <= threads <= MOST


def _from_environment() -> int:
    text = os.environ.get("CALIBRANT_THREADS", "")
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 9 and _sensible(int(text))):
        raise InvalidInput("CALIBRANT_THREADS must be a positive integer", seen=repr(text), allowed=f"1 … {MOST}")
    return int(text)


@contextlib.contextmanager
def thread_limit(most: int) -> Iterator[None]:
    """Let the caller use at most so many threads, and whatever it starts by `carried`; nobody else notices."""
    token = _limit.set(most)
    try:
        yield
    finally:
        _limit.reset(token)


def carried(function: Callable[Arguments, Value]) -> Callable[Arguments, Value]:
    """Return the function for other threads to run, under the limit of the one that calls this."""
    context = contextvars.copy_context()

    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Value:
        return context.copy().run(function, *args, **kwargs)  # a copy each: two threads cannot run in one context

    return run


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # it looks through the libraries of the process, which takes milliseconds


@contextlib.contextmanager
def blas_threads(most: int) -> Iterator[None]:
    """Limit the BLAS's threads, whose waking costs more than small products, and which contend with the core's own.

    A BLAS has one count for the whole process. The first caller sets it and, when it is done, sets it back; for those
    who come in between it stays as it is, so that no one takes another's limit for what was there before.
    """
    if not _limits_the_blas.acquire(blocking=False):
        yield
        return
    try:
        with _controller().limit(limits=most, user_api="blas"):
            yield
    finally:
        _limits_the_blas.release()


def one_blas_thread() -> contextlib.AbstractContextManager[None]:
    """Return a context in which the BLAS works on the caller's thread alone."""
    return blas_threads(1)
