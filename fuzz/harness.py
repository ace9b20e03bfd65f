"""What every fuzzer shares: how an input comes from its number, and what may not happen while it is tried."""

from __future__ import annotations

import contextlib
import resource
import signal
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning

from calibrant.errors import CalibrantError, CalibrationWarning

SECONDS = 10  # of processor time: an input of a few rows that takes longer hangs
MEGABYTES = 1000  # by which an input of a few rows may raise the peak memory


class Finding(Exception):
    """Something that is promised not to happen, and did."""


def generator(fuzzer: str, seed: int, index: int) -> np.random.Generator:
    """Return the generator of one input: the three numbers are all that is needed to see it again."""
    return np.random.default_rng([sum(fuzzer.encode()), seed, index])


@contextlib.contextmanager
def watched() -> Iterator[None]:
    """Turn warnings of others, slowness and greed into findings."""

    def too_slow(*_: Any) -> None:
        raise Finding(f"no answer in {SECONDS} s")

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    old = signal.signal(signal.SIGPROF, too_slow)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", CalibrationWarning)
            warnings.simplefilter("ignore", DataConversionWarning)  # ours: scikit-learn asks for it
            yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, old)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    if grown > MEGABYTES:
        raise Finding(f"the peak memory rose by {grown:.0f} MB")


def attempt(call: Callable[[], Any], refusals: tuple[type[BaseException], ...] = (CalibrantError,)) -> Any:
    """Return what the call gives, or its refusal; anything else that it raises is a finding."""
    try:
        return call()
    except refusals as refusal:
        if not str(refusal):
            raise Finding("a refusal without a word") from refusal
        return refusal
    except MemoryError as error:
        raise Finding("MemoryError on a small input") from error


def probabilities(answer: Any, rows: int, columns: int, where: str) -> None:
    """Raise a finding unless the answer holds a distribution for each row."""
    p = np.asarray(answer)
    if p.shape != (rows, columns) or p.dtype.kind != "f":
        raise Finding(f"{where}: answers of shape {p.shape} and {p.dtype} for {rows} rows of {columns} classes")
    if not np.isfinite(p).all() or (p < 0).any() or (p > 1 + 1e-5).any():
        raise Finding(f"{where}: probabilities between {p.min()} and {p.max()}")
    if rows and np.abs(p.sum(axis=1, dtype=float) - 1).max() > 1e-4:
        raise Finding(f"{where}: sums between {p.sum(1).min()} and {p.sum(1).max()}")


def same(first: Any, second: Any, where: str) -> None:
    """Raise a finding unless two answers are the same, byte for byte, or the same refusal."""
    if isinstance(first, BaseException) or isinstance(second, BaseException):
        if type(first) is not type(second) or str(first) != str(second):
            raise Finding(f"{where}: once {first!r}, once {second!r}"[:300])
    elif np.asarray(first).tobytes() != np.asarray(second).tobytes():
        raise Finding(f"{where}: two answers to the same question")
