"""Rounds of boosted multicalibration: which cell of which group is furthest off, and moving its rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from ..arrays import below_ties, softmax, weighted_quantiles
from ..types import Array, Mask

_LEAST = 5.0  # Σ p(1 - p) of a cell: with less its deviation is not normal
_PRIOR = 1.0  # added to Σ p(1 - p): a step is shrunk as if a level were known to one nat


class Round(NamedTuple):
    """The log-odds of class k of a group's rows with probabilities from low to high move by a step."""

    k: int
    group: int
    low: float
    high: float
    step: float


def boost(z: Array, wanted: Array, weights: Array, members: Mask, cells: int, level: float, most: int) -> list[Round]:
    """Return the rounds until no group says otherwise; z is moved along."""
    start = np.asarray(softmax(z), dtype=np.float64)
    inner = np.linspace(0, 1, cells + 1)[1:-1]
    orders = start.argsort(axis=0).T
    parts = [weighted_quantiles(start[order, k], weights[order], inner) for k, order in enumerate(orders)]
    edges = np.array([[0.0, *below_ties(part), 1.1] for part in parts])
    rounds: list[Round] = []
    while len(rounds) < most:
        found = _largest(np.asarray(softmax(z), dtype=np.float64), wanted, weights, members, edges, level)
        if found is None:
            break
        rounds.append(found)
        move(z, found, members[:, found.group])
    return rounds


def move(z: Array, found: Round, member: Mask) -> None:
    """Move class k of the rows of a group whose probability lies in the range; in place."""
    p = np.asarray(softmax(z))[:, found.k]
    z[member & (found.low <= p) & (p < found.high), found.k] += found.step


def _largest(p: Array, wanted: Array, weights: Array, members: Mask, edges: Array, level: float) -> Round | None:
    """Return the correction of the cell with the most significant deviation, if one is."""
    cells = edges.shape[1] - 1
    best, most, tested = None, 0.0, 0
    own = members.astype(np.float64).T
    for k in range(1 if p.shape[1] == 2 else 0, p.shape[1]):
        inside = np.eye(cells)[np.clip(np.searchsorted(edges[k], p[:, k], side="right") - 1, 0, cells - 1)]
        off = own @ (inside * (weights * (wanted[:, k] - p[:, k]))[:, None])
        spread = own @ (inside * (weights * p[:, k] * (1 - p[:, k]))[:, None])
        usable = spread >= _LEAST
        tested += int(usable.sum())
        size = np.where(usable, np.abs(off) / np.sqrt(np.maximum(spread, _LEAST)), 0.0)
        g, c = np.unravel_index(int(size.argmax()), size.shape)
        if size[g, c] > most:
            most, step = float(size[g, c]), float(off[g, c] / (spread[g, c] + _PRIOR))
            best = Round(k, int(g), float(edges[k, c]), float(edges[k, c + 1]), step)
    return best if tested and most > norm.isf(level / (2 * tested)) else None
