"""Lifts a map on one score to K classes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from sklearn.utils.metaestimators import available_if

from .. import _core
from ..arrays import log_odds, softmax
from ..calibrator import Calibrator
from ..declared import attribute, declared, parameter
from ..errors import InvalidInput
from ..fits.judge import Answer, Comparison, compare_losses, judged, judging_rows
from ..fits.report import FitReport
from ..formulas import Term
from ..formulas import log_odds as log_odds_formula
from ..invariants import Fitted, Values
from ..made import made_once
from ..maps.binary.base import HELD_OUT, BinaryMap
from ..maps.binary.stack import Stack
from ..parameters import OneOf
from ..passes import Block, Data
from ..threads import get_threads
from ..traits import Preserves, Traits
from ..types import Floats, Integers
from ._class_groups import explicit_groups, prior_groups, too_few
from ._lift import Lift

if TYPE_CHECKING:
    from ..maps.binary.venn_abers import VennAbers

_LARGE = 2_000_000  # scores above which losses are taken from a part of the rows


@declared
class OneVsRest(Lift):
    """Fits a binary map on "this class or another" for every class and normalises the answers.

    Each class has the score λ_k = z_k - log Σ_{j≠k} exp z_j, the log-odds of its probability. The map's answers,
    before normalisation, are `predict_marginals`. With two classes and nothing shared, the lift is the binary map.

    Parameters
    ----------
    binary_map : BinaryMap, or a chain or mixture of them
        Cloned, not changed.
    share : {"none", "all", "prior"} or sequence of sequences of classes
        Who learns together. "none": each class has a map of its own (class-wise). "all": one map, fitted on the pairs
        of all classes (Mix-n-Match's data ensemble, I-Max's shared class-wise). "prior": classes of similar prior
        share a map; see `prior_groups`. Explicit groups name every class once.
    normalize : {"sum", "softmax"}
        "sum" divides a row's marginals by their sum; "softmax" takes softmax of their log-odds, so that
        marginals of 1 and 0 win and lose against any other. A row whose marginals are all zero gets softmax of
        its raw logits.
    inputs, classes, saturated
        See `Calibrator`; those of the binary map play no role.

    Attributes
    ----------
    maps_ : list of BinaryMap
        The fitted map of each group.
    groups_ : int array of shape (K,)
        The group of each class.

    Notes
    -----
    With ``share="all"`` and a strict map (``Isotonic(strict=True)``) the order of every row is kept, and the top class
    stays strictly on top in the output's own precision.
    """

    _identifier = "one-vs-rest"
    _near: Sequence[BinaryMap] = attribute(default=())
    binary_map: Calibrator = parameter()
    share: str | Sequence[Sequence[Any]] = parameter(default="none")
    normalize: str = parameter(OneOf("sum", "softmax"), default="sum")
    maps_: list[BinaryMap] = attribute(Fitted("maps", classes=2), counted=True)
    groups_: Integers = attribute(Values("K", kind="i", low=0, below="K"))

    @property
    def traits(self) -> Traits:
        """Those of the binary map; one strict map for all classes keeps every row's ranking."""
        shared = isinstance(self.share, str) and self.share == "all"
        promise: Preserves = "ranking" if shared and self._lifted.is_strict else "nothing"
        growth = self.binary_map.traits.parameters
        return Traits(
            "binary", promise, "each class", growth if shared else f"K·{growth}", sees=self.binary_map.traits.sees
        )

    @property
    def _steep(self) -> bool:
        return self.binary_map._steep

    def predict_marginals(self, scores: Any) -> Floats:
        """Return each class' probability against the rest, before normalisation: (n, K), rows need not sum to 1."""
        return self._marginals(self._scores_to_map(scores).logits)

    @available_if(lambda lift: hasattr(lift.binary_map, "predict_interval"))
    def predict_interval(self, scores: Any) -> tuple[Floats, Floats]:
        """Return the lower and the upper probability of each class against the rest, where the binary map has them.

        Two arrays (n, K), before normalisation; with two classes (n,), of the second.
        """
        odds = log_odds(self._scores_to_map(scores).logits)
        if self._is_binary:
            return cast("VennAbers", self.maps_[0]).interval_of(np.ascontiguousarray(odds[:, 1]))
        lower, upper = np.empty_like(odds), np.empty_like(odds)
        for k, g in enumerate(self.groups_):
            lower[:, k], upper[:, k] = cast("VennAbers", self.maps_[g]).interval_of(odds[:, k])
        return lower, upper

    def fit_data(self, data: Data, *, check: bool = False) -> FitReport:
        """Fit on validated rows; ``check`` fills in the held-out losses.

        Above two million scores one fold of a tenth is held out, by fits with and without it that share their passes,
        and the losses before and after are those of its rows. Where the lift is the binary map, that map judges itself.
        """
        if not check or data.size <= _LARGE or data.n < 2 * HELD_OUT:
            return super().fit_data(data, check=check)
        self.groups_ = self._group_classes(data)
        if self._is_binary:
            self.maps_ = [self._lifted.unfitted()]
            self.fit_report_ = self.maps_[0].fit_data(data, check=True)
            return self.fit_report_
        held = data.only(0, HELD_OUT)
        if not 0 < held.total_weight < data.total_weight:
            return super().fit_data(data, check=check)
        other = self.unfitted()
        other.groups_ = self.groups_
        self.maps_, other.maps_ = self._lifted._fit_groups_apart(data, self.groups_)
        whole, without = judging_rows(held).reduce(
            partial(_compare_both, before=softmax, fitted=self._map, without=other._map)
        )
        self.fit_report_ = judged(self._report(data, whole), without, data.total_weight - held.total_weight)
        return self.fit_report_

    def _fit(self, data: Data) -> FitReport:
        self.groups_ = self._group_classes(data)
        if self._is_binary:
            self.maps_ = [self._lifted.unfitted()]
            return self.maps_[0].fit_data(data)
        self.maps_ = self._lifted._fit_groups(data, self.groups_, self._near)
        return self._report(data, data.reduce(partial(compare_losses, before=softmax, after=self._map)))

    def _judged(self, report: FitReport, data: Data) -> FitReport:
        return self.maps_[0]._judged(report, data) if self._is_binary else super()._judged(report, data)

    def _fit_copy(self, data: Data) -> Answer:
        copy = self.unfitted()
        copy._near = self.maps_  # of all rows, so that the search without some of them is short
        copy.fit_data(data)
        return copy._map

    def _report(self, data: Data, losses: Comparison) -> FitReport:
        reports = [fitted.fit_report_ for fitted in self.maps_]
        return FitReport(
            max(r.iterations for r in reports),
            all(r.converged for r in reports),
            "nll",
            losses.before,
            losses.after,
            caveat=too_few(data, self.groups_),
            at_bound=tuple(f"maps_[{g}].{name}" for g, r in enumerate(reports) for name in r.at_bound),
            messages=tuple(dict.fromkeys(m for r in reports for m in r.messages)),
            details={"groups": len(self.maps_)},
        )

    def _check_state(self) -> None:
        groups = 1 if self._is_binary else int(self.groups_.max()) + 1
        if len(self.maps_) != groups or {type(fitted) for fitted in self.maps_} != {type(self._lifted)}:
            raise InvalidInput(
                "OneVsRest.maps_ is not usable: it must hold a map of the lifted kind for each group",
                seen=f"{len(self.maps_)} for {groups} groups",
            )

    def _map(self, logits: Floats) -> Floats:
        if self._is_binary:
            return self.maps_[0]._map(logits)
        logits = np.ascontiguousarray(logits)
        stack, keep_top = self._stack(logits.dtype)
        if self.normalize == "sum" and not keep_top:
            return stack.normalized(logits)
        marginals = stack.marginals(logits)
        if self.normalize == "softmax":
            some = marginals.any(axis=1)
            marginals[some] = softmax(_log_odds_of(marginals[some]))
        _core.normalize_rows(logits, keep_top, get_threads(), marginals)
        return marginals

    def _marginals(self, logits: Floats) -> Floats:
        if self._is_binary:
            return self.maps_[0]._map(logits)
        return self._stack(logits.dtype)[0].marginals(np.ascontiguousarray(logits))

    def _formula(self, z: Term) -> Term:
        marginals = self._marginals_formula(z)
        if self._is_binary:
            return marginals
        total = marginals.row_sum()
        some = total > 0.0
        if self.normalize == "softmax":
            p = _log_odds_formula(marginals).softmax()
        else:
            p = marginals / some.where(total, 1.0)
        return some.where(p, z.softmax())

    def _marginals_formula(self, z: Term) -> Term:
        if self._is_binary:
            return self.maps_[0]._formula(z)
        return self._lifted._lifted_formula(self.maps_, self.groups_, log_odds_formula(z, rounded=not self._steep))

    def _stack(self, dtype: Any) -> tuple[Stack, bool]:
        """Return the fitted maps side by side, and whether the top class is kept; made once for a fit and a dtype."""

        def make() -> tuple[Stack, bool]:
            return self._lifted._stacked(self.maps_, self.groups_, dtype), self.traits.preserves_accuracy

        return made_once(self, (self.maps_,), make, dtype)

    @property
    def _is_binary(self) -> bool:
        return len(self.groups_) == 2 and self.groups_[0] != self.groups_[1]

    def _group_classes(self, data: Data) -> Integers:
        if not isinstance(self.share, str):
            return explicit_groups(self.share, np.arange(data.n_classes) if data.classes is None else data.classes)
        if self.share == "none":
            return np.arange(data.n_classes)
        if self.share == "all":
            return np.zeros(data.n_classes, dtype=np.int64)
        return prior_groups(data.class_weights)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        named = isinstance(self.share, str) and self.share in ("none", "all", "prior")
        if not named and not isinstance(self.share, (list, tuple)) and not getattr(self.share, "ndim", 0):
            raise InvalidInput(
                "OneVsRest: share is not valid",
                seen=repr(self.share),
                allowed="'none', 'all', 'prior' or groups of classes: [[0, 1], [2]]",
            )


def _compare_both(block: Block, before: Answer, fitted: Answer, without: Answer) -> tuple[Comparison, Comparison]:
    """One pass over a fold: the losses before, against those of maps fitted with the fold and without it."""
    return compare_losses(block, before, fitted), compare_losses(block, before, without)


def _log_odds_formula(marginals: Term) -> Term:
    """Return what `_log_odds_of` computes, as a formula: beyond ±1e30 one score is as good as any other."""
    return (marginals.log() - (1.0 - marginals).log()).clip(-1e30, 1e30)


def _log_odds_of(marginals: Floats) -> Floats:
    """Log-odds with the certain ones at the largest finite value, so that softmax can compare them."""
    most = np.finfo(marginals.dtype).max / 4
    with np.errstate(divide="ignore"):
        return np.clip(np.log(marginals) - np.log1p(-marginals), -most, most)
