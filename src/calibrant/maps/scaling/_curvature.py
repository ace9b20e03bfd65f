"""The curvature of a linear map's log-loss as one exact block a class: a metric for the solver, counts for evidence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...fits.priors import Prior
from ...fits.problem import Metric, Outlook, PlainOutlook
from ...types import Array

_RIDGE = 1e-9  # of a diagonal: keeps what rows do not tell apart invertible
_ROUNDING = 8  # units in the last place of the scores to which sums of them are known


def ridge_of(eps: float) -> float:
    """Return the share of its diagonal that is added to a matrix of sums over scores with this machine precision."""
    return max(_RIDGE, _ROUNDING * eps)


@dataclass(frozen=True, eq=False)
class Blocks:
    """One block a class: the features of a class speak together, the classes apart. ``eps`` is that of the scores."""

    blocks: Array
    eps: float

    def metric(self, penalty: Array) -> Metric:
        """Return the inverse of each block with its penalty."""
        blocks, at = self.blocks.copy(), np.arange(self.blocks.shape[1])
        held = blocks[:, at, at] * (1.0 + ridge_of(self.eps)) + penalty.reshape(len(blocks), -1)
        blocks[:, at, at] = np.where(held > 0, held, 1.0)  # what nothing speaks about has no slope either
        return _BlockMetric(np.linalg.inv(blocks))

    def outlook(self, theta: Array, gradient: Array, prior: Prior) -> Outlook:
        """Return the outlook from θ."""
        return PlainOutlook(self, theta, gradient, prior)


@dataclass(frozen=True, eq=False)
class _BlockMetric:
    inverses: Array

    def apply(self, vector: Array) -> Array:
        return (self.inverses @ vector.reshape(*self.inverses.shape[:2], 1)).ravel()

    def diagonal(self) -> Array:
        return np.diagonal(self.inverses, axis1=1, axis2=2).ravel()
