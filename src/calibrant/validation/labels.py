"""Labels, and the classes they name."""

from __future__ import annotations

import numbers
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput, blamed, caution
from ..types import Integers
from .arrays import as_array
from .columns import order_of, refuse_twice, says_nothing, without_affixes
from .event import class_named, is_first_of_two

_BY_HAND = 20  # columns up to which each may be named in words of its own; more are named by a program, all alike
_LEFT_OUT = -100  # torch's ignore_index


def as_labels(
    y: Any, k: int | None, n: int, classes: Any = None, columns: tuple[Any, ...] | None = None, name: str = "y"
) -> tuple[Integers, NDArray[Any]]:
    """Labels as column indices, and the classes in the order of the columns.

    The classes are, in this order of preference: the ones given; the column names of the frame that held the scores,
    when every label is one of them (all columns may carry one prefix and suffix: ``p_ant``, ``p_bee``; of truth values
    ``p_True`` and ``p_False``, or ``p_1`` and ``p_0``); 0 … K-1, when every label is such an integer; False and True;
    the sorted distinct labels, when there are exactly K and no column names one of them at another place. A single
    column is the score of the second class, so that the one which it names comes second. Without a number of columns
    to fit (``k`` None, for embeddings) the classes are the ones given or the sorted distinct labels.
    """
    labels = _label_array(y, n, name)
    if k is None:
        columns, k = None, len(np.unique(labels)) if classes is None else len(as_array(classes, "classes")[0])
        classes = np.unique(labels) if classes is None else classes
    if classes is not None:
        known = known_classes(classes, k)
        _refuse_contradiction(known, columns)
        return _positions(labels, known, name), known
    refuse_twice(columns or ())
    alone = columns is not None and len(columns) == 1
    known = None if columns is None or alone else _named_classes(labels, columns)
    if known is not None:
        return _positions(labels, known, name), known
    places, known = _unnamed(labels, k, name)
    _refuse_other_places(known, columns)
    if alone and is_first_of_two(columns, known):
        return 1 - places, known[::-1]
    return places, known


def _unnamed(labels: NDArray[Any], k: int, name: str) -> tuple[Integers, NDArray[Any]]:
    """Labels as column indices, and the classes, as the labels alone say them."""
    if _are_places(labels, k):
        return labels.astype(np.int64, copy=False), np.arange(k)
    if labels.dtype.kind == "b" and k == 2:
        return labels.astype(np.int64), np.array([False, True])
    distinct, places = np.unique(labels, return_inverse=True)
    numbers_of_columns = labels.dtype.kind in "iu" and len(distinct) > 1 and distinct[1] >= 0 and distinct[-1] < k
    if numbers_of_columns and distinct[0] == _LEFT_OUT:
        raise InvalidInput(
            f"{name} holds {_LEFT_OUT}, which torch leaves out of its losses, beside the numbers of columns",
            seen=_shorten(distinct),
            allowed=f"integers 0 to {k - 1}",
            hint="drop these rows; where it is a label, pass classes=[…]",
        )
    if len(distinct) == k:
        return places.astype(np.int64, copy=False), distinct
    outside = (labels < 0) | (labels >= k) if labels.dtype.kind in "iu" else np.zeros(len(labels), bool)
    first = f"{labels[outside.argmax()]} in row {outside.argmax()}, of " if outside.any() else ""
    raise InvalidInput(
        f"{name} does not fit the {k} columns of the scores",
        seen=f"{first}{len(distinct)} distinct labels: {_shorten(distinct)}",
        allowed=f"integers 0 to {k - 1}, or exactly {k} distinct labels",
        hint="pass classes=[…] with the label of each column, in order; classes may be missing from y",
    )


def as_groups(given: Any, n: int, name: str = "groups") -> tuple[Integers, NDArray[Any]]:
    """Return the number of each row's group, 0 … G-1, and the distinct names of the groups."""
    array, _ = as_array(given, name)
    if array.shape != (n,):
        raise InvalidInput(f"{name} must name one group a row", seen=f"shape {array.shape} for {n} rows")
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise InvalidInput(f"{name} contains NaN", seen=f"row {int(np.isnan(array).argmax())}")
    if array.dtype.kind == "O":
        if missing := [i for i, value in enumerate(array.tolist()) if _is_missing(value)]:
            raise InvalidInput(f"{name} has rows without a name", seen=f"row {missing[0]}")
        array = array.astype(str) if len({type(value) for value in array.tolist()}) > 1 else array
    how: dict[str, Any] = {"problem": InvalidInput, "most": 80, "allowed": "text or numbers"}
    with blamed(f"{name} cannot be put into an order", TypeError, **how):
        names, places = np.unique(array, return_inverse=True)
    return places.astype(np.int64), names


