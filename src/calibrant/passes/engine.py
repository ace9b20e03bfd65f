"""The one way a fit touches data."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from .sample import Sample

__all__ = ["reduce"]

Statistic = TypeVar("Statistic")


def reduce(function: Callable[[Sample], Statistic], data: Sample) -> Statistic:
    """Run one pass: apply ``function`` to blocks of rows and add up what it returns.

    Parameters
    ----------
    function : callable
        From a `Sample` (a block of rows) to a statistic that adds up: an array, a number, or a tuple of them.
    data : Sample
        Rows in memory are one block: the compiled core splits them among threads by itself.

    Returns
    -------
    statistic
        The sum over all blocks.
    """
    return function(data)
