"""KCal: class probabilities from a kernel density on projected embeddings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..arrays import softmax
from ..errors import InvalidInput
from ..fits.judge import Comparison, judged, label_losses
from ..fits.report import FitReport
from ..made import made_once
from ..parameters import AnyOf, Instance, Integer, Number, OneOf, check_value
from ..passes import Block, in_memory
from ..traits import Traits
from ..types import Array, Floats, Integers
from ..validation import as_labels, as_weights
from .density import (
    TRIAL_ROWS,
    Support,
    Trial,
    best_bandwidth,
    class_probabilities,
    held_out,
    leave_one_out,
    mean_loss,
    relative_kernels,
    rule_factor,
    shares_places,
    spread_of,
)
from .projected import FOLDS, Projected, weighty
from .projection import LEARNT, Projection, merged
from .prototypes import compression_loss, herd

__all__ = ["KCal"]


class KCal(Projected):
    """P(c | x) ∝ Σ_{j in c} exp(-|Π(x) - Π(xⱼ)|² / (2 h²)) over the calibration rows (KCal, paper 001, Eq. 3).

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
    """

    _identifier = "kcal"
    _constraints: ClassVar[Mapping[str, Any]] = {
        "projection": AnyOf(OneOf(*LEARNT, "identity"), Instance((Callable,), "a callable")),
        "dim": AnyOf(OneOf(None), Integer(1)),
        "bandwidth": AnyOf(OneOf("cv", "rule"), Number(1e-100, 1e100)),
        "kernel": OneOf("rbf"),
        "random_state": AnyOf(OneOf(None), Integer(0)),
        "capacity": AnyOf(OneOf(None), Integer(1)),
        "keep": OneOf("herding", "reservoir"),
        "inputs": OneOf("embeddings", "logits", "probabilities"),
    }
    bandwidth_: float
    points_: Floats
    labels_: Integers
    weights_: Array
    keys_: Array

    def __init__(
        self,
        projection: Any = "learned",
        dim: int | None = None,
        bandwidth: Any = "cv",
        kernel: str = "rbf",
        random_state: int | None = None,
        capacity: int | None = None,
        keep: str = "herding",
        *,
        inputs: str = "embeddings",
        classes: Any = None,
        saturated: str = "small",
    ) -> None:
        self.projection = projection
        self.dim = dim
        self.bandwidth = bandwidth
        self.kernel = kernel
        self.random_state = random_state
        self.capacity = capacity
        self.keep = keep
        super().__init__(inputs=inputs, classes=classes, saturated=saturated)

    @property
    def traits(self) -> Traits:
        """Those of a map on embeddings, or on scores where ``inputs`` names these."""
        needs = "embeddings" if self.inputs == "embeddings" else "scores"
        return Traits("kernel", "nothing", "full", "n", needs, sees="sample")

    def _fit_rows(self, sample: Block) -> FitReport:
        self._check_dimensions(sample.logits)
        sample = weighty(sample)
        given, place = merged(sample.with_logits(self._features(sample.logits)))
        trials: list[Trial] = []
        if getattr(self, "projection_source_", "") != "training rows":
            self.projection_kind_ = self._kind(given.n - given.n // FOLDS)  # the same for the folds and all rows
            self.projection_source_ = "calibration rows"
            apart = given.n >= 4 * FOLDS and not shares_places(_support_of(given.logits, given))
            trials = self._cross_fit(given) if self._learns and apart else []
            self.projection_, self.projection_losses_ = self._learn(given)
        points = self._project(given.logits)
        if not trials:
            trials = [self._leave_one_out(points, given)]
        self.points_, self.labels_, self.weights_ = points[place], sample.labels, sample.weight_array
        self.keys_ = np.random.default_rng(self.random_state or 0).random(len(self.points_))
        self.bandwidth_ = self._pick(trials)
        return self._report(trials, self._limit())

    def _cross_fit(self, sample: Block) -> list[Trial]:
        """Rows of each fold, predicted by a projection and a support that have not seen them."""
        trials = []
        data = in_memory(sample)
        for number in range(FOLDS):
            rest, fold = weighty(data.without(number, FOLDS).rows()), data.only(number, FOLDS).rows()
            found, _ = self._learn(rest)
            project = Projection(**found) if found else self._project
            support = _support_of(project(rest.logits), rest)
            judged = fold.with_logits(project(fold.logits))
            trials.append(held_out(support, judged, self._losses_before(fold), TRIAL_ROWS // FOLDS))
        return trials

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

    def _pick(self, trials: list[Trial]) -> float:
        if self.bandwidth == "cv" and len(self.points_) > 1:
            return best_bandwidth(trials, spread_of(self.points_, self.weights_))
        return self._rule() if isinstance(self.bandwidth, str) else float(self.bandwidth)

    def _rule(self) -> float:
        return spread_of(self.points_, self.weights_) * rule_factor(self._size(), self.points_.shape[1])

    def _size(self) -> float:
        """How many rows the bandwidth is for: no more than are kept."""
        return min(float(self.weights_.sum()), self.capacity or np.inf)

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
        details = {"before": known, "projection": self.projection_kind_, **(more or {})}
        report = FitReport(0, True, "nll", first, loss, messages=self._untrained(), details=details)
        trained_on = float(np.mean([trial.support.total for trial in trials]))
        return judged(report, Comparison.of(before, after, weights), trained_on)

    def _count_parameters(self) -> float:
        """The bandwidth, the points that are kept, and the numbers of the projection."""
        projection = (getattr(self, "projection_", None) or {}).values()
        return 1 + self.points_.size + sum(np.size(part) for part in projection)

    def _support(self) -> Support:
        parts = (self.points_, self.labels_, self.weights_)
        k = len(self.classes_)
        return made_once(self, parts, lambda: Support.of(*parts, k))

    def _map(self, logits: Floats) -> Floats:
        return class_probabilities(self._support(), self._project(self._features(logits)), self.bandwidth_)

    def partial_fit(self, embeddings: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> KCal:
        """Add calibration rows; a bandwidth that was searched shrinks by n^(-1/(d+4)), a rule is applied anew.

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
        before = self._size()
        self.points_ = np.vstack([self.points_, self._project(sample.logits).astype(self.points_.dtype)])
        self.labels_ = np.concatenate([self.labels_, sample.labels])
        self.weights_ = np.concatenate([self.weights_, sample.weight_array])
        fresh = np.random.default_rng([self.random_state or 0, self.n_samples_, len(self.labels_)])
        self.keys_ = np.concatenate([self.keys_, fresh.random(sample.n)])
        self.n_samples_ += sample.n
        if self.bandwidth == "cv":
            d = self.points_.shape[1]
            self.bandwidth_ *= rule_factor(self._size(), d) / rule_factor(before, d)
        return self._changed()

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
        return self._changed()

    def _changed(self) -> KCal:
        """Bring what follows from the rows up to date."""
        if self.bandwidth == "rule":
            self.bandwidth_ = self._rule()
        more = self._limit()
        support = self._support()
        prior = np.maximum(support.prior[self.labels_], 1e-300)
        rows = Block(self.points_, self.labels_, self.weights_, len(self.classes_))
        few = len(self.points_) == 1
        trial = held_out(support, rows, -np.log(prior)) if few else leave_one_out(support, -np.log(prior), 200)
        self.fit_report_ = self._report([trial], more)
        return self

    def explain(self, embedding: Any, top: int = 10) -> dict[str, NDArray[Any]]:
        """Return the calibration rows that carry the most of one prediction: their places, weights and labels.

        The weights of a class's rows sum to its probability, but for the 1e-10 that every class seen has.
        """
        check_value("top", top, Integer(1))
        valid = self._scores_to_map(np.atleast_2d(embedding))
        if len(valid.logits) != 1:
            raise InvalidInput("embedding must be one row", seen=f"{len(valid.logits)} rows", allowed="shape (d,)")
        row = self._project(self._features(valid.logits)).astype(np.float64)
        with np.errstate(over="ignore"):
            distance = ((self.points_.astype(np.float64) - row) ** 2).sum(axis=1)
        share = self.weights_ * relative_kernels(distance, self.bandwidth_, float(self.weights_.sum()))
        first = np.argsort(-share, kind="stable")[:top]
        return {"rows": first, "weights": share[first] / share.sum(), "labels": self.classes_[self.labels_[first]]}


def _support_of(points: Floats, sample: Block) -> Support:
    return Support.of(points, sample.labels, sample.weights, sample.n_classes)