def known_classes(classes: Any, k: int) -> NDArray[Any]:
    """Return the classes that a user gave, one a column; others are refused."""
    known = plain_labels(as_array(classes, "classes")[0])
    if known.ndim != 1 or len(known) != k or len(set(known.tolist())) != k:
        raise InvalidInput(
            "classes must name each column of the scores once",
            seen=f"shape {known.shape} for {k} columns: {_shorten(known.ravel())}",
        )
    return known


def _refuse_contradiction(known: NDArray[Any], columns: tuple[Any, ...] | None) -> None:
    """Raise where the columns of a frame name the classes in another order than the user does."""
    if columns is None or says_nothing(columns):
        return
    order = order_of(columns, known.tolist())
    if order is not None and (order != np.arange(len(known))).any():
        raise InvalidInput(
            "classes names the columns of the scores in another order than the columns themselves",
            seen=f"{_shorten(known)} for columns {', '.join(str(c) for c in columns[:6])}",
            hint="leave classes away: the names of the columns say which is which",
        )


def _named_classes(labels: NDArray[Any], columns: tuple[Any, ...]) -> NDArray[Any] | None:
    """The classes that a frame's columns name, where every label is one of them."""
    distinct = set(labels.tolist())
    if distinct <= set(columns):
        return plain_labels(np.array(columns, dtype=object))
    truth = _named_truth(labels, [str(c) for c in columns])
    if truth is not None:
        return truth
    names = without_affixes([str(c) for c in columns], [str(label) for label in distinct])
    if names is not None and labels.dtype.kind == "U":
        return np.array(names)
    # A number inside a name may be any number: it is taken for the class if the columns are numbered 0 … K-1, in
    # whatever order, or have exactly the numbers of the labels.
    if names is not None and labels.dtype.kind in "iu" and set(names) == {str(i) for i in range(len(names))}:
        return np.array([int(name) for name in names])
    return labels_in_order(columns, distinct)


def labels_in_order(columns: tuple[Any, ...], distinct: set[Any]) -> NDArray[Any] | None:
    """The labels in the order of the columns that name all of them, in other letters or among words of their own."""
    known = sorted(distinct, key=str)
    if len(known) != len(columns):
        return None
    order = order_of(columns, known)
    if order is not None:
        return np.array(known)[np.argsort(order)]
    if len(columns) > _BY_HAND:
        return None
    places = [class_named((column,), known) for column in columns]
    return np.array([known[i] for i in places if i is not None]) if {*places} == {*range(len(known))} else None


def _named_truth(labels: NDArray[Any], columns: list[str]) -> NDArray[Any] | None:
    """The classes of two columns named true and false, or 1 and 0, where the labels are truth values, or 0 and 1."""
    if labels.dtype.kind != "b" and not _are_places(labels, 2):
        return None
    for words in (["false", "true"], ["0", "1"]):
        names = without_affixes([c.lower() for c in columns], words)
        if len(columns) == 2 and names is not None:
            return np.array([words.index(name) for name in names]).astype(labels.dtype)
    return None


def _refuse_other_places(distinct: NDArray[Any], columns: tuple[Any, ...] | None) -> None:
    """Raise where words or truth values would go by their order, and a column names one of them at another place."""
    if columns is None or len(columns) != len(distinct) or distinct.dtype.kind not in "Ub" or says_nothing(columns):
        return
    names = [str(c) for c in columns]
    for place, label in enumerate(map(str, distinct.tolist())):
        word = re.compile(rf"(?<![^\W_]){re.escape(label)}(?![^\W_])", re.IGNORECASE)
        near = (i for i, name in enumerate(names) if label.casefold() in name.casefold())  # few of a thousand
        named = [i for i in near if word.search(names[i])]
        if len(named) == 1 and named[0] != place:
            raise InvalidInput(
                "the columns of the scores name some labels, but not all",
                seen=f"columns {', '.join(names[:6])} for labels {_shorten(distinct)}",
                hint="pass classes=[…] with the label of each column, in order, or rename the columns",
            )


