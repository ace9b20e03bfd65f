"""The search for the best weights and temperatures of a mixture: from few rows to all, from the basins of a scan."""

from __future__ import annotations

from functools import partial

import numpy as np

from ..passes import Data, together
from ..types import Array
from .mixing import Mixing
from .solvers.simplex import Found, Sums, minimise_on_simplex
from .solvers.valley import Valley

Bounds = tuple[float, float]
_PILOTS = (4000, 1000)  # rows that tell where to start on all of them, and on these; the fewest are scanned for basins
_ARRIVED = 1e-10  # of the mean loss: what a last step would still gain
_ROUGHLY = 1e-6  # the same on the pilot, whose optimum is no more than a start
_SCANNED = 1e-5  # and where the scan only looks for the best of several places
MANY = 2 * _PILOTS[0]  # rows beyond which a pilot tells where to start
_PASSES = 100  # far more than any search in memory took
_FEW_PASSES = 5  # over many rows: what is left then, rows do not tell
_UNTOLD = 1.0  # of the summed log-loss: a likelihood ratio of e is none
_CLOSE = 1e-3  # an optimum on the pilot within this part of the best may be the best on all rows
_SAME = 0.1  # optima that differ by less, in a weight or log β, are one that was reached from two sides
_GRID = np.log(np.geomspace(1 / 20, 20, 9))  # where the scan for basins looks, around the temperature fitted alone
_LADDERS = np.log([1.0, 1.5, 3.0, 8.0, 20.0])  # half-widths of the starts for several temperatures


def best_weights(given: list[tuple[Data, Mixing]]) -> Found:
    """Find the best weights of mixtures without free temperatures, each with rows of its own."""
    totals = np.array([data.total_weight for data, _ in given])
    shares = totals / totals.sum()

    def problem(w: Array, x: Array) -> Sums:
        found = [mixing.sums(data, w, x) for data, mixing in given]
        value, gradient, hessian = (
            sum(share * part for share, part in zip(shares, parts, strict=True)) for parts in zip(*found, strict=True)
        )
        return Sums(float(value), np.asarray(gradient), np.asarray(hessian))

    parts = len(given[0][1].parts)
    return minimise_on_simplex(problem, np.full(parts, 1.0 / parts), _ARRIVED)


def best_mixture(data: Data, mixing: Mixing, alone: float, bounds: Bounds) -> Found:
    """Find the best weights and log β of the free parts.

    For given temperatures the weights are a convex problem. In the temperatures there may be several basins: those of
    a scan are descended on a pilot in memory, and what may be the best there on all rows.

    Parameters
    ----------
    data : Data
    mixing : Mixing
    alone : float
        β of the temperature fitted alone, around which others are looked for.
    bounds : pair of float
        Of β.
    """
    low, high = np.log(bounds)
    first, *larger = _samples(data)
    starts = _starts(first, mixing, float(np.log(alone)), (low, high))
    found = [_descend(mixing, first, w, x, (low, high), _tolerance(first, data)) for w, x in starts]
    for sample in larger:
        tolerance = _tolerance(sample, data)
        found = together(
            sample,
            [
                partial(
                    _descend, mixing, weights=f.weights, log_betas=f.beside, bounds=(low, high), tolerance=tolerance
                )
                for f in _worth_polishing(found)
            ],
        )
    best = min(found, key=lambda f: f.value)
    return Found(best.weights, best.beside, best.value, sum(f.passes for f in found), best.converged)


def _samples(data: Data) -> list[Data]:
    """Return the rows to look at in turn, from few to all."""
    samples = [data]
    for rows in _PILOTS:
        if samples[0].n > 2 * rows:
            samples.insert(0, samples[0].pilot(rows))
    return samples


def _descend(mixing: Mixing, data: Data, weights: Array, log_betas: Array, bounds: Bounds, tolerance: float) -> Found:
    """Minimise from one start; ``bounds`` are those of log β."""
    valley = Valley(mixing.free[0], mixing.parts.index(1.0)) if len(log_betas) == 1 and 1.0 in mixing.parts else None
    many = valley is not None and data.n > MANY
    return minimise_on_simplex(
        lambda w, x: mixing.sums(data, w, x),
        weights,
        tolerance,
        beside=log_betas,
        low=bounds[0],
        high=bounds[1],
        most=_FEW_PASSES if many else _PASSES,
        enough=_UNTOLD / data.total_weight,
        valley=valley,
    )


def _tolerance(sample: Data, data: Data) -> float:
    return _ARRIVED if sample is data else _ROUGHLY


def _worth_polishing(found: list[Found]) -> list[Found]:
    """Return the optima on a pilot that may be the best on all rows, but of the same one once."""
    least = min(f.value for f in found)
    kept: list[Found] = []
    for f in sorted(found, key=lambda f: f.value):
        known = any(_apart(f, k) < _SAME for k in kept)
        if f.value <= least + _CLOSE * abs(least) and not known:
            kept.append(f)
    return kept


def _apart(one: Found, other: Found) -> float:
    return float(np.abs(np.append(one.weights - other.weights, one.beside - other.beside)).max())


def _starts(data: Data, mixing: Mixing, centre: float, bounds: Bounds) -> list[tuple[Array, Array]]:
    """Return weights and log β to descend from.

    For one temperature the two best basins of a scan, each with its best weights; for several, ladders of them around
    the temperature fitted alone.
    """
    count, equal = len(mixing.free), np.full(len(mixing.parts), 1.0 / len(mixing.parts))
    if count != 1:
        rungs = np.linspace(-1.0, 1.0, count)
        ladders = [np.clip(centre + width * rungs, *bounds) for width in _LADDERS]
        return [(equal, ladder) for ladder in ladders] if count else [(equal, np.zeros(0))]
    places = [np.array([x]) for x in np.unique(np.clip(centre + _GRID, *bounds))]
    scanned: list[Found] = []
    for place in places:
        start = scanned[-1].weights if scanned else equal  # neighbours have similar weights
        scanned.append(_descend(mixing.at(place), data, start, np.zeros(0), bounds, _SCANNED))
    values = np.array([np.inf, *(f.value for f in scanned), np.inf])
    minima = np.flatnonzero((values[1:-1] <= values[:-2]) & (values[1:-1] <= values[2:]))
    chosen = minima[np.argsort(values[1:-1][minima], kind="stable")][:2]
    return [(scanned[i].weights, places[i]) for i in chosen]
