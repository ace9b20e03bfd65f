"""Which classes learn together, and whether they have rows enough."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput
from ..passes import Data
from ..types import Integers
from ..validation import as_array, plain_labels

_FEW = 100  # positives below which a group of classes goes on growing, however different the priors
_FOLDS = 5  # positives below which the folds of a cross-validation have no row of the class each


def prior_groups(counts: NDArray[Any]) -> Integers:
    """Group classes of similar prior.

    The classes are walked through from the rarest on. A group closes before a class whose prior is more than
    twice the group's smallest, provided the group holds at least 100 positives; a last group with fewer joins the
    one before it. Classes without any rows thus share with the rarest that have some.
    """
    groups = np.empty(len(counts), dtype=np.int64)
    group, smallest, positives = 0, -1.0, 0.0
    order = np.argsort(counts, kind="stable")
    for k in order:
        if positives >= _FEW and counts[k] > 2 * smallest:
            group, smallest, positives = group + 1, -1.0, 0.0
        if smallest <= 0:
            smallest = counts[k]
        positives += counts[k]
        groups[k] = group
    if group and positives < _FEW:
        groups[groups == group] = group - 1
    return groups


def explicit_groups(share: Sequence[Sequence[Any]], classes: NDArray[Any]) -> Integers:
    """Return the group of each class, as the user named them."""
    place = {c: i for i, c in enumerate(classes.tolist())}
    groups = np.full(len(classes), -1, dtype=np.int64)
    for g, members in enumerate(share):
        for label in plain_labels(as_array(members, "a group in share")[0].ravel()).tolist():
            if label not in place or groups[place[label]] >= 0:
                raise InvalidInput(
                    "OneVsRest: the groups in share must name every class once",
                    seen=f"{label!r} in group {g}, " + ("named twice" if label in place else "which is no class"),
                )
            groups[place[label]] = g
    if (groups < 0).any() or len(np.unique(groups)) != len(share):
        missing = classes[groups < 0]
        seen = f"no group for {missing[0]!r}" if len(missing) else "a group without classes"
        raise InvalidInput("OneVsRest: the groups in share must name every class once", seen=seen)
    return groups


def too_few(data: Data, groups: Integers) -> str:
    """Say so where half of the classes have maps of fewer positives than there are folds to judge them by.

    Below that the folds cannot each have a row of the class, and a gain seen on average over classes says nothing of
    most of their maps.
    """
    positives = np.sort(np.bincount(groups, data.class_weights)[groups])[(len(groups) - 1) // 2]
    count = int(groups.max()) + 1
    if count == 1 or positives >= _FOLDS:
        return ""
    return f"{data.n} rows are few for {count} maps, half of the classes have {positives:g} or fewer in theirs"
