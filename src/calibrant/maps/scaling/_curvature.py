"""The curvature of a linear map's log-loss, class by class: a metric for the solver and counts for the evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ._problem import Problem

__all__ = ["Curvature", "Metric", "Shared", "curvature"]

Array = NDArray[np.float64]
_FLAT = 1e-7  # of the largest spread: directions below it do not count


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
    if problem.few:
        return _Blocks(problem.blocks(theta))
    directions = _directions(problem, theta)
    return Shared(directions, *problem.along(theta, directions))


@dataclass(frozen=True, eq=False)
class _Blocks:
    """One block a class: the features of a class speak together, the classes apart."""

    blocks: Array

    def metric(self, penalty: Array) -> Metric:
        blocks, at = self.blocks.copy(), np.arange(self.blocks.shape[1])
        blocks[:, at, at] += penalty.reshape(len(blocks), -1) + 1e-9 * blocks[:, at, at] + 1e-9
        return _BlockMetric(np.linalg.inv(blocks))


@dataclass(frozen=True, eq=False)
class _BlockMetric:
    inverses: Array

    def apply(self, vector: Array) -> Array:
        return (self.inverses @ vector.reshape(*self.inverses.shape[:2], 1)).ravel()

    def diagonal(self) -> Array:
        return np.diagonal(self.inverses, axis1=1, axis2=2).ravel()


def _directions(problem: Problem, theta: Array) -> Array:
    """Return the directions of Σ_i a_i x_i x_iᵀ in which rows spread at all, (side, r); a_i is Σ_k p (1 - p).

    Where rows are fewer than features, they come from the rows' products with one another.
    """
    if problem.sample.n < problem.side:
        rows = problem.spread(theta)
        values, left = np.linalg.eigh(rows @ rows.T)
        kept = values > _FLAT * values[-1]
        return rows.T @ (left[:, kept] / np.sqrt(values[kept]))
    values, vectors = np.linalg.eigh(problem.moment(theta))
    return np.ascontiguousarray(vectors[:, values > _FLAT * values[-1]])


@dataclass(frozen=True, eq=False)
class Shared:
    """About H = U diag(h_k) Uᵀ for class k: U (side, r) for all, h (K, r) its own.

    Along direction u, class k has curvature Σ_i p_ik (1 - p_ik) (uᵀx_i)². K blocks would be K³ numbers. ``own``
    has the exact block of each class over its slope, its weight of how sure a row is and its intercept.
    """

    directions: Array
    along: Array
    own: Array

    @property
    def special(self) -> NDArray[np.int64]:
        """Columns of a class's parameters that are its own, (K, e)."""
        k, side = len(self.along), len(self.directions)
        return np.column_stack([np.arange(k), np.broadcast_to(np.arange(k, side), (k, side - k))])

    def own_inverse(self, held: Array) -> Array:
        """Return the inverse of each class's block over its own parameters, with precisions (K, e) on them."""
        return np.asarray(np.linalg.inv(self.own + (held + 1e-9)[:, :, None] * np.eye(held.shape[1])), dtype=np.float64)

    def metric(self, penalty: Array) -> Metric:
        rows, special = penalty.reshape(len(self.along), -1), self.special
        common = max(float(rows[0, 1]), 1e-9)
        change = 1.0 / (self.along + common) - 1.0 / common
        own = self.own_inverse(np.take_along_axis(rows, special, axis=1))
        return _SharedMetric(self.directions, change, 1.0 / common, special, own)


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
        rows, each = vector.reshape(k, -1).copy(), np.arange(k)[:, None]
        own = self.own @ rows[each, self.special][:, :, None]
        rows[each, self.special] = 0.0
        found = (rows @ self.directions * self.change) @ self.directions.T + self.rest * rows
        found[each, self.special] = own[:, :, 0]
        return found.ravel()

    def diagonal(self) -> Array:
        found = self.change @ (self.directions**2).T + self.rest
        found[np.arange(len(found))[:, None], self.special] = np.diagonal(self.own, axis1=1, axis2=2)
        return found.ravel()
