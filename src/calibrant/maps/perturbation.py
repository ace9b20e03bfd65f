"""Hoki: confidence from how often noise on the logits leaves the predicted label alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..arrays import softmax
from ..calibrator import Calibrator
from ..errors import InvalidInput
from ..fits.judge import Comparison, judged
from ..fits.report import FitReport
from ..metrics import calibration_error_bound
from ..parameters import AnyOf, Integer, OneOf
from ..passes import Block
from ..threads import get_threads
from ..traits import Traits
from ..validation import as_labels
from .hoki_design import Design, binned_error, design, replay, search_noise

__all__ = ["Hoki"]

_LAWS = {"gaussian": 0, "uniform": 1}
_NODES = {"gaussian": 64, "uniform": 256}
Array = NDArray[np.float64]


class Hoki(Calibrator):
    """Confidence of the top label from label changes under random noise (Hoki; paper 004, Algorithms 1 and 2).

    With γ the share of noise vectors that leave a row's top label alone, the confidence is p = (α_j - β_j) γ + β_j,
    where j is the bin of the present p, and α_j, β_j are the accuracies over the unchanged and the changed
    perturbations of the calibration rows in that bin. This is iterated until no row changes its bin, and the same
    steps are replayed for new rows. At that fixed point the calibration error on these bins is zero on the
    calibration set.

    Where the text leaves a choice: noise vectors are shared among rows; bins are (lo, hi], with 0 in the first; a bin
    that was empty when its parameters were learnt leaves p as it is. A class keeps its label when no other exceeds it.

    Parameters
    ----------
    noise : "search", ("gaussian", mean, std) or ("uniform", low, high)
        "search" takes the law and scale with the largest spread of one-bin confidences (paper 004, §5). A mean common
        to all classes changes no argmax, so the paper's grid over the mean is not needed.
    transformations : int or None
        Noise vectors; None integrates instead of sampling: γ = ∫ f(e) ∏ F(z_top - z_k + e) de, deterministic.
    bins : int
    max_iterations : int
    init : {"accuracy", "confidence"}
        Where p starts: at the accuracy of the calibration rows (the paper), or at each row's own confidence.
    random_state : int, optional
        Seed of the noise; None is 0, so that a fit is repeatable.
    inputs, classes, saturated
        See `Calibrator`.

    Attributes
    ----------
    law_ : str
    scale_ : float
        Standard deviation, or width of the uniform law.
    noise_ : float32 array of shape (K, transformations), or None with ``transformations=None``
        In units of the scale, so that any scale has its digits.
    alphas_, betas_ : arrays of shape (iterations, bins)
    filled_ : bool array of shape (iterations, bins)
    accuracy_ : float
    margin_ : float
        How far confidences stay from 0 and 1 in `predict_proba`: half of one over the rows plus one.
    """

    _identifier = "hoki"
    _traits = Traits("perturbation", "nothing", "top label", "bins")
    _labels_of_its_own = True
    _constraints: ClassVar[Mapping[str, Any]] = {
        "transformations": AnyOf(OneOf(None), Integer(1)),
        "bins": Integer(1),
        "max_iterations": Integer(1),
        "init": OneOf("accuracy", "confidence"),
        "random_state": AnyOf(OneOf(None), Integer(0)),
    }
    law_: str
    scale_: float
    noise_: NDArray[np.float32] | None
    alphas_: Array
    betas_: Array
    filled_: NDArray[np.bool_]
    accuracy_: float
    margin_: float

    def __init__(
        self,
        noise: Any = "search",
        transformations: int | None = 1000,
        bins: int = 15,
        max_iterations: int = 50,
        init: str = "accuracy",
        random_state: int | None = None,
        *,
        inputs: str = "logits",
        classes: Any = None,
        saturated: str = "small",
    ) -> None:
        self.noise = noise
        self.transformations = transformations
        self.bins = bins
        self.max_iterations = max_iterations
        self.init = init
        self.random_state = random_state
        self.inputs = inputs
        self.classes = classes
        self.saturated = saturated

    def predict_confidence(self, scores: Any) -> Array:
        """Return the calibrated confidence in each row's top label, as the paper's Algorithm 2 gives it."""
        return self._confidence(self._scores_to_map(scores).logits)

    def predict(self, scores: Any) -> NDArray[Any]:
        """Return the top class of the raw scores: Hoki changes confidences, never labels."""
        top = self._scores_to_map(scores).logits.argmax(axis=1)
        return self.classes_[top]

    def calibration_error_bound(self, scores: Any, y: Any, delta: float = 0.05) -> float:
        """Return what the calibration error of `predict_confidence` stays below with probability 1 - δ.

        ECE + J·√((2/N)·(2 ln 2 - ln δ)) with the ECE of these N rows on the J bins of the fit (paper 004, Theorem 2).
        The rows must be others than those of `fit`, whose ECE is zero by construction. The bound is loose: with 15 bins
        and 10,000 rows it adds 0.44.

        Parameters
        ----------
        scores : array-like of shape (n, K)
        y : array-like of shape (n,)
        delta : float
        """
        valid = self._scores_to_map(scores)
        labels, _ = as_labels(y, len(self.classes_), len(valid.logits), self.classes_, valid.columns)
        right = (valid.logits.argmax(axis=1) == labels).astype(np.float64)
        error = binned_error(self._confidence(valid.logits), right, self.bins)
        return calibration_error_bound(error, len(labels), self.bins, delta)

    def _fit_rows(self, sample: Block) -> FitReport:
        right = (sample.logits.argmax(axis=1) == sample.labels).astype(np.float64)
        self.margin_ = 0.5 / (sample.total_weight + 1)
        self.law_, self.scale_ = self._choose_noise(sample, right)
        self.noise_ = self._draw(self.law_, sample.n_classes, self.transformations)
        kept = self._kept(sample.logits)
        start = softmax(sample.logits).max(axis=1).astype(np.float64)
        found = design(
            kept, right, sample.weight_array, self._first(start, right, sample), self.bins, self.max_iterations
        )
        self._keep(found)
        return self._report(sample, found, kept, right)

    def _keep(self, found: Design) -> None:
        self.alphas_, self.betas_, self.filled_ = found.alphas, found.betas, found.filled

    def _first(self, confidence: Array, right: Array, sample: Block) -> Array:
        self.accuracy_ = float(np.average(right, weights=sample.weights))
        return np.full(sample.n, self.accuracy_) if self.init == "accuracy" else confidence

    def _count_parameters(self) -> float:
        """α and β of every step's filled bins, the accuracy, and the noise's law and scale where they were searched."""
        return 2 * int(self.filled_.sum()) + 1 + (0 if isinstance(self.noise, tuple) else 2)

    def _choose_noise(self, sample: Block, right: Array) -> tuple[str, float]:
        if isinstance(self.noise, tuple):
            return self.noise[0], _scale_of(self.noise)

        def kept(rows: Block, law: str, scale: float, draws: int | None) -> Array:
            noise = self._draw(law, rows.n_classes, None if self.transformations is None else draws)
            return _kept(rows.logits, law, scale, noise)

        return search_noise(sample, right, kept, self.transformations)

    def _draw(self, law: str, k: int, draws: int | None) -> NDArray[np.float32] | None:
        if draws is None:
            return None
        generator = np.random.default_rng(0 if self.random_state is None else self.random_state)
        size = (draws, k)  # by vector, so that fewer draws are the first of more
        base = generator.standard_normal(size) if law == "gaussian" else generator.random(size)
        return np.ascontiguousarray(base.T.astype(np.float32))

    def _kept(self, logits: NDArray[np.floating]) -> Array:
        return _kept(logits, self.law_, self.scale_, self.noise_)

    def _confidence(self, logits: NDArray[np.floating]) -> Array:
        start = np.full(len(logits), self.accuracy_)
        if self.init == "confidence":
            start = softmax(logits).max(axis=1).astype(np.float64)
        return replay(Design(self.alphas_, self.betas_, self.filled_, True), self._kept(logits), start)

    def _map(self, logits: NDArray[np.floating]) -> NDArray[np.floating]:
        """The top class gets its confidence; the rest is spread in proportion to the original probabilities."""
        p, rows, top = softmax(logits), np.arange(len(logits)), logits.argmax(axis=1)
        confidence = np.clip(self._confidence(logits), self.margin_, 1.0 - self.margin_)
        return spread(p, rows, top, confidence)

    def _report(self, sample: Block, found: Design, kept: Array, right: Array) -> FitReport:
        p = softmax(sample.logits)
        rows, top = np.arange(sample.n), sample.logits.argmax(axis=1)
        start = p[rows, top].astype(np.float64)
        before = -np.log(np.maximum(p[rows, sample.labels].astype(np.float64), 1e-300))
        share = _label_share(p, rows, top, sample.labels)

        def loss(confidence: Array) -> Array:
            c = np.clip(confidence, self.margin_, 1.0 - self.margin_)
            return -np.log(np.maximum(np.where(right > 0, c, (1.0 - c) * share), 1e-300))

        first, weights = self._first(start, right, sample), sample.weight_array
        after, fold = np.empty(sample.n), np.arange(sample.n) % 5
        for f in range(5) if sample.n >= 10 else ():
            rest = (fold != f) & (weights > 0)
            if rest.any():
                part = design(kept[rest], right[rest], weights[rest], first[rest], self.bins, self.max_iterations)
                after[fold == f] = loss(replay(part, kept, first))[fold == f]
        report = FitReport(
            len(found.alphas),
            found.converged,
            "nll",
            float(np.average(before, weights=weights)),
            float(np.average(loss(replay(found, kept, first)), weights=weights)),
            details={"law": self.law_, "scale": self.scale_, "spread": float(np.std(replay(found, kept, first)))},
        )
        return judged(report, Comparison.of(before, after, weights)) if sample.n >= 10 else report

    def _check_parameters(self) -> None:
        super()._check_parameters()
        searched = isinstance(self.noise, str) and self.noise == "search"
        if not searched and not 0 < _scale_of(self.noise) < np.inf:
            raise InvalidInput(
                "Hoki: noise is not valid",
                seen=repr(self.noise),
                allowed='"search", ("gaussian", mean, std > 0) or ("uniform", low, high > low)',
            )


def _scale_of(noise: Any) -> float:
    """Standard deviation or width of a noise law; NaN where it is no law."""
    if not isinstance(noise, tuple) or len(noise) != 3 or noise[0] not in _LAWS:
        return float("nan")
    law, first, second = noise
    if not all(isinstance(v, (int, float, np.number)) and np.isfinite(v) for v in (first, second)):
        return float("nan")
    return float(second) if law == "gaussian" else float(second) - float(first)


def _kept(logits: NDArray[np.floating], law: str, scale: float, noise: NDArray[np.float32] | None) -> Array:
    """One pass: the probability that noise leaves each row's top label alone."""
    logits = np.ascontiguousarray(logits)
    if noise is None:
        return _core.keep_probabilities(logits, _LAWS[law], scale, _NODES[law], get_threads())
    return _core.keep_shares(logits, noise.astype(logits.dtype, copy=False), scale, get_threads())


def spread(p: NDArray[np.floating], rows: NDArray[np.int64], top: NDArray[np.int64], confidence: Array) -> NDArray[Any]:
    """Give the top class its confidence and share the rest out as ``p`` does, evenly where ``p`` leaves nothing."""
    rest = p.astype(np.float64)
    rest[rows, top] = 0.0
    total = rest.sum(axis=1)
    empty = total <= 0
    rest[empty] = 1.0
    rest[rows, top] = 0.0
    total[empty] = p.shape[1] - 1
    rest *= ((1.0 - confidence) / total)[:, None]
    rest[rows, top] = confidence
    return rest.astype(p.dtype)


def _label_share(
    p: NDArray[np.floating], rows: NDArray[np.int64], top: NDArray[np.int64], labels: NDArray[np.int64]
) -> Array:
    """The label's share of what the top class leaves, for rows whose label is not the top class."""
    rest = np.maximum(1.0 - p[rows, top].astype(np.float64), 1e-300)
    return p[rows, labels].astype(np.float64) / rest
