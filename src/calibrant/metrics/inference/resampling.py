"""Resamples: how often each row was drawn, many resamples at once.

Metrics of one view are computed for many resamples from prefix sums (`replicates`); every other metric takes the
counts as weights. Clusters are drawn whole. Sums by cell, which rows that came in blocks leave, are drawn as Poisson
numbers of the rows that they stand for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ... import _core
from ...cells.pairs import Pairs, is_whole
from ...cells.summed import SummedCells, binned_classes
from ...threads import get_threads
from ...types import Array, Integers
from ..views.blocks import CellForecasts
from ..views.forecasts import Forecasts
from .replicates import Replicates, prefix

Statistic = Callable[[Replicates], Array]
CUMULATIVE = ("ks", "ecce")  # sums that are resampled, though their norm is the largest
# Entries of one block of resamples: a few megabytes.
BLOCK = 1_000_000


@dataclass(eq=False)
class Sampling:
    """How often to resample, by which generator, and what is known already of a view.

    Attributes
    ----------
    resamples : int
    rng : Generator
    slow : int
        Resamples of what has no fast form: all classes, whole vectors, smooth curves.
    pvalues : dict
        Of the test that a view is calibrated, by the identity of its pairs.
    values : dict
        Resampled values of statistics, and what else figures share, by the identity of the pairs and their options.
    """

    resamples: int
    rng: np.random.Generator
    slow: int = 100
    pvalues: dict[int, float] = field(default_factory=dict)
    values: dict[Any, Any] = field(default_factory=dict)

    def pairs(self, pairs: Pairs) -> Iterator[Pairs]:
        """Yield resamples of pairs, as weights."""
        for counts in _counts(pairs, pairs.order, self.slow, self.rng):
            yield pairs.weighted(counts)

    def forecasts(self, forecasts: Any) -> Iterator[Any]:
        """Yield resamples of forecasts, as weights; of those that came in blocks, each class by itself."""
        if isinstance(forecasts, Forecasts):
            for counts in _counts(forecasts.top, forecasts.order, self.slow, self.rng):
                yield replace(forecasts, weights=counts)
            return
        for _ in range(self.slow):
            yield _drawn(forecasts, self.rng)

    def prepare(self, pairs: Pairs, choices: list[dict[str, Any]]) -> None:
        """Resample several calibration errors of one view in one go."""
        chosen = {_key(pairs, choice): statistic_of(choice) for choice in choices}
        found: dict[Any, list[Array]] = {key: [] for key, statistic in chosen.items() if statistic is not None}
        for many in resamples_of(pairs, self.resamples, self.rng):
            for key in found:
                statistic = chosen[key]
                assert statistic is not None  # those without were left out
                found[key].append(statistic(many))
        self.values.update({key: np.concatenate(parts) for key, parts in found.items()})

    def statistic(self, pairs: Pairs, choice: dict[str, Any]) -> Array | None:
        """Return the resampled values of a calibration error of one view, or None where it has no fast form."""
        if statistic_of(choice) is None:
            return None
        if _key(pairs, choice) not in self.values:
            self.prepare(pairs, [choice])
        return self.values[_key(pairs, choice)]


def _key(pairs: Pairs, choice: dict[str, Any]) -> Any:
    kept = {name: value for name, value in choice.items() if name not in ("view", "classes", "marginals")}
    return id(pairs), tuple(sorted((name, repr(value)) for name, value in kept.items() if value is not None))


def _counts(pairs: Pairs, order: Integers, resamples: int, rng: np.random.Generator) -> Iterator[Array]:
    """Yield the weights of the rows in each resample, drawn in this order; rows of weight zero are never drawn."""
    weights = pairs.weight_array
    if pairs.draws is not None:
        own = np.divide(weights, pairs.draws, out=np.zeros(pairs.n), where=pairs.draws > 0)
        for _ in range(resamples):
            drawn = np.empty(pairs.n)
            drawn[order] = rng.poisson(pairs.draws[order])
            drawn *= own
            yield drawn if drawn.any() else weights
        return
    rows = order[weights[order] > 0]
    units = rows if pairs.clusters is None else np.unique(pairs.clusters[rows])
    for _ in range(resamples):
        drawn = units[rng.integers(0, len(units), len(units))]
        if pairs.clusters is None:
            yield np.bincount(drawn, minlength=pairs.n).astype(np.float64) * weights
        else:
            counts = np.bincount(drawn, minlength=int(pairs.clusters.max()) + 1).astype(np.float64)
            yield counts[pairs.clusters] * weights


def _drawn(forecasts: CellForecasts, rng: np.random.Generator) -> CellForecasts:
    """Draw the rows of every cell of every view anew, independently."""
    sizes = [part.table.shape[1] for part in forecasts.cells]
    score, weight, happened, _ = np.concatenate([part.table for part in forecasts.cells], axis=1)
    own = np.concatenate([part.unit for part in forecasts.cells])
    yes, no = (rng.poisson(np.maximum(sums, 0.0) / own) * own for sums in (happened, weight - happened))
    tables = np.split(np.stack([score, yes + no, yes, (yes + no) * own]), np.cumsum(sizes)[:-1], axis=1)
    cells = tuple(_with_rows(part, table) for part, table in zip(forecasts.cells, tables, strict=True))
    return replace(forecasts, cells=cells)


def drawn_classes(forecasts: CellForecasts, edges: Array, resamples: int, rng: np.random.Generator) -> Iterator[Array]:
    """Yield (3, classes, bins) sums of weights, scores and outcomes of resamples, of all classes at once.

    The rows of a bin whose event happened, and the others, are Poisson numbers; the sum of their scores is as many mean
    scores. How scores vary within a bin is left out: it is little beside what outcomes do.
    """
    weight, scored, happened, squares = binned_classes(forecasts.cells[1:], edges)
    with np.errstate(invalid="ignore", divide="ignore"):  # bins without rows
        own, score = np.nan_to_num(squares / weight), np.nan_to_num(scored / weight)  # the weight of one row
        rows = np.nan_to_num(np.maximum([happened, weight - happened], 0.0) / own)
    for _ in range(resamples):
        yes, no = rng.poisson(rows) * own
        yield np.stack([yes + no, (yes + no) * score, yes])


def _with_rows(part: SummedCells, table: Array) -> SummedCells:
    """Return a view as drawn, without its empty cells; as it was where nothing was drawn."""
    kept = table[1] > 0
    return SummedCells(table[:, kept], part.exact, part.bins, part.cells, part.counts) if kept.any() else part


def resamples_of(pairs: Pairs, resamples: int, rng: np.random.Generator) -> Iterator[Replicates]:
    """Yield blocks of resamples. Rows of weight zero are never drawn."""
    pairs = pairs.counted()
    pairs = pairs.take(pairs.order)
    scores, outcomes, weights = pairs.scores, pairs.outcomes, pairs.weights
    group = np.cumsum(np.r_[0, scores[1:] != scores[:-1]])
    shared = scores[np.r_[True, scores[1:] != scores[:-1]]][None, :]
    whole = weights is None or is_whole(weights)
    if pairs.draws is not None or pairs.clusters is not None:
        yield from _plain_resamples(pairs, group, shared, resamples, rng)
        return
    nothing = np.empty((pairs.n, 0))  # the kernel can also sum columns of the rows
    seeds = rng.integers(0, 2**64, resamples, dtype=np.uint64)
    for part in np.array_split(seeds, max(1, min(resamples, -(-resamples * pairs.n // BLOCK)))):
        mass, events, excess = (np.empty((len(part), shared.shape[1] + 1)) for _ in range(3))
        sums = np.empty((len(part), 0))
        _core.resample_sums(
            group, outcomes, scores - outcomes, weights, nothing, part, get_threads(), mass, events, excess, sums
        )
        yield Replicates(shared, mass.astype(np.int64) if whole else mass, events, excess)


def _plain_resamples(
    pairs: Pairs, group: Integers, shared: Array, resamples: int, rng: np.random.Generator
) -> Iterator[Replicates]:
    """Resamples of clusters or of sums by cell, without the kernel."""
    first = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
    for size in np.diff(np.r_[np.arange(0, resamples, max(1, BLOCK // pairs.n)), resamples]):
        counts = np.stack(list(_counts(pairs, np.arange(pairs.n), int(size), rng)))
        mass, events, scored = (
            np.add.reduceat(values, first, axis=1)
            for values in (counts, counts * pairs.outcomes, counts * (pairs.scores - pairs.outcomes))
        )
        sums = prefix(mass)
        whole = all(map(is_whole, counts))  # each by itself: together they may be more rows than one sample can have
        yield Replicates(shared, sums.astype(np.int64) if whole else sums, prefix(events), prefix(scored))


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
    if estimator in CUMULATIVE:
        return getattr(Replicates, estimator)
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
