"""The e-process: a bet on every alternative, from every batch on, that starts with one unit of money.

With L_j(k) the likelihood ratio of alternative j in batch k, one component with decay r holds

    M_j ← (M_j + u·a)·L_j(k),    u ← u·r,

where u is the money not yet betted and a = 1 - r the part of it that is put on at each batch. So a share (1 - r)r^(k-1)
is betted from batch k on, and u + Σ_j w_j M_j is a martingale that starts at 1 if the probabilities are true. r = 0
bets everything on the first batch; a mixture over several r finds early and late changes. With r = a = 1 new money
comes at every batch: the Shiryaev-Roberts sum of an e-detector, whose promise is an average run length.

The state after watching A and then B is (M_A·L_B + u_A·M_B, u_A·u_B): it merges exactly, in order, at a fixed size. All
arrays may have leading axes, so that thousands of streams are watched at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..types import Array


@dataclass(frozen=True)
class Starts:
    """When bets begin: components with decays r, shares a put on at each batch, and weights."""

    decays: tuple[float, ...]
    shares: tuple[float, ...]
    weights: tuple[float, ...]
    keeps_the_rest: bool = True  # whether money not yet betted counts: not in an e-detector, which has no end of it


# Half on "wrong from the first batch", half on later starts: after about 10, 200, 4,000 and 80,000 batches.
_SCALES = (10.0, 200.0, 4_000.0, 80_000.0)
LIFETIME = Starts(
    (0.0, *(1 - 1 / s for s in _SCALES)), (1.0, *(1 / s for s in _SCALES)), (0.5, *[0.5 / len(_SCALES)] * len(_SCALES))
)
FROM_THE_START = Starts((0.0,), (1.0,), (1.0,))
RUN_LENGTH = Starts((1.0,), (1.0,), (1.0,), keeps_the_rest=False)


def empty(starts: Starts, alternatives: int, leading: tuple[int, ...] = ()) -> tuple[Array, Array]:
    """Return (log M, log u) before the first batch: shapes (…, components, J) and (…, components)."""
    parts = len(starts.decays)
    return np.full((*leading, parts, alternatives), -np.inf), np.zeros((*leading, parts))


def advance(log_m: Array, log_u: Array, starts: Starts, log_ratio: Array) -> tuple[Array, Array]:
    """Return (log M, log u) after one more batch with these sums of log L_j, (…, J)."""
    put = log_u + np.log(starts.shares)
    return np.logaddexp(log_m, put[..., None]) + log_ratio[..., None, :], log_u + _log(starts.decays)


def join(first: tuple[Array, Array], second: tuple[Array, Array], log_ratio: Array) -> tuple[Array, Array]:
    """Return the state after ``first`` and then ``second``, whose batches together had these sums of log L_j."""
    (m_a, u_a), (m_b, u_b) = first, second
    return np.logaddexp(m_a + log_ratio[..., None, :], u_a[..., None] + m_b), u_a + u_b


def log_evidence(log_m: Array, log_u: Array, starts: Starts) -> Array:
    """Return log E: what one unit of money has become; the alternatives have equal shares."""
    parts = log_sum(log_m) - np.log(log_m.shape[-1])
    if starts.keeps_the_rest:
        parts = np.logaddexp(parts, log_u)
    return log_sum(parts + np.log(starts.weights))


def log_sum(logs: Array) -> Array:
    """Return log Σ exp over the last axis."""
    return np.logaddexp.reduce(logs, axis=-1)


def _log(values: tuple[float, ...]) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(values))
