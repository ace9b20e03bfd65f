"""Names of columns decide which score belongs to which class; plain arrays have none, and stay by position."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..errors import InvalidInput
from ..types import Integers
from .arrays import as_array, column_names


def column_order(columns: Sequence[Any], seen: Any, classes: Any) -> Integers | None:
    """Return which column is the first, second, … of those a map was fitted on; None where position decides.

    ``columns`` are the names that the scores have now, ``seen`` those they had in fit, if any. Columns may also go by
    the ``classes`` of the map; embeddings have none. Where names were seen in fit, or some columns are named by
    classes, names that do not match are refused.
    """
    refuse_twice(columns)
    if says_nothing(columns):
        return None
    for known in (seen, classes):
        found = None if known is None else order_of(columns, known)
        if found is not None:
            return found
    named = set() if classes is None else {str(c) for c in classes} & {str(c) for c in columns}
    if seen is None and not named:
        return None
    raise _mismatch(columns, classes if seen is None else seen)


def refuse_twice(columns: Sequence[Any]) -> None:
    """Raise where two columns have one name: which is meant nobody knows."""
    names = [str(c) for c in columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidInput("the scores have two columns of one name", seen=repr(twice))


def ordered_like(values: Any, other: Any, classes: Any) -> Any:
    """Return scores with their columns in the order that the names of ``other`` scores, or the classes, say.

    Scores without names come back as they are.
    """
    columns, seen = column_names(values), column_names(other)
    if columns is None or len(columns) == 1:  # one score of two classes, which goes by its name where it is read
        return values
    order = column_order(columns, None if seen is None or says_nothing(seen) else seen, classes)
    array, _ = as_array(values, "scores")
    return array if order is None else array[:, order]


def _mismatch(columns: Sequence[Any], known: Any) -> InvalidInput:
    names, wanted = [str(c) for c in columns], [str(c) for c in known]
    strange = [name for name in names if name not in wanted]
    missing = [name for name in wanted if name not in names]
    return InvalidInput(
        "The feature names should match those that were passed during fit: the columns differ",
        seen=_few(strange or names) + (f"; {_few(missing)} missing" if missing else ""),
        allowed=_few(wanted) + ", in any order",
        hint="select or rename the columns, or pass an array without names, which is taken by position",
    )


def _few(names: list[str], most: int = 6) -> str:
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")


def order_alike(columns: Sequence[Any] | None, others: Sequence[Any] | None) -> Integers | None:
    """Return where each of the columns is among those of another frame: y_cough among them is p_cough here.

    Each may have a prefix and a suffix of its own; None where either has no names, or these have nothing in common.
    """
    if columns is None or others is None or len(columns) != len(others) or len(columns) < 2:
        return None
    if says_nothing(columns) or says_nothing(others):
        return None
    found = order_of(others, columns)
    return _order(_bare(others), _bare(columns)) if found is None else found


def _bare(columns: Sequence[Any]) -> list[str]:
    """Names without the beginning and the end that all of them share."""
    names = [str(c) for c in columns]
    before = _shared(names)
    behind = _shared([name[before:][::-1] for name in names])
    return [name[before : len(name) - behind] for name in names]


def _shared(names: Sequence[str]) -> int:
    """Return how many letters all names begin with."""
    return next(
        (i for i, letters in enumerate(zip(*names, strict=False)) if len(set(letters)) > 1), min(map(len, names))
    )


def says_nothing(columns: Sequence[Any]) -> bool:
    """Tell whether the names are 0, 1, 2, …, as a frame numbers columns that nobody has named."""
    return [str(c) for c in columns] == [str(i) for i in range(len(columns))]


def order_of(columns: Sequence[Any], known: Sequence[Any]) -> Integers | None:
    """Return where each known name is among the columns, which may all carry one prefix and suffix; None where not.

    Where names are not found as they stand, upper and lower case are the same, and whatever stands between words.

    Examples
    --------
    >>> order_of(["p_cat", "p_ant", "p_bee"], ["ant", "bee", "cat"]).tolist()
    [1, 2, 0]
    >>> order_of(["P.No.Disease", "P.Disease"], ["disease", "no disease"]).tolist()
    [1, 0]
    """
    names, wanted = [str(c) for c in columns], [str(c) for c in known]
    if len(names) != len(wanted):
        return None
    found = _order(names, wanted)
    if found is not None:
        return found
    names, wanted = _plainly(names), _plainly(wanted)
    alike = len(set(wanted)) < len(wanted) or "" in wanted
    return None if alike else _order(names, wanted)


def _plainly(names: Sequence[str]) -> list[str]:
    return [re.sub(r"[\W_]+", " ", name).strip().casefold() for name in names]


def _order(names: list[str], wanted: list[str]) -> Integers | None:
    for have, need in (
        (names, wanted),
        (without_affixes(names, wanted), wanted),
        (names, without_affixes(wanted, names)),
    ):
        if have is not None and need is not None and sorted(have) == sorted(need) and len(set(have)) == len(have):
            place = {name: i for i, name in enumerate(have)}
            return np.array([place[name] for name in need], dtype=np.int64)
    return None


def without_affixes(columns: Sequence[str], words: Sequence[str]) -> list[str] | None:
    """Return the columns without a prefix and a suffix that all share, such that every word is among them; or None.

    Examples
    --------
    >>> without_affixes(["p_ant", "p_bee", "p_cat"], ["cat", "bee"])
    ['ant', 'bee', 'cat']
    """
    if not words:
        return None
    longest = max(words, key=len)  # it is inside the fewest columns
    for column in columns:
        for before, after in _around(longest, column):
            if all(c.startswith(before) and c.endswith(after) and len(c) > len(before + after) for c in columns):
                names = [c[len(before) : len(c) - len(after)] for c in columns]
                if set(words) <= set(names):
                    return names
    return None


def _around(word: str, column: str) -> Iterator[tuple[str, str]]:
    """Yield what stands before and behind each occurrence of a word."""
    start = column.find(word)
    while start >= 0:
        yield column[:start], column[start + len(word) :]
        start = column.find(word, start + 1)
