"""I-Max: edges that keep what the score says about the outcome, by alternating closed forms (Patel et al. 2021)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .. import _core
from ..threads import get_threads
from ..types import Array, Integers
from .fine import FineCells


@dataclass(frozen=True, eq=False)
class IMax:
    """Where the updates ended."""

    bounds: Integers  # the cells at which bins begin, without the first
    # The loss of Eq. 4 in bits under the sigmoid model, after each update of the representatives: never increasing.
    losses: tuple[float, ...]
    converged: bool  # whether the last update changed no cell's bin
    # The sigmoid model P(y = 1 | λ) = σ(slope · λ + offset).
    slope: float
    offset: float


def imax(cells: FineCells, bins: int, *, affine: bool = True, seed: int = 0) -> IMax:
    """Return the bins of I-Max.

    Alternates Eq. 5: the edge g_m = log{[sp(φ_m) - sp(φ_{m-1})] / [sp(-φ_{m-1}) - sp(-φ_m)]}, sp the softplus, and
    φ_m, the log-odds of the mean of σ(λ) in the bin, until no cell changes its bin. A bin that runs empty is given half
    of the bin that loses most, which lowers the loss as every other step does. Where distinct scores are fewer than
    ``bins``, so are the bins. ``affine``: P(y = 1 | λ) = σ(a λ + a b) is fitted first (App. A3.5), instead of trusting
    a = 1, b = 0. ``seed``: of the k-means++ start with the Jensen-Shannon distance and 2 + ⌊ln M⌋ trials (A3.4).
    """
    return imax_of_groups([cells], bins, affine=affine, seed=seed)[0]


def imax_of_groups(groups: Sequence[FineCells], bins: int, *, affine: bool = True, seed: int = 0) -> list[IMax]:
    """Return `imax` of each group of cells; threads share the groups."""
    starts = np.cumsum([0, *(cells.count for cells in groups)])
    scores, weights, outcomes = (
        np.concatenate([getattr(cells, name) for cells in groups]) for name in ("scores", "weights", "outcomes")
    )
    found = _core.imax(scores, weights, outcomes, starts, bins, affine, _uniforms(bins, seed), get_threads())
    return [
        IMax(bounds, tuple(losses.tolist()), converged, slope, offset)
        for bounds, losses, converged, slope, offset in found
    ]


def _uniforms(bins: int, seed: int) -> Array:
    """Numbers for the start: a row for each centre, of which the first needs but one."""
    trials = 2 + int(np.log(bins))
    out = np.zeros((bins, trials))
    drawn = np.random.default_rng(seed).random(1 + (bins - 1) * trials)
    out[0, 0], out[1:] = drawn[0], drawn[1:].reshape(-1, trials)
    return out
