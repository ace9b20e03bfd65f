"""How logits become the features of the linear maps, and how a linear map answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import _core
from ...passes import Block, reduce
from ...threads import get_threads

__all__ = ["Frame"]


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

    def centres(self, logits: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return what each row is centred by: log Σ exp(β z), and the mean of max(u, floor)."""
        return _core.linear_centres(logits, self.beta, self.floor, get_threads())

    def features(self, logits: NDArray[np.floating], centres: NDArray[np.float64]) -> NDArray[np.floating]:
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

    def means(self, rows: Block, centres: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean of each feature over the rows; that of the confidence is zero."""

        def one_pass(part: Block) -> NDArray[np.float64]:
            given = centres if part is rows else self.centres(part.logits)
            args = (self.beta, self.floor, self.centred, get_threads())
            return _core.linear_sums(part.logits, given, part.weights, *args)

        sums = reduce(one_pass, rows)
        return np.append(sums / rows.total_weight, np.zeros(self.columns(len(sums)) - len(sums)))

    def apply(
        self, logits: NDArray[np.floating], weights: NDArray[np.float64], intercept: NDArray[np.float64]
    ) -> NDArray[np.floating]:
        """Return softmax(u + D x + b); one-dimensional ``weights`` are the diagonal of D."""
        logits = np.ascontiguousarray(logits)
        centres = self.centres(logits)
        if weights.ndim == 1:
            out = np.empty_like(logits)
            args = (self.beta, self.floor, self.centred, weights, intercept, get_threads(), out)
            _core.vector_apply(logits, centres, *args)
            return out
        scores = self.features(logits, centres) @ weights.T.astype(logits.dtype)
        _core.softmax_residual(scores, logits, centres, None, None, self.beta, intercept, get_threads())
        return scores

    def losses(
        self,
        logits: NDArray[np.floating],
        labels: NDArray[np.int64],
        weights: NDArray[np.float64],
        intercept: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return the log-losses of what `apply` answers, exact also where that is zero to rounding."""
        centres = self.centres(logits)
        x = self.features(logits, centres)
        scores = x * weights.astype(x.dtype) if weights.ndim == 1 else x @ weights.T.astype(x.dtype)
        return _core.softmax_residual(scores, logits, centres, labels, None, self.beta, intercept, get_threads())
