"""What the optimum of a linear map would be under other precisions: a quadratic around one point, no pass over rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ._curvature import Curvature, Shared
from ._prior import LEAST, Prior

__all__ = ["Outlook", "outlook"]

Array = NDArray[np.float64]


class Outlook(Protocol):
    """The penalised optimum as the quadratic around one point has it: no pass over the rows."""

    def under(self, precisions: Array) -> tuple[Array, Array]:
        """Return, for each group of parameters, Σ s θ² and how many of them the rows determine."""
        ...


def outlook(near: Curvature, theta: Array, gradient: Array, prior: Prior) -> Outlook:
    """Return the outlook from θ, where the loss has this gradient and about this curvature."""
    if isinstance(near, Shared):
        return _SharedOutlook.of(near, theta, gradient, prior)
    return _PlainOutlook(near, theta, gradient, prior)


@dataclass(frozen=True, eq=False)
class _PlainOutlook:
    """The outlook by whole metrics."""

    near: Curvature
    theta: Array
    gradient: Array
    prior: Prior

    def under(self, precisions: Array) -> tuple[Array, Array]:
        penalty, count = self.prior.penalty(precisions), len(precisions)
        metric = self.near.metric(penalty)
        theta = self.theta - metric.apply(self.gradient + penalty * self.theta)
        shares = np.clip(1.0 - penalty * metric.diagonal(), 0.0, 1.0)
        return self.prior.by_group(self.prior.shape * theta**2, count), self.prior.by_group(shares, count)


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
