"""Hoki: confidence from how often noise on the logits leaves the predicted label alone."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..arrays import softmax
from ..calibrator import Calibrator
from ..declared import attribute, declared, parameter
from ..errors import InvalidInput
from ..fits.judge import FOLDS, Comparison, judged, stated
from ..fits.report import FitReport
from ..formulas import Term
from ..invariants import Optional, Values
from ..made import made_once
from ..metrics import calibration_error_bound
from ..parameters import AnyOf, Integer, Number, OneOf, count_from
from ..passes import Block, Data
from ..threads import get_threads
from ..traits import Traits
from ..types import Array, Floats, Integers, Mask
from ..validation import as_labels
from .hoki_design import SEARCH_ROWS, Design, binned_error, design, replay, search_noise, weighted_std
from .hoki_formula import confidence_formula, shares_formula, spread_formula
from .hoki_rows import LAWS, NODES, Noise, Seen, rows_seen


@declared
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
    _traits = Traits("perturbation", "nothing", "top label", "bins", sees="sample")
    _labels_of_its_own = True
    noise: Any = parameter(default="search")
    transformations: int | None = parameter(AnyOf(OneOf(None), count_from(1)), default=1000)
    bins: int = parameter(count_from(1), default=15)
    max_iterations: int = parameter(Integer(1), default=50)
    init: str = parameter(OneOf("accuracy", "confidence"), default="accuracy")
    random_state: int | None = parameter(AnyOf(OneOf(None), Integer(0)), default=None)
    law_: str = attribute(OneOf(*LAWS))
    scale_: float = attribute(Number(1e-120, 1e120))
    noise_: NDArray[np.float32] | None = attribute(Optional(Values("K", "draws")))
    alphas_: Array = attribute(Values("steps", "bins", low=0, high=1))
    betas_: Array = attribute(Values("steps", "bins", low=0, high=1))
    filled_: Mask = attribute(Values("steps", "bins", kind="b"))
    accuracy_: float = attribute(Number(0, 1))
    margin_: float = attribute(Number(0, 0.5))

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

    def _fit(self, data: Data) -> FitReport:
        self.law_, self.scale_ = self._choose_noise(data)
        self.noise_ = self._draw(self.law_, data.n_classes, self.transformations)
        some = self._sampled(data)
        seen = Seen.of(some.reduce(partial(rows_seen, noise=self._noise())))
        self.margin_ = 0.5 / (float(seen.weights.sum()) + 1)
        self.accuracy_ = float(np.average(seen.right, weights=seen.weights))
        start = seen.confidence if self.init == "confidence" else np.full(len(seen.kept), self.accuracy_)
        learnt = self._design(seen, start, slice(None))
        self.alphas_, self.betas_, self.filled_ = learnt.alphas, learnt.betas, learnt.filled
        folds = some.plan(FOLDS).of_rows(seen.keys, seen.fine, seen.scores, seen.weights)
        report = self._report(seen, start, learnt, folds)
        return stated(report, some, data)

    def _design(self, seen: Seen, start: Array, rows: Any) -> Design:
        """Run Algorithm 1 on some of the rows."""
        kept, right, weights = seen.kept[rows], seen.right[rows], seen.weights[rows]
        return design(kept, right, weights, start[rows], self.bins, self.max_iterations)

    def _report(self, seen: Seen, start: Array, learnt: Design, fold: Integers) -> FitReport:
        """The losses on all rows, and on those of each fold by what the others teach, with the same noise."""
        weights, confidence = seen.weights, replay(learnt, seen.kept, start)
        report = FitReport(
            len(learnt.alphas),
            learnt.converged,
            "nll",
            float(np.average(seen.before, weights=weights)),
            float(np.average(seen.losses(confidence, self.margin_), weights=weights)),
            details={"law": self.law_, "scale": self.scale_, "spread": weighted_std(confidence, weights)},
        )
        after, counts = np.empty(len(start)), np.bincount(fold, minlength=FOLDS)
        if len(start) < 2 * FOLDS or (counts == len(start)).any():
            return report
        for number in np.flatnonzero(counts):
            part = self._design(seen, start, fold != number)
            after[fold == number] = seen.losses(replay(part, seen.kept, start), self.margin_)[fold == number]
        trained_on = float(weights.sum()) * (1.0 - 1.0 / np.count_nonzero(counts))
        return judged(report, Comparison.of(seen.before, after, weights), trained_on)

    def _count_parameters(self) -> float:
        """α and β of every step's filled bins, the accuracy, and the noise's law and scale where they were searched."""
        return 2 * int(self.filled_.sum()) + 1 + (0 if isinstance(self.noise, tuple) else 2)

    def _choose_noise(self, data: Data) -> tuple[str, float]:
        if isinstance(self.noise, tuple):
            return self.noise[0], _scale_of(self.noise)

        def share(rows: Block, law: str, scale: float, draws: int | None) -> Array:
            noise = self._draw(law, rows.n_classes, None if self.transformations is None else draws)
            return Noise(law, scale, noise).shares(rows.logits)

        return search_noise(data.pilot(SEARCH_ROWS).rows(), share, self.transformations)

    def _draw(self, law: str, k: int, draws: int | None) -> NDArray[np.float32] | None:
        if draws is None:
            return None
        generator = np.random.default_rng(0 if self.random_state is None else self.random_state)
        size = (draws, k)  # by vector, so that fewer draws are the first of more
        base = generator.standard_normal(size) if law == "gaussian" else generator.random(size)
        return np.ascontiguousarray(base.T.astype(np.float32))

    def _noise(self) -> Noise:
        """The noise of the fit, laid out once for all calls."""
        parts = self.law_, self.scale_, self.noise_
        return made_once(self, parts, lambda: Noise(*parts))

    def _confidence(self, logits: Floats) -> Array:
        start = np.full(len(logits), self.accuracy_)
        if self.init == "confidence":
            start = softmax(logits).max(axis=1).astype(np.float64)
        return replay(Design(self.alphas_, self.betas_, self.filled_, True), self._noise().shares(logits), start)

    def _map(self, logits: Floats) -> Floats:
        """The top class gets its confidence; the rest is spread in proportion to the original probabilities."""
        shares, out = self._noise().shares(logits), softmax(logits)
        start = self.accuracy_ if self.init == "accuracy" else None
        steps = self.alphas_, self.betas_, self.filled_
        _core.spread_confidence(logits, shares, *steps, start, self.margin_, get_threads(), out)
        return out

    def _formula(self, z: Term) -> Term:
        vectors = None if self.noise_ is None else self.noise_.astype(np.float64)
        share = shares_formula(z, self.law_, self.scale_, vectors, NODES[self.law_])
        start = z.lift(self.accuracy_) if self.init == "accuracy" else z.softmax().rounded().row_max()
        found = confidence_formula(share, start, self.alphas_, self.betas_, self.filled_)
        return spread_formula(z, found.clip(self.margin_, 1.0 - self.margin_))

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
    if not isinstance(noise, tuple) or len(noise) != 3 or noise[0] not in LAWS:
        return float("nan")
    law, first, second = noise
    if not all(isinstance(v, (int, float, np.number)) and np.isfinite(v) for v in (first, second)):
        return float("nan")
    return float(second) if law == "gaussian" else float(second) - float(first)
