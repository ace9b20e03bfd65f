"""Hoki as a formula: the share of noise that leaves a row's label alone, and the confidence that follows from it."""

from __future__ import annotations

import math

import numpy as np

from ..formulas import Term
from ..formulas.functions import absolute
from ..types import Array, Mask

_ONE = np.zeros(1, dtype=np.int64)
_EDGE = 7.0  # as in the core: the normal density beyond is below 1e-11
# erfc(x) = t exp(-x² + P(t)), t = 1/(1 + x/2), to 1.2e-7 of itself (Press et al., Numerical Recipes, §6.2)
_ERFC = (-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806)
_ERFC += (0.27886807, -1.13520398, 1.48851587, -0.82215223, 0.17087277)


def shares_formula(z: Term, law: str, scale: float, vectors: Array | None, nodes: int) -> Term:
    """Return γ, the share of noise vectors, or the probability, that leaves the top label alone."""
    first = z.first_top()
    gaps = (z - z.row_max()) / scale
    if vectors is None:
        return _integrated(gaps, first, law, nodes)
    own = first.where(1.0, 0.0).matmul(vectors)
    best = z.lift(-np.inf)
    for c in range(z.width):
        lifted = (gaps.column(c).rounded() + vectors[c]).rounded()
        best = best.at_least(first.where(1.0, 0.0).column(c).equals(1.0).where(-np.inf, lifted))
    return (own >= best).where(1.0, 0.0).row_mean()


def _integrated(gaps: Term, first: Term, law: str, nodes: int) -> Term:
    """Return the integral over the top class's own noise of the probability that no other class passes it."""
    gaussian = law == "gaussian"
    at = np.linspace(-_EDGE, _EDGE, nodes) if gaussian else (np.arange(nodes) + 0.5) / nodes
    mass = np.exp(-0.5 * at * at) if gaussian else np.ones(nodes)
    product = gaps.lift(mass / mass.sum())
    for c in range(gaps.width):
        ahead = at - gaps.column(c)
        below = _normal(ahead) if gaussian else ahead.clip(0.0, 1.0)
        product = product * first.where(1.0, 0.0).column(c).equals(1.0).where(1.0, below)
    return product.row_sum()


def _normal(x: Term) -> Term:
    """Return the probability that a standard normal number is below x."""
    size = absolute(x) / math.sqrt(2.0)
    t = 1.0 / (1.0 + 0.5 * size)
    series = x.lift(_ERFC[-1])
    for coefficient in reversed(_ERFC[:-1]):
        series = series * t + coefficient
    tail = 0.5 * t * (series - size * size).exp()
    return (x > 0.0).where(1.0 - tail, tail)


def confidence_formula(share: Term, start: Term, alphas: Array, betas: Array, filled: Mask) -> Term:
    """Return the learnt steps, one after the other: bins are (j/J, (j+1)/J]."""
    p, bins = start, alphas.shape[1]
    for alpha, beta, known in zip(alphas, betas, filled, strict=True):
        above = (p * -float(bins)).locate([-np.arange(bins - 1, 0, -1.0)], _ONE)  # how many bins end at p or above
        slope, base, use = (above.pick([table[::-1]], _ONE) for table in (alpha - beta, beta, known.astype(np.float64)))
        p = (use > 0.5).where((slope * share + base).clip(0.0, 1.0), p)
    return p


def spread_formula(z: Term, confidence: Term) -> Term:
    """Give the top class its confidence, and the others the rest in proportion to their probabilities."""
    first = z.first_top()
    others = first.where(-np.inf, z)
    e = (others - others.row_max().at_least(-1e300)).exp()
    rest, left = e.row_sum(), 1.0 - confidence
    some = rest > 0.0
    return first.where(confidence, some.where(e * (left / some.where(rest, 1.0)), left / (z.width - 1.0)))
