"""The variational error: what a cross-fitted curve can show, over- and under-confidence apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...cells.pairs import Cells, Pairs
from ...errors import InvalidInput
from ...parameters import is_one_of
from ...types import Array
from .crossfit import CrossFit, Curve, crossfit_of
from .smoothers import smoothed


def _curve(smoother: str, known: dict[Any, Array]) -> Curve:
    def fitted(rest: Cells, at: Array) -> Array:
        key = rest.weights.tobytes(), rest.outcomes.tobytes()
        if key not in known:
            known[key] = made(rest, at)
        return known[key]

    def made(rest: Cells, at: Array) -> Array:
        scores, ones = np.tile(rest.scores, 2), np.repeat([1.0, 0.0], len(rest.scores))
        pairs = Pairs(scores, ones, np.r_[rest.outcomes, np.maximum(rest.weights - rest.outcomes, 0.0)])
        return smoothed(pairs, smoother).at(at)

    return fitted


def variational_of(
    pairs: Pairs,
    *,
    smoother: str = "spline",
    folds: int = 5,
    random_state: int = 0,
    side: str | None = None,
    known: dict[Any, Array] | None = None,
) -> CrossFit:
    """Return the mean of sign(ĝ(s) - s)·(y - s) over rows, ĝ fitted on the other folds, with its standard error.

    The expectation is at most E|c(s) - s|, c the true frequency at s, and may be below 0 (arXiv 2602.24230).
    ``side="over"`` counts the rows where ĝ lies between s and ½ (or beyond it on that side): scores too extreme.
    ``side="under"`` counts the others. Both add up to the whole. ``known`` keeps the curves of these pairs, which all
    sides share.
    """
    if not is_one_of(side, (None, "over", "under")):
        raise InvalidInput("no such side", seen=repr(side), allowed="None, 'over' or 'under'")
    curve = None if smoother == "isotonic" else _curve(smoother, {} if known is None else known)
    return crossfit_of(pairs, norm=1, folds=folds, random_state=random_state, curve=curve, side=side)


def variational(side: str | None = None) -> Callable[..., float]:
    """Return the variational error, or one side of it, as an estimator of pairs."""

    def estimator(pairs: Pairs, *, smoother: str = "spline", folds: int = 5, random_state: int = 0) -> float:
        return variational_of(pairs, smoother=smoother, folds=folds, random_state=random_state, side=side).mean

    return estimator
