"""Reading while others compute: what comes next is fetched while what came last is worked on."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")


def one_ahead(items: Iterator[Item]) -> Iterator[Item]:
    """Yield what an iterator yields; a thread makes the next item while the last is worked on.

    So two items are there at a time. What goes wrong with an item is raised where it is asked for. The thread ends with
    the iteration, also where that is given up; a system that has no thread to spare makes each item when it is asked.
    """
    end = object()
    with ThreadPoolExecutor(1, "calibrant-ahead") as thread:
        try:
            coming = thread.submit(next, items, end)
        except RuntimeError:
            yield from items
            return
        while (item := coming.result()) is not end:
            coming = thread.submit(next, items, end)
            yield item  # type: ignore[misc]  # the end is no item
            del item  # before the one after the next is made
