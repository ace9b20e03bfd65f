"""The one reading of saturated scores: probabilities of exactly zero (and so of one), logits of -inf.

A forest of 200 trees answers 0 where none of them voted for a class, five neighbours where none of them has it. Such a
zero is no impossibility but something small, and n rows of K classes (n is the sum of their weights, if that is more)
cannot tell it from about 1/(nK). How small, the rows say: with N₀ zeros among their scores, M₀ of which were the label
after all, a zero is read as

    ε = (M₀ + N₀ / (2nK)) / (N₀ + 1),   at most 1/K;   1/(2nK) where no zero was seen,

as a share of its row's probability, and never as more than the smallest probability of its row that is not zero, so
that the order of a row is kept. With two classes, where one score ranks the rows, and for maps that rise with a score,
it is no more than the smallest probability of any row, so that a 1 is never answered less than a 0.95. The same ε
serves a fit and every answer of the fitted map. With ``saturated="exact"`` a zero stays a zero in the answers, for
classes that are masked out; a fit then counts it as next to nothing.
"""

from __future__ import annotations

import numpy as np

from .. import _core
from ..errors import InvalidInput
from ..threads import get_threads
from ..types import Array, Floats, Integers, Mask

# log of the smallest positive float32: what an exact zero among probabilities at most was before it was rounded away.
ZERO_LOG = -104.0

_ROWS = 4096  # looked at in one go
_BELOW = 1e-6  # part of a logarithm that even float32 can tell from it

ZeroCounts = Array
"""Weight of the rows, of their zeros, and of the labels among these; rows."""


def count_zeros(logits: Floats, labels: Integers, weights: Array | None) -> ZeroCounts:
    """Return the counts that `zero_level` needs, which add up over blocks of rows."""
    zero = np.isneginf(logits)
    w = np.ones(len(labels)) if weights is None else weights
    hit = zero[np.arange(len(labels)), labels]
    return np.array([w.sum(), w @ zero.sum(axis=1), w @ hit, np.count_nonzero(w)])


def rows_without_zeros(weights: Array | None, n: int) -> ZeroCounts:
    """Return the counts of rows that hold no zero."""
    if weights is None:
        return np.array([n, 0.0, 0.0, n])
    return np.array([weights.sum(), 0.0, 0.0, np.count_nonzero(weights)])


def zero_level(counts: ZeroCounts, k: int) -> float:
    """Return log ε."""
    total, zeros, hits, rows = counts.tolist()
    if not total > 0:
        raise InvalidInput("sample_weight is zero everywhere", allowed="at least one positive weight")
    n = max(total, rows)  # a weight of two is the row twice, and weights that sum to one are no less than the rows
    least = 0.5 / (n * k)
    if zeros <= 0:
        return float(np.log(least))
    zeros, hits = zeros * n / total, hits * n / total
    return float(np.log(min((hits + zeros * least) / (zeros + 1.0), 1.0 / k)))


def smallest_log(logits: Floats) -> float:
    """Return a little less than the logarithm of the smallest probability that is not zero.

    Maps whose answer rises with the score read a zero as no more than that, so that a zero is never above what is not.
    """
    least = np.inf
    if logits.shape[1] == 2:  # -log(1 + exp(g)), g the widest gap that is finite
        with np.errstate(invalid="ignore"):
            gaps = np.abs(logits[:, 1].astype(np.float64) - logits[:, 0])
        return smallest_log_of(float(np.max(gaps, initial=-np.inf, where=np.isfinite(gaps))))
    for start in range(0, len(logits), _ROWS):
        z = logits[start : start + _ROWS].astype(np.float64)
        top = z.max(axis=1, keepdims=True)
        with np.errstate(under="ignore"):
            total = top + np.log(np.exp(z - top).sum(axis=1, keepdims=True))
        least = min(least, float(np.where(np.isneginf(z), np.inf, z - total).min(initial=np.inf)))
    return _just_below(least)


def smallest_log_of(widest: float) -> float:
    """Return `smallest_log` of two classes whose finite log-odds are this far from zero at most; -inf is for none."""
    return _just_below(-float(np.logaddexp(0.0, widest)) if widest >= 0 else np.inf)


def _just_below(log: float) -> float:
    return log - _BELOW * max(1.0, abs(log)) if np.isfinite(log) else log


def read_zeros(logits: Floats, level: float) -> Floats:
    """Return logits in which -inf is read as a probability of exp(``level``)."""
    zero = np.isneginf(logits)
    if not zero.any():
        return logits
    top = logits.max(axis=1, keepdims=True).astype(np.float64)
    with np.errstate(under="ignore"):
        total = top + np.log(np.exp(logits - top).sum(axis=1, keepdims=True))
    smallest = np.where(zero, np.inf, logits).min(axis=1, keepdims=True)
    return np.where(zero, np.minimum(total + level, smallest).astype(logits.dtype), logits)


def floored(logits: Floats, where: Mask | None = None) -> Floats:
    """Return logits in which -inf has become next to nothing: the row's largest less 104, or its smallest if lower.

    ``where`` says which of them; the others stay.
    """
    if where is None and _core.lowest(np.ascontiguousarray(logits), get_threads()) > -np.inf:
        return logits
    zero = np.isneginf(logits) if where is None else where
    if not zero.any():
        return logits
    smallest = np.where(np.isneginf(logits), np.inf, logits).min(axis=1, keepdims=True)
    floor = np.minimum(logits.max(axis=1, keepdims=True) + logits.dtype.type(ZERO_LOG), smallest)
    return np.where(zero, floor, logits)


def finite_logs(
    probabilities: Floats,
    logits: Floats,
    share: float = 1.0,
    level: float = 0.0,
    *,
    keeps_top: bool = False,
) -> Floats:
    """Return log(share · p + level), `floored` where that is the logarithm of zero, but -inf where the logit was too.

    ``keeps_top``: of what is between, see `calibrant.arrays.keep_top`. Logits of another shape than p are embeddings.
    """
    p = np.ascontiguousarray(probabilities)
    out = np.empty_like(p)
    given = np.ascontiguousarray(logits, dtype=p.dtype) if logits.shape == p.shape else None
    _core.finite_logs(p, given, share, level, keeps_top, -ZERO_LOG, get_threads(), out)
    return out


def masked_out(probabilities: Floats, logits: Floats) -> Floats:
    """Return the probabilities with exact zeros where the logits are -inf, the rest scaled up to sum to one."""
    kept = ~np.isneginf(logits)
    left = np.where(kept, probabilities, 0)
    total = left.sum(axis=1, keepdims=True)
    even = kept / kept.sum(axis=1, keepdims=True)
    return np.where(total > 0, left / np.where(total > 0, total, 1), even).astype(probabilities.dtype)
