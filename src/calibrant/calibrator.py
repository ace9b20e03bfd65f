"""The contract every map follows: fit, predict_proba, predict, traits and the fit's own report."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from .arrays import best_column, rounded_once, softmax
from .declared import attribute, declared, parameter
from .errors import InvalidInput, caution
from .files.classes import remember
from .files.saving import save_map
from .fits.judge import cross_validate, stated, tell
from .fits.report import FitReport
from .formulas import Term
from .formulas.functions import finite_logs as logs_formula
from .invariants import ANY, Optional
from .parameters import Instance, OneOf, check_parameters
from .passes import Block, Data, OneScore, in_column, in_memory
from .scanning import Given, Scan, refuse_beside_a_scan
from .traits import Traits
from .types import Array, Floats, Integers, Self
from .validation import (
    ScoreColumn,
    Scores,
    as_embeddings,
    as_labels,
    as_score_column,
    as_scores,
    as_second,
    as_weights,
    column_names,
    column_order,
    is_first_of_two,
    is_one_score,
    says_nothing,
    shape_of,
)
from .validation.saturation import (
    count_zeros,
    finite_logs,
    floored,
    masked_out,
    read_zeros,
    rows_without_zeros,
    smallest_log,
    smallest_log_of,
    zero_level,
)


@declared
class Calibrator(ClassifierMixin, BaseEstimator):
    """Base of all maps from a classifier's scores to better probabilities.

    A map implements two private methods on validated data: ``_fit(sample)``, which sets attributes ending in an
    underscore and returns a `FitReport`, and ``_map(logits)``, which returns probabilities of the same shape and
    dtype. It declares ``_traits``, and in ``_constraints`` what its parameters may be. Its constructor has, besides
    its own parameters, those of this one, and hands them on.

    Parameters
    ----------
    inputs : {"logits", "probabilities"}
        What the scores are. Never guessed.
    classes : sequence, optional
        The label of each column, where labels are not 0 … K-1. Classes may be missing from ``y``.
    saturated : {"small", "exact"}
        What a probability of exactly zero (a logit of -inf) means: something small, as large as the rows say (see
        `calibrant.validation.saturation`), or zero, for classes that are masked out.

    Attributes
    ----------
    classes_ : array of shape (K,)
    n_features_in_ : int
        Columns seen in `fit`.
    feature_names_in_ : array of str
        Their names, where `fit` saw a frame. Frames given later are put into this order by their names (or those of the
        classes, with or without a prefix that all share), and refused where these do not match; arrays have no names,
        and go by position.
    n_samples_ : int
        Rows seen in `fit`.
    fit_report_ : FitReport
    one_score_ : bool
        Whether `fit` saw one score a row, of the second of two classes.
    zero_ : float
        The logarithm of the probability that an exact zero is read as.
    n_parameters_ : float
        How many numbers the map has learnt.
    """

    inputs: str = parameter(default="logits", kw_only=True)
    classes: Any = parameter(default=None, kw_only=True)
    saturated: str = parameter(default="small", kw_only=True)
    classes_: NDArray[Any] = attribute()
    n_features_in_: int = attribute()
    n_samples_: int = attribute()
    fit_report_: FitReport = attribute()
    zero_: float = attribute()
    one_score_: bool = attribute(default=False)  # files of version 0.1.0 do not say
    _traits: ClassVar[Traits]
    _constraints: ClassVar[Mapping[str, Any]] = {}
    _labels_of_its_own: ClassVar[bool] = False  # predict follows another rule than the most probable class
    _sees_zeros: ClassVar[bool] = False  # a fit is given -inf as it came, for maps that read it anew for each split
    _sums_to_one: ClassVar[bool] = True  # False for events that may happen together
    _zeros_lowest: ClassVar[bool] = False  # a zero is read as less than what else was seen: answers never fall
    _sample_rows: ClassVar[int] = 20_000  # of data that is not in memory, for maps that need rows
    _learnt: ClassVar[tuple[str, ...]] = ()  # fitted attributes that hold what was learnt, for `n_parameters_`
    _parameter_names: ClassVar[tuple[str, ...]]
    _made_as = ""  # the registered name that `calibrant.make` was asked for
    _state: ClassVar[Any] = None  # what each fitted attribute must be, see `invariants`
    _state_of_all: ClassVar[Mapping[str, Any]] = {  # those that this class sets; parts of maps have some of them
        **dict.fromkeys(("classes_", "n_features_in_", "n_samples_", "zero_", "feature_names_in_"), Optional(ANY)),
        "fit_report_": Optional(Instance((FitReport,), "the report of a fit")),
        "one_score_": Optional(OneOf(True, False)),
    }

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Make the subclass known to `files`: saved calibrators may name it."""
        super().__init_subclass__(**keywords)
        remember(cls)

    @property
    def traits(self) -> Traits:
        """What this map promises and needs; operators work it out from their parts."""
        return self._traits

    @property
    def _zeros_in_order(self) -> bool:
        return self._zeros_lowest

    def _orders_zeros(self, k: int) -> bool:
        """Whether a zero is read as no more than any other score: with two classes always, as one score ranks them."""
        return k == 2 or self._zeros_in_order

    @property
    def _needs(self) -> str:
        """Scores or embeddings, as the traits say; operators know it without looking at all their parts."""
        return self.traits.needs

    def _summands(self) -> list[Summand]:
        """The fitted map as a weighted sum of chains of maps; those that are such a sum override it."""
        return [Summand((), self, 1.0)]

    @property
    def called(self) -> str:
        """What to call it in messages: the registered name it was made by, or its class."""
        return self._made_as or type(self).__name__

    @property
    def n_parameters_(self) -> float:
        """How many numbers the fitted map has learnt."""
        check_is_fitted(self, "fit_report_")
        return float(self._count_parameters())

    def _count_parameters(self) -> float:
        """Count the learnt numbers: those of the attributes that ``_learnt`` names, and of the maps inside these."""
        return sum(_numbers_in(getattr(self, name)) for name in self._learnt)

    def fit(self, scores: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the map on held-out scores and their labels.

        Parameters
        ----------
        scores : array-like of shape (n, K), or (n,) for two classes, or a `calibrant.scan`
            A scan brings the labels and weights of its rows.
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        self
        """
        self._check_parameters()
        given = self._given(scores, y, sample_weight)
        data = replace(given.data, classes=given.classes)
        self.classes_ = given.classes
        _refuse_one_class(data, given.classes, self.traits)
        self.n_samples_ = data.n
        self._remember_columns(given.columns, data.columns)
        self.zero_, self.one_score_ = given.zero, given.one_score
        report = self.fit_data(data, check=True)
        tell(report, self.called, cautious=self.traits.shape == "binary")
        return self

    def _given(self, scores: Any, y: Any, sample_weight: Any) -> Given:
        """Check what the user gave, and return it as data."""
        embedded = self._needs == "embeddings"
        if isinstance(scores, Scan):
            refuse_beside_a_scan(y, sample_weight)
            reading = None if self._sees_zeros else self.saturated
            ordered = self._zeros_in_order
            return scores.given(self.inputs, self.classes, saturated=reading, embedded=embedded, ordered=ordered)
        if not embedded and sample_weight is None and self.traits.sees == "cells":
            column = as_score_column(scores, self.inputs)
            if column is not None:
                return self._given_column(column, y, column_names(scores))
        valid = self._read(scores, self.classes)
        k = None if embedded else valid.logits.shape[1]
        labels, classes = as_labels(y, k, len(valid.logits), self.classes, valid.columns)
        weights = as_weights(sample_weight, len(labels))
        logits, zero = valid.logits, np.nan
        if weights is not None and not weights.all():
            some = np.flatnonzero(weights)
            logits, labels, weights = np.ascontiguousarray(logits[some]), labels[some], weights[some]
        if not embedded:
            counts = rows_without_zeros(weights, len(labels))
            if valid.has_minus_infinity:
                counts = count_zeros(logits, labels, weights)
            zero = zero_level(counts, len(classes))
            if self._orders_zeros(len(classes)):
                zero = min(zero, smallest_log(logits))
            if valid.has_minus_infinity and not self._sees_zeros:
                logits = floored(logits) if self.saturated == "exact" else read_zeros(logits, zero)
        block = Block(logits, labels, weights, len(classes))
        return Given(in_memory(block), classes, valid.columns, zero, is_one_score(valid.shape) and not embedded)

    def _given_column(self, column: ScoreColumn, y: Any, names: tuple[Any, ...] | None) -> Given:
        """Return many scores of one event as data that makes logits of them only where something looks at these."""
        if is_first_of_two(names, self.classes):
            column = column.turned()
        labels, classes = as_labels(y, 2, len(column.values), self.classes, names)
        counts = rows_without_zeros(None, len(labels))
        zero = min(zero_level(counts, 2), smallest_log_of(column.widest))
        data = in_column(OneScore(labels, column.log_odds), lambda: column.logits, column.values.dtype)
        return Given(data, classes, None, zero, one_score=True)

    def fit_data(self, data: Data, *, check: bool = False) -> FitReport:
        """Fit on validated rows; operators call this on their parts. ``check`` fills in the held-out losses."""
        if not hasattr(self, "classes_") or len(self.classes_) != data.n_classes:
            self.classes_ = np.arange(data.n_classes)
        report = self._fit(data)
        if not isinstance(report, FitReport):
            raise TypeError(f"{type(self).__name__}: a fit must return a FitReport, not {report!r:.80}")
        if check and report.held_out_after is None:
            report = self._judged(report, data)
        self.fit_report_ = report
        return report

    def predict_proba(self, scores: Any) -> Floats:
        """Return calibrated probabilities: (n, K), rows on the simplex, float32 for float32 scores."""
        if type(scores).__module__.startswith("dask.array"):
            check_is_fitted(self, "fit_report_")
            lazily = import_module(".scanning.engines.dask", __package__).lazily
            return lazily(self.predict_proba, scores, len(self.classes_))
        valid = self._scores_to_map(scores)
        return self._masked(self._map_precisely(valid.logits), valid)

    def _masked(self, answer: Floats, valid: Scores) -> Floats:
        """Return the answer with exact zeros where the scores have them and zeros are kept."""
        if valid.has_minus_infinity and self.saturated == "exact" and hasattr(self, "zero_"):
            return masked_out(answer, valid.logits)
        return answer

    @property
    def _steep(self) -> bool:
        """Whether slopes may be such that single precision loses digits which the answer shows."""
        return False

    def _map_precisely(self, logits: Floats) -> Floats:
        """What `_map` computes, where that is needed in double and rounded once: as exports do."""
        return rounded_once(self._map, logits) if self._steep else self._map(logits)

    def predict(self, scores: Any) -> NDArray[Any]:
        """Return the most probable class of each row; ties are broken by the raw scores."""
        valid = self._scores_to_map(scores)
        if self.traits.preserves_accuracy:
            return self.classes_[valid.logits.argmax(axis=1)]
        p = self._map_precisely(valid.logits)
        return self.classes_[best_column(p, p if self._needs == "embeddings" else valid.logits)]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted map to one file (no pickle); `calibrant.load` reads it back, exactly.

        A kill at any moment leaves the old file or the new one.
        """
        check_is_fitted(self, "fit_report_")
        save_map(self, path)

    def export(self, path: str | os.PathLike[str], to: str | None = None, **options: Any) -> None:
        """Write the fitted map for where the model runs, see `calibrant.export`."""
        import_module(".exports", __package__).export(self, path, to, **options)

    def to_torch(self, **options: Any) -> Any:
        """Return the fitted map as a ``torch.nn.Module``, see `calibrant.exports.to_torch`."""
        return import_module(".exports", __package__).to_torch(self, **options)

    def to_sql(self, columns: Any, dialect: str = "duckdb", **options: Any) -> str:
        """Return the fitted map as SQL, see `calibrant.exports.to_sql`."""
        return import_module(".exports", __package__).to_sql(self, columns, dialect, **options)

    def to_json(self, **options: Any) -> str:
        """Return the fitted map as JSON, see `calibrant.exports.to_json`."""
        return import_module(".exports", __package__).to_json(self, **options)

    def _sizes(self) -> dict[str, int]:
        """Sizes that ``_state`` speaks of and that the parameters settle."""
        return {}

    def _check_state(self) -> None:
        """Raise where attributes read from a file do not fit one another, in ways that ``_state`` cannot say."""

    # What a map implements ------------------------------------------------------------------------------------

    def _fit(self, data: Data) -> FitReport:
        """Learn from passes over the rows; a map that needs them in memory overrides `_fit_rows` instead."""
        some = self._sampled(data)
        return stated(self._fit_rows(some.rows()), some, data)

    def _sampled(self, data: Data) -> Data:
        """Return the rows that a map is fitted on which needs them in memory: all, or a sample that it states."""
        return data if data.in_memory else data.pilot(self._sample_rows)

    def _fit_rows(self, sample: Block) -> FitReport:
        raise NotImplementedError

    def _map(self, logits: Floats) -> Floats:
        """Probabilities for validated logits, which may hold -inf (a class that cannot be)."""
        raise NotImplementedError

    def _map_logits(self, logits: Floats) -> Floats | None:
        """The map's answer as logits, where it is exact without a logarithm: for the next link of a chain."""
        return None

    def _formula(self, z: Term) -> Term:
        """What `_map` computes, as a formula that can be shipped: probabilities of logits, which may be -inf."""
        raise InvalidInput(
            f"{self.called} cannot be exported: it has no formula of plain operations",
            hint="call predict_proba where the map is needed, or export another map",
        )

    def _logits_formula(self, z: Term) -> Term | None:
        """What `_map_logits` computes, likewise."""
        return None

    # Shared ---------------------------------------------------------------------------------------------------

    def link_formula(self, z: Term) -> Term:
        """Return what `link_logits` computes, as a formula; one node for all that begin with this map."""

        def make() -> Term:
            logits = self._logits_formula(z)
            return (logs_formula(self._formula(z), z) if logits is None else logits).rounded()

        return z.formula.once(("link", id(self), z.place), make)

    def link_logits(self, logits: Floats) -> Floats:
        """Return the answer as finite logits, which the next link of a chain is fitted on and applied to.

        What a map has rounded to zero becomes next to nothing; a class that was masked out stays so. Single precision
        is computed in double and rounded once: a link behind may be as steep as an isotonic map.
        """
        return rounded_once(self._linked_logits, logits)

    def _linked_logits(self, logits: Floats) -> Floats:
        answer = self._map_logits(logits)
        if answer is None:
            return finite_logs(self._map(logits), logits)
        if answer.min(initial=np.inf) > -np.inf:
            return answer
        return floored(answer, np.isneginf(answer) & ~np.isneginf(logits))

    def _judged(self, report: FitReport, data: Data) -> FitReport:
        """Fill in the losses on rows that a fit has not seen; the map is fitted on all of them."""
        before = softmax if self._needs == "scores" else Frequencies(data.class_weights)
        return cross_validate(report, data, self._fit_copy, before)

    def _fit_copy(self, data: Data) -> Any:
        copy = self.unfitted()
        copy.fit_data(data)
        return copy._map

    def unfitted(self) -> Self:
        """Return a copy with the same parameters and nothing learnt."""
        copy = cast("Self", clone(self))
        copy._made_as = self._made_as
        return copy

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """As in scikit-learn, which would read the constructor anew for every copy of a map."""
        if "_parameter_names" not in vars(cls):
            cls._parameter_names = tuple(super()._get_param_names())
        return list(cls._parameter_names)

    def _check_parameters(self) -> None:
        own = {"inputs": OneOf("logits", "probabilities"), "saturated": OneOf("small", "exact")}
        check_parameters(self, own | dict(self._constraints))
        for value in self.get_params(deep=False).values():
            if isinstance(value, Calibrator):
                value._check_parameters()

    def _read(self, scores: Any, classes: Any) -> Scores:
        if self._needs == "embeddings":
            return as_embeddings(scores)
        return as_second(as_scores(scores, self.inputs), self.inputs, classes)

    def _scores_to_map(self, scores: Any) -> Scores:
        check_is_fitted(self, "fit_report_")
        order = self._order(column_names(scores))
        shape = shape_of(scores)
        if len(shape) == 2 and shape[1] > 1 and shape[0]:
            self._refuse_other_width(shape, shape[1])
        valid = self._read(scores, self.classes_)
        self._refuse_other_width(valid.shape, valid.logits.shape[1])
        if order is not None:
            valid = replace(valid, logits=np.ascontiguousarray(valid.logits[:, order]), columns=None)
        if not valid.has_minus_infinity or self.saturated == "exact" or not hasattr(self, "zero_"):
            return valid
        return replace(valid, logits=read_zeros(valid.logits, self.zero_))

    def _refuse_other_width(self, shape: tuple[int, ...], width: int) -> None:
        if width != self.n_features_in_:
            raise InvalidInput(
                f"X has {shape[-1] if len(shape) > 1 else 1} features, but {type(self).__name__} is "
                f"expecting {self.n_features_in_} features as input: the scores must have the columns they had in fit",
                seen=f"shape {tuple(shape)}",
                hint="Reshape your data" if len(shape) == 1 else "",
            )

    def _remember_columns(self, names: tuple[Any, ...] | None, count: int) -> None:
        self.n_features_in_ = count
        names = None if names is None or len(names) != count else names  # one score of two classes is no column of each
        if names is not None and (all(isinstance(c, str) for c in names) or not says_nothing(names)):
            self.feature_names_in_ = np.asarray([str(c) for c in names], dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _order(self, columns: tuple[Any, ...] | None) -> Integers | None:
        """Return which column of a frame is the first, second, … of those in fit: their names decide.

        They are compared before any number is read: with a column too many no row is a distribution. One column alone
        is the score of the second of two classes, or of the one that it names.
        """
        known = getattr(self, "feature_names_in_", None)
        if columns is None or len(columns) == 1 or (known is not None and list(known) == list(columns)):
            return None
        return column_order(columns, known, None if self._needs == "embeddings" else self.classes_)


class Summand(NamedTuple):
    """Fitted maps one after the other, links and then the last, and the weight of their answer in a sum."""

    links: tuple[Calibrator, ...]
    last: Calibrator
    weight: float


@dataclass(frozen=True, eq=False)
class Frequencies:
    """Answers the share of each class for any row: what is known without a map where there are no scores."""

    class_weights: Array

    def __call__(self, rows: Floats) -> Array:
        """Return the shares, a row for each row."""
        return np.tile(self.class_weights / self.class_weights.sum(), (len(rows), 1))


def _numbers_in(learnt: Any) -> float:
    if isinstance(learnt, Calibrator):
        return learnt._count_parameters()
    if isinstance(learnt, (list, tuple)):
        return sum(map(_numbers_in, learnt))
    return np.size(learnt)


def _refuse_one_class(data: Data, classes: NDArray[Any], traits: Traits) -> None:
    """Raise where rows of one class alone have a weight.

    A single row cannot do better, and is told so; maps on one score have an answer to a binary problem (an event that
    never or always happened), and warn.
    """
    seen = np.flatnonzero(data.class_weights > 0)
    if data.n == 1:
        caution("one row says little: the map is fitted on it alone")
    elif len(seen) == 1:
        only = classes[seen[0]].item()
        if traits.shape == "binary" and len(classes) == 2:
            caution(f"y holds one class only, {only!r}: the map learns that nothing else happens")
            return
        raise InvalidInput(
            "y holds one class only: calibration needs rows of at least two classes",
            seen=f"every label with a positive weight is {only!r}",
        )
