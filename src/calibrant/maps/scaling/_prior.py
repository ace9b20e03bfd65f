"""What is believed of a linear map's parameters before the rows speak: Gaussians around zero, a precision a group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["LEAST", "Prior", "first_guess", "parts_of"]

LEAST = 0.1  # precision of what no prior holds: keeps what no row speaks about (a class that never occurs) finite


@dataclass(frozen=True, eq=False)
class Prior:
    """Parameter j has the prior N(0, 1 / (α_g s_j)), g its group and s its shape; those of shape 0 are free."""

    groups: NDArray[np.int64]
    shape: NDArray[np.float64]

    def penalty(self, precisions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the precision of each parameter from that of the groups."""
        return precisions[self.groups] * self.shape + LEAST

    def by_group(self, values: NDArray[np.float64], count: int) -> NDArray[np.float64]:
        """Sum over the parameters of each group that are not free."""
        sums = np.bincount(self.groups, weights=values * (self.shape > 0), minlength=count)
        return np.asarray(sums, dtype=np.float64)


def parts_of(k: int, size: int) -> NDArray[np.int64]:
    """Return each parameter's part: 0 its own slope, 1 between classes, 2 intercepts, 3 how sure a row is."""
    parts = np.full((k, size // k), 2)
    if size == 2 * k:
        parts[:, 0] = 0
        return parts.ravel()
    parts[:, :k] = np.where(np.eye(k, dtype=bool), 0, 1)
    parts[:, k:-1] = 3
    return parts.ravel()


def first_guess(k: int) -> NDArray[np.float64]:
    """Return the precisions of the parts that Berta et al. 2026 give by a rule in K."""
    return np.array([2.0 * k, 2.0 * k * max(1, k - 1), 2.0 * k, 2.0 * k])
