"""A map that is right on average in many groups of rows at once, which may overlap."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..calibrator import Calibrator
from ..declared import attribute, declared, parameter
from ..errors import InvalidInput
from ..fits.judge import tell
from ..invariants import Anything, Fitted, Values
from ..parameters import Instance, Number, count_from
from ..traits import Traits
from ..types import Array, Integers, Mask, Self
from ..validation import as_array
from ._boosting import Round, boost, move
from ._grouped import GroupedMap

_MOST = 500  # rounds


@declared
class Multicalibrated(GroupedMap):
    """Corrects the map's probabilities wherever a group of rows says something else (boosted multicalibration).

    Every value of every column of ``groups`` is a group of rows, and so are all rows. In each round the probabilities
    of each class are cut into cells; where in some group and cell the class happened clearly more or less often than
    expected, the log-odds of these rows move by a shrunk Newton step: the largest ``|Σ(y - p)| / √Σp(1 - p)`` first,
    until none is significant (Hébert-Johnson et al. 2018; Bonferroni's bound over all cells that are looked at).

    Parameters
    ----------
    map : Calibrator
        The map to begin with. Cloned, not changed.
    cells : int
        Ranges of probability that are looked at in each group, with equally many rows each.
    level : float
        Of the test that a cell's deviation must pass: how often a round is made for nothing.
    inputs, classes, saturated
        See `Calibrator`.

    Attributes
    ----------
    map_ : Calibrator
    columns_ : int array of shape (G,)
        The column of each group; -1 for all rows.
    values_ : array of shape (G,)
        The value of each group in its column, as text.
    places_ : int array of shape (R, 2)
        Class and group of each round.
    ranges_ : array of shape (R, 2)
        The probabilities between which rows move.
    steps_ : array of shape (R,)
        How far, in log-odds.
    """

    _identifier = "multicalibrated"
    map: Calibrator = parameter(Instance((Calibrator,), 'a calibrator, such as make("platt")'))
    cells: int = parameter(count_from(1), default=5)
    level: float = parameter(Number(0, 1, open_low=True), default=0.05)
    map_: Calibrator = attribute(Fitted(), counted=True)
    columns_: Integers = attribute(Values("groups", kind="i", low=-1, high=10**6))
    values_: NDArray[Any] = attribute(Anything())
    places_: Integers = attribute(Values("rounds", 2, kind="i", low=0))
    ranges_: Array = attribute(Values("rounds", 2, low=0, high=1.1, order="rising"))
    steps_: Array = attribute(Values("rounds"), counted=True)

    @property
    def traits(self) -> Traits:
        """Those of the first map, with a number a round; rows are seen in memory."""
        return self._traits_with("rounds")

    def fit(self, scores: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Fit the map, then correct it until no group says otherwise.

        Parameters
        ----------
        scores, y, sample_weight
            See `Calibrator`.
        groups : array-like of shape (n,) or (n, C), or a frame
            Each value of each column is a group of rows.
        """
        self._check_parameters()
        self._refuse_scan(scores)
        begun = self._begin(scores, y, sample_weight, lambda n: _columns(groups, n))
        block, table, z, report = begun
        pairs = [(c, value) for c in range(table.shape[1]) for value in np.unique(table[:, c])]
        self.columns_ = np.array([-1, *(c for c, _ in pairs)], dtype=np.int64)
        self.values_ = np.array(["", *(value for _, value in pairs)])
        wanted = np.eye(block.n_classes)[block.labels]
        before = begun.loss(z)
        rounds = boost(z, wanted, block.weight_array, self._members(table), self.cells, self.level, _MOST)
        self.places_ = np.array([[r.k, r.group] for r in rounds], dtype=np.int64).reshape(-1, 2)
        self.ranges_ = np.array([[r.low, r.high] for r in rounds], dtype=np.float64).reshape(-1, 2)
        self.steps_ = np.array([r.step for r in rounds], dtype=np.float64)
        gain, count = before - begun.loss(z), len(self.steps_)
        self.fit_report_ = replace(
            self._gained(report, gain, count, count, block.total_weight),
            converged=report.converged and count < _MOST,
            details={"groups": len(self.columns_), "rounds": count},
        )
        tell(self.fit_report_, self.called)
        return self

    def _corrected(self, z: Array, groups: Any) -> Array:
        table = _columns(groups, len(z))
        if table.shape[1] != self.columns_.max() + 1:
            raise InvalidInput(
                "groups must have the columns they had in fit", seen=f"{table.shape[1]}, not {self.columns_.max() + 1}"
            )
        members = self._members(table)
        parts = zip(self.places_.tolist(), self.ranges_.tolist(), self.steps_.tolist(), strict=True)
        for (k, group), (low, high), step in parts:
            move(z, Round(k, group, low, high, step), members[:, group])
        return z

    def _members(self, table: NDArray[Any]) -> Mask:
        """Return which rows are in which groups: (n, G)."""
        members = np.ones((len(table), len(self.columns_)), dtype=bool)
        for g in range(1, len(self.columns_)):
            members[:, g] = table[:, self.columns_[g]] == self.values_[g]
        return members

    def _check_state(self) -> None:
        inside = self.places_ < [len(self.classes_), len(self.columns_)]
        if len(self.values_) != len(self.columns_) or not inside.all():
            raise InvalidInput(
                "Multicalibrated.places_ is not usable: a round names a class or group that is not there"
            )


def _columns(groups: Any, n: int) -> NDArray[Any]:
    """Return the values of each column as text, (n, C)."""
    if groups is None:
        raise InvalidInput("Multicalibrated needs the groups of each row", hint="pass groups, a column or several")
    table, _ = as_array(groups, "groups")
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or len(table) != n or not table.shape[1]:
        raise InvalidInput("groups must have a value a row in each column", seen=f"shape {table.shape} for {n} rows")
    try:
        return table.astype(str)
    except (TypeError, ValueError) as error:  # records, bytes
        raise InvalidInput("groups cannot be read as text", seen=str(error)[:80]) from error
