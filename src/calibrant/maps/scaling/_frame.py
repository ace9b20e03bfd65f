"""How logits become the features of the linear maps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ... import _core
from ...formulas import Term, log_softmax
from ...passes import Block
from ...threads import get_threads
from ...types import Array, Floats


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

    def features(self, logits: Floats, centres: Array) -> Floats:
        """Return x."""
        out = np.empty_like(logits)
        _core.linear_features(logits, centres, self.beta, self.floor, self.centred, get_threads(), out)
        if self.confidence is None:
            return out
        mean, deviation = self.confidence
        return np.column_stack([out, ((centres[:, 1] - mean) / deviation).astype(out.dtype)])

    def arguments(self) -> tuple[float, float, bool, float, float]:
        """Return what the kernels want to know of the frame; a scale of 0 is no confidence."""
        mean, deviation = self.confidence or (0.0, np.inf)
        return self.beta, self.floor, self.centred, mean, 1.0 / deviation

    def formula(self, z: Term, weights: Array, intercept: Array) -> Term:
        """Return softmax(u + D x + b) as a formula; one-dimensional ``weights`` are the diagonal of D."""
        u = log_softmax(z, self.beta)
        features = u.at_least(self.floor)
        mean = features.row_mean()
        x = features - mean if self.centred else features
        if weights.ndim == 1:
            return (u + x * weights + intercept).softmax()
        scores = u + x.matmul(weights[:, : z.width].T) + intercept
        if self.confidence is not None:
            scores = scores + (mean - self.confidence[0]) / self.confidence[1] * weights[:, z.width]
        return scores.softmax()


def centres_of(block: Block, beta: float, floor: float) -> Array:
    """Return log Σ exp(β z) and the mean of max(u, floor) of each row, (n, 2)."""
    return _core.linear_centres(block.logits, beta, floor, get_threads())


def feature_sums(block: Block, frame: Frame) -> Array:
    """One pass: the weighted sum of each feature but the confidence."""
    args = (frame.beta, frame.floor, frame.centred, get_threads())
    return _core.linear_sums(block.logits, frame.centres(block), block.weights, *args)
