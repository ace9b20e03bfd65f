"""What the maps on one score share: pairs of a score and an outcome, and how a lift uses them."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...arrays import log_odds, row_blocks
from ...calibrator import Calibrator
from ...errors import InvalidInput
from ...fits.report import FitReport
from ...passes import Block

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["BinaryMap", "Pairs", "class_pairs"]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Scores of one event and whether it happened.

    Attributes
    ----------
    log_odds : array of shape (m,)
        λ = log p - log(1 - p), finite, float32 or float64. Never computed through a rounded p.
    outcomes : bool array of shape (m,)
    weights : float64 array of shape (m,) or None
        None means one each; otherwise all are positive (rows of weight zero have been left out).
    """

    log_odds: NDArray[np.floating]
    outcomes: NDArray[np.bool_]
    weights: NDArray[np.float64] | None

    @property
    def weight_array(self) -> NDArray[np.float64]:
        """The weights, as ones where none were given."""
        return np.ones(len(self.outcomes)) if self.weights is None else self.weights

    def mean_nll(self, probabilities: NDArray[np.floating]) -> float:
        """Return the weighted mean log-loss of probabilities of the event."""
        p = np.asarray(probabilities, dtype=np.float64)
        with np.errstate(divide="ignore"):
            losses = np.where(self.outcomes, -np.log(p), -np.log1p(-p))
        return float(np.average(losses, weights=self.weights))

    def raw_nll(self) -> float:
        """Return the weighted mean log-loss of the scores as they came: log(1 + exp(∓λ))."""
        z = self.log_odds.astype(np.float64)
        return float(np.average(np.logaddexp(0.0, np.where(self.outcomes, -z, z)), weights=self.weights))


class BinaryMap(Calibrator):
    """Base of the maps from one score of one class to its probability.

    A binary map implements ``_fit_pairs(pairs)``, which returns a `FitReport`, and ``_map_scores(log_odds)``, which
    answers an array of any shape with probabilities of that shape and dtype, for ±inf too. Used by itself it
    calibrates the second of two classes. `OneVsRest` lifts it to K classes by the three hooks below, which a map
    overrides where it can do better than one fit and one column at a time.
    """

    @property
    def is_strict(self) -> bool:
        """Whether a larger score always gets a larger probability (up to rounding)."""
        return False

    # What a binary map implements -----------------------------------------------------------------------------

    def _fit_pairs(self, pairs: Pairs) -> FitReport:
        raise NotImplementedError

    def _map_scores(self, log_odds: NDArray[np.floating]) -> NDArray[np.floating]:
        raise NotImplementedError

    # Hooks of the lift ----------------------------------------------------------------------------------------

    def _fit_groups(self, sample: Block, groups: NDArray[np.int64]) -> list[BinaryMap]:
        """Fit one copy of this map a group of classes, on the pairs of all classes of the group.

        ``groups`` holds the group of each class: 0 … G-1.
        """
        maps: list[BinaryMap] = []
        blank = self.unfitted()
        for batch in _batches(sample, groups):
            columns = np.flatnonzero(np.isin(groups, batch))
            scores = _class_log_odds(sample, columns)
            for g in batch:
                own = groups[columns] == g
                maps.append(copy(blank)._fitted_on(_pairs(sample, columns[own], scores[own])))
        return maps

    def _fit_groups_apart(
        self, sample: Block, groups: NDArray[np.int64], fold: NDArray[np.int64]
    ) -> tuple[list[BinaryMap], list[BinaryMap]]:
        """Fit on all rows, and on all but those of a fold; overridden where both need no more passes than one."""
        rest = sample.weight_array.copy()
        rest[fold] = 0
        return self._fit_groups(sample, groups), self._fit_groups(replace(sample, weights=rest), groups)

    def _map_groups(
        self, maps: list[BinaryMap], log_odds: NDArray[np.floating], groups: NDArray[np.int64]
    ) -> NDArray[np.floating]:
        """Answer log-odds (n, K), column k by ``maps[groups[k]]``."""
        if len(maps) == 1:
            return maps[0]._map_scores(log_odds)
        out = np.empty_like(log_odds)
        for g, fitted in enumerate(maps):
            columns = np.flatnonzero(groups == g)
            out[:, columns] = fitted._map_scores(np.ascontiguousarray(log_odds[:, columns]))
        return out

    def _lift(
        self, maps: list[BinaryMap], logits: NDArray[np.floating], groups: NDArray[np.int64], normalize: bool
    ) -> NDArray[np.floating] | None:
        """Answer logits (n, K) in one sweep where a map can: marginals, or with ``normalize`` rows that sum to 1."""
        return None

    # Shared ---------------------------------------------------------------------------------------------------

    def _fitted_on(self, pairs: Pairs) -> Self:
        """Fit this map, a copy for one group of classes."""
        self.classes_ = np.arange(2)
        self.fit_report_ = self._fit_pairs(pairs)
        return self

    def _fit_rows(self, sample: Block) -> FitReport:
        if sample.n_classes != 2:
            name = type(self).__name__
            raise InvalidInput(
                f"{name} acts on one score of one class, so by itself it takes two classes",
                seen=f"scores of {sample.n_classes} classes",
                hint=f"OneVsRest({name}()) lifts it to any number of classes",
            )
        return self._fit_pairs(class_pairs(sample, np.array([1])))

    def _map(self, logits: NDArray[np.floating]) -> NDArray[np.floating]:
        second = self._map_scores(np.ascontiguousarray(log_odds(logits)[:, 1]))
        return np.stack([1 - second, second], axis=1)


def class_pairs(sample: Block, columns: NDArray[np.int64]) -> Pairs:
    """Return the one-versus-rest pairs of some classes, class by class; rows of weight zero are left out."""
    return _pairs(sample, columns, _class_log_odds(sample, columns))


def _pairs(sample: Block, columns: NDArray[np.int64], scores: NDArray[np.floating]) -> Pairs:
    outcomes, weights = sample.labels[None, :] == columns[:, None], sample.weights
    if weights is not None:
        kept = weights > 0
        scores, outcomes, weights = scores[:, kept], outcomes[:, kept], np.tile(weights[kept], len(columns))
    return Pairs(np.ascontiguousarray(scores).ravel(), outcomes.ravel(), weights)


def _class_log_odds(sample: Block, columns: NDArray[np.int64]) -> NDArray[np.floating]:
    """Log-odds of some classes, one row a class."""
    out = np.empty((len(columns), sample.n), dtype=sample.logits.dtype)
    for rows in row_blocks(*sample.logits.shape):
        out[:, rows] = log_odds(sample.logits[rows])[:, columns].T
    return out


def _batches(sample: Block, groups: NDArray[np.int64]) -> list[list[int]]:
    """Groups in batches of a quarter of the classes, so that their scores need a quarter of the input's memory."""
    most = max(len(groups) // 4, 2_000_000 // sample.n, 1)
    batches: list[list[int]] = []
    room = 0
    for g, size in enumerate(np.bincount(groups)):
        if size > room or not batches:
            batches.append([])
            room = most
        batches[-1].append(g)
        room -= int(size)
    return batches
