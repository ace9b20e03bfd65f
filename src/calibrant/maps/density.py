"""Class-wise kernel density on a set of labelled points: sums in blocks, the bandwidth, what carries a prediction."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import minimize_scalar

from .. import _core
from ..arrays import panels_of, products, row_blocks, row_subsample
from ..formulas import Term
from ..passes import Block
from ..threads import get_threads
from ..types import Array, Floats, Integers

_BLOCK = 2**25  # products held for a search of the bandwidth: 128 MB in float32, whatever the sizes of both sets
_TILE_ROWS, _TILE_COLUMNS = 1024, 1024  # of products at once in a prediction: 8 MB in double
_ZERO_LOG = -745.0  # a kernel sum below exp of this is zero in double precision: only the prior is left
_CLIP = 1e-10  # share of the class frequencies in every answer, and the least probability in a loss
TRIAL_ROWS = 2000
_TIE = 1e-8  # mean log-losses that differ by less are equal
_WIDER = 1e-4  # share of the least loss that a bandwidth wider by a factor e may cost


def half_norms(points: Floats) -> Array:
    """Half the squared length of each point."""
    return 0.5 * np.einsum("ij,ij->i", points, points, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Support:
    """Points sorted by class, their class borders, weights and place of arrival, and the class frequencies.

    The mean is subtracted before distances are taken as |a|²/2 - <a, b> + |b|²/2: far from the origin that difference
    would lose the digits that matter.
    """

    points: Floats
    starts: Integers
    weights: Array | None
    arrival: Integers
    prior: Array
    centre: Floats
    half_norms: Array

    @classmethod
    def of(cls, points: Floats, labels: Integers, weights: Array | None, k: int) -> Support:
        """Sort points by class."""
        order = np.argsort(labels, kind="stable")
        share = np.bincount(labels, weights, k).astype(np.float64)
        starts = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=k))]).astype(np.int64)
        centre = points.mean(axis=0, dtype=np.float64).astype(points.dtype)
        ordered = np.ascontiguousarray(points[order] - centre)
        even = weights is None or bool((weights == 1.0).all())
        sorted_weights = None if even or weights is None else np.ascontiguousarray(weights[order])
        return cls(ordered, starts, sorted_weights, order, share / share.sum(), centre, half_norms(ordered))

    @property
    def total(self) -> float:
        """The weight of all points."""
        return float(len(self.points)) if self.weights is None else float(self.weights.sum())

    @cached_property
    def tiles(self) -> list[tuple[slice, Floats]]:
        """The points in tiles whose products with some rows stay in the cache, as `products` wants them."""
        tiles = [slice(first, first + _TILE_COLUMNS) for first in range(0, len(self.points), _TILE_COLUMNS)]
        return [(tile, panels_of(self.points[tile], self.points.dtype)) for tile in tiles]

    def labels(self) -> Integers:
        """The class of each sorted point."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


def class_probabilities(support: Support, points: Floats, bandwidth: float, skip: Integers | None = None) -> Floats:
    """P(c | x) = Σ_{j in c} ωⱼ k(x, xⱼ) / Σⱼ ωⱼ k(x, xⱼ), k(x, x') = exp(-|x - x'|² / (2 h²)) (KCal, Eq. 3).

    Sums are taken relative to their largest term, so nothing underflows; a point so far away that every kernel is zero
    in double precision gets the class frequencies, smoothly. A share of 1e-10 of these is in every answer, so that no
    class seen is impossible. ``skip`` names a support point to leave out for each row. Products are taken in tiles that
    stay in the cache until their kernels are summed.
    """
    answers = np.empty((len(points), len(support.prior)), dtype=points.dtype)

    def answer(rows: slice) -> None:
        block = points[rows].astype(support.points.dtype, copy=False) - support.centre
        sums = _Sums(support, half_norms(block), bandwidth, 1)
        for tile, panels in support.tiles:
            found = products(block, panels, len(support.points[tile]), threads=1)
            sums.add(found, tile, None if skip is None else skip[rows])
        sums.finish(answers[rows])

    blocks = row_blocks(len(points), len(support.prior), _TILE_ROWS * max(len(support.prior), 1))
    with ThreadPoolExecutor(get_threads()) as pool:
        for _ in pool.map(answer, blocks):
            pass
    return answers