def _label_array(y: Any, n: int, name: str) -> NDArray[Any]:
    if y is None:
        raise InvalidInput(f"requires {name} to be passed, but the target {name} is None", allowed="one label a row")
    labels, _ = as_array(y, name)
    if labels.ndim == 2 and labels.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning  # here, as measuring does without scikit-learn

        caution(f"A column-vector {name} was passed when a 1d array was expected", DataConversionWarning)
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise InvalidInput(
            f"{name} must have one label a row",
            seen=f"shape {labels.shape}",
            hint="one-hot rows: pass y.argmax(axis=1)",
        )
    if len(labels) != n:
        raise InvalidInput(
            f"scores and {name} have inconsistent numbers of rows", seen=f"{n} scores, {len(labels)} labels"
        )
    refuse_missing(labels, name)
    if labels.dtype.kind == "O":
        labels = plain_labels(labels)
    return _whole_numbers(labels, name) if labels.dtype.kind == "f" else labels


def refuse_missing(labels: NDArray[Any], name: str) -> None:
    """Raise where a label is None, or not a value in pandas' words."""
    if labels.dtype.kind not in "OM":
        return
    for row, label in enumerate(labels.astype(object).tolist()):
        if _is_missing(label):
            raise InvalidInput(f"{name} has missing labels", seen=f"{label!r} in row {row}", hint="drop these rows")


def _is_missing(value: Any) -> bool:
    """Tell whether a value is None, NaN, or what pandas writes where nothing is."""
    unequal = isinstance(value, numbers.Number) and value != value
    return value is None or type(value).__name__ in ("NAType", "NaTType") or unequal


def plain_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """Objects that are all strings, all booleans or all numbers, as an array of that kind; others are refused."""
    if labels.dtype.kind != "O" or labels.ndim == 0:
        return labels
    values = labels.tolist()
    for kinds in (str, (bool, np.bool_), (int, float, np.integer, np.floating)):
        if all(isinstance(value, kinds) for value in values):
            return np.array(values)
    raise InvalidInput(
        "Unknown label type: labels must be all strings, all numbers or all booleans",
        seen=", ".join(sorted({type(value).__name__ for value in values})),
    )


def _whole_numbers(labels: NDArray[Any], name: str) -> Integers:
    if not np.isfinite(labels).all():
        raise InvalidInput(f"{name} contains NaN or infinity", seen="a label that is no number")
    if (labels != np.floor(labels)).any():
        raise InvalidInput(
            f"Unknown label type: {name} holds fractions",
            seen=_shorten(np.unique(labels)),
            allowed="class labels",
        )
    if len(labels) and float(np.abs(labels).max()) > 2**53:  # beyond, a float tells no whole number from the next
        raise InvalidInput(f"{name} holds numbers too large to be labels", seen=_shorten(np.unique(labels)))
    return labels.astype(np.int64)


def _positions(labels: NDArray[Any], known: NDArray[Any], name: str) -> Integers:
    if _are_places(labels, len(known)) and np.array_equal(known, np.arange(len(known))):
        return labels.astype(np.int64, copy=False)
    place = {c: i for i, c in enumerate(known.tolist())}
    distinct, inverse = np.unique(labels, return_inverse=True)
    found = np.array([place.get(label, -1) for label in distinct.tolist()], dtype=np.int64)[inverse]
    if (found < 0).any():
        row = int(np.flatnonzero(found < 0)[0])
        raise InvalidInput(
            f"{name} holds a label outside the classes",
            seen=f"{labels[row : row + 1].tolist()[0]!r} in row {row}",
            allowed=_shorten(known),
        )
    return found


def _are_places(labels: NDArray[Any], k: int) -> bool:
    """Tell whether labels are whole numbers from 0 to k - 1."""
    if labels.dtype.kind not in "iu" or not len(labels):
        return False
    if labels.dtype == np.int64:  # without its sign, a number below zero is larger than any place
        return bool(np.maximum.reduce(labels.view(np.uint64)) < k)
    return bool(np.minimum.reduce(labels) >= 0 and np.maximum.reduce(labels) < k)


def _shorten(values: NDArray[Any], most: int = 6) -> str:
    shown = ", ".join(repr(v) for v in values[:most].tolist())
    return shown + (", …" if len(values) > most else "")
