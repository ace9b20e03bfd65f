"""The curvature of a linear map's log-loss, class by class: a metric for the solver and counts for the evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ._problem import Problem

__all__ = ["Curvature", "Metric", "curvature"]

Array = NDArray[np.float64]
_FLAT = 1e-7  # of the largest spread: directions below it do not count
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


def curvature(problem: Problem, theta: Array, before: Curvature | None = None) -> Curvature:
    """Return the curvature at θ: exact blocks of the classes or, for a full D of many classes, shared directions.

    The directions of a curvature ``before``, at other parameters of the same problem, are used again.
    """
    if problem.full and not problem.few:
        directions = before.directions if isinstance(before, _Shared) else _directions(problem, theta)
        return _shared(problem, theta, directions)
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


def _shared(problem: Problem, theta: Array, directions: Array) -> _Shared:
    """Directions of the features that all classes share, and the curvature of each class along them.

    The directions are those of Σ_i a_i x_i x_iᵀ, a_i the row's variance Σ_k p (1 - p); along direction u, class k has
    curvature Σ_i p_ik (1 - p_ik) (uᵀx_i)². K blocks would be K³ numbers.
    """
    k, side = problem.k, problem.size // problem.k
    extra = side - k
    along, own = np.zeros((k, directions.shape[1])), np.zeros((k, extra + 1, extra + 1))
    for x, v in problem.variances(theta, _ROWS):
        along += v.T @ (x @ directions.astype(x.dtype)) ** 2
        slopes, others = v * x[:, :k], x[:, k:]
        own[:, 0, 0] += np.einsum("ij,ij->j", slopes, x[:, :k])
        own[:, 0, 1:] += slopes.T @ others
        for e in range(extra):
            own[:, e + 1, 1:] += v.T @ (others[:, e : e + 1] * others)
    own[:, 1:, 0] = own[:, 0, 1:]
    return _Shared(directions, along, own)


def _directions(problem: Problem, theta: Array) -> Array:
    """Return the directions in which the rows spread at all, (m + 1, r): from their products where rows are fewer."""
    side = problem.size // problem.k
    if problem.sample.n < side:
        rows = np.concatenate([x * np.sqrt(v.sum(axis=1, keepdims=True)) for x, v in problem.variances(theta, _ROWS)])
        values, left = np.linalg.eigh((rows @ rows.T).astype(np.float64))
        kept = values > _FLAT * values[-1]
        return rows.T @ (left[:, kept] / np.sqrt(values[kept]))
    moment = np.zeros((side, side))
    for x, v in problem.variances(theta, _ROWS):
        moment += x.T @ (x * v.sum(axis=1, keepdims=True))
    values, vectors = np.linalg.eigh(moment)
    return vectors[:, values > _FLAT * values[-1]]


@dataclass(frozen=True, eq=False)
class _Shared:
    """About H = U diag(h_k) Uᵀ for class k: U (m + 1, r) for all, h (K, r) its own.

    ``own`` has the exact block of each class over its slope, its weight of how sure a row is and its intercept.
    """

    directions: Array
    along: Array
    own: Array

    def metric(self, penalty: Array) -> Metric:
        k, side = len(self.along), len(self.directions)
        rows = _rows(penalty, k)
        extra = np.broadcast_to(np.arange(k, side), (k, side - k))
        special = np.column_stack([np.arange(k), extra])
        held = rows[np.arange(k)[:, None], special] + 1e-9
        own = np.asarray(np.linalg.inv(self.own + held[:, :, None] * np.eye(special.shape[1])), dtype=np.float64)
        common = max(float(rows[0, 1]), 1e-9)
        return _SharedMetric(self.directions, 1.0 / (self.along + common) - 1.0 / common, 1.0 / common, special, own)


@dataclass(frozen=True, eq=False)
class _SharedMetric:
    """U diag(change_k) Uᵀ + rest · I between the classes; what is a class's own has a block apart."""

    directions: Array
    change: Array
    rest: float
    special: NDArray[np.int64]
    own: Array

    def apply(self, vector: Array) -> Array:
        k = len(self.change)
        rows, each = _rows(vector, k), np.arange(k)[:, None]
        own = self.own @ rows[each, self.special][:, :, None]
        rows[each, self.special] = 0.0
        found = (rows @ self.directions * self.change) @ self.directions.T + self.rest * rows
        found[each, self.special] = own[:, :, 0]
        return _flat(found)

    def diagonal(self) -> Array:
        found = self.change @ (self.directions**2).T + self.rest
        found[np.arange(len(found))[:, None], self.special] = np.diagonal(self.own, axis1=1, axis2=2)
        return _flat(found)
