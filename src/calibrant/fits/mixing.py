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

from .. import _core
from ..arrays import inner, row_blocks, tempered_softmax
from ..passes import Block, Data
from ..threads import get_threads
from ..types import Array, Floats
from .solvers.sums import Sums

Part = float | Literal["answered"] | None
Answers = Callable[[Floats], Iterable[tuple[int, Floats]]]
"""From logits to the probabilities of the parts that maps answer, each with its position."""

ENSEMBLE: tuple[Part, ...] = (None, 1.0, 0.0)  # the parts of ensemble temperature scaling
_LEAST = 1e-100  # a smaller probability of a label counts as this: its square and that of its inverse are numbers


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

    def mean_loss(self, data: Data, weights: Array) -> float:
        """Return the mean loss of a mixture without free temperatures; a zero counts as the smallest float there is."""
        if self.loss == "nll":
            return float(data.reduce(partial(_log_loss_of, mixing=self, weights=weights))) / data.total_weight
        return self.sums(data, weights, np.zeros(0)).value


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
    chosen = block.kept(label_columns, mixing) @ weights
    return inner(block.weight_array, -np.log(np.maximum(chosen, np.finfo(block.logits.dtype).smallest_subnormal)))


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


def _vectors(logits: Floats, mixing: Mixing, log_betas: Array) -> Array:
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
