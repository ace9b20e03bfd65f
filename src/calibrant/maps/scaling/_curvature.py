"""The curvature of a linear map's log-loss, class by class: a metric for the solver and counts for the evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ._problem import Problem

__all__ = ["Curvature", "Metric", "curvature"]

Array = NDArray[np.float64]
_ROWS = 20_000  # rows that the shared directions of many classes are taken from, where there are more


class Metric(Protocol):
    """About the inverse of the Hessian of the penalised loss: symmetric and positive."""

    def apply(self, vector: Array) -> Array:
        """Return H⁻¹ times a vector."""
        ...

    def diagonal(self) -> Array:
        """Return (H⁻¹)_jj of every parameter."""
        ...


class Curvature(Protocol):
    """The Hessian of the loss alone, to which a penalty is added."""

    def metric(self, penalty: Array) -> Metric:
        """Return the inverse with a penalty of precision ``penalty`` on each parameter."""
        ...


def curvature(problem: Problem, theta: Array) -> Curvature:
    """Return the curvature at θ: exact blocks of the classes or, for a full D of many classes, shared directions."""
    if problem.full and not problem.few:
        return _shared(problem, theta)
    return _Blocks(problem.blocks(theta))


def _rows(vector: Array, k: int) -> Array:
    """Parameters by class, (K, m + 1): a row of D, then the intercept."""
    return np.column_stack([vector[:-k].reshape(k, -1), vector[-k:]])


def _flat(rows: Array) -> Array:
    return np.concatenate([rows[:, :-1].ravel(), rows[:, -1]])


@dataclass(frozen=True, eq=False)
class _Blocks:
    """One block a class: the features of a class speak together, the classes apart."""

    blocks: Array

    def metric(self, penalty: Array) -> Metric:
        blocks, at = self.blocks.copy(), np.arange(self.blocks.shape[1])
        blocks[:, at, at] += _rows(penalty, len(blocks)) + 1e-9 * blocks[:, at, at] + 1e-9
        return _BlockMetric(np.linalg.inv(blocks))


@dataclass(frozen=True, eq=False)
class _BlockMetric:
    inverses: Array

    def apply(self, vector: Array) -> Array:
        return _flat((self.inverses @ _rows(vector, len(self.inverses))[:, :, None])[:, :, 0])

    def diagonal(self) -> Array:
        return _flat(np.diagonal(self.inverses, axis1=1, axis2=2).copy())


def _shared(problem: Problem, theta: Array) -> _Shared:
    """Directions of the features that all classes share, and the curvature of each class along them.

    The directions are those of Σ_i a_i x_i x_iᵀ, a_i the row's variance Σ_k p (1 - p); along direction u, class k has
    curvature Σ_i p_ik (1 - p_ik) (uᵀx_i)². K blocks would be K³ numbers.
    """
    side = problem.size // problem.k
    moment, along = np.zeros((side, side)), np.zeros((problem.k, side))
    for x, v in problem.variances(theta, _ROWS):
        moment += x.T @ (x * v.sum(axis=1, keepdims=True))
    directions = np.linalg.eigh(moment)[1]
    for x, v in problem.variances(theta, _ROWS):
        along += v.T @ (x @ directions.astype(x.dtype)) ** 2
    return _Shared(directions, along)


@dataclass(frozen=True, eq=False)
class _Shared:
    """About H = U diag(h_k) Uᵀ for class k: U (m + 1, m + 1) for all, h (K, m + 1) its own."""

    directions: Array
    along: Array

    def metric(self, penalty: Array) -> Metric:
        """Add the penalty: that of most weights in every direction, and what other parameters have more or less.

        The others are the own slope, the intercept and, where there is one, the weight of how sure a row is, so that
        the inverse follows from U by a correction of rank two or three (Woodbury).
        """
        k, side = self.along.shape
        rows = _rows(penalty, k)
        common = max(float(rows[0, 1 % k]), 1e-9)
        extra = np.broadcast_to(np.arange(k, side), (k, side - k))
        special = np.column_stack([np.arange(k), extra])
        scaled = 1.0 / (self.along + common)
        columns = (self.directions[special] * scaled[:, None, :]) @ self.directions.T
        each = np.arange(k)[:, None]
        more = rows[each, special] - common
        inner = np.eye(special.shape[1]) + more[:, :, None] * columns[each, :, special].transpose(0, 2, 1)
        weights = np.linalg.inv(inner) * more[:, None, :]
        return _SharedMetric(self.directions, scaled, special, columns, weights)


@dataclass(frozen=True, eq=False)
class _SharedMetric:
    """U diag(scaled_k) Uᵀ - columns_kᵀ weights_k columns_k."""

    directions: Array
    scaled: Array
    special: NDArray[np.int64]
    columns: Array
    weights: Array

    def apply(self, vector: Array) -> Array:
        k = len(self.scaled)
        found = (_rows(vector, k) @ self.directions * self.scaled) @ self.directions.T
        share = self.weights @ found[np.arange(k)[:, None], self.special][:, :, None]
        return _flat(found - (self.columns * share).sum(axis=1))

    def diagonal(self) -> Array:
        plain = self.scaled @ (self.directions**2).T
        return _flat(plain - ((self.weights @ self.columns) * self.columns).sum(axis=1))
