"""How logits become the features of the linear maps, and how a linear map answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import _core
from ...passes import Block
from ...threads import get_threads

__all__ = ["Frame", "centres_of", "feature_sums"]

Array = NDArray[np.float64]
Scores = NDArray[np.floating]


@dataclass(frozen=True)
class Frame:
    """How logits become features.

    With u = log softmax(β z), the features are x = max(u, floor), less their mean over the classes where ``centred``.
    Both are free of the logits' scale and shift. Below the floor a class is as good as impossible: u itself goes on
    (a probability of zero stays zero) but moves nothing else. ``confidence`` adds one more feature: that mean,
    standardised by the (mean, deviation) given, which tells sure rows from unsure ones.
    """

    beta: float
    floor: float
    centred: bool = False
    confidence: tuple[float, float] | None = None

    def columns(self, k: int) -> int:
        """Return how many features a row of K classes has."""
        return k if self.confidence is None else k + 1

    def centres(self, block: Block) -> Array:
        """Return what each row is centred by: log Σ exp(β z), and the mean of max(u, floor)."""
        return block.kept(centres_of, self.beta, self.floor)

    def features(self, logits: Scores, centres: Array) -> Scores:
        """Return x."""
        out = np.empty_like(logits)
        _core.linear_features(logits, centres, self.beta, self.floor, self.centred, get_threads(), out)
        if self.confidence is None:
            return out
        mean, deviation = self.confidence
        return np.column_stack([out, ((centres[:, 1] - mean) / deviation).astype(out.dtype)])

    def arguments(self) -> tuple[float, float, bool, float, float]:
        """Return what the passes of a full D want to know of the frame; a scale of 0 is no confidence."""
        mean, deviation = self.confidence or (0.0, np.inf)
        return self.beta, self.floor, self.centred, mean, 1.0 / deviation

    def apply(self, logits: Scores, weights: Array, intercept: Array) -> Scores:
        """Return softmax(u + D x + b); one-dimensional ``weights`` are the diagonal of D."""
        logits = np.ascontiguousarray(logits)
        centres = _core.linear_centres(logits, self.beta, self.floor, get_threads())
        if weights.ndim == 1:
            out = np.empty_like(logits)
            args = (self.beta, self.floor, self.centred, weights, intercept, get_threads(), out)
            _core.vector_apply(logits, centres, *args)
            return out
        scores = _product(self.features(logits, centres), weights)
        _core.softmax_residual(scores, logits, centres, None, None, self.beta, intercept, get_threads())
        return scores

    def losses(self, rows: Block, weights: Array, intercept: Array) -> Array:
        """Return the log-losses of what `apply` answers, exact also where that is zero to rounding."""
        z, centres = rows.logits, self.centres(rows)
        x = self.features(z, centres)
        scores = x * weights.astype(x.dtype) if weights.ndim == 1 else _product(x, weights)
        return _core.softmax_residual(scores, z, centres, rows.labels, None, self.beta, intercept, get_threads())


def _product(x: Scores, weights: Array) -> Scores:
    """Return x Dᵀ in the precision of x; for few rows it is x that is cast, as D is larger."""
    if len(x) < len(weights):
        return (x.astype(np.float64, copy=False) @ weights.T).astype(x.dtype, copy=False)
    return x @ weights.T.astype(x.dtype, copy=False)


def centres_of(block: Block, beta: float, floor: float) -> Array:
    """Return log Σ exp(β z) and the mean of max(u, floor) of each row, (n, 2)."""
    return _core.linear_centres(block.logits, beta, floor, get_threads())


def feature_sums(block: Block, frame: Frame) -> Array:
    """One pass: the weighted sum of each feature but the confidence."""
    args = (frame.beta, frame.floor, frame.centred, get_threads())
    return _core.linear_sums(block.logits, frame.centres(block), block.weights, *args)
