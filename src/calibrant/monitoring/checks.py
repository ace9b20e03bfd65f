"""Checks of what a saved monitor says: every number has a range."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import FileProblem
from ..types import Array

LONGEST = 1 << 16  # letters of a name of a batch or a stream, so that no file makes much of one
_LEAST = -(2.0**53)  # of a logarithm: more than the rows of any life can lose, and a whole number when saved again


def need(truth: bool, words: str) -> None:
    """Refuse what no monitor of ours has written."""
    if not truth:
        raise FileProblem(f"this is no monitor that calibrant saved: {words}")


def number(value: Any, low: float = -math.inf, high: float = math.inf) -> float:
    """Return a number in its range; infinity is text."""
    value = math.inf if value == "inf" else value
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high
    need(good, f"{str(value)[:40]!r} is not a number in its range")
    return float(value)


def count(value: Any) -> int:
    """Return a whole number of 0 or more."""
    good = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
    need(good, f"{str(value)[:40]!r} is not a count")
    return value


def text(value: Any) -> str:
    """Return a short text."""
    need(isinstance(value, str) and len(value) <= LONGEST, "a name is not a short text")
    return value


def array(values: Any, n: int) -> Array:
    """Return so many finite numbers."""
    need(isinstance(values, list) and len(values) == n, "a list has another length than it should have")
    found = np.array([number(v) for v in values])
    need(bool(np.isfinite(found).all()), "a sum is infinite")
    return found


def logs(values: Any, n: int) -> Array:
    """Return so many logarithms, or thousandths of them; null is that of nothing."""
    need(isinstance(values, list) and len(values) == n, "a list has another length than it should have")
    return np.array([-math.inf if v is None else number(v, _LEAST) for v in values])
