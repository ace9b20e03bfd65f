"""Events that need not exclude one another: a map on the score of each, and no normalising."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.exceptions import NotFittedError

from ..arrays import softmax
from ..calibrator import Calibrator
from ..declared import attribute, declared, parameter
from ..errors import InvalidInput, caution
from ..fits.judge import cross_validate, tell
from ..fits.report import FitReport
from ..formulas import Term, as_rows
from ..invariants import Fitted, Values
from ..maps.binary.base import BinaryMap
from ..maps.binary.two_class import two_logits
from ..parameters import OneOf
from ..passes import Block, Data, in_memory
from ..scanning import Scan
from ..traits import Traits
from ..types import Array, Floats, Self
from ..validation import as_matrix, as_weights, column_names, known_classes, of_sensible_size, order_alike
from ._lift import Lift


@declared
class MultiLabel(Lift):
    """Calibrates L events a row, of which any number may happen: a binary map on the score of each.

    Scores are (n, L): log-odds of each event (``inputs="logits"``, as `decision_function` of one-vs-rest heads and
    sigmoid layers give them) or their probabilities. Rows are never normalised.

    Parameters
    ----------
    binary_map : BinaryMap, or a chain or mixture of them
        Cloned, not changed.
    share : {"none", "all"}
        "none": a map for each event. "all": one map for all, where events are rare or many.
    inputs : {"logits", "probabilities"}
    classes : sequence, optional
        The names of the events.
    saturated : {"small", "exact"}
        Plays no role here: scores beyond all that were seen, and beyond 1/(4n) and 1 - 1/(4n), are held there.

    Attributes
    ----------
    maps_ : list of BinaryMap
        The fitted map of each event, or the one for all.
    labelled_ : int array of shape (L,)
        Rows whose outcome was known.
    range_ : array of shape (2,)
        Log-odds between which scores are held.
    """

    _identifier = "multi-label"
    _sums_to_one = False
    binary_map: Calibrator = parameter()
    share: str = parameter(OneOf("none", "all"), default="none")
    maps_: list[BinaryMap] = attribute(Fitted("maps", classes=2), counted=True)
    labelled_: Any = attribute(Values("K", kind="i", low=0))
    range_: Array = attribute(Values(2, order="rising"))

    def _check_state(self) -> None:
        if len(self.maps_) != (1 if self.share == "all" else len(self.classes_)):
            raise InvalidInput("MultiLabel.maps_ is not usable: there must be one map, or one for each event")

    @property
    def traits(self) -> Traits:
        """Those of the binary map; rows are seen in memory."""
        growth = self.binary_map.traits.parameters
        return Traits(
            "binary", "nothing", "each class", growth if self.share == "all" else f"L·{growth}", sees="sample"
        )

    def fit(self, scores: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit on scores and outcomes, both (n, L); an outcome that is not known is NaN.

        Parameters
        ----------
        scores : array-like of shape (n, L)
        y : array-like of shape (n, L)
            1 where the event happened, 0 where it did not, NaN where that is not known.
        sample_weight : array-like of shape (n,), optional
        """
        self._check_parameters()
        if isinstance(scores, Scan):
            raise _not_by_blocks("a scan")
        odds = self._odds(scores)
        names = column_names(scores)
        outcomes = _outcomes(y, odds.shape, names)
        weights = as_weights(sample_weight, len(odds))
        self.range_ = _range(odds, np.ones(len(odds)) if weights is None else weights)
        odds = np.clip(odds, *self.range_.astype(odds.dtype))
        self._remember_columns(names, odds.shape[1])
        self.n_samples_ = len(odds)
        self.classes_ = np.arange(odds.shape[1]) if self.classes is None else known_classes(self.classes, odds.shape[1])
        self.labelled_ = (~np.isnan(outcomes)).sum(axis=0)
        groups = [range(odds.shape[1])] if self.share == "all" else [[k] for k in range(odds.shape[1])]
        found = [self._fitted(odds[:, list(own)], outcomes[:, list(own)], weights) for own in groups]
        self.maps_ = [fitted for fitted, _ in found]
        report = _joined([report for _, report in found])
        if report.held_out_error is not None:
            together = _dependence(self._differences(odds, outcomes), weights, [list(own) for own in groups])
            report = replace(report, held_out_error=report.held_out_error * together)
        self.fit_report_ = report
        tell(self.fit_report_, self.called, cautious=True)
        return self

    def _fit(self, data: Data) -> FitReport:
        raise _not_by_blocks("rows with one label each, as a part of another map")

    def predict_marginals(self, scores: Any) -> Floats:
        """Return the probability of each event: (n, L), rows need not sum to one."""
        return self._map(self._known_odds(scores))

    def predict_proba(self, scores: Any) -> Floats:
        """Return `predict_marginals`: for events that may happen together these are the probabilities."""
        return self.predict_marginals(scores)

    def predict(self, scores: Any) -> Any:
        """Return 1 for each event that is more probable than not: (n, L)."""
        return (self.predict_marginals(scores) > 0.5).astype(np.int64)

    def _map(self, logits: Floats) -> Floats:
        """Probabilities of the events for log-odds (n, L)."""
        held = np.clip(logits, *self.range_.astype(logits.dtype))
        if self.share == "all":
            return self.maps_[0]._map_scores(held)
        columns = [fitted._map_scores(np.ascontiguousarray(held[:, k])) for k, fitted in enumerate(self.maps_)]
        return np.stack(columns, axis=1)

    def _formula(self, z: Term) -> Term:
        low, high = (z.lift(bound).rounded() for bound in self.range_.tolist())
        held = z.clip(low, high)
        if self.share == "all":
            return self.maps_[0]._lifted_formula(self.maps_, np.zeros(z.width, dtype=np.int64), held)
        return as_rows([fitted._score_formula(held.column(k)) for k, fitted in enumerate(self.maps_)])

    def _fitted(self, odds: Floats, outcomes: Array, weights: Array | None) -> tuple[BinaryMap, FitReport]:
        known = ~np.isnan(outcomes)
        labels = outcomes[known].astype(np.int64)
        if len(labels) == 0:
            raise InvalidInput("an event has no known outcome: every value of its column of y is NaN")
        own = None if weights is None else np.broadcast_to(weights[:, None], odds.shape)[known]
        block = Block(two_logits(odds[known]), labels, own, 2)
        if own is not None and not own.all():
            block = block.take(np.flatnonzero(own))
        fitted, data = self._lifted.unfitted(), in_memory(block)
        report = fitted.fit_data(data)
        return fitted, cross_validate(report, data, self._lifted._fit_copy, softmax)

    def _differences(self, odds: Floats, outcomes: Array) -> Array:
        """Return the log-loss with the map less the one without, for each row and event; NaN where it is not known."""
        before, after = expit(odds.astype(np.float64)), self._map(odds).astype(np.float64)
        likely = [np.where(outcomes == 1, p, 1 - p) for p in (before, after)]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(np.isnan(outcomes), np.nan, np.log(likely[0]) - np.log(likely[1]))

    def _odds(self, scores: Any) -> Floats:
        matrix, _ = as_matrix(scores, "scores")
        if matrix.ndim != 2:
            raise InvalidInput("MultiLabel takes a column of scores for each event", seen=f"shape {matrix.shape}")
        values = matrix if matrix.dtype.kind == "f" and matrix.dtype.itemsize > 2 else matrix.astype(np.float64)
        if np.isnan(values).any():
            raise InvalidInput("scores contains NaN", seen=f"row {int(np.isnan(values).any(axis=1).argmax())}")
        if self.inputs == "logits":
            largest = float(np.max(np.abs(values), initial=0.0, where=np.isfinite(values)))
            return of_sensible_size(values, largest, "scores")
        if (values < 0).any() or (values > 1).any():
            raise InvalidInput(
                "scores are not probabilities",
                seen=f"{float(values.min()):g} to {float(values.max()):g}",
                hint='for log-odds pass inputs="logits"',
            )
        wide = values.astype(np.float64)
        with np.errstate(divide="ignore"):
            return (np.log(wide) - np.log1p(-wide)).astype(values.dtype)

    def _known_odds(self, scores: Any) -> Floats:
        if not hasattr(self, "maps_"):
            raise NotFittedError("this MultiLabel is not fitted yet: call fit first")
        order = self._order(column_names(scores))
        odds = self._odds(scores)
        if odds.shape[1] != self.n_features_in_:
            raise InvalidInput(
                "the scores must have the columns they had in fit", seen=f"{odds.shape[1]}, not {self.n_features_in_}"
            )
        return odds if order is None else np.ascontiguousarray(odds[:, order])


