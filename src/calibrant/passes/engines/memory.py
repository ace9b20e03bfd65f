"""Rows in memory: one block, which the compiled core splits among threads by itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from ..block import Block
from ..view import View, start
from .stream import PassEngine, Stream

__all__ = ["MemoryEngine"]

_HELD = 512_000_000  # bytes of scores up to which a view of them is computed once and held


class MemoryEngine:
    """One block of rows, or what a view makes of it when it is first needed."""

    def __init__(self, make: Callable[[], Block]) -> None:
        self._make = make

    @cached_property
    def block(self) -> Block:
        """All rows."""
        return self._make()

    def reduce(self, function: Callable[[Block], Any]) -> Any:
        """Return the statistic of all rows."""
        return function(self.block)

    def viewed(self, view: View) -> MemoryEngine | PassEngine:
        """Return the rows as a view shows them; scores too large to hold twice are viewed a slice at a time."""
        block = self.block
        if block.logits.nbytes <= _HELD:
            return MemoryEngine(lambda: start(view)(block))
        return PassEngine(Stream(lambda: _slices(block)), (view,))


def _slices(block: Block) -> Any:
    rows = max(1, _HELD // (8 * block.logits[:1].nbytes))
    for first in range(0, block.n, rows):
        yield block.take(slice(first, first + rows))
