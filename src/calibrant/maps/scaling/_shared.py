"""The curvature of a full D of many classes, for which a block a class would be K³ numbers: along shared directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...fits.priors import LEAST, Prior
from ...fits.problem import Metric, Outlook
from ...types import Array, Floats, Integers
from ._curvature import ridge_of

_SINGLE = 1e-10  # between the machine precisions: scores in single precision are steered in it, for half the time
_FLAT = 1e-7  # of the largest spread: directions below it do not count


def moment_directions(moment: Array) -> Array:
    """Return the eigenvectors of Σ_i a_i x_i x_iᵀ along which rows spread at all, (side, r)."""
    values, vectors = np.linalg.eigh(moment)
    return np.ascontiguousarray(vectors[:, values > _FLAT * values[-1]])


def gram_directions(rows: Array) -> Array:
    """Return those of rowsᵀ rows where rows are fewer than features, from their products with one another."""
    values, left = np.linalg.eigh(rows @ rows.T)
    kept = values > _FLAT * values[-1]
    return rows.T @ (left[:, kept] / np.sqrt(values[kept]))


@dataclass(frozen=True, eq=False)
class Shared:
    """About H = U diag(h_k) Uᵀ for class k: U (side, r) for all, h (K, r) its own.

    Along direction u, class k has curvature Σ_i p_ik (1 - p_ik) (uᵀx_i)². ``own`` has the exact block of each class
    over its slope, its weight of how sure a row is and its intercept; ``eps`` is the machine precision of the scores.
    """

    directions: Array
    along: Array
    own: Array
    eps: float

    @property
    def special(self) -> Integers:
        """Columns of a class's parameters that are its own, (K, e)."""
        k, side = len(self.along), len(self.directions)
        return np.column_stack([np.arange(k), np.broadcast_to(np.arange(k, side), (k, side - k))])

    def own_inverse(self, held: Array) -> Array:
        """Return the inverse of each class's block over its own parameters, with precisions (K, e) on them."""
        blocks, at = self.own.copy(), np.arange(held.shape[1])
        blocks[:, at, at] += held + ridge_of(self.eps) * blocks[:, at, at]
        return np.asarray(np.linalg.inv(blocks), dtype=np.float64)

    def metric(self, penalty: Array) -> Metric:
        """Return the inverse with its penalty."""
        rows, special = penalty.reshape(len(self.along), -1), self.special
        common = float(rows[0, 1])
        change = 1.0 / (self.along + common) - 1.0 / common
        own = self.own_inverse(np.take_along_axis(rows, special, axis=1))
        kind = np.float32 if self.eps > _SINGLE else np.float64
        return _SharedMetric(self.directions.astype(kind), change.astype(kind), 1.0 / common, special, own)

    def outlook(self, theta: Array, gradient: Array, prior: Prior) -> Outlook:
        """Return the outlook from θ."""
        return _SharedOutlook.of(self, theta, gradient, prior)


@dataclass(frozen=True, eq=False)
class _SharedMetric:
    """U diag(change_k) Uᵀ + rest · I between the classes; what is a class's own has a block apart."""

    directions: Floats
    change: Floats
    rest: float
    special: Integers
    own: Array

    def apply(self, vector: Array) -> Array:
        k = len(self.change)
        rows, each = vector.reshape(k, -1), np.arange(k)[:, None]
        own = self.own @ rows[each, self.special][:, :, None]
        between = rows.astype(self.directions.dtype)
        between[each, self.special] = 0.0
        found = self.rest * rows
        found += (between @ self.directions * self.change) @ self.directions.T
        found[each, self.special] = own[:, :, 0]
        return found.ravel()

    def diagonal(self) -> Array:
        found = self.change @ (self.directions**2).T + self.rest
        found[np.arange(len(found))[:, None], self.special] = np.diagonal(self.own, axis1=1, axis2=2)
        return found.ravel()


@dataclass(frozen=True, eq=False)
class _SharedOutlook:
    """The outlook along the directions, where a step takes K r numbers rather than products of matrices.

    Of the weights between classes, with a their precision: θ = -g / a + U (h / (h + a)) Uᵀ (g / a + θ₀) has the square
    Σ (g / a)² + Σ_r of what U adds, and the rows determine Σ_r h / (h + a) u_jr² of weight j; from both goes what falls
    on the parameters that are a class's own, as those have blocks apart: ``corner`` is their part of the directions,
    ``share`` what is left of each direction's length.
    """

    near: Shared
    between: tuple[int, float]
    own: Prior
    theta: Array
    gradient: Array
    turned_theta: Array
    turned_gradient: Array
    square: float
    corner: Array
    share: Array

    @classmethod
    def of(cls, near: Shared, theta: Array, gradient: Array, prior: Prior) -> _SharedOutlook:
        k, special = len(near.along), near.special
        corner = near.directions[special]

        def own(values: NDArray[Any]) -> NDArray[Any]:
            return np.take_along_axis(values.reshape(k, -1), special, axis=1)

        rows, slopes = theta.reshape(k, -1).copy(), gradient.reshape(k, -1).copy()
        for values in (rows, slopes):
            np.put_along_axis(values, special, 0.0, axis=1)
        return cls(
            near,
            (int(prior.groups[1]), float(prior.shape[1])),
            Prior(own(prior.groups).ravel(), own(prior.shape).ravel()),
            own(theta),
            own(gradient),
            rows @ near.directions,
            slopes @ near.directions,
            float(np.vdot(slopes, slopes)),
            corner,
            1.0 - (corner**2).sum(axis=1),
        )

    def under(self, precisions: Array) -> tuple[Array, Array]:
        held, shape = self.own.penalty(precisions).reshape(self.theta.shape), self.own.shape.reshape(self.theta.shape)
        inverse = self.near.own_inverse(held)
        theta = self.theta - (inverse @ (self.gradient + held * self.theta)[:, :, None])[:, :, 0]
        shares = np.clip(1.0 - held * np.diagonal(inverse, axis1=1, axis2=2), 0.0, 1.0)
        sizes, counts = (self.own.by_group(v.ravel(), len(precisions)) for v in (shape * theta**2, shares))
        group, weight = self.between
        size, count = self._between(precisions[group] * weight + LEAST)
        sizes[group] += weight * size
        counts[group] += count if weight > 0 else 0.0
        return sizes, counts

    def _between(self, precision: float) -> tuple[float, float]:
        """Return Σ θ² of the weights between classes and how many of them the rows determine."""
        known = self.near.along / (self.near.along + precision)
        moved = known * (self.turned_gradient / precision + self.turned_theta)
        corner = np.einsum("kr,ker->ke", moved, self.corner)
        square = self.square / precision**2 - 2.0 * float(np.vdot(self.turned_gradient, moved)) / precision
        square += float(np.vdot(moved, moved)) - float(np.vdot(corner, corner))
        return square, float(np.vdot(known, self.share))
