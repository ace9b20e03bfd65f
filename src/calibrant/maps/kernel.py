"""KCal: class probabilities from a kernel density on projected embeddings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..calibrator import Calibrator
from ..errors import InvalidInput
from ..fit_report import FitReport, label_losses
from ..parameters import AnyOf, Instance, Integer, Number, OneOf
from ..passes import Sample
from ..traits import Traits
from ..validation import Scores, as_embeddings, as_labels, as_weights
from .density import Support, best_bandwidth, class_probabilities, rule_factor
from .projection import Projection, learn

__all__ = ["KCal"]

_LEARNT = ("learned", "linear", "lda", "pca")
Array = NDArray[np.float64]


class KCal(Calibrator):
    """P(c | x) ∝ Σ_{j in c} exp(-|Π(x) - Π(xⱼ)|² / (2 h²)) over the calibration rows (KCal, paper 001, Eq. 3).

    Π is learnt on training rows by `fit_projection`; `fit` keeps the projected calibration rows and picks h. The
    paper's code writes its kernel as exp(-mean Δ² / b): that b is 2 h² / d here.

    Parameters
    ----------
    projection : {"learned", "linear", "lda", "pca", "identity"} or callable
        "learned" is the paper's network with a skip connection (Figure 6), "linear" its linear variant (App. D); both
        need the torch extra to learn, not to predict. A callable is applied as it is and cannot be saved.
    dim : int, optional
        Dimensions after projection; min(dimensions, 32), or 128 for 1,000 classes and more.
    bandwidth : "cv", "rule" or float
        "cv" minimises the leave-one-out log-loss; "rule" is the spread times n^(-1/(d+4)).
    kernel : {"rbf"}
    random_state : int, optional
    inputs : {"embeddings"}
    classes : sequence, optional
        All classes, where some are missing from the rows.

    Attributes
    ----------
    bandwidth_ : float
    points_ : array of shape (n, d)
        The projected calibration rows, in the order they came; ``labels_`` and ``weights_`` go with them.
    """

    _traits = Traits("kernel", "nothing", "full", "n", "embeddings")
    _constraints: ClassVar[Mapping[str, Any]] = {
        "dim": AnyOf(OneOf(None), Integer(1)),
        "bandwidth": AnyOf(OneOf("cv", "rule"), Number(0, open_low=True)),
        "kernel": OneOf("rbf"),
        "random_state": AnyOf(OneOf(None), Integer(0)),
        "inputs": OneOf("embeddings"),
        "projection": AnyOf(OneOf(*_LEARNT, "identity"), Instance((type(lambda: 0), Projection), "a function")),
    }
    bandwidth_: float
    points_: NDArray[np.floating]
    labels_: NDArray[np.int64]
    weights_: Array
    projection_: dict[str, Array] | None

    def __init__(
        self,
        projection: Any = "learned",
        dim: int | None = None,
        bandwidth: Any = "cv",
        kernel: str = "rbf",
        random_state: int | None = None,
        *,
        inputs: str = "embeddings",
        classes: Any = None,
    ) -> None:
        self.projection = projection
        self.dim = dim
        self.bandwidth = bandwidth
        self.kernel = kernel
        self.random_state = random_state
        self.inputs = inputs
        self.classes = classes

    def fit_projection(self, embeddings: Any, y: Any, progress: Any = None) -> KCal:
        """Learn Π on training rows; ``progress(step, steps, loss)`` is called while it trains."""
        self._check_parameters()
        rows = as_embeddings(embeddings).logits
        labels, _ = self._labels(y, len(rows))
        if isinstance(self.projection, str) and self.projection in _LEARNT:
            self._learn(rows, labels, len(np.unique(labels)), progress)
        return self

    def _learn(
        self, rows: NDArray[np.floating], labels: NDArray[np.int64], k: int, progress: Any = None
    ) -> list[float]:
        size = min(rows.shape[1], self.dim or (128 if k >= 1000 else 32))
        found, losses = learn(self.projection, rows, labels, size, self.random_state or 0, progress)
        self.projection_ = vars(found)
        return losses

    def fit(self, scores: Any, y: Any, sample_weight: Any = None) -> KCal:
        """Keep the projected calibration rows and pick the bandwidth.

        Where a projection must be learnt and `fit_projection` was not called, half of the rows (every second of each
        class) learn it and the other half are kept: the price is half of the support.
        """
        self._check_parameters()
        valid = self._read(scores)
        labels, classes = self._labels(y, len(valid.logits))
        weights = as_weights(sample_weight, len(labels))
        sample = Sample(valid.logits, labels, weights, len(classes))
        if weights is not None and not weights.all():
            sample = sample.take(np.flatnonzero(weights))
        self.classes_, self.n_samples_ = classes, sample.n
        self._remember_columns(valid)
        self.fit_sample(sample)
        return self

    def _labels(self, y: Any, n: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
        known = np.unique(np.asarray(y)) if self.classes is None else np.asarray(self.classes)
        return as_labels(y, len(known), n, known)

    def _fit(self, sample: Sample) -> FitReport:
        if isinstance(self.projection, str) and self.projection in _LEARNT and not hasattr(self, "projection_"):
            order = np.argsort(sample.labels, kind="stable")
            self._learn(sample.logits[order[::2]], sample.labels[order[::2]], sample.n_classes)
            sample = sample.take(order[1::2]) if sample.n > 1 else sample
        self.points_ = self._project(sample.logits)
        self.labels_, self.weights_ = sample.labels, sample.weight_array
        return self._report(self._pick())

    def _pick(self) -> float | None:
        """Set the bandwidth; return the leave-one-out loss where it was searched."""
        loss = None
        if self.bandwidth == "cv" and len(self.points_) > 1:
            self.bandwidth_, loss = best_bandwidth(self._support())
        elif isinstance(self.bandwidth, str):
            spread = float(np.sqrt(np.mean(np.var(self.points_, axis=0, dtype=np.float64)))) or 1.0
            self.bandwidth_ = spread * rule_factor(len(self.points_), self.points_.shape[1])
        else:
            self.bandwidth_ = float(self.bandwidth)
        return loss

    def _report(self, loss: float | None) -> FitReport:
        prior = self._support().prior
        before = float(-np.sum(prior[prior > 0] * np.log(prior[prior > 0])))
        if loss is None:
            rows = np.arange(len(self.points_))[:: max(1, len(self.points_) // 2000)]
            place = np.argsort(self._support().arrival)[rows]
            p = class_probabilities(self._support(), self.points_[rows], self.bandwidth_, place)
            loss = float(
                np.average(np.minimum(label_losses(p, self.labels_[rows]), 23.03), weights=self.weights_[rows])
            )
        return FitReport(0, True, "nll", before, loss, before, loss, 0.0, details={"before": "class frequencies"})

    def _support(self) -> Support:
        return Support.of(self.points_, self.labels_, self.weights_, len(self.classes_))

    def _project(self, rows: NDArray[np.floating]) -> NDArray[np.floating]:
        if callable(self.projection):
            return np.ascontiguousarray(self.projection(rows))
        found = getattr(self, "projection_", None)
        return rows if self.projection == "identity" or found is None else Projection(**found)(rows)

    def _map(self, logits: NDArray[np.floating]) -> NDArray[np.floating]:
        p = class_probabilities(self._support(), self._project(logits), self.bandwidth_)
        return p.astype(logits.dtype)

    def partial_fit(self, embeddings: Any, y: Any, sample_weight: Any = None) -> KCal:
        """Add calibration rows; a bandwidth that was not given as a number shrinks by n^(-1/(d+4))."""
        if not hasattr(self, "points_"):
            return self.fit(embeddings, y, sample_weight)
        rows = self._scores_to_map(embeddings).logits
        labels, _ = as_labels(y, len(self.classes_), len(rows), self.classes_)
        weights = as_weights(sample_weight, len(rows))
        before = len(self.points_)
        self.points_ = np.vstack([self.points_, self._project(rows).astype(self.points_.dtype)])
        self.labels_ = np.concatenate([self.labels_, labels])
        self.weights_ = np.concatenate([self.weights_, np.ones(len(rows)) if weights is None else weights])
        if isinstance(self.bandwidth, str):
            d = self.points_.shape[1]
            self.bandwidth_ *= rule_factor(len(self.points_), d) / rule_factor(before, d)
        self.n_samples_ = len(self.points_)
        self.fit_report_ = self._report(None)
        return self

    def forget(self, before: int) -> KCal:
        """Drop the calibration rows that came first, ``before`` of them."""
        if not 0 <= before < len(self.points_):
            raise InvalidInput("before must leave a row", seen=repr(before), allowed=f"0 to {len(self.points_) - 1}")
        self.points_, self.labels_ = self.points_[before:], self.labels_[before:]
        self.weights_ = self.weights_[before:]
        self.n_samples_ = len(self.points_)
        return self

    def explain(self, embedding: Any, top: int = 10) -> dict[str, NDArray[Any]]:
        """Return the calibration rows that carry the most of one prediction: their places, weights and labels."""
        row = self._project(self._scores_to_map(np.atleast_2d(embedding)).logits).astype(np.float64)
        distance = ((self.points_.astype(np.float64) - row) ** 2).sum(axis=1)
        share = self.weights_ * np.exp(-(distance - distance.min()) / (2 * self.bandwidth_**2))
        first = np.argsort(-share, kind="stable")[:top]
        return {"rows": first, "weights": share[first] / share.sum(), "labels": self.classes_[self.labels_[first]]}

    def _read(self, scores: Any) -> Scores:
        return as_embeddings(scores)
