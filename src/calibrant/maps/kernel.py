"""KCal: class probabilities from a kernel density on projected embeddings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..arrays import rounded_once, softmax
from ..declared import attribute, declared, parameter
from ..errors import InvalidInput
from ..fits.judge import Comparison, judged, label_losses
from ..fits.report import FitReport
from ..formulas import Term
from ..invariants import Optional, Values
from ..made import made_once
from ..parameters import AnyOf, Instance, Integer, Number, OneOf, check_value
from ..passes import Block, in_memory
from ..traits import Traits
from ..types import Array, Floats, Integers
from ..validation import as_labels, as_weights
from .beside import Beside
from .class_means import are_few, around_means, class_means, clearly_lower
from .density import (
    TRIAL_ROWS,
    Support,
    Trial,
    best_bandwidth,
    class_formula,
    class_probabilities,
    held_out,
    leave_one_out,
    mean_loss,
    relative_kernels,
    rule_factor,
    shares_places,
    spread_of,
)
from .projected import FOLDS, Learn, weighty
from .projection import LEARNT, Projection, merged
from .prototypes import compression_loss, herd

_AGAIN = 1.25  # as many rows as at the last search of the bandwidth, times this: then it is searched again
_TELLING = 100  # rows that can tell which bandwidth is better
_GLANCE = 200  # rows that a change of the rows is judged by


@declared
class KCal(Beside):
    """``P(c | x) ∝ Σ_{j in c} exp(-|Π(x) - Π(xⱼ)|² / (2 h²))`` over the calibration rows (KCal, paper 001, Eq. 3).

    Π is learnt on training rows by `fit_projection`; `fit` keeps the projected calibration rows and picks h. Where
    `fit_projection` was not called, Π is learnt on the calibration rows by cross-fitting: in each of three folds a Π of
    the other rows, with these as support, predicts the fold; h is the best for these predictions, whose loss is the
    held-out loss reported, and the final Π and support have all rows. That costs four trainings instead of one. The
    paper's code writes its kernel as exp(-mean Δ² / b): that b is 2 h² / d here.

    Parameters
    ----------
    projection : {"learned", "linear", "lda", "pca", "identity"} or callable
        "learned" is the paper's network with a skip connection (Figure 6), "linear" its linear variant (App. D); both
        need the torch extra to learn, not to predict. Fewer than 300 training rows, or 450 calibration rows where
        there are no others, are too few to train on: "lda" takes their place, with a warning. A callable is applied
        as it is and cannot be saved.
    dim : int, optional
        Dimensions after projection; min(dimensions, 32), or 128 for 1,000 classes and more.
    bandwidth : "cv", "rule" or float
        "cv" minimises the leave-one-out (or out-of-fold) log-loss; "rule" is the spread times n^(-1/(d+4)).
    kernel : {"rbf"}
    random_state : int, optional
        Seed of the training; None is 0, so that a fit is repeatable.
    capacity : int, optional
        The most calibration rows kept; all by default. A class keeps at least one.
    keep : {"herding", "reservoir"}
        Which: prototypes by kernel herding within each class, which take the weights of the rows nearest to them; or an
        even sample of all rows ever seen. ``fit_report_.details["compression"]`` has what that costs in log-loss.
    inputs : {"embeddings", "logits", "probabilities"}
        On scores (App. E) rows are centred first: logits and log-probabilities of a model give the same map.
    classes : sequence, optional
        All classes, where some are missing from the rows.

    Attributes
    ----------
    bandwidth_ : float
    projection_ : dict of arrays, or None
        Π: mean, scale, weight, bias, mix; ``projection_losses_`` has the held-out losses of its training.
    projection_source_ : {"training rows", "calibration rows"}
    projection_kind_ : str
        How Π was learnt: as ``projection`` says, or "lda" where there were too few rows to train on; also in
        ``fit_report_.details["projection"]``.
    points_ : array of shape (n, d)
        The projected calibration rows, in the order they came; ``labels_`` and ``weights_`` go with them.
    support_ : {"rows", "class means"}
        Where the kernels are: at every row, or, where rows a class are few and that does better on rows of other
        folds, at the mean of each class.
    classifier_ : TemperatureScaling, or None
        Of the classifier's own scores, where `fit` was given these; ``answers_by_`` says which did better.
    """

    _identifier = "kcal"
    projection: Any = parameter(
        AnyOf(OneOf(*LEARNT, "identity"), Instance((Callable,), "a callable")), default="learned"
    )
    dim: int | None = parameter(AnyOf(OneOf(None), Integer(1)), default=None)
    bandwidth: Any = parameter(AnyOf(OneOf("cv", "rule"), Number(1e-100, 1e100)), default="cv")
    kernel: str = parameter(OneOf("rbf"), default="rbf")
    random_state: int | None = parameter(AnyOf(OneOf(None), Integer(0)), default=None)
    capacity: int | None = parameter(AnyOf(OneOf(None), Integer(1)), default=None)
    keep: str = parameter(OneOf("herding", "reservoir"), default="herding")
    inputs: str = parameter(OneOf("embeddings", "logits", "probabilities"), default="embeddings", kw_only=True)
    points_: Floats = attribute(Values("rows", "dimensions", low=-1e100, high=1e100))
    labels_: Integers = attribute(Values("rows", kind="i", low=0, below="K"))
    weights_: Array = attribute(Values("rows", low=0))
    keys_: Array = attribute(Optional(Values("rows", low=0, high=1)))
    bandwidth_: float = attribute(Number(1e-120, 1e120))
    support_: str = attribute(Optional(OneOf("rows", "class means")), default="rows")
    searched_at_: float = attribute(Optional(Number(0)), default=0.0)
    learnt_on_: int = attribute(Optional(Integer(0)), default=0)

    @property
    def traits(self) -> Traits:
        """Those of a map on embeddings, or on scores where ``inputs`` names these."""
        needs = "embeddings" if self.inputs == "embeddings" else "scores"
        return Traits("kernel", "nothing", "full", "n", needs, sees="sample")

    def _fit_rows(self, sample: Block) -> FitReport:
        self._check_dimensions(sample.logits)
        sample = weighty(sample)
        given, place = merged(sample.with_logits(self._features(sample.logits)))
        self.support_, self.searched_at_ = "rows", sample.total_weight
        apart = given.n >= 4 * FOLDS and not shares_places(_support_of(given.logits, given))
        trials: list[Trial] = []
        if getattr(self, "projection_source_", "") != "training rows":
            self.projection_kind_ = self._kind(given.n - given.n // FOLDS)  # the same for the folds and all rows
            self.projection_source_ = "calibration rows"
            trials = self._cross_fit(given, self._learn, _support_of) if self._learns and apart else []
            self.projection_, self.projection_losses_ = self._learn(given)
        points = self._project(given.logits)
        if not trials:
            trials = [self._leave_one_out(points, given)]
        self.bandwidth_ = self._pick(trials, points, given)
        if apart and self._may_take_means and are_few(given):
            trials, points = self._try_means(given, trials, points)
        self.points_, self.labels_, self.weights_ = points[place], sample.labels, sample.weight_array
        self.learnt_on_ = len(place) if self._learns and self.projection_source_ == "calibration rows" else 0
        self.keys_ = np.random.default_rng(self.random_state or 0).random(len(self.points_))
        return self._report(trials, self._limit())

    def _cross_fit(self, sample: Block, learn: Learn, around: Callable[[Floats, Block], Support]) -> list[Trial]:
        """Rows of each fold, predicted by a projection and a support that have not seen them."""
        trials = []
        for rest, fold in _folds(sample):
            found, _ = learn(rest)
            project = Projection(**found) if found else self._project
            judged = fold.with_logits(project(fold.logits))
            support = around(project(rest.logits), rest)
            trials.append(held_out(support, judged, self._losses_before(fold), TRIAL_ROWS // FOLDS))
        return trials

    @property
    def _may_take_means(self) -> bool:
        """Whether Π and the bandwidth are ours to choose."""
        return self.bandwidth == "cv" and self.capacity is None and self.projection in ("learned", "linear", "lda")

    def _try_means(self, sample: Block, trials: list[Trial], points: Floats) -> tuple[list[Trial], Floats]:
        """Take the means of the classes as support where that is clearly better on the rows of other folds."""
        anew = self.projection_source_ == "calibration rows"
        learn = self._discriminants if anew else self._as_it_is
        means = self._cross_fit(sample, learn, around_means)
        bandwidth = self._pick(means, points, sample)
        if not clearly_lower(means, bandwidth, trials, self.bandwidth_):
            return trials, points
        self.bandwidth_, self.support_ = bandwidth, "class means"
        if anew:
            self.projection_kind_ = "lda"
            self.projection_, self.projection_losses_ = learn(sample)
        return means, self._project(sample.logits)

    def _as_it_is(self, sample: Block) -> tuple[dict[str, Array] | None, list[float]]:
        return getattr(self, "projection_", None), []

    def _leave_one_out(self, points: Floats, sample: Block) -> Trial:
        support = _support_of(points, sample)
        before = self._losses_before(sample)
        if sample.n == 1:
            return held_out(support, sample.with_logits(points), before)
        return leave_one_out(support, before)

    def _losses_before(self, sample: Block) -> Array:
        """Log-losses of the scores as they came, or of the class frequencies where there are none."""
        if self.inputs != "embeddings":
            return np.minimum(label_losses(softmax(sample.logits), sample.labels), 1e4)
        share = np.bincount(sample.labels, sample.weights, sample.n_classes) / sample.total_weight
        return -np.log(share[sample.labels])

    def _pick(self, trials: list[Trial], points: Floats, sample: Block) -> float:
        if not isinstance(self.bandwidth, str):
            return float(self.bandwidth)
        spread = spread_of(points, sample.weights)
        if self.bandwidth == "cv" and sample.n > 1:
            return best_bandwidth(trials, spread)
        return spread * rule_factor(self._size(sample.total_weight), points.shape[1])

    def _size(self, weight: float) -> float:
        """How many rows the bandwidth is for: no more than are kept."""
        return min(weight, self.capacity or np.inf)

    def _limit(self) -> dict[str, Any]:
        """Keep no more rows than the capacity; return what that costs."""
        if self.capacity is None or len(self.points_) <= self.capacity:
            return {}
        if self.keep == "herding":
            kept, shares = herd(self.points_, self.labels_, self.weights_, self.bandwidth_, self.capacity)
        else:
            kept = np.sort(np.argsort(self.keys_, kind="stable")[: self.capacity])
            shares = self.weights_[kept]
        rows, k = len(self.points_), len(self.classes_)
        losses = compression_loss(self.points_, self.labels_, self.weights_, kept, shares, self.bandwidth_, k)
        self.points_, self.labels_, self.weights_ = self.points_[kept], self.labels_[kept], shares
        self.keys_ = self.keys_[kept]
        return {"compression": {"rows": rows, "kept": len(kept), "nll_exact": losses[0], "nll_kept": losses[1]}}

    def _report(self, trials: list[Trial], more: dict[str, Any] | None = None) -> FitReport:
        before = np.concatenate([trial.before for trial in trials])
        after = np.concatenate([trial.losses(self.bandwidth_) for trial in trials])
        weights = np.concatenate([trial.weights for trial in trials])
        first, loss = float(weights @ before / weights.sum()), mean_loss(trials, self.bandwidth_)
        known = "class frequencies" if self.inputs == "embeddings" else "scores"
        details = {"before": known, "projection": self.projection_kind_, "support": self.support_, **(more or {})}
        details["error"] = float(np.sqrt(weights**2 @ (after - loss) ** 2) / weights.sum())  # of the held-out loss
        report = FitReport(0, True, "nll", first, loss, messages=self._messages(), details=details)
        trained_on = float(np.mean([trial.support.total for trial in trials]))
        return judged(report, Comparison.of(before, after, weights), trained_on)

    def _messages(self) -> tuple[str, ...]:
        if self.support_ == "rows" or self.projection == "lda":
            return self._untrained()
        return (
            f"{len(self.labels_)} rows of {len(np.unique(self.labels_))} classes are too few for a kernel on each: one "
            "at the mean of each class does better on rows of other folds, and serves instead",
        )

    def _count_parameters(self) -> float:
        """The bandwidth, the points that are kept or the means of the classes, and the numbers of the projection."""
        projection = (getattr(self, "projection_", None) or {}).values()
        points = self.points_.size if self.support_ == "rows" else self._support().points.size
        return 1 + points + sum(np.size(part) for part in projection)

    def _support(self) -> Support:
        parts = (self.points_, self.labels_, self.weights_)
        around = around_means if self.support_ == "class means" else _support_of
        return made_once(self, parts, lambda: around(self.points_.astype(np.float64), self._rows()))

    def _rows(self) -> Block:
        """The projected calibration rows."""
        return Block(self.points_, self.labels_, self.weights_, len(self.classes_))

    def _map(self, logits: Floats) -> Floats:
        """In double: at distances of many bandwidths single precision is wrong by 4e-6, and by more further out."""
        if callable(self.projection):  # a function of the user's sees rows as they came
            return self._answers(logits).astype(logits.dtype, copy=False)
        return rounded_once(self._answers, logits)

    def _answers(self, rows: Floats) -> Floats:
        points = self._project(self._features(rows)).astype(np.float64, copy=False)
        return class_probabilities(self._support(), points, self.bandwidth_)

    def _formula(self, z: Term) -> Term:
        return class_formula(self._support(), self._projected_formula(z), self.bandwidth_)

    def partial_fit(self, embeddings: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> KCal:
        """Add calibration rows; a rule for the bandwidth is applied anew.

        A bandwidth that was searched shrinks by n^(-1/(d+4)), and is searched again, on rows that Π was not learnt on,
        whenever the rows have grown by a quarter since it last was (paper 001, App. G: compute it, and search
        sparingly); not where ``capacity`` has made some rows stand for others. The width of a kernel at the mean of m
        rows follows √(1 + 1/m), as the spread of another row around it does.

        ``classes`` names all classes in the first call, where some are missing from its rows, as in scikit-learn.
        """
        if not hasattr(self, "points_"):
            return self._first_fit(embeddings, y, classes, sample_weight)
        if classes is not None and list(np.asarray(classes)) != list(self.classes_):
            raise InvalidInput("classes are not those of the first rows", seen=str(classes), allowed=str(self.classes_))
        valid = self._scores_to_map(embeddings)
        labels, _ = as_labels(y, len(self.classes_), len(valid.logits), self.classes_)
        weights = as_weights(sample_weight, len(labels))
        sample = weighty(Block(self._features(valid.logits), labels, weights, len(self.classes_)))
        before = self._size(float(self.weights_.sum()))
        self.points_ = np.vstack([self.points_, self._project(sample.logits).astype(self.points_.dtype)])
        self.labels_ = np.concatenate([self.labels_, sample.labels])
        self.weights_ = np.concatenate([self.weights_, sample.weight_array])
        fresh = np.random.default_rng([self.random_state or 0, self.n_samples_, len(self.labels_)])
        self.keys_ = np.concatenate([self.keys_, fresh.random(sample.n)])
        self.n_samples_ += sample.n
        if self.bandwidth == "cv":
            self._adjust(before)
        return self._changed()

    def _adjust(self, before: float) -> None:
        """Bring a bandwidth that was searched for so many rows up to date."""
        total, d = float(self.weights_.sum()), self.points_.shape[1]
        whole = self.capacity is None or self.n_samples_ <= self.capacity
        unseen = np.arange(self.learnt_on_, len(self.points_))
        if self.support_ == "class means":
            classes = len(np.unique(self.labels_))
            self.bandwidth_ *= float(np.sqrt((1.0 + classes / total) / (1.0 + classes / before)))
        elif whole and total >= _AGAIN * self.searched_at_ and len(unseen) >= _TELLING:
            trial = leave_one_out(self._support(), np.zeros(len(self.points_)), among=unseen)
            self.bandwidth_, self.searched_at_ = self._pick([trial], self.points_, self._rows()), total
        else:
            self.bandwidth_ *= rule_factor(self._size(total), d) / rule_factor(before, d)

    def _first_fit(self, embeddings: Any, y: Any, classes: Any, sample_weight: Any) -> KCal:
        own, self.classes = self.classes, self.classes if classes is None else classes
        try:
            return self.fit(embeddings, y, sample_weight)
        finally:
            self.classes = own

    def forget(self, before: int) -> KCal:
        """Drop the calibration rows that came first, ``before`` of them."""
        check_is_fitted(self, "fit_report_")
        check_value("before", before, Integer(0))
        if before >= len(self.points_):
            raise InvalidInput("before must leave a row", seen=repr(before), allowed=f"0 to {len(self.points_) - 1}")
        self.points_, self.labels_ = self.points_[before:], self.labels_[before:]
        self.weights_, self.keys_ = self.weights_[before:], self.keys_[before:]
        self.n_samples_ = len(self.points_)
        self.learnt_on_ = max(0, self.learnt_on_ - before)
        return self._changed()

    def _changed(self) -> KCal:
        """Bring what follows from the rows up to date."""
        if self.bandwidth == "rule":
            self.bandwidth_ = self._pick([], self.points_, self._rows())
        more = self._limit()
        self.fit_report_ = self._report(self._trials(), more)
        return self

    def _trials(self) -> list[Trial]:
        """Some rows, predicted from others by the present projection."""
        rows, support = self._rows(), self._support()
        before = -np.log(np.maximum(support.prior[self.labels_], 1e-300))
        if rows.n == 1:
            return [held_out(support, rows, before)]
        if self.support_ == "rows":
            return [leave_one_out(support, before, _GLANCE)]
        return [
            held_out(around_means(rest.logits, rest), fold, -np.log(support.prior[fold.labels]), _GLANCE)
            for rest, fold in _folds(rows)
        ]

    def explain(self, embedding: Any, top: int = 10) -> dict[str, NDArray[Any]]:
        """Return the calibration rows that carry the most of one prediction: their places, weights and labels.

        The weights of a class's rows sum to its probability, but for the 1e-10 that every class seen has.
        """
        check_value("top", top, Integer(1))
        valid = self._scores_to_map(np.atleast_2d(embedding))
        if len(valid.logits) != 1:
            raise InvalidInput("embedding must be one row", seen=f"{len(valid.logits)} rows", allowed="shape (d,)")
        row = self._project(self._features(valid.logits)).astype(np.float64)
        points = self.points_.astype(np.float64)
        if self.support_ == "class means":  # each row has the share of its class's kernel that it has in the mean
            means, seen, _ = class_means(points, self.labels_, self.weights_, len(self.classes_))
            points = means[np.searchsorted(seen, self.labels_)]
        with np.errstate(over="ignore"):
            distance = ((points - row) ** 2).sum(axis=1)
        share = self.weights_ * relative_kernels(distance, self.bandwidth_, float(self.weights_.sum()))
        first = np.argsort(-share, kind="stable")[:top]
        return {"rows": first, "weights": share[first] / share.sum(), "labels": self.classes_[self.labels_[first]]}


def _folds(sample: Block) -> Iterator[tuple[Block, Block]]:
    """Yield the rows outside of each fold, and those of the fold."""
    data = in_memory(sample)
    for number in range(FOLDS):
        yield weighty(data.without(number, FOLDS).rows()), data.only(number, FOLDS).rows()


def _support_of(points: Floats, sample: Block) -> Support:
    return Support.of(points, sample.labels, sample.weights, sample.n_classes)
