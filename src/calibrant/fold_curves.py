"""Rising curves of single folds, whose mean stands beside the map of all of them where rows are few."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .cells.isotonic import isotonic_levels
from .fitted_pair import Held
from .types import Array, Floats

_FURTHEST = 1e30  # scores beyond it, an infinity above all, count as this: differences of the ends must be numbers


@dataclass(frozen=True, eq=False)
class FoldCurves:
    """p ∝ (f₁(x₁), …, f_K(x_K)), each fₖ isotonic on the rows of one fold and linear between them.

    What `CalibratedClassifierCV` fits with "isotonic". Of two classes only the second has a curve. x are decision
    values or probabilities.
    """

    knots: list[tuple[Array, Array]]
    logarithmic: bool

    @classmethod
    def of(cls, held: Held, method: str) -> FoldCurves:
        """Fit the curves to what one estimator says of the rows that it was not trained on."""
        logarithmic = method == "predict_log_proba"
        x = _columns(held.scores, logarithmic)
        total = np.ones(len(x)) if held.weights is None or not held.weights.any() else held.weights
        classes = range(x.shape[1]) if x.shape[1] > 1 else (1,)
        return cls([_knots(c, held.labels == k, total) for c, k in zip(x.T, classes, strict=True)], logarithmic)

    def predict_proba(self, scores: Floats) -> Floats:
        """Return the probabilities; where no class has any, all are alike."""
        x = _columns(scores, self.logarithmic)
        found = np.stack([np.interp(c, *knots) for c, knots in zip(x.T, self.knots, strict=True)], axis=1)
        if len(self.knots) == 1:
            return np.hstack([1.0 - found, found])
        total = found.sum(axis=1, keepdims=True)
        return np.divide(found, total, out=np.full_like(found, 1.0 / found.shape[1]), where=total > 0)


def _columns(scores: Floats, logarithmic: bool) -> Array:
    """Return what the curves see of scores: one column of two classes, probabilities for their logarithms."""
    x = np.clip(scores.astype(np.float64), -_FURTHEST, _FURTHEST)
    return (np.exp(x) if logarithmic else x)[:, 1 if x.shape[1] == 2 else 0 :]


def _knots(x: Array, hits: Array, weights: Array) -> tuple[Array, Array]:
    """Return the distinct scores of rows that weigh anything, and the isotonic level of each."""
    counts = weights > 0
    at, where = np.unique(x[counts], return_inverse=True)
    total, positive = (np.zeros(len(at)) for _ in range(2))
    np.add.at(total, where, weights[counts])
    np.add.at(positive, where, (weights * hits)[counts])
    return at, isotonic_levels(total, positive)
