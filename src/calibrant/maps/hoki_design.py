"""Hoki's two algorithms and its choice of noise, on the shares γ alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..passes import Block
from ..passes.folds import row_keys
from ..types import Array, Integers, Mask

Share = Callable[[Block, str, float, "int | None"], Array]
SEARCH_ROWS = 2500  # they tell the spread of confidences to about two per cent
_SAME_SPREAD = 9  # digits: spreads that agree in them are equal, so that rounding never chooses the noise
_STILL = 0.01  # share of the rows that may swap bins at a border when a search counts as converged


@dataclass(frozen=True)
class Design:
    """What Algorithm 1 learnt: α and β by iteration and bin, which bins held rows, whether bins stopped changing."""

    alphas: Array
    betas: Array
    filled: Mask
    converged: bool


def bin_of(p: Array, bins: int) -> Integers:
    """Bins (j/J, (j+1)/J], with 0 in the first."""
    return np.clip(np.ceil(p * bins).astype(np.int64) - 1, 0, bins - 1)


def binned_error(p: Array, right: Array, bins: int) -> float:
    """The calibration error of confidences on these bins (paper 004, Definition 2)."""
    return float(np.abs(np.bincount(bin_of(p, bins), right - p, bins)).sum() / len(p))


def design(kept: Array, right: Array, weights: Array, start: Array, bins: int, most: int) -> Design:
    """Algorithm 1: estimate α and β in each bin, move every p, until no row changes its bin.

    A few rows at a border may swap bins for ever. A partition that comes back therefore ends the search; of the steps
    in between the one with the least calibration error is the last one kept, and the search counts as converged where
    at most one row in a hundred, by weight, was still moving.
    """
    p, place = start, bin_of(start, bins)
    steps, errors, seen, still, since = [], [], {}, 1.0, 0
    for step in range(most):
        seen[place.tobytes()] = step
        alpha, beta, filled = _accuracies(kept, right, weights, place, bins)
        p = _move(p, kept, place, alpha, beta, filled)
        before, place = place, bin_of(p, bins)
        steps.append((alpha, beta, filled))
        errors.append(np.abs(np.bincount(place, weights * (right - p), bins)).sum())
        still = float(weights @ (place != before) / weights.sum())
        since = seen.get(place.tobytes(), step)
        if place.tobytes() in seen:
            break
    last = since + int(np.argmin(errors[since:])) + 1
    alphas, betas, fill = (np.array(part) for part in zip(*steps[:last], strict=True))
    return Design(alphas, betas, fill, still <= _STILL)


def _accuracies(kept: Array, right: Array, weights: Array, place: Integers, bins: int) -> tuple[Array, Array, Mask]:
    """Equations 1 and 2 by bin; a bin with only unchanged or only changed perturbations takes its accuracy for both."""

    def total(values: Array) -> Array:
        return np.bincount(place, weights * values, bins).astype(np.float64)

    same, other, rows = total(kept), total(1.0 - kept), np.bincount(place, weights, bins)
    accuracy = total(right) / np.where(rows > 0, rows, 1.0)
    one_sided = (same <= 0) | (other <= 0)
    alpha = np.where(one_sided, accuracy, total(right * kept) / np.where(same > 0, same, 1.0))
    beta = np.where(one_sided, accuracy, total(right * (1.0 - kept)) / np.where(other > 0, other, 1.0))
    return alpha, beta, rows > 0


def _move(p: Array, kept: Array, place: Integers, alpha: Array, beta: Array, filled: Mask) -> Array:
    """Equation 4; a bin that was empty when it was learnt leaves p alone."""
    moved = (alpha[place] - beta[place]) * kept + beta[place]
    return np.where(filled[place], np.clip(moved, 0.0, 1.0), p)


def replay(found: Design, kept: Array, start: Array) -> Array:
    """Algorithm 2: the learnt steps, one after the other, on new rows."""
    p = start
    for alpha, beta, filled in zip(found.alphas, found.betas, found.filled, strict=True):
        p = _move(p, kept, bin_of(p, len(alpha)), alpha, beta, filled)
    return p


def search_noise(part: Block, share: Share, draws: int | None) -> tuple[str, float]:
    """Law and scale with the largest spread of the one-bin confidences (paper 004, §5), coarse to fine.

    The grid is relative to the mean gap between the two best scores, so it does not depend on the logits' scale.
    First few noise vectors on a wide grid, then all of them around the best.

    Parameters
    ----------
    part : Block
        Some rows; their order must not change the answer, so they are sorted by gap.
    share : callable
        From rows, a law, a scale and a number of noise vectors to the rows' γ.
    draws : int or None
        Noise vectors; None where γ is integrated.
    """
    two = np.partition(part.logits.astype(np.float64), -2, axis=1)[:, -2:]
    gaps, weights = two[:, 1] - two[:, 0], part.weight_array
    order = np.lexsort((row_keys(part), weights, gaps))
    gaps, weights, part = gaps[order], weights[order], part.take(order)
    right = (part.logits.argmax(axis=1) == part.labels).astype(np.float64)
    gap = float(np.average(gaps, weights=weights)) or 1.0

    def spread(law: str, scale: float, number: int | None) -> float:
        kept = share(part, law, scale, number)
        step = design(kept, right, weights, np.full(part.n, 0.5), 1, 1)
        found = abs(float(step.alphas[0, 0] - step.betas[0, 0])) * weighted_std(kept, weights)
        return round(found, _SAME_SPREAD)

    few = None if draws is None else min(draws, 100)
    coarse = [(law, float(gap * s)) for law in ("gaussian", "uniform") for s in np.geomspace(0.05, 20, 14)]
    law, scale = max(coarse, key=lambda choice: spread(*choice, few))
    fine = [(law, float(scale * s)) for s in np.geomspace(0.65, 1.55, 7)]
    return max(fine, key=lambda choice: spread(*choice, draws))


def weighted_std(values: Array, weights: Array) -> float:
    """The standard deviation of weighted values."""
    mean = np.average(values, weights=weights)
    return float(np.sqrt(np.average((values - mean) ** 2, weights=weights)))
