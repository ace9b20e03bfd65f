"""The comparison as an estimator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np

from ..calibrator import Calibrator
from ..declared import attribute, declared, parameter
from ..errors import InvalidInput
from ..fits.report import FitReport
from ..formulas import Term
from ..invariants import Anything, Fitted, Text
from ..parameters import Instance, Integer, OneOf
from ..passes import Block
from ..scanning import Scan
from ..traits import Preserves, Traits
from ..types import Floats, Self
from ..validation import as_groups
from .compare import compare_problems
from .methods import Methods
from .problem import Problem, read_split


@declared
class AutoCalibrator(Calibrator):
    """Compares maps by cross-validation as `compare` does, and fits the one it chooses on all rows.

    Parameters
    ----------
    methods, cv, repeats, metric, preserve_accuracy, preserve, random_state
        See `compare`.
    inputs, classes, saturated
        See `Calibrator`.

    Attributes
    ----------
    best_ : str
        Name of the chosen map.
    map_ : Calibrator
        The chosen map, fitted.
    reason_ : str
        Why it was chosen.
    table_ : list of dict
        Held-out figures of every map.
    """

    _identifier = "auto-calibrator"
    _sees_zeros = True
    methods: Methods = parameter(default="default")
    cv: int = parameter(Integer(2), default=5, kw_only=True)
    repeats: int = parameter(Integer(1), default=1, kw_only=True)
    metric: str = parameter(OneOf("nll", "brier"), default="nll", kw_only=True)
    preserve_accuracy: bool = parameter(Instance((bool, np.bool_), "True or False"), default=False, kw_only=True)
    preserve: str | None = parameter(OneOf(None, "top label", "ranking"), default=None, kw_only=True)
    random_state: int = parameter(Integer(0), default=0, kw_only=True)
    map_: Calibrator = attribute(Fitted(), counted=True)
    best_: str = attribute(Text())
    reason_: str = attribute(Text())
    table_: list[dict[str, Any]] = attribute(Anything())

    @property
    def traits(self) -> Traits:
        """Those of the chosen map; before the fit, what every candidate promises."""
        if hasattr(self, "map_"):
            return replace(self.map_.traits, sees="sample")
        kept = self.preserve or ("top label" if self.preserve_accuracy else "nothing")
        return Traits("scaling", cast("Preserves", kept), "full", "n", sees="sample")

    def fit(self, scores: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Compare, choose and fit, as `Calibrator.fit`.

        Parameters
        ----------
        scores, y, sample_weight
            See `Calibrator`.
        groups : array-like of shape (n,), optional
            Rows of one group (a patient, a document) stay in one fold.
        """
        if isinstance(scores, Scan) and (scores.grouped or groups is not None):
            raise InvalidInput("a choice on a scan takes no groups", hint="pass arrays that fit in memory")
        self._places = None
        if groups is not None:
            weights = None if sample_weight is None else np.asarray(sample_weight)
            places, _ = as_groups(groups, len(np.asarray(groups)) if weights is None else len(weights))
            self._places = places if weights is None else places[weights > 0]
        try:
            return super().fit(scores, y, sample_weight)
        finally:
            del self._places

    def _fit_rows(self, sample: Block) -> FitReport:
        exact = self.saturated == "exact"
        places = getattr(self, "_places", None)
        if places is not None and len(places) != sample.n:
            raise InvalidInput("groups must name one group a row", seen=f"{len(places)} for {sample.n} rows")
        problem = Problem(
            sample.logits, sample.labels, sample.weights, self.classes_, None, places, exact, self.one_score_
        )
        if sample.n < 4:
            raise InvalidInput(
                "the rows are too few to compare maps on",
                seen=f"{sample.n} of 4",
                hint="choose a map yourself, such as ts",
            )
        most = sample.n // 2 if places is None else max(int(places.max()) + 1, 2)
        folds = min(int(self.cv), most)
        found = compare_problems(
            problem,
            None,
            methods=self.methods,
            cv=folds,
            repeats=self.repeats,
            metric=self.metric,
            preserve_accuracy=self.preserve_accuracy,
            preserve=self.preserve,
            random_state=self.random_state,
        )
        self.best_, self.reason_ = found.best_, found.reason
        self.table_ = found.to_dict()["rows"]
        self.map_ = found.refit_.unfitted()
        every = np.arange(sample.n)
        report = self.map_.fit_data(read_split(self.map_, problem, every, problem, every)[0])
        row, identity = found[self.best_], found["identity"]
        gain = row.against_identity[self.metric]
        held_out = identity.metrics[self.metric].value, row.metrics[self.metric].value
        fitted = (report.loss_before, report.loss_after) if report.loss == self.metric else held_out
        return FitReport(
            report.iterations,
            report.converged,
            self.metric,
            *fitted,
            *held_out,
            gain.error,
            report.at_bound,
            report.messages,
            {**report.details, "chosen": self.best_},
            report.caveat,
        )

    def _map(self, logits: Floats) -> Floats:
        return self.map_._map(logits)

    def _map_precisely(self, logits: Floats) -> Floats:
        return self.map_._map_precisely(logits)

    def _map_logits(self, logits: Floats) -> Floats | None:
        return self.map_._map_logits(logits)

    def _formula(self, z: Term) -> Term:
        return self.map_._formula(z)

    def _logits_formula(self, z: Term) -> Term | None:
        return self.map_._logits_formula(z)
