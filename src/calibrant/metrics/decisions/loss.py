"""What miscalibration costs someone who acts on a probability: at one threshold, and over all decisions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...cells.edges import make_edges
from ...cells.pairs import Pairs
from ...types import Array
from ..estimators.binned import bin_sums
from .net_benefit import acted, check_threshold


def _bins(pairs: Pairs, bins: Any, edges: Any) -> tuple[Array, Array, Array]:
    """Share, mean score and frequency of each bin that has rows."""
    weight, score, outcome = bin_sums(pairs, make_edges(edges, bins, pairs))
    seen = weight > 0
    return weight[seen] / weight.sum(), score[seen] / weight[seen], outcome[seen] / weight[seen]


def _regret(at: Array, share: Array, said: Array, came: Array) -> Array:
    """h(v) = Σ share·|came - v| over the bins in which v lies between what was said and what came true."""
    low, high = np.minimum(said, came), np.maximum(said, came)
    between = (at[:, None] >= low) & (at[:, None] <= high)
    return (np.abs(came - at[:, None]) * between) @ share


def recalibration_benefit(pairs: Pairs, *, threshold: Any, bins: Any = 15, edges: Any = "equal_mass") -> float:
    """Net benefit that recalibration would gain at a threshold: h(t)/(1 - t), over bins of equal mass.

    Rows whose bin says one side of the threshold and comes true on the other are decided wrongly, at the price of their
    distance from it.
    """
    at = check_threshold(threshold)
    share, said, came = _bins(pairs, bins, edges)
    wrong = acted(said, at) != (came > at)
    return float(np.abs(came - at)[wrong] @ share[wrong] / (1 - at))


def decision_loss(pairs: Pairs, *, bins: Any = 15, edges: Any = "equal_mass") -> float:
    """Calibration decision loss: the largest gain by recalibration over all decisions with payoffs in [0, 1].

    Hu and Wu 2024. Twice the concave envelope at ½ of h(v) = Σ share·|came true - v| over the bins in which v lies
    between what was said and what came true. On distinct scores it would only measure noise, so scores are binned.
    """
    share, said, came = _bins(pairs, bins, edges)
    places = np.unique(np.r_[0.0, said, came, 1.0])
    values = _regret(places, share, said, came)  # closed at both ends: the larger limit at its jumps
    left, right = places <= 0.5, places >= 0.5
    best = 0.0
    for x, y in zip(places[left], values[left], strict=True):
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(places[right] > x, (0.5 - x) / (places[right] - x), 0.0)
        best = max(best, float((y + t * (values[right] - y)).max()))
    return 2 * best
