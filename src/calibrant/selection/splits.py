"""How rows are divided: folds, folds that keep groups together, and smaller samples for learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InvalidInput
from ..parameters import Integer, generator
from ..types import Integers
from .problem import Problem


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to fit on and rows to judge on; with a test set the latter are its rows."""

    fit: Integers
    judge: Integers


Plan = list[list[Split]]  # the splits of each repeat
_MOST = 10_000  # repeats: all splits are made before the first fit


def make_plan(given: Problem, test: Problem | None, cv: int, repeats: int, seed: int) -> Plan:
    """Return the splits of every repeat: folds, or one fit on all rows where there is a test set."""
    if test is not None:
        return [[Split(np.arange(given.n), np.arange(test.n))]]
    if not (Integer(2).accepts(cv) and Integer(1).accepts(repeats) and repeats <= _MOST):
        seen = f"cv={cv!r}, repeats={repeats!r}"
        raise InvalidInput(f"cv must be at least 2, and repeats from 1 to {_MOST:,}", seen=seen[:80])
    if given.n < 2 * cv:
        raise InvalidInput(f"{given.n} rows are too few for {cv} folds", hint="pass a smaller cv, or a test set")
    if given.groups is not None and given.groups.max() + 1 < cv:
        raise InvalidInput(
            f"groups are too few for {cv} folds", seen=f"{given.groups.max() + 1} groups", hint="pass a smaller cv"
        )
    return [_deal(given, cv, generator(seed, repeat)) for repeat in range(repeats)]


def _deal(given: Problem, cv: int, rng: np.random.Generator) -> list[Split]:
    if given.groups is None:
        units = given.units()
        return folds(given.labels, cv, rng, units if units.max() + 1 >= 2 * cv else np.arange(given.n))
    return group_folds(given.labels, given.groups, cv, rng)


def folds(labels: Integers, count: int, rng: np.random.Generator, units: Integers) -> list[Split]:
    """Deal units of rows of one class into stratified folds, at random within each class."""
    first = np.unique(units, return_index=True)[1]
    order = rng.permutation(len(first))
    order = order[np.argsort(labels[first[order]], kind="stable")]
    fold = np.empty(len(first), dtype=np.int64)
    fold[order] = np.arange(len(first)) % count
    return _splits(fold[units], count)


def group_folds(labels: Integers, groups: Integers, count: int, rng: np.random.Generator) -> list[Split]:
    """Deal whole groups into folds, the largest first, each to the fold whose classes and rows it evens out most.

    The order of equally large groups is random. No fold is empty: the last groups fill those that are.
    """
    tables = np.zeros((groups.max() + 1, labels.max() + 1))
    np.add.at(tables, (groups, labels), 1.0)
    share = tables / np.maximum(tables.sum(axis=0), 1.0)  # of each class, so that rare ones are spread too
    sizes = tables.sum(axis=1) / len(labels)
    order = rng.permutation(len(tables))
    order = order[np.argsort(-sizes[order], kind="stable")]
    held, rows = np.zeros((count, share.shape[1])), np.zeros(count)
    fold_of = np.empty(len(tables), dtype=np.int64)
    for left, group in zip(range(len(order), 0, -1), order, strict=True):
        # Adding g to h changes the sum of squares by 2 g·h + g·g: the fold with the least overlap evens out most.
        cost = held @ share[group] + rows * sizes[group] * share.shape[1]
        empty = rows == 0
        if empty.sum() >= left:
            cost[~empty] = np.inf
        fold = int(cost.argmin())
        fold_of[group] = fold
        held[fold] += share[group]
        rows[fold] += sizes[group]
    return _splits(fold_of[groups], count)


def _splits(fold: Integers, count: int) -> list[Split]:
    return [Split(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(count)]


def smaller_plans(plan: Plan, given: Problem, sizes: Sequence[int], seed: int) -> dict[int, Plan]:
    """Return the plan of each size of a learning curve: fewer rows to fit on, the same rows to judge on."""
    labels, plans = given.labels, {}
    most = min(len(split.fit) for splits in plan for split in splits)
    wanted: list[Any] = (
        list(sizes) if isinstance(sizes, (list, tuple, range, np.ndarray)) and np.ndim(sizes) == 1 else [sizes]
    )
    for size in wanted:
        if not Integer(2).accepts(size) or size > most:
            raise InvalidInput(
                "sizes must be numbers of rows that there are to fit on", seen=repr(size)[:80], allowed=f"2 to {most}"
            )
    for size in sorted(set(map(int, wanted))):
        rng = generator(seed, size)
        plans[size] = [[Split(subsample(s.fit, labels, size, rng), s.judge) for s in splits] for splits in plan]
    return plans


def subsample(rows: Integers, labels: Integers, size: int, rng: np.random.Generator) -> Integers:
    """Return about ``size`` of the rows, stratified: what is dealt first in each class."""
    order = rng.permutation(len(rows))
    order = order[np.argsort(labels[rows[order]], kind="stable")]
    picked = np.linspace(0, len(rows) - 1, min(size, len(rows))).round().astype(np.int64)
    return np.sort(rows[order[picked]])
