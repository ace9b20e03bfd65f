"""What is believed of parameters before the rows speak: Gaussians around zero, a precision for each group of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..types import Array, Integers

LEAST = 0.1  # precision of what no prior holds: keeps what no row speaks about (a class that never occurs) finite


@dataclass(frozen=True, eq=False)
class Prior:
    """Parameter j has the prior N(0, 1 / (α_g s_j)), g its group and s its shape; those of shape 0 are free."""

    groups: Integers
    shape: Array

    def penalty(self, precisions: Array) -> Array:
        """Return the precision of each parameter from that of the groups."""
        return precisions[self.groups] * self.shape + LEAST

    def by_group(self, values: Array, count: int) -> Array:
        """Sum over the parameters of each group that are not free."""
        sums = np.bincount(self.groups, weights=values * (self.shape > 0), minlength=count)
        return np.asarray(sums, dtype=np.float64)


def parts_of(k: int, size: int) -> Integers:
    """Return the part of each parameter of a linear map of K classes, class by class.

    0: a class's own slope; 1: weights between classes; 2: intercepts; 3: how sure a row is. With two parameters a class
    the map has a slope and an intercept for each, else a row of a matrix and an intercept.
    """
    parts = np.full((k, size // k), 2)
    if size == 2 * k:
        parts[:, 0] = 0
        return parts.ravel()
    parts[:, :k] = np.where(np.eye(k, dtype=bool), 0, 1)
    parts[:, k:-1] = 3
    return parts.ravel()


def ridge(k: int, size: int) -> Prior:
    """Hold every parameter alike."""
    return Prior(parts_of(k, size), np.ones(size))


def odir(k: int) -> Prior:
    """Off-diagonal and intercept regularisation of a full matrix (Kull et al. 2019, §4).

    One for each off-diagonal weight and 1/(K-1) for each intercept, so that both groups weigh the same in total; the
    diagonal is free.
    """
    shape = np.column_stack([1.0 - np.eye(k), np.full(k, 1.0 / max(1, k - 1))]).ravel()
    return Prior(parts_of(k, len(shape)), shape)


def structured(k: int) -> Array:
    """Return the precisions of the parts that Berta et al. 2026 give by a rule in K: where evidence begins."""
    return np.array([2.0 * k, 2.0 * k * max(1, k - 1), 2.0 * k, 2.0 * k])
