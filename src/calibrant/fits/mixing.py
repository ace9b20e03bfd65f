"""The mixture as one problem: Σ wᵢ pᵢ, w on the simplex, some of the pᵢ temperatures that are fitted with the weights.

A part is a temperature that is free (None), one that is given (its β: 1 leaves the scores alone, 0 is the uniform
distribution) or answered by a map. A pass at (w, log β) returns sums only, of which `Mixing.sums` makes the loss, its
gradient and its Hessian. With u = ∂m/∂θ / m for the probability m that the mixture gives to the label, the log-loss has

    gradient -Σ ω u,   Hessian Σ ω (u uᵀ - ∂²m/∂θ² / m),

and the Brier score w'Gw - 2c'w + 1 is made of the inner products of the parts' answers and their derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..arrays import inner, row_blocks, tempered_softmax
from ..passes import Block, Data
from ..threads import get_threads
from .solvers.simplex import Found, Sums, minimise_on_simplex

__all__ = ["ENSEMBLE", "Answers", "Mixing", "Part", "best_mixture", "best_weights", "label_columns"]

Array = NDArray[np.float64]
Part = float | Literal["answered"] | None
Answers = Callable[[NDArray[np.floating]], Iterable[tuple[int, NDArray[np.floating]]]]
"""From logits to the probabilities of the parts that maps answer, each with its position."""

ENSEMBLE: tuple[Part, ...] = (None, 1.0, 0.0)  # the parts of ensemble temperature scaling
_PILOTS = (4000, 1000)  # rows that tell where to start on all of them, and on these; the fewest are scanned for basins
_ARRIVED = 1e-10  # of the mean loss: what a last step would still gain
_ROUGHLY = 1e-6  # the same on the pilot, whose optimum is no more than a start
_CLOSE = 1e-3  # an optimum on the pilot within this part of the best may be the best on all rows
_INSIDE = 1e-3  # how far a start is moved into the simplex: at its border an impossible label has no finite slope
_LEAST = 1e-100  # a smaller probability of a label counts as this: its square and that of its inverse are numbers
_GRID = np.log(np.geomspace(1 / 20, 20, 11))  # where the scan for basins looks, around the temperature fitted alone
_LADDERS = np.log([1.0, 1.5, 3.0, 8.0, 20.0])  # half-widths of the starts for several temperatures


@dataclass(frozen=True)
class Mixing:
    """The parts of a mixture, and the loss that its weights and free temperatures minimise ("nll" or "brier")."""

    parts: tuple[Part, ...]
    loss: str
    answers: Answers | None = None

    @property
    def free(self) -> list[int]:
        """Positions of the parts whose temperature is free."""
        return [i for i, part in enumerate(self.parts) if part is None]

    def at(self, log_betas: Array) -> Mixing:
        """Return the mixture with these temperatures given, so that only the weights are left."""
        parts = list(self.parts)
        for i, x in zip(self.free, log_betas.tolist(), strict=True):
            parts[i] = float(np.exp(x))
        return replace(self, parts=tuple(parts))

    def sums(self, data: Data, weights: Array, log_betas: Array) -> Sums:
        """One pass: the mean loss, its gradient and its Hessian in the weights and log β."""
        total = data.total_weight
        if self.loss == "nll":
            found = data.reduce(partial(_log_sums, mixing=self, weights=weights, log_betas=log_betas))
            return _log_loss(found / total, weights, self.free)
        found = data.reduce(partial(_square_sums, mixing=self, log_betas=log_betas))
        return _brier(found / total, weights, self.free)

    def descend(
        self, data: Data, weights: Array, log_betas: Array, bounds: tuple[float, float], tolerance: float = _ARRIVED
    ) -> Found:
        """Minimise from one start; ``bounds`` are those of log β."""
        return minimise_on_simplex(
            lambda w, x: self.sums(data, w, x), weights, tolerance, beside=log_betas, low=bounds[0], high=bounds[1]
        )

    def mean_loss(self, data: Data, weights: Array) -> float:
        """Return the mean loss of a mixture without free temperatures; infinite where it gives a label nothing."""
        if self.loss == "nll":
            return float(data.reduce(partial(_log_loss_of, mixing=self, weights=weights))) / data.total_weight
        return self.sums(data, weights, np.zeros(0)).value


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


def best_mixture(data: Data, mixing: Mixing, alone: float, bounds: tuple[float, float]) -> Found:
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
    found = [mixing.descend(first, w, x, (low, high), _tolerance(first, data)) for w, x in starts]
    for sample in larger:
        starts = [(_inside(f.weights), f.beside) for f in _worth_polishing(found)]
        found = [mixing.descend(sample, w, x, (low, high), _tolerance(sample, data)) for w, x in starts]
    best = min(found, key=lambda f: f.value)
    return Found(best.weights, best.beside, best.value, sum(f.passes for f in found), best.converged)


def _samples(data: Data) -> list[Data]:
    """Return the rows to look at in turn, from few to all."""
    samples = [data]
    for rows in _PILOTS:
        if samples[0].n > 2 * rows:
            samples.insert(0, samples[0].pilot(rows))
    return samples


def _tolerance(sample: Data, data: Data) -> float:
    return _ARRIVED if sample is data else _ROUGHLY


def _worth_polishing(found: list[Found]) -> list[Found]:
    """Return the optima on a pilot that may be the best on all rows, but of the same one once."""
    least = min(f.value for f in found)
    kept: list[Found] = []
    for f in sorted(found, key=lambda f: f.value):
        known = any(np.allclose(f.weights, k.weights, atol=0.01) and np.allclose(f.beside, k.beside) for k in kept)
        if f.value <= least + _CLOSE * abs(least) and not known:
            kept.append(f)
    return kept


def _inside(weights: Array) -> Array:
    return (1.0 - _INSIDE) * weights + _INSIDE / len(weights)


def _starts(data: Data, mixing: Mixing, centre: float, bounds: tuple[float, float]) -> list[tuple[Array, Array]]:
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
        start = _inside(scanned[-1].weights) if scanned else equal  # neighbours have similar weights
        scanned.append(mixing.at(place).descend(data, start, np.zeros(0), bounds, _ROUGHLY))
    values = np.array([np.inf, *(f.value for f in scanned), np.inf])
    minima = np.flatnonzero((values[1:-1] <= values[:-2]) & (values[1:-1] <= values[2:]))
    chosen = minima[np.argsort(values[1:-1][minima], kind="stable")][:2]
    return [(_inside(scanned[i].weights), places[i]) for i in chosen]


# The log-loss ---------------------------------------------------------------------------------------------------------


def _log_sums(block: Block, mixing: Mixing, weights: Array, log_betas: Array) -> Array:
    """One pass: Σ -ω log m, -Σ ω u and Σ ω u uᵀ for u = c / m.

    c holds each part's probability of the label, then the first two derivatives of the free ones in their log β.
    """
    m, f = len(mixing.parts), len(log_betas)
    given = block.kept(_possible_columns, mixing)
    if not f:
        return _core.mixture_sums(given, block.weights, weights, get_threads())
    columns = np.empty((block.n, m + 2 * f))
    columns[:, :m] = given
    for j, (i, x) in enumerate(zip(mixing.free, log_betas.tolist(), strict=True)):
        rows = _core.temperature_rows(block.logits, block.labels, float(np.exp(x)), get_threads())
        columns[:, [i, m + j, m + f + j]] = rows
        np.maximum(columns[:, i], _LEAST, out=columns[:, i])
    return _core.mixture_sums(columns, block.weights, np.append(weights, np.zeros(2 * f)), get_threads())


def _log_loss(sums: Array, weights: Array, free: list[int]) -> Sums:
    m, f = len(weights), len(free)
    c = m + 2 * f
    slopes, products = sums[1 : 1 + c], sums[1 + c :].reshape(c, c)
    if not f:
        return Sums(float(sums[0]), slopes, products)
    scale = np.append(np.ones(m), weights[free])  # m moves by wᵢ times what its part's probability moves by
    gradient = slopes[: m + f] * scale
    hessian = products[: m + f, : m + f] * np.outer(scale, scale)
    beside = np.arange(m, m + f)
    hessian[beside, free] += slopes[m : m + f]
    hessian[free, beside] += slopes[m : m + f]
    hessian[beside, beside] += weights[free] * slopes[m + f :]
    return Sums(float(sums[0]), gradient, hessian)


def _log_loss_of(block: Block, mixing: Mixing, weights: Array) -> float:
    """One pass: Σ -ω log m."""
    with np.errstate(divide="ignore"):
        return inner(block.weight_array, -np.log(block.kept(label_columns, mixing) @ weights))


def label_columns(block: Block, mixing: Mixing) -> Array:
    """Return each part's probability of each row's label, (n, parts); one for those whose temperature is free."""
    columns = np.ones((block.n, len(mixing.parts)))
    for i, part in enumerate(mixing.parts):
        if isinstance(part, float):
            columns[:, i] = block.kept(_tempered_column, part)
    if mixing.answers is not None:
        for some in row_blocks(*block.logits.shape):
            labels = block.labels[some]
            for i, p in mixing.answers(block.logits[some]):
                columns[some, i] = p[np.arange(len(labels)), labels]
    return columns


def _possible_columns(block: Block, mixing: Mixing) -> Array:
    return np.maximum(block.kept(label_columns, mixing), _LEAST)


def _tempered_column(block: Block, beta: float) -> Array:
    if beta == 0.0:
        return np.full(block.n, 1.0 / block.n_classes)
    return _core.temperature_rows(block.logits, block.labels, beta, get_threads())[:, 0]


# The Brier score ------------------------------------------------------------------------------------------------------


def _square_sums(block: Block, mixing: Mixing, log_betas: Array) -> Array:
    """One pass: weighted sums of the inner products of all vectors, a column of what they give the label, and Σ ω.

    The vectors of a row are the parts' answers, then the first and the second derivatives of the free ones.
    """
    if mixing.parts == ENSEMBLE:
        return _ensemble_sums(block, float(np.exp(log_betas[0])))
    count = len(mixing.parts) + 2 * len(log_betas)
    out = np.zeros((count, count + 2))
    for some in row_blocks(*block.logits.shape):
        labels, omega = block.labels[some], block.weight_array[some]
        vectors = _vectors(block.logits[some], mixing, log_betas)
        out[:, :count] += np.einsum("n,ink,jnk->ij", omega, vectors, vectors, optimize=True)
        out[:, count] += vectors[:, np.arange(len(labels)), labels] @ omega
        out[0, count + 1] += omega.sum()
    return out


def _vectors(logits: NDArray[np.floating], mixing: Mixing, log_betas: Array) -> Array:
    m, f = len(mixing.parts), len(log_betas)
    z = logits.astype(np.float64)  # rounding in float32 would mislead the search
    out = np.empty((m + 2 * f, *z.shape))
    for i, part in enumerate(mixing.parts):
        if isinstance(part, float):
            out[i] = tempered_softmax(z, part) if part else 1.0 / z.shape[1]
    for i, p in () if mixing.answers is None else mixing.answers(logits):
        out[i] = p
    for j, (i, x) in enumerate(zip(mixing.free, log_betas.tolist(), strict=True)):
        p = out[i] = tempered_softmax(z, float(np.exp(x)))
        away = np.maximum(np.exp(x) * (z - z.max(axis=1, keepdims=True)), -1e3)  # there p is zero
        away -= (p * away).sum(axis=1, keepdims=True)
        out[m + j] = p * away
        out[m + f + j] = out[m + j] * (1.0 + away) - p * (p * away * away).sum(axis=1, keepdims=True)
    return out


def _ensemble_sums(block: Block, beta: float) -> Array:
    """The same for `ENSEMBLE`, fused: of ⟨p', p'⟩ and ⟨p'', p⟩ only the sum is known, and only the sum counts."""
    s = _core.ensemble_sums(block.logits, block.labels, block.weights, beta, get_threads())
    total = block.total_weight
    u = total / block.n_classes
    out = np.zeros((5, 7))
    out[:3, :3] = [[s[0], s[2], u], [s[2], s[7], u], [u, u, u]]
    out[:, 5] = [s[4], s[6], u, s[5], s[10]]
    out[3, :4] = [s[1], s[3], 0.0, s[8]]
    out[4, 1] = s[9]
    out[0, 6] = total
    return out


def _brier(sums: Array, weights: Array, free: list[int]) -> Sums:
    m, f, count = len(weights), len(free), len(sums)
    gram, chosen = sums[:, :count], sums[:, count]
    residual = gram[:, :m] @ weights - chosen  # ⟨vector, mixture - label⟩
    value = float(weights @ (residual[:m] - chosen[:m]) + sums[0, count + 1])
    gradient, hessian = np.empty(m + f), np.empty((m + f, m + f))
    gradient[:m], hessian[:m, :m] = residual[:m], gram[:m, :m]
    w, first, second = weights[free], slice(m, m + f), slice(m + f, m + 2 * f)
    gradient[m:] = w * residual[first]
    across = w[:, None] * gram[first, :m]
    across[np.arange(f), free] += residual[first]
    hessian[m:, :m], hessian[:m, m:] = across, across.T
    hessian[m:, m:] = np.outer(w, w) * gram[first, first] + np.diag(w * residual[second])
    return Sums(value, 2.0 * gradient, 2.0 * hessian)