def class_formula(support: Support, x: Term, bandwidth: float) -> Term:
    """Return what `class_probabilities` computes, as a formula with all points of the support as constants."""
    scale = 1.0 / bandwidth**2
    points = support.points.astype(np.float64)
    centred = x - support.centre.astype(np.float64)
    exponents = (centred.matmul(points.T) - support.half_norms) * scale
    peak = exponents.row_max()
    owners = np.eye(len(support.prior))[support.labels()]
    weights = np.ones(len(points)) if support.weights is None else support.weights
    sums = (exponents - peak).exp().matmul(owners * weights[:, None])
    height = (peak - (centred * centred).row_sum() * (0.5 * scale)).at_most(20.0)
    floor = (_ZERO_LOG - height).at_most(700.0).exp()
    total = sums.row_sum() + floor
    return (sums + floor * support.prior) * ((1.0 - _CLIP) / total) + _CLIP * support.prior


def relative_kernels(squared: Array, bandwidth: float, total: float) -> Array:
    """Kernels of squared distances, up to a factor, with the share that a row of unit weight has of the frequencies."""
    exponents = -squared / (2.0 * bandwidth**2)
    peak = float(exponents.max())
    if not np.isfinite(peak):
        return np.ones(len(squared))
    return np.exp(exponents - peak) + np.exp(min(_ZERO_LOG - peak, 700.0)) / total


class _Sums:
    """Kernel sums of some rows, class by class, as they grow from tile to tile."""

    def __init__(self, support: Support, own: Array, bandwidth: float, threads: int) -> None:
        self.support, self.own, self.scale, self.threads = support, own, 1.0 / bandwidth**2, threads
        self.shifts = np.full((len(own), 1), -np.inf)
        self.sums = np.zeros((len(own), len(support.prior)))

    def add(self, products: Floats, tile: slice, skip: Integers | None) -> None:
        """Add the support rows of a tile, given their products with the rows."""
        s = self.support
        weights = None if s.weights is None else s.weights[tile]
        _core.add_class_kernels(
            products,
            s.half_norms[tile],
            weights,
            s.starts,
            tile.start,
            skip,
            self.scale,
            self.threads,
            self.shifts,
            self.sums,
        )

    def give_back(self, labels: Integers, spare: Array) -> None:
        """Add to each row's own class the kernel of points at its very place, of so much weight."""
        rows = np.flatnonzero(spare > 0)  # else the others' kernels, far away, would be nothing beside one of no weight
        peak = (self.own[rows] * self.scale)[:, None]
        higher = np.maximum(self.shifts[rows], peak)
        self.sums[rows] *= np.exp(self.shifts[rows] - higher)
        self.sums[rows, labels[rows]] += spare[rows] * np.exp(peak - higher)[:, 0]
        self.shifts[rows] = higher

    def finish(self, out: Floats) -> None:
        """Turn the sums into probabilities."""
        _core.finish_class_kernels(
            self.sums, self.shifts, self.own, self.support.prior, self.scale, _ZERO_LOG, _CLIP, self.threads, out
        )


class Trial:
    """Rows to predict from a support they take no part in, with their products at hand for many bandwidths.

    ``before`` has the log-loss of each row without the map; ``spare`` the weight that is left at a row's own place when
    the row is left out of the support.
    """

    def __init__(
        self,
        support: Support,
        points: Floats,
        labels: Integers,
        weights: Array,
        before: Array,
        skip: Integers | None = None,
        spare: Array | None = None,
    ) -> None:
        self.spare = spare
        centred = points.astype(support.points.dtype, copy=False) - support.centre
        self.support, self.labels, self.weights, self.before, self.skip = support, labels, weights, before, skip
        self.products, self.own = centred @ support.points.T, half_norms(centred)

    def losses(self, bandwidth: float) -> Array:
        """The log-loss of each row, clipped."""
        sums = _Sums(self.support, self.own, bandwidth, get_threads())
        sums.add(self.products, slice(0, len(self.support.points)), self.skip)
        if self.spare is not None:
            sums.give_back(self.labels, self.spare)
        p = np.empty_like(sums.sums)
        sums.finish(p)
        return -np.log(np.maximum(p[np.arange(len(p)), self.labels], _CLIP))


