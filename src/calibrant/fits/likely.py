"""How much each of several maps deserves to be believed: the probability that it is the best on other rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from ..passes import Block
from ..types import Array
from .mixing import Mixing, label_columns

_DRAWS = 1000  # a share is then known to about one in a hundred
_HARDLY = 0.05  # a share below it is not worth another map
_SAME = 1e-5  # maps whose losses of no row differ by more are one map, but for rounding in single precision
_LARGEST = 104.0  # a label's loss at most: -log of the smallest float32


@dataclass(frozen=True, eq=False)
class LossMoments:
    """Sums over rows of how maps' losses differ from their mean: Σ w, Σ w a, Σ w a aᵀ; and most that two differ by."""

    total: float
    first: Array
    second: Array
    furthest: Array

    def __add__(self, other: LossMoments) -> LossMoments:
        return LossMoments(
            self.total + other.total,
            self.first + other.first,
            self.second + other.second,
            np.maximum(self.furthest, other.furthest),
        )

    @classmethod
    def of(cls, losses: Array, weights: Array) -> LossMoments:
        """Return the sums of rows that have these log-losses, (n, maps), and weights."""
        apart = losses - losses.mean(axis=1, keepdims=True)
        weighed = apart * weights[:, None]
        furthest = np.array([np.abs(apart - one[:, None]).max(axis=0, initial=0.0) for one in apart.T])
        return cls(float(weights.sum()), weighed.sum(axis=0), weighed.T @ apart, furthest)


def loss_moments(block: Block, mixing: Mixing) -> LossMoments:
    """One pass: the moments of the log-losses of all parts of a mixture."""
    columns = block.kept(label_columns, mixing)
    losses = -np.log(np.maximum(columns, np.exp(-_LARGEST)))
    return LossMoments.of(losses, block.weight_array)


def likely_best(moments: LossMoments, costs: Array) -> Array:
    """Return the share that each of several maps deserves: the probability that it does best on other rows.

    Pseudo-BMA+ (Yao et al. 2018, §3.4) with a normal distribution in place of the bootstrap: the log-losses expected on
    as many other rows are Σ w l + c, their uncertainty is the covariance of the rows' losses, and a share is the mean
    of softmax(-loss) under it. Maps that are the same share one share, and a share below a twentieth is dropped.

    Parameters
    ----------
    moments : LossMoments
        Of the log-losses of the rows that the maps were fitted on.
    costs : array of shape (maps,)
        What each map's parameters add on other rows, in nats.
    """
    kept = _distinct(moments.furthest)
    first, second = moments.first[kept], moments.second[np.ix_(kept, kept)]
    values, vectors = np.linalg.eigh(second - np.outer(first, first) / moments.total)
    root = vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
    half = np.random.default_rng(0).standard_normal((_DRAWS // 2, len(kept))) @ root
    expected = first + costs[kept] + np.vstack([half, -half])
    believed = softmax(-expected, axis=1).mean(axis=0)
    believed[believed < min(_HARDLY, believed.max())] = 0.0
    shares = np.zeros(len(costs))
    shares[kept] = believed / believed.sum()
    return shares


def _distinct(furthest: Array) -> list[int]:
    """Return the positions of the maps, but of those that are the same only the first."""
    kept: list[int] = []
    for i in range(len(furthest)):
        if not any(furthest[i, j] <= _SAME for j in kept):
            kept.append(i)
    return kept
