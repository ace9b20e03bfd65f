"""Isotonic regression: the best non-decreasing map, without a form of its own."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ... import _core
from ...fits.report import FitReport
from ...parameters import Number, OneOf
from ...passes import Block
from ...threads import get_threads
from ...traits import Traits
from .base import BinaryMap, Pairs
from .gaps import Gaps, gaps_of_groups, gaps_of_pairs

__all__ = ["Isotonic"]

_CLOSEST = 1e-15  # scikit-learn takes probabilities within this of one another for one


class Isotonic(BinaryMap):
    """The non-decreasing step function nearest to the outcomes in squared loss (Zadrozny & Elkan 2002).

    Between steps the answer is interpolated linearly in the raw probability, and constant beyond the first and the last
    score, as scikit-learn does. The fit never sorts all scores: a rise can only lie right before a positive, so the
    sorted positives and the weight and largest of the negatives between neighbours determine it.

    Parameters
    ----------
    strict : bool
        Add a trace of the raw probability, (1 - ε) f(p) + ε p, so that the map is strictly increasing: Mix-n-Match's
        IRM (§3.2) is ``OneVsRest(Isotonic(strict=True), share="all")``.
    epsilon : float
        The ε of ``strict``.
    interpolate : bool
        False for plain steps: each holds until the next begins.
    smoothing : float
        Pseudo-count. A step of weight w and frequency f answers (w f + s/2) / (w + s), pooled again where that breaks
        the order, so that no answer is exactly 0 or 1. 0 is the papers' form, which is scikit-learn's: it also takes
        probabilities within 1e-15 of one another for one, where otherwise log-odds tell 1 - 1e-16 from 1 - 1e-30.
    inputs, classes, saturated
        See `Calibrator`.

    Attributes
    ----------
    knots_ : array
        Log-odds at which steps begin and end.
    values_ : float64 array
        The answer at each knot.
    """

    _identifier = "isotonic"
    _traits = Traits("binary", "nothing", "each class", "n")
    _constraints: ClassVar[Mapping[str, Any]] = {
        "strict": OneOf(True, False),
        "epsilon": Number(0, 0.5, open_low=True),
        "interpolate": OneOf(True, False),
        "smoothing": Number(0),
    }
    knots_: NDArray[np.floating]
    values_: NDArray[np.float64]

    def __init__(
        self,
        strict: bool = False,
        epsilon: float = 1e-9,
        interpolate: bool = True,
        smoothing: float = 1.0,
        *,
        inputs: str = "logits",
        classes: Any = None,
        saturated: str = "small",
    ) -> None:
        self.strict = strict
        self.epsilon = epsilon
        self.interpolate = interpolate
        self.smoothing = smoothing
        self.inputs = inputs
        self.classes = classes
        self.saturated = saturated

    @property
    def is_strict(self) -> bool:
        """Whether a larger score always gets a larger probability."""
        return self.strict

    def _fit_pairs(self, pairs: Pairs) -> FitReport:
        knots, values, _ = knots_of(gaps_of_pairs(pairs, self._resolution), self.smoothing)
        self.knots_, self.values_ = knots, values
        return FitReport(0, True, "nll", pairs.raw_nll(), pairs.mean_nll(self._map_scores(pairs.log_odds)))

    def _map_scores(self, log_odds: NDArray[np.floating]) -> NDArray[np.floating]:
        flat = np.ascontiguousarray(log_odds).reshape(1, -1)
        groups = np.zeros(flat.shape[1], dtype=np.int64)
        return self._map_groups([self], flat, groups).reshape(log_odds.shape)

    def _fit_groups(self, sample: Block, groups: NDArray[np.int64]) -> list[BinaryMap]:
        return self._maps(gaps_of_groups(sample, groups, self._resolution)[0])

    def _fit_groups_apart(
        self, sample: Block, groups: NDArray[np.int64], fold: NDArray[np.int64]
    ) -> tuple[list[BinaryMap], list[BinaryMap]]:
        whole, without = gaps_of_groups(sample, groups, self._resolution, fold)
        assert without is not None
        return self._maps(whole), self._maps(without)

    def _maps(self, gaps: Gaps) -> list[BinaryMap]:
        knots, values, starts = knots_of(gaps, self.smoothing)
        maps: list[BinaryMap] = []
        blank = self.unfitted()
        for begin, end in pairwise(starts):
            fitted = copy(blank)
            fitted.classes_ = np.arange(2)
            fitted.knots_, fitted.values_ = knots[begin:end].copy(), values[begin:end].copy()
            fitted.fit_report_ = FitReport(0, True, "nll", np.nan, np.nan)
            maps.append(fitted)
        return maps

    def _map_groups(
        self, maps: list[BinaryMap], log_odds: NDArray[np.floating], groups: NDArray[np.int64]
    ) -> NDArray[np.floating]:
        fitted = [m for m in maps if isinstance(m, Isotonic)]
        starts = np.cumsum([0, *(len(m.knots_) for m in fitted)])
        knots = np.concatenate([m.knots_ for m in fitted]).astype(log_odds.dtype)
        values = np.concatenate([m.values_ for m in fitted])
        out = np.empty_like(log_odds)
        epsilon = self.epsilon if self.strict else 0.0
        _core.isotonic_apply(log_odds, groups, starts, knots, values, not self.interpolate, epsilon, get_threads(), out)
        return out

    @property
    def _resolution(self) -> float:
        return _CLOSEST if self.smoothing == 0 else 0.0


def knots_of(gaps: Gaps, smoothing: float) -> tuple[NDArray[np.floating], NDArray[np.float64], NDArray[np.int64]]:
    """Pool the gaps of each group into steps: first and last score of each, their answers, where groups begin."""
    sums, weights, first, last, starts = _cells(gaps)
    levels = _core.pool_adjacent(sums, weights, starts)
    groups = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    fresh = np.ones(len(levels), dtype=bool)
    fresh[1:] = (levels[1:] != levels[:-1]) | (groups[1:] != groups[:-1])
    begin = np.flatnonzero(fresh)
    end = np.append(begin[1:], len(levels)) - 1
    groups, levels = groups[begin], levels[begin]
    if smoothing > 0:
        sums, weights = np.add.reduceat(sums, begin), np.add.reduceat(weights, begin)
        starts = np.searchsorted(groups, np.arange(len(starts)))
        levels = _core.pool_adjacent(sums + smoothing / 2, weights + smoothing, starts)
    two = last[end] > first[begin]
    ends = np.stack([first[begin], last[end]], axis=1).ravel()
    kept = np.stack([np.ones_like(two), two], axis=1).ravel()
    owners = np.repeat(groups, 2)[kept]
    return ends[kept], np.repeat(levels, 2)[kept], np.searchsorted(owners, np.arange(len(starts)))


def _cells(gaps: Gaps) -> tuple[Any, ...]:
    """Outcomes, weight, first and last score of every gap that holds anything, and where groups begin."""
    count = len(gaps.starts) - 1
    inner = np.ones(len(gaps.counts), dtype=bool)
    inner[gaps.starts[:-1] + np.arange(count)] = False
    sums, first = np.zeros(len(gaps.counts)), gaps.largest.copy()
    last = gaps.largest.copy()
    there = gaps.weights > 0  # a positive of other rows only marks a place
    sums[inner] = gaps.weights
    first[inner] = np.where(there, gaps.firsts, gaps.largest[inner])
    last[inner] = np.where(there, np.maximum(gaps.tops, gaps.largest[inner]), gaps.largest[inner])
    weights = sums + gaps.counts
    kept = weights > 0
    groups = np.repeat(np.arange(count), np.diff(gaps.starts) + 1)[kept]
    return sums[kept], weights[kept], first[kept], last[kept], np.searchsorted(groups, np.arange(count + 1))