def leave_one_out(support: Support, before: Array, most_rows: int = TRIAL_ROWS, among: Integers | None = None) -> Trial:
    """Every row predicted from the others; on large sets an even choice of rows. ``among``: only these, as they came.

    Equal rows of a class are one row with the sum of their weights, and left out as one: a copy would tell the answer.
    Where places are shared by classes they are no copies: then one unit of the weight is left out.
    """
    n = len(support.points)
    rows = np.arange(n) if among is None else np.flatnonzero(np.isin(support.arrival, among))
    rows = rows[row_subsample(len(rows), _few(n, most_rows))]
    weights = np.ones(len(rows)) if support.weights is None else support.weights[rows]
    points = support.points[rows] + support.centre
    spare = np.maximum(weights - 1.0, 0.0) if support.weights is not None and shares_places(support) else None
    return Trial(support, points, support.labels()[rows], weights, before[support.arrival[rows]], rows, spare)


def shares_places(support: Support) -> bool:
    """Whether half of the weight or more lies where there are points of several classes, as where values are few."""
    rows = np.ascontiguousarray(support.points + 0.0)  # no zero is negative: equal points have equal bytes
    whole = rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize)))[:, 0]
    _, place = np.unique(whole, return_inverse=True)
    labels, weights = support.labels(), np.ones(len(rows)) if support.weights is None else support.weights
    first, last = np.full(len(rows), len(support.prior)), np.full(len(rows), -1)
    np.minimum.at(first, place, labels)
    np.maximum.at(last, place, labels)
    return bool(2.0 * weights @ (first < last)[place] >= weights.sum())


def held_out(support: Support, sample: Block, before: Array, most_rows: int = TRIAL_ROWS) -> Trial:
    """Rows predicted from a support that they are not part of; an even choice of them where they are many."""
    rows = row_subsample(sample.n, _few(len(support.points), most_rows))
    return Trial(support, sample.logits[rows], sample.labels[rows], sample.weight_array[rows], before[rows])


def _few(n: int, most_rows: int) -> int:
    return max(200, min(most_rows, 2 * _BLOCK // max(1, n)))


def best_bandwidth(trials: Sequence[Trial], spread: float) -> float:
    """Bandwidth of the least mean log-loss over the trials: a scan about ``spread``, then Brent's golden section.

    The bracket is widened where the least loss lies at its edge. Where classes lie so far apart that many bandwidths
    have no loss, the widest is taken: by a term of 1e-8 and a 1e-4th of the least loss a unit of log h, which moves
    other minima by about 0.01 %.
    """

    def pure(log_h: float) -> float:
        return mean_loss(trials, float(np.exp(log_h)))

    grid = list(np.log(spread) + np.linspace(-5.0, 4.0, 28))
    values = [pure(x) for x in grid]
    slope = _TIE + _WIDER * min(values)
    values = [value - slope * x for value, x in zip(values, grid, strict=True)]

    def loss(log_h: float) -> float:
        return pure(log_h) - slope * log_h

    for _ in range(20):
        at = int(np.argmin(values))
        if 0 < at < len(grid) - 1:
            break
        grid.insert(0 if at == 0 else len(grid), grid[0] - 1.0 if at == 0 else grid[-1] + 1.0)
        values.insert(0 if at == 0 else len(values), loss(grid[0] if at == 0 else grid[-1]))
    at = int(np.clip(np.argmin(values), 1, len(grid) - 2))
    found = minimize_scalar(loss, bounds=(grid[at - 1], grid[at + 1]), method="bounded", options={"xatol": 1e-4})
    return float(np.exp(found.x if found.fun <= min(values) else grid[int(np.argmin(values))]))


def mean_loss(trials: Sequence[Trial], bandwidth: float) -> float:
    """The weighted mean of the rows' losses over the trials."""
    total = sum(trial.weights.sum() for trial in trials)
    return float(sum(trial.weights @ trial.losses(bandwidth) for trial in trials) / total)


def spread_of(points: Floats, weights: Array | None = None) -> float:
    """The standard deviation of the points, averaged over dimensions; 1 where they do not differ."""
    mean = np.average(points, axis=0, weights=weights)
    return float(np.sqrt(np.mean(np.average((points - mean) ** 2, axis=0, weights=weights)))) or 1.0


def rule_factor(n: float, dimensions: int) -> float:
    """How a good bandwidth shrinks with n: n^(-1/(d+4))."""
    return float(n) ** (-1.0 / (dimensions + 4))
