"""Resamples: how often each row was drawn, many resamples at once.

Metrics of one view are computed for many resamples from prefix sums (`replicates`); every other metric takes the
counts as weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import _core
from ...cells.pairs import Pairs, is_whole
from ...threads import get_threads
from ..estimators.calibration_error import error_of
from ..views.forecasts import Forecasts
from .replicates import Replicates

__all__ = [
    "bootstrap_many",
    "is_view",
    "resampled_choice",
    "resampled_errors",
    "resampled_weights",
    "resamples_of",
    "statistic_of",
]

Floats = NDArray[np.float64]
Statistic = Callable[[Replicates], Floats]
# Entries of one block of resamples: a few megabytes.
BLOCK = 1_000_000


def bootstrap_many(
    pairs: Pairs, statistics: dict[str, Statistic], resamples: int, rng: np.random.Generator
) -> dict[str, Floats]:
    """Return resampled values of several statistics, in one go."""
    values: dict[str, list[Floats]] = {name: [] for name in statistics}
    for many in resamples_of(pairs, resamples, rng):
        for name, statistic in statistics.items():
            values[name].append(statistic(many))
    return {name: np.concatenate(parts) for name, parts in values.items()}


def resamples_of(pairs: Pairs, resamples: int, rng: np.random.Generator) -> Iterator[Replicates]:
    """Yield blocks of resamples. Rows of weight zero are never drawn."""
    pairs = pairs.counted()
    order = np.argsort(pairs.scores, kind="stable")
    scores, outcomes = pairs.scores[order], pairs.outcomes[order]
    weights = None if pairs.weights is None else pairs.weights[order]
    nothing = np.empty((pairs.n, 0))  # the kernel can also sum columns of the rows
    group = np.cumsum(np.r_[0, scores[1:] != scores[:-1]])
    shared = scores[np.r_[True, scores[1:] != scores[:-1]]][None, :]
    whole = weights is None or is_whole(weights)
    seeds = rng.integers(0, 2**64, resamples, dtype=np.uint64)
    for part in np.array_split(seeds, max(1, -(-resamples * pairs.n // BLOCK))):
        mass, events, excess = (np.empty((len(part), shared.shape[1] + 1)) for _ in range(3))
        sums = np.empty((len(part), 0))
        _core.resample_sums(
            group, outcomes, scores - outcomes, weights, nothing, part, get_threads(), mass, events, excess, sums
        )
        yield Replicates(shared, mass.astype(np.int64) if whole else mass, events, excess)


def resampled_errors(forecasts: Forecasts, options: dict[str, Any], resamples: int, rng: np.random.Generator) -> Floats:
    """Return calibration errors of resamples one by one, for the estimators and views that have no faster form."""
    drawn = resampled_weights(forecasts, resamples, rng)
    return np.array([error_of(replace(forecasts, weights=w), **options) for w in drawn])


def resampled_weights(forecasts: Forecasts, resamples: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Yield the weights of the rows in each resample."""
    weights = np.ones(forecasts.n) if forecasts.weights is None else forecasts.weights
    rows = np.flatnonzero(weights)
    for _ in range(resamples):
        counts = np.bincount(rows[rng.integers(0, len(rows), len(rows))], minlength=forecasts.n)
        yield counts * weights


def statistic_of(options: dict[str, Any]) -> Statistic | None:
    """Return `calibration_error` with these options as a function of many resamples, or None where there is no such."""
    edges, bins = options.get("edges"), options.get("bins", 15)
    plain_edges = edges is None or (isinstance(edges, str) and edges in ("equal_width", "equal_mass"))
    known = {"view", "classes", "marginals", "estimator", "norm", "edges", "bins"}
    if is_view(options, "class_wise", "marginals", "pooled") or not plain_edges or not set(options) <= known:
        return None
    norm, estimator = options.get("norm"), options.get("estimator", "binned")
    if estimator == "sweep":
        return lambda many: many.sweep(edges or "equal_mass", norm or 1)[0]
    if estimator == "ks":
        return Replicates.ks
    if not isinstance(bins, int):
        return None
    return (lambda many: many.binned(bins, edges or "equal_width", norm or 1)) if estimator == "binned" else None


def resampled_choice(choice: dict[str, Any]) -> dict[str, Any]:
    """Return the options of the calibration error whose resamples tell the interval of the one with these options."""
    if choice.get("estimator") != "debiased":
        return choice
    norm = 2 if choice.get("norm") is None else choice["norm"]
    return {"edges": "equal_mass", **choice, "norm": norm, "estimator": "binned"}


def is_view(choice: dict[str, Any], *names: str) -> bool:
    """Tell whether options of `calibration_error` name one of these views."""
    view = choice.get("view")
    return isinstance(view, str) and view in names
