"""One map for all rows, and for each group of them a deviation that is shrunk towards it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..calibrator import Calibrator
from ..declared import attribute, declared, parameter
from ..errors import InvalidInput, caution, count_of
from ..fits.judge import tell
from ..formulas import Term
from ..invariants import ANY, Fitted, Values
from ..parameters import AnyOf, Instance, OneOf
from ..traits import Traits
from ..types import Array, Integers, Self
from ..validation import as_array, as_groups
from ._group_effects import find_effects, shifted
from ._grouped import GroupedMap


@declared
class ByGroup(GroupedMap):
    """softmax(z + α_g + β_g (z - z̄)): the common map's logits z, with a level and a slope of each group's own.

    All groups are fitted with the prior u_g = (α_g, β_g) ~ N((0, m), T), whose variances maximise the evidence, and a
    shared slope m, as the common map is too flat where groups differ. Groups with few rows stay close to the others,
    groups with many go where their rows say, and where groups do not differ all of them get the common map. No number
    of rows is too small. A group that was not seen gets the common map.

    Parameters
    ----------
    map : Calibrator
        Cloned, not changed.
    groups : str, optional
        Name of the column of a frame that says the group; else pass ``groups=`` to `fit` and `predict_proba`.
    inputs, classes, saturated
        See `Calibrator`.

    Attributes
    ----------
    map_ : Calibrator
        The common map.
    names_ : array of shape (G,)
    effects_ : array of shape (G, K + 1)
        (α_g, β_g).
    centre_ : array of shape (K,)
        z̄.
    variances_ : array of shape (2,)
        Of levels and of slopes between groups; zeros where groups do not differ.
    effective_ : array of shape (G,)
        How many numbers of its own each group's rows determine.
    """

    _identifier = "by-group"
    map: Calibrator = parameter(Instance((Calibrator,), 'a calibrator, such as make("platt")'))
    groups: str | None = parameter(AnyOf(OneOf(None), Instance((str,), "the name of a column")), default=None)
    map_: Calibrator = attribute(Fitted())
    names_: NDArray[Any] = attribute(ANY)
    effects_: Array = attribute(Values("groups", "K+1"))
    centre_: Array = attribute(Values("K"))
    variances_: Array = attribute(Values(2, low=0.0))
    effective_: Array = attribute(Values("groups", low=0.0))

    def _check_state(self) -> None:
        """The groups' names are one each."""
        names, groups = np.asarray(self.names_), len(self.effects_)
        if names.shape != (groups,) or not all(isinstance(name, (str, int, float, bool)) for name in names.tolist()):
            raise InvalidInput("ByGroup.names_ is not usable: it must name each group once")

    @property
    def traits(self) -> Traits:
        """Those of the common map, with a level for each class and a slope a group; rows are seen in memory."""
        return self._traits_with("groups·K")

    def fit(self, scores: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Fit the common map, then the groups' deviations from it.

        Parameters
        ----------
        scores, y, sample_weight
            See `Calibrator`; a frame may hold the groups' column.
        groups : array-like of shape (n,), optional
            The group of each row, where it is no column of the scores.
        """
        self._check_parameters()
        self._refuse_scan(scores)
        scores, named = self._parted(scores, groups)
        begun = self._begin(scores, y, sample_weight, lambda n: self._places(named, n))
        rows, places, z, report = begun
        z -= z.mean(axis=1, keepdims=True)
        w = rows.weight_array
        self.centre_ = w @ z / w.sum()
        found = find_effects(z, rows.labels, w, places, self.centre_)
        self.effects_, self.variances_, self.effective_ = found.values, found.variances, found.effective
        gain = begun.loss(z) - begun.loss(shifted(z, self.centre_, self.effects_[places]))
        effective = float(self.effective_.sum())
        details = {"groups": len(self.names_), "effective_parameters": effective}
        self.fit_report_ = replace(self._gained(report, gain, found.rounds, effective, w.sum()), details=details)
        tell(self.fit_report_, self.called)
        return self

    def _places(self, groups: Any, n: int) -> Integers:
        """Return the place of each row's group among the names, which are remembered."""
        places, self.names_ = as_groups(groups, n)
        return places

    def _corrected(self, z: Array, groups: Any) -> Array:
        names, _ = as_array(groups, "groups")
        if names.shape != (len(z),):
            raise InvalidInput("groups must name one group a row", seen=f"shape {names.shape} for {len(z)} rows")
        if not all(isinstance(name, Hashable) for name in names.tolist()):
            raise InvalidInput("groups must name one group a row", seen="lists or arrays", allowed="text or numbers")
        known = {name: g for g, name in enumerate(self.names_.tolist())}
        places = np.array([known.get(name, -1) for name in names.tolist()], dtype=np.int64)
        if (places < 0).any():
            strangers = set(names[places < 0].tolist())
            caution(
                f"the common map answers {count_of((places < 0).sum(), 'row')} of "
                f"{count_of(len(strangers), 'group')} not seen, such as {min(map(repr, strangers))}"
            )
        z -= z.mean(axis=1, keepdims=True)
        effects = np.vstack([self.effects_, np.zeros(self.effects_.shape[1])])[places]
        return shifted(z, self.centre_, effects)

    def _formula(self, z: Term) -> Term:
        raise InvalidInput(
            "ByGroup cannot be exported: its answer depends on the group of a row, and targets are given scores alone",
            hint="call predict_proba(scores, groups=…), or fit and export a map for the rows of each group",
        )

    def _parted(self, scores: Any, groups: Any) -> tuple[Any, Any]:
        if self.groups is None:
            if groups is None:
                raise InvalidInput(
                    "ByGroup needs the group of each row", hint="pass groups, or ByGroup(…, groups='column')"
                )
            return scores, groups
        if groups is not None:
            raise InvalidInput("groups were given twice: as an argument and as the column " + repr(self.groups))
        if not hasattr(scores, "columns") or self.groups not in list(scores.columns):
            raise InvalidInput(
                "the scores have no column of groups", seen=type(scores).__name__, allowed=repr(self.groups)
            )
        column, _ = as_array(scores[self.groups], "groups")
        rest = scores.drop(columns=self.groups) if hasattr(scores, "loc") else scores.drop(self.groups)
        return rest, column

    def _count_parameters(self) -> float:
        return self.map_._count_parameters() + float(self.effective_.sum()) + 2
