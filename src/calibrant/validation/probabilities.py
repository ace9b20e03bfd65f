"""Probabilities: what metrics judge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _core
from ..errors import InvalidInput
from ..threads import get_threads
from ..types import Array, Floats, Integers, Mask
from .arrays import SIMPLEX_TOLERANCE, as_array, as_matrix, held_inside, is_one_score, simplex_tolerance
from .event import is_first_of_two


@dataclass(frozen=True, eq=False)
class Probabilities:
    """Validated probabilities: (n, K), or (n,) of one event; and each row's largest, its column, its sum of squares.

    ``columns`` are the names of a frame's columns: one for one event.
    """

    values: Floats
    columns: tuple[Any, ...] | None
    top: Array
    top_column: Integers
    squares: Array


def as_probabilities(values: Any, name: str = "y_prob", *, marginals: bool = False) -> Probabilities:
    """Check probabilities: rows on the simplex, or with ``marginals`` per-class values whose sum is free.

    Where rounding by a file's writer left an entry above 1, within the tolerance of a row's sum, it counts as 1, and
    where the rounding of single precision left one below 0 it counts as 0.
    """
    array, columns = as_matrix(values, name)
    if is_one_score(array.shape):
        array, marginals = array.reshape(-1, 1), True
    tolerance = simplex_tolerance(values)
    top, column, squares, wrong = _core.row_tops(array, tolerance, marginals, get_threads())
    if wrong >= 0:
        array = held_inside(array, above=marginals)
        top, column, squares, wrong = _core.row_tops(array, tolerance, marginals, get_threads())
    _refuse_row(array, wrong, marginals, tolerance, name)
    if np.maximum.reduce(top) > 1:  # what max does, without its detour
        array = np.minimum(array, array.dtype.type(1))
        top, column, squares, _ = _core.row_tops(array, tolerance, marginals, get_threads())
    return Probabilities(array[:, 0] if array.shape[1] == 1 else array, columns, top, column, squares)


def as_probabilities_of(values: Any, classes: Any, name: str = "y_prob", *, marginals: bool = False) -> Probabilities:
    """Check probabilities; those of one event whose name says the first of two known classes are turned round."""
    given = as_probabilities(values, name, marginals=marginals)
    if given.values.ndim == 2 or classes is None:
        return given
    if not is_first_of_two(given.columns, as_array(classes, "classes")[0].tolist(), name):
        return given
    return as_probabilities(1 - given.values, name)


def label_hits(
    values: Floats,
    labels: Integers,
    most: int,
    *,
    marginals: bool = False,
    tolerance: float = SIMPLEX_TOLERANCE,
) -> Mask:
    """Return whether each row's label is among its ``most`` largest probabilities, and check the rows in the same read.

    Among equals the earlier column comes first. ``tolerance`` is `simplex_tolerance` of what the user gave.
    """
    hits, wrong = _core.label_hits(values, labels, most, tolerance, marginals, get_threads())
    if wrong >= 0:
        values = held_inside(values, above=marginals)
        hits, wrong = _core.label_hits(values, labels, most, tolerance, marginals, get_threads())
    _refuse_row(values, wrong, marginals, tolerance, "y_prob")
    return hits


def _refuse_row(values: Floats, number: int, marginals: bool, tolerance: float, name: str) -> None:
    if number < 0:
        return
    row = values[number]
    if np.isnan(row).any():
        raise InvalidInput(
            f"{name} contains NaN", seen=f"in row {number}", hint="drop or repair these rows; nothing is imputed"
        )
    if marginals:
        bad = row[(row < 0) | (row > 1)][0]
        raise InvalidInput(
            f"{name} holds what is no probability",
            seen=f"{bad:.6g} in row {number}",
            allowed="numbers in [0, 1]; divide percentages by 100",
        )
    with np.errstate(all="ignore"):  # a row of +inf and -inf has no sum
        total = float(row.sum(dtype=np.float64))
    percent = "divide percentages by 100; " if row.min() >= 0 and abs(total - 100) <= len(row) else ""
    raise InvalidInput(
        f"{name} has a row that is not a distribution",
        seen=f"row {number} from {row.min():.6g} to {row.max():.6g}, sum {total:.6g}",
        allowed=f"entries in [0, 1] that sum to 1 within {tolerance:g}",
        hint=f"{percent}for logits take the softmax first; "
        "pass marginals=True for per-class probabilities with free sums",
    )


def refuse_swapped(y_true: Any, y_prob: Any) -> None:
    """Recognise probabilities passed where labels belong, and labels where probabilities belong."""
    labels, _ = as_array(y_true, "y_true")
    fractions = labels.dtype.kind == "f" and labels.ndim == 1 and (labels != np.floor(labels)).any()
    if not fractions and labels.ndim < 2:
        return
    others, _ = as_array(y_prob, "y_prob")
    whole = others.dtype.kind in "biuOUS" or (others.dtype.kind == "f" and (others == np.floor(others)).all())
    if whole and others.ndim == 1 and (fractions or labels.shape[1] > 1):
        raise InvalidInput(
            "y_true and y_prob look swapped",
            seen="fractions in y_true, whole numbers in y_prob",
            allowed="(y_true, y_prob): labels first, then probabilities, as in scikit-learn",
        )
