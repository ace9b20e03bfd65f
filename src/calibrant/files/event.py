"""One column of scores: which label is the event whose probability it holds, and which rows had it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput
from ..validation import class_named
from .pieces import Names, Piece, listed
from .roles import SCORE_ROLES


def plain_labels(piece: Piece, event: str | None = None) -> Piece:
    """Return truth values as 0 and 1, a single column as a vector, and whether it was the event where one is named."""
    values = piece.values
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if event is not None and values.ndim == 1:
        refuse_unknown_event(piece.key, values, event)
        values = happened(values, event)
    return replace(piece, values=values.astype(np.int64) if values.dtype == bool else values)


def chosen_event(pieces: Sequence[Piece], names: Names, known: Sequence[Any] = ()) -> str | None:
    """Return the label whose probability one column holds, as the user or the column (``p_sick``) names it.

    ``known``: the labels that a map knows, of which rows may have some only.
    """
    scores = [piece for piece in pieces if piece.role in SCORE_ROLES]
    refuse_event_of_several(scores, names)
    if names.event is not None or names.several:
        return names.event
    return event_named(column_of_event(pieces, names), known or distinct_labels(pieces))


def refuse_event_of_several(scores: Sequence[Piece], names: Names) -> None:
    """Raise where the user names an event, and there are several columns of scores."""
    if names.event is not None and any(piece.values.ndim == 2 and piece.values.shape[1] > 1 for piece in scores):
        raise InvalidInput(
            "--event is for a single column of scores", seen=listed(scores[0].sources or [scores[0].key])
        )


def event_named(column: str | None, labels: Sequence[Any]) -> str | None:
    """Return the label whose score a column says that it holds; None where it names none of them."""
    place = None if column is None else class_named((column,), labels)
    return None if place is None else str(labels[place])


def column_of_event(pieces: Sequence[Piece], names: Names) -> str | None:
    """Return what names the event whose score one column holds: the user, or else the column; None for several."""
    columns = {piece.sources for piece in pieces if piece.role in SCORE_ROLES}
    if names.several or len(columns) != 1 or len(next(iter(columns))) != 1:
        return None if names.several else names.event
    return names.event or next(iter(columns))[0]


def distinct_labels(pieces: Sequence[Piece]) -> list[Any]:
    """Return the labels that occur, in the order of their text."""
    values = [label for piece in pieces if piece.role == "labels" for label in piece.values.ravel().tolist()]
    told: set[Any] = {label for label in values if isinstance(label, Hashable) and label is not None and label == label}
    return sorted(told, key=str)


def labels_known(labels: Sequence[Any], known: Sequence[Any]) -> Sequence[Any]:
    """Return the labels that a map knows where those of some rows are among them, and of one kind; else none."""
    same = len({type(label) for label in (*labels, *known)}) == 1
    return known if same and labels and set(labels) <= set(known) else ()


def two_labels(pieces: Sequence[Piece], event: str, known: Sequence[Any] = ()) -> list[Any] | None:
    """Return the other label and the event, where there are two that are no truth values."""
    known = known or distinct_labels(pieces)
    if len(known) != 2 or event not in map(str, known) or any(isinstance(label, bool) for label in known):
        return None
    return sorted(known, key=lambda label: str(label) == event)


def refuse_unknown_event(key: str, labels: NDArray[Any], event: str) -> None:
    """Raise where labels are several, and none of them is the event."""
    known = {str(label) for label in labels.tolist() if label is not None}
    if event not in known and len(known) > 1:
        raise InvalidInput(
            f"no row of {key} has the event", seen=listed(sorted(known)), hint=f"--event named {event!r}"
        )


def happened(labels: NDArray[Any], event: str) -> NDArray[Any]:
    """Return 1 where the label is the event, 0 where it is another, None where it is not known."""
    outcomes = [None if label is None else int(str(label) == event) for label in labels.tolist()]
    return np.asarray(outcomes, dtype=object if None in outcomes else np.int64)
