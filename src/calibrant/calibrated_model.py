"""A whole classifier with calibrated probabilities: an estimator, and a map fitted on its held-out scores."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Bunch, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, column_or_1d, has_fit_parameter

from .arrays import best_column
from .calibrator import Calibrator
from .declared import declared, parameter
from .errors import InvalidInput, blamed, caution
from .fitted_events import EventPair, are_several, event_map, fit_events
from .fitted_pair import (
    FOLDS,
    METHODS,
    FittedPair,
    Held,
    classes_of,
    fit_map,
    hold_out,
    pick_method,
    scores_of,
    shared_weights,
    splits_of,
    unfitted_copy,
)
from .fold_curves import FoldCurves
from .parameters import AnyOf, Instance, Integer, OneOf, check_parameters
from .registry import make
from .types import Floats, Integers, Self
from .validation import as_array, as_labels, as_weights, refuse_missing

# An ensemble of few rows answers to the power 1 + 100 / (200 + n), of two classes 1 + 60 / (200 + n): 1.2 with 90 rows,
# 1.06 with 800. Chosen, like the weights below, on sets that docs/evidence/grid.md names.
_SHARPER, _SHARPER_OF_TWO, _FEW_ROWS = 100, 60, 200
_AT_ONCE = 1000  # rows up to which one call of the map answers for all estimators: few rows are quick, many take memory
_WHOLE = 0.25  # the weight of the estimator of all rows beside those of folds that are dealt several times
_CURVES = 0.4  # and of the curves of single folds beside the map
_CURVES_OF_TWO = 2000  # rows of two classes up to which there are curves: with 800 they gain, with 5,000 no longer


@declared
class CalibratedModel(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier whose probabilities are corrected by a map fitted on scores it was not trained on.

    Parameters
    ----------
    estimator : classifier
        Anything with ``fit`` and one of the score methods: a pipeline, a search, a `FrozenEstimator`.
    calibrator : Calibrator or str
        A map, or its registered name; by default a blend of maps of every kind, weighed by their held-out losses,
        which shares the answer with isotonic curves of each fold (``cv="auto"`` and five rows of each class, up to
        200 rows, of two classes 2,000).
        It is cloned; its ``inputs`` and ``classes`` are set by the method of scores.
    cv : "auto", int, splitter, iterable of (train, test) or "prefit"
        How rows are held out. "auto" has five stratified folds; up to 200 rows of classes of five and more they are
        dealt two to four times, and an estimator of all rows joins the ensemble, so that there are up to 21
        (``cv=5`` has five, and no curves of folds; docs/evidence/grid.md). A row that is held out several times counts
        once. "prefit", or a `FrozenEstimator`, uses the estimator as it is and fits the map on all rows, which the
        estimator must not have seen.
    response_method : {"auto", "decision_function", "predict_log_proba", "predict_proba"}
        Where scores come from. The first two give logits, the last probabilities. "auto" takes the first of the
        three, in this order, that the estimator has; the values play no role. Log-probabilities below log 2⁻⁵³, beside
        which another class is certain in every digit, go on from there by their logarithm.
    ensemble : bool
        True: one estimator a split, whose calibrated probabilities are averaged (and made a little surer where rows
        are few, as several err less often than each of them). False: one estimator, fitted on all rows. Either way
        there is one map, fitted on the held-out scores of all splits together: a map for each split alone would learn
        from a fifth of the rows.
    n_jobs : int, optional
        Splits fitted at the same time, by joblib.

    Attributes
    ----------
    classes_ : array of shape (K,)
    calibrated_classifiers_ : list of FittedPair
        Each has ``estimator``, ``calibrator`` and ``predict_proba``.
    response_method_ : str
        The method in use.
    fit_reports_ : list of FitReport
    n_features_in_, feature_names_in_
        As the estimator has them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> CalibratedModel(GaussianNB(), "ts", cv=3).fit(X, y).predict_proba(X).shape
    (150, 3)
    """

    _constraints: ClassVar[dict[str, Any]]
    estimator: Any = parameter()
    calibrator: Calibrator | str = parameter(
        Instance((Calibrator, str), "a calibrator, or the registered name of one"), default="blend"
    )
    cv: Any = parameter(default="auto", kw_only=True)
    response_method: str = parameter(OneOf("auto", *METHODS), default="auto", kw_only=True)
    ensemble: bool = parameter(OneOf(True, False), default=True, kw_only=True)
    n_jobs: int | None = parameter(AnyOf(OneOf(None), Integer(low=-(2**31))), default=None, kw_only=True)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Fit the estimator and the map.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Whatever the estimator takes.
        y : array-like of shape (n,), or (n, L) for events that may happen together
            A `MultiOutputClassifier` or a one-vs-rest pipeline then gives the scores, and the map is a `MultiLabel`.
        sample_weight : array-like of shape (n,), optional
            For the map, and for the estimator where it takes weights.
        **fit_params
            Handed to the estimator's fit, or routed where metadata routing is on.
        """
        calibrator = self._check_parameters()
        if are_several(y):
            return self._fit_events(X, np.asarray(y), sample_weight, calibrator, fit_params)
        y = _target(y)
        weights = as_weights(sample_weight, len(y))
        X, y, sample_weight = _together(X, y, sample_weight)
        self._held_weight = float(len(y) if weights is None else weights.sum())
        routed = self._routed(sample_weight, fit_params)
        self.response_method_ = pick_method(self.estimator, self.response_method)
        self._has_whole = False
        self._fold_curves: list[FoldCurves] = []
        if self._is_prefit:
            self._fit_map_only(X, y, weights, calibrator)
        else:
            self._fit_both(X, y, weights, calibrator, routed)
        first = self.calibrated_classifiers_[0].estimator
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(first, name):
                setattr(self, name, getattr(first, name))
            elif hasattr(self, name):
                delattr(self, name)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return calibrated probabilities of shape (n, K), averaged over the ensemble (see `ensemble`)."""
        check_is_fitted(self, "calibrated_classifiers_")  # a fit that failed left other attributes
        if self._has_events:
            return _mean([pair.predict_proba(X) for pair in self.calibrated_classifiers_])
        return self._pooled([pair.scores(X) for pair in self.calibrated_classifiers_])

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row; ties are broken by the scores of the estimators."""
        check_is_fitted(self, "calibrated_classifiers_")
        if self._has_events:
            return (self.predict_proba(X) > 0.5).astype(np.int64)
        scores = [pair.scores(X) for pair in self.calibrated_classifiers_]
        return self.classes_[best_column(self._pooled(scores), _mean(scores))]

    @property
    def _has_events(self) -> bool:
        return isinstance(self.calibrated_classifiers_[0], EventPair)

    def _fit_events(
        self, X: Any, y: NDArray[Any], sample_weight: Any, calibrator: Calibrator, fit_params: dict[str, Any]
    ) -> Self:
        """Fit on events that may happen together: a column of y for each, and a `MultiLabel` for the map."""
        chosen = event_map(calibrator, default=self.calibrator == "blend")
        weights = as_weights(sample_weight, len(y))
        self.response_method_, self.classes_ = "predict_proba", np.arange(y.shape[1])
        self.calibrated_classifiers_: list[Any] = fit_events(self, X, y, weights, chosen, self._is_prefit, fit_params)
        return self

    def _pooled(self, scores: list[Floats]) -> Floats:
        """Return what all estimators and the map say together, with a share of the folds' own curves if there are any.

        One map for all sees scores of several estimators, whose scales differ, and is timid where any of them erred. A
        curve for each is sharp, and fits its own; the share is worth 2 to 4 % of the log-loss (docs/evidence/grid.md).
        """
        mean = self._surer(self._averaged(scores))
        if self._fold_curves:
            folds = zip(self._fold_curves, scores[: len(self._fold_curves)], strict=True)
            beside = _mean([curves.predict_proba(part) for curves, part in folds])
            mean += mean.dtype.type(_CURVES) * (beside.astype(mean.dtype) - mean)
        return mean

    def _averaged(self, scores: list[Floats]) -> Floats:
        """Return the mean of what the map says of each estimator's scores."""
        calibrator = self.calibrated_classifiers_[0].calibrator  # of all of them
        parts = [np.concatenate(scores)] if len(scores[0]) <= _AT_ONCE else scores
        said = np.concatenate([calibrator.predict_proba(part) for part in parts])
        answers = said.reshape(len(scores), *scores[0].shape)
        if not self._has_whole:
            return answers.mean(axis=0)
        mean = answers[:-1].mean(axis=0)
        return mean + mean.dtype.type(_WHOLE) * (answers[-1] - mean)

    def _surer(self, mean: Floats) -> Floats:
        """Return the mean of an ensemble to a power; of two classes only where the folds' curves temper it.

        The map has learnt how often one estimator errs. Several together err less often, by most where each saw few
        rows of a class; on 90 rows the mean alone is some 4 % behind in log-loss (docs/evidence/grid.md).
        """
        of_two = mean.shape[1] == 2
        if len(self.calibrated_classifiers_) == 1 or (of_two and not self._fold_curves):
            return mean
        power = 1.0 + (_SHARPER_OF_TWO if of_two else _SHARPER) / (_FEW_ROWS + self._held_weight)
        surer = mean**power
        surer = np.maximum(surer, np.where(mean > 0, np.finfo(mean.dtype).tiny, 0))  # nothing is ruled out by this
        return surer / surer.sum(axis=1, keepdims=True)

    @property
    def fit_reports_(self) -> list[Any]:
        """The report of each fitted map."""
        check_is_fitted(self, "calibrated_classifiers_")
        return [pair.calibrator.fit_report_ for pair in self.calibrated_classifiers_]

    def get_metadata_routing(self) -> MetadataRouter:
        """Say which metadata goes where: to the estimator's fit and to the splitter's split."""
        to_fit, to_split = (MethodMapping().add(caller="fit", callee=callee) for callee in ("fit", "split"))
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=to_fit).add(
            splitter=self.cv if hasattr(self.cv, "split") else None, method_mapping=to_split
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = _is_of_sklearn(self.estimator) and get_tags(self.estimator).input_tags.sparse
        return tags

    # The steps of a fit -----------------------------------------------------------------------------------------

    @property
    def _is_prefit(self) -> bool:
        return isinstance(self.estimator, FrozenEstimator) or (isinstance(self.cv, str) and self.cv == "prefit")

    def _check_parameters(self) -> Calibrator:
        check_parameters(self, self._constraints)
        if isinstance(self.cv, str) and self.cv not in ("auto", "prefit"):
            raise InvalidInput(
                "CalibratedModel: cv is not valid",
                seen=repr(self.cv),
                allowed='"auto", a number of folds, a splitter, "prefit"',
            )
        if self.n_jobs == 0:
            raise InvalidInput("CalibratedModel: n_jobs is not valid", seen="0", allowed="None, a number, -1 for all")
        if not hasattr(self.estimator, "fit"):
            raise InvalidInput("CalibratedModel: estimator has no fit method", seen=repr(self.estimator))
        calibrator = make(self.calibrator) if isinstance(self.calibrator, str) else self.calibrator
        if calibrator.traits.needs != "scores":
            raise InvalidInput(
                f"CalibratedModel: calibrator {type(calibrator).__name__} needs {calibrator.traits.needs}, which an "
                "estimator does not give"
            )
        return calibrator

    def _routed(self, sample_weight: Any, fit_params: dict[str, Any]) -> Any:
        if get_config()["enable_metadata_routing"]:
            return process_routing(self, "fit", sample_weight=sample_weight, **fit_params)
        for_estimator = dict(fit_params)
        if sample_weight is not None and has_fit_parameter(self.estimator, "sample_weight"):
            for_estimator["sample_weight"] = sample_weight
        elif sample_weight is not None and not self._is_prefit:
            caution(
                f"{type(self.estimator).__name__} does not take sample_weight: the weights are used for the map only"
            )
        return Bunch(estimator=Bunch(fit=for_estimator), splitter=Bunch(split={}))

    def _fit_map_only(self, X: Any, y: Any, weights: Any, calibrator: Calibrator) -> None:
        if _is_of_sklearn(self.estimator):
            check_is_fitted(self.estimator)
        self.classes_ = classes_of(self.estimator)
        labels, _ = as_labels(y, len(self.classes_), len(y), self.classes_)
        scores = scores_of(self.estimator, X, self.classes_, self.response_method_)
        fitted = fit_map(calibrator, Held(scores, labels, weights), self.response_method_, self.classes_)
        self.calibrated_classifiers_ = [FittedPair(self.estimator, fitted, self.classes_, self.response_method_)]

    def _fit_both(self, X: Any, y: Any, weights: Any, calibrator: Calibrator, routed: Any) -> None:
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InvalidInput(
                "y holds one class only: a classifier needs at least two", seen=repr(self.classes_.tolist())
            )
        splits = splits_of(self.cv, X, y, len(y), classifier=True, **routed.splitter.split)
        weights = shared_weights(weights, splits, len(labels))
        method, params = self.response_method_, routed.estimator.fit
        parts: Any = Parallel(n_jobs=self.n_jobs)(
            delayed(hold_out)(unfitted_copy(self.estimator), X, y, train, test, self.classes_, method, params)
            for train, test in splits
        )
        held = [
            Held(scores, labels[test], None if weights is None else weights[test])
            for (_, scores), (_, test) in zip(parts, splits, strict=True)
        ]
        estimators = [estimator for estimator, _ in parts] if self.ensemble else []
        automatic = self.ensemble and isinstance(self.cv, str)
        self._has_whole = automatic and len(splits) > FOLDS
        if self._has_whole or not self.ensemble:
            estimators.append(unfitted_copy(self.estimator).fit(X, y, **params))
        if automatic and self._has_curves(labels):
            self._fold_curves = [FoldCurves.of(one, method) for one in held]
        fitted = fit_map(calibrator, Held.joined(held), method, self.classes_)
        self.calibrated_classifiers_ = [FittedPair(e, fitted, self.classes_, method) for e in estimators]

    def _has_curves(self, labels: Integers) -> bool:
        """Tell whether the folds' own curves are worth a share: few rows, of which every fold has each class."""
        few = self._has_whole or (len(self.classes_) == 2 and len(labels) <= _CURVES_OF_TWO)
        return self.calibrator == "blend" and few and bool(np.bincount(labels).min() >= FOLDS)


def _target(y: Any) -> NDArray[Any]:
    if y is None:
        raise InvalidInput("CalibratedModel requires y to be passed, but the target y is None")
    refuse_missing(as_array(y, "y")[0], "y")
    with blamed("y cannot be read as labels", TypeError, ValueError, problem=InvalidInput):
        y = column_or_1d(y, warn=True)
        with np.errstate(invalid="ignore"):  # of NaN, which is refused
            check_classification_targets(y)
    return y


def _together(X: Any, y: Any, sample_weight: Any) -> list[Any]:
    """Return rows, labels and weights in containers that take indices, one row each."""
    what = "CalibratedModel: X, y and weights must have as many rows"
    if X is None:
        raise InvalidInput(what, seen="None")
    with blamed(what, TypeError, ValueError, problem=InvalidInput):
        return indexable(X, y, sample_weight)


def _is_of_sklearn(estimator: Any) -> bool:
    """Tell whether an estimator has tags, without which scikit-learn looks at none."""
    try:
        get_tags(estimator)
    except (AttributeError, TypeError):
        return False
    return True


def _mean(parts: list[Floats]) -> Floats:
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total / total.dtype.type(len(parts))
