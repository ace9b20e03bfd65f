"""Rows that are read in blocks, anew for every pass; of a block nothing is kept but its statistic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..block import Block
from ..statistic import merge
from ..view import View, start

__all__ = ["StreamEngine"]


class StreamEngine:
    """Blocks from a function that starts them anew, each seen through views in turn."""

    def __init__(self, blocks: Callable[[], Iterator[Block]], views: tuple[View, ...] = ()) -> None:
        self._blocks, self._views = blocks, views

    def reduce(self, function: Callable[[Block], Any]) -> Any:
        """Return the statistic of all rows; blocks without rows are passed over."""
        views = [start(view) for view in self._views]
        total = None
        for block in self._blocks():
            for view in views:
                block = view(block)
            if block.n:
                part = function(block)
                total = part if total is None else merge(total, part)
        return total

    def viewed(self, view: View) -> StreamEngine:
        """Return the rows as a view shows them, computed at every pass."""
        return StreamEngine(self._blocks, (*self._views, view))