def _not_by_blocks(seen: str) -> InvalidInput:
    return InvalidInput(
        "MultiLabel needs an outcome for each event of a row, and all rows in memory",
        seen=seen,
        hint="fit it on arrays (n, L), or one map for each event: a scan of two columns brings one event",
    )


def _range(odds: Floats, weights: Array) -> Array:
    """Return the log-odds between which scores are held: as far as the rows go, and 1/(4n) and 1 - 1/(4n) at least."""
    reach = float(np.log(4.0 * max(weights.sum(), 1.0)))
    finite = odds[np.isfinite(odds) & (weights > 0)[:, None]]
    return np.array([min(-reach, finite.min(initial=0.0)), max(reach, finite.max(initial=0.0))], dtype=np.float64)


def _outcomes(y: Any, shape: tuple[int, ...], names: tuple[Any, ...] | None) -> Array:
    if y is None:
        raise InvalidInput("MultiLabel requires y: an outcome for each event of each row", allowed="0, 1 or NaN")
    matrix, own = as_matrix(y, "y")
    outcomes = matrix.astype(np.float64)
    if outcomes.shape != shape:
        raise InvalidInput("y must have a column for each event", seen=f"shape {outcomes.shape} for scores {shape}")
    order = order_alike(names, own)
    outcomes = outcomes if order is None else outcomes[:, order]
    strange = ~(np.isnan(outcomes) | (outcomes == 0) | (outcomes == 1))
    if strange.any():
        raise InvalidInput("y must hold 0, 1 or NaN", seen=repr(float(outcomes[strange][0])))
    never = [k for k, column in enumerate(outcomes.T) if len(np.unique(column[~np.isnan(column)])) == 1]
    if never:
        caution(f"{len(never)} of {shape[1]} events always or never happened, such as number {never[0]}")
    return outcomes


