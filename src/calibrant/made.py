"""What can be made anew from a fitted map is kept beside it: it is neither saved, pickled nor copied with the map."""

from __future__ import annotations

from collections.abc import Callable
from operator import is_not
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

Made = TypeVar("Made")
_MADE: WeakKeyDictionary[Any, tuple[tuple[Any, ...], dict[Any, Any]]] = WeakKeyDictionary()


def made_once(owner: Any, made_of: tuple[Any, ...], make: Callable[[], Made], name: Any = None) -> Made:
    """Return ``make()``, made once under each name for as long as the owner consists of these very objects.

    What is made must not refer to its owner, or neither would ever be forgotten.
    """
    kept = _MADE.get(owner)
    if kept is None or len(kept[0]) != len(made_of) or any(map(is_not, kept[0], made_of)):
        kept = _MADE[owner] = (made_of, {})
    if name not in kept[1]:
        kept[1][name] = make()
    return kept[1][name]
