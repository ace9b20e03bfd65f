"""Temperatures and mixture weights that minimise one loss together.

For given temperatures the best weights are a convex problem; what is left is a smooth function of the log β, whose
gradient is the partial one (the envelope theorem: the weights are optimal). It has several basins, so it is descended
from several starts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from .. import _core
from ..arrays import row_blocks, tempered_softmax
from ..maps.scaling.temperature import best_temperature, beta_bounds
from ..passes import Block, in_memory, reduce
from ..simplex import best_log_mixture, best_quadratic
from ..threads import get_threads

__all__ = ["fit_jointly"]

Array = NDArray[np.float64]
Fixed = Callable[[NDArray[np.floating]], NDArray[np.floating]] | None
_LADDERS = (1.0, 1.5, 3.0, 8.0, 20.0)
_GRID = np.geomspace(1 / 20, 20, 15)


@dataclass(frozen=True, eq=False)
class Joint:
    """The best found: β of each part (1 where it has none), weights, passes, and whether the gradient vanished."""

    betas: Array
    weights: Array
    passes: int
    converged: bool


class _Profile:
    """From log β of the free parts to the mean loss under the best weights, and its gradient; one pass a call."""

    def __init__(self, sample: Block, fixed: Sequence[Fixed], loss: str) -> None:
        self.sample, self.fixed, self.loss = sample, fixed, loss
        self.free = np.array([i for i, f in enumerate(fixed) if f is None], dtype=np.int64)
        self.passes = 0
        self.weights = np.full(len(fixed), 1.0 / len(fixed))
        self.known = None if loss == "brier" else self._fixed_columns()

    def __call__(self, log_betas: Array) -> tuple[float, Array]:
        betas = np.exp(log_betas)
        self.passes += 1
        value, slopes = self._nll(betas) if self.loss == "nll" else self._brier(betas)
        return value / self.sample.total_weight, slopes * betas / self.sample.total_weight

    def _fixed_columns(self) -> Array:
        columns, labels = np.ones((self.sample.n, len(self.fixed))), self.sample.labels
        for block in row_blocks(*self.sample.logits.shape):
            z = self.sample.logits[block]
            for i, answer in enumerate(self.fixed):
                if answer is not None:
                    columns[block, i] = answer(z)[np.arange(len(z)), labels[block]]
        return columns

    def _nll(self, betas: Array) -> tuple[float, Array]:
        assert self.known is not None
        slopes = np.empty((self.sample.n, len(betas)))
        for j, beta in enumerate(betas):
            rows = reduce(
                lambda s, b=float(beta): _core.temperature_rows(s.logits, s.labels, b, get_threads()), self.sample
            )
            self.known[:, self.free[j]], slopes[:, j] = rows[:, 0], rows[:, 1]
        self.weights = best_log_mixture(self.known, self.sample.weights)
        mixed = np.maximum(self.known @ self.weights, 1e-300)
        omega = self.sample.weight_array
        return float(-omega @ np.log(mixed)), -self.weights[self.free] * ((omega / mixed) @ slopes)

    def _brier(self, betas: Array) -> tuple[float, Array]:
        m, f = len(self.fixed), len(betas)
        sums = reduce(lambda rows: self._brier_sums(rows, betas), self.sample)
        gram, linear = sums[:m, :m], sums[:m, m]
        self.weights = w = best_quadratic(gram, linear)
        cross, chosen = sums[m : m + f, :m], sums[m : m + f, m]
        value = w @ gram @ w - 2 * linear @ w + self.sample.total_weight
        return float(value), 2 * w[self.free] * (cross @ w - chosen)

    def _brier_sums(self, rows: Block, betas: Array) -> Array:
        """Weighted sums of ⟨pᵢ, pⱼ⟩ and pᵢ(y), then of the same with dpᵢ/dβ in place of a free pᵢ."""
        m = len(self.fixed)
        out = np.zeros((m + len(betas), m + 1))
        for block in row_blocks(*rows.logits.shape):
            z, labels, omega = rows.logits[block], rows.labels[block], rows.weight_array[block]
            p = np.empty((m + len(betas), *z.shape))
            for i, answer in enumerate(self.fixed):
                if answer is not None:
                    p[i] = answer(z)
            for j, (i, beta) in enumerate(zip(self.free, betas, strict=True)):
                p[i] = tempered_softmax(z, float(beta))
                away = z - z.max(axis=1, keepdims=True)
                p[m + j] = p[i] * (away - (p[i] * away).sum(axis=1, keepdims=True))
            out[:, :m] += np.einsum("n,ink,jnk->ij", omega, p, p[:m], optimize=True)
            out[:, m] += p[:, np.arange(len(labels)), labels] @ omega
        return out


def fit_jointly(sample: Block, fixed: Sequence[Fixed], loss: str) -> Joint:
    """Minimise ``loss`` over the temperatures of the parts that are None in ``fixed`` and the weights of all."""
    sample = sample.with_logits(sample.logits.astype(np.float64))  # rounding in float32 misleads the line search
    profile = _Profile(sample, fixed, loss)
    alone, (low, high) = best_temperature(in_memory(sample), loss).beta, np.log(beta_bounds(in_memory(sample)))
    bounds = [(low, high)] * len(profile.free)
    best, gradient, value = np.full(len(bounds), np.log(alone)), np.zeros(len(bounds)), np.inf
    for start in _starts(profile, float(np.log(alone)), low, high):
        found = minimize(
            profile, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-15, "gtol": 1e-9}
        )
        if found.fun < value:
            best, gradient, value = np.asarray(found.x), np.asarray(found.jac), float(found.fun)
    profile(best)
    inside = (best > low) & (best < high)
    betas = np.ones(len(fixed))
    betas[profile.free] = np.exp(best)
    return Joint(betas, profile.weights, profile.passes, bool((np.abs(gradient[inside]) < 1e-5).all()))


def _starts(profile: _Profile, centre: float, low: float, high: float) -> list[Array]:
    """For one temperature the basins of a scan; for several, ladders of them around the temperature fitted alone."""
    count = len(profile.free)
    if count == 0:
        return []
    if count > 1:
        return [np.clip(centre + np.log(s) * np.linspace(-1, 1, count), low, high) for s in _LADDERS]
    grid = np.clip(centre + np.log(_GRID), low, high)
    values = np.array([profile(np.array([x]))[0] for x in grid])
    padded = np.concatenate([[np.inf], values, [np.inf]])
    minima = np.flatnonzero((values <= padded[:-2]) & (values <= padded[2:]))
    chosen = minima[np.argsort(values[minima], kind="stable")][:3]
    return [np.array([centre]), *(np.array([grid[i]]) for i in chosen)]