def _dependence(differences: Array, weights: Array | None, groups: list[list[int]]) -> float:
    """Return by what the error grows because a row's events depend on one another: what one gains, others gain too.

    The mean over groups g of events has the variance Σᵢ (Σₖ cᵢₖ)², with cᵢₖ = wᵢ (dᵢₖ - d̄_g) / (G W_g); with
    independent events it would be Σᵢ Σₖ cᵢₖ². The judge counts the latter, as it sees a row's events as rows.
    """
    known = np.isfinite(differences)
    w = known * (1.0 if weights is None else weights[:, None])
    d = np.where(known, differences, 0.0)
    parts = np.zeros_like(d)
    for own in groups:
        total = w[:, own].sum()
        if total > 0:
            parts[:, own] = w[:, own] * (d[:, own] - (w[:, own] * d[:, own]).sum() / total) / total
    apart = (parts**2).sum()
    return max(1.0, float(np.sqrt((parts.sum(axis=1) ** 2).sum() / apart))) if apart > 0 else 1.0


def _joined(reports: list[FitReport]) -> FitReport:
    """Return the mean losses over events, and the error of their mean where events are independent."""
    held = [r for r in reports if r.held_out_after is not None]
    known = len(held) == len(reports)
    error = float(np.sqrt(sum((r.held_out_error or 0.0) ** 2 for r in held)) / len(reports)) if known else None
    return FitReport(
        max(r.iterations for r in reports),
        all(r.converged for r in reports),
        "nll",
        float(np.mean([r.loss_before for r in reports])),
        float(np.mean([r.loss_after for r in reports])),
        float(np.mean([r.held_out_before or 0.0 for r in held])) if known else None,
        float(np.mean([r.held_out_after or 0.0 for r in held])) if known else None,
        error,
        messages=tuple(dict.fromkeys(m for r in reports for m in r.messages)),
        details={"events": len(reports)},
    )
