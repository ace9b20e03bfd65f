"""Structured scaling: vector or matrix scaling whose parts are held by strengths of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from ... import _core
from ...arrays import tempered_softmax
from ...calibrator import Calibrator
from ...fit_report import FitReport
from ...parameters import OneOf
from ...passes import Sample, reduce
from ...threads import get_threads
from ...traits import Traits
from ._evidence import Fitted, fit_by_evidence
from ._path import with_estimate
from ._prior import Prior, first_guess, parts_of
from ._problem import Frame, Problem, small_products
from .ensemble import EnsembleTemperatureScaling
from .order_preserving import OrderPreservingScaling
from .temperature import TemperatureScaling

__all__ = ["StructuredScaling"]

_INTERCEPTS = 2  # their part, see `parts_of`
_SHIFTED = 2.0  # their precision by the rule: the classes' shares are off by a factor of two, e^(1/√2)
_HARDLY = 0.05  # a share below it is not worth a second map


class StructuredScaling(Calibrator):
    """p = softmax(u + D x + b) around an ensemble temperature, each part of (D, b) with a strength of its own.

    1. u = log p₀, where p₀ is the temperature scaling of the scores or, where it pays for its parameters, the ensemble
       temperature, with at least 1/(n + 1) of the uniform distribution: what n rows cannot tell from zero stays off
       zero, and a few labels that the model thought impossible do not bend everything else.
    2. The parts of (D, b) - the classes' own slopes, the weights between classes, the intercepts and, for the matrix,
       the weight of how sure a row is (its mean log-probability) - each have a Gaussian prior around zero. Their
       precisions maximise the evidence (MacKay 1992), with half a parameter's worth of a rule in K (Berta et al. 2026);
       for intercepts that of classes whose shares are off by a factor of two.
    3. Where that gains no more on its rows than chance would (half the number of parameters that they determine),
       step 1 stays alone.
    4. Where an order-preserving curve pays on p₀, the same is fitted on p₀ bent by it, and the answer mixes both maps.
       The share of the bent one is the probability that it is the better on other rows: Φ(Δ / s), Δ the difference of
       the log-losses expected there, s its standard error (as pseudo-BMA+ of Yao et al. 2018).

    The idea of structure, and the comparison with it, is due to Berta et al. 2026 (structured matrix scaling), who set
    the strengths by a rule in n and K.

    Parameters
    ----------
    shape : {"matrix", "vector"}
        Full D ("sms") or a diagonal one ("svs").
    inputs, classes
        See `Calibrator`.

    Attributes
    ----------
    temperature_ : float
    ensemble_weights_ : array of shape (3,)
        Weights of the scaled scores, of the scores as they came and of the uniform distribution in p₀.
    least_ : float
        Share of the uniform distribution that p₀ has at least.
    shares_ : array of shape (parts,)
        Shares of the maps that are mixed: one on p₀, one on p₀ bent, or either alone.
    curve_ : list
        The `OrderPreservingScaling` that bends p₀ for the last part, or nothing.
    weights_ : array of shape (parts, K), or (parts, K, K + 1) with the weight of how sure a row is last
        D.
    intercept_ : array of shape (parts, K)
        b.
    confidence_ : array of shape (parts, 2)
        Mean and deviation by which the mean log-probability of a row is standardised.
    precisions_ : array of shape (parts, 4)
        Strengths used: of the slopes, the weights between classes, the intercepts and how sure a row is.
    """

    _constraints: ClassVar[Mapping[str, Any]] = {"shape": OneOf("matrix", "vector")}
    temperature_: float
    ensemble_weights_: NDArray[np.float64]
    least_: float
    shares_: NDArray[np.float64]
    curve_: list[OrderPreservingScaling]
    weights_: NDArray[np.float64]
    intercept_: NDArray[np.float64]
    confidence_: NDArray[np.float64]
    precisions_: NDArray[np.float64]

    def __init__(self, shape: str = "matrix", *, inputs: str = "logits", classes: Any = None) -> None:
        self.shape = shape
        self.inputs = inputs
        self.classes = classes

    @property
    def traits(self) -> Traits:
        """Full calibration with K² parameters, or each class with 2K."""
        if self.shape == "vector":
            return Traits("scaling", "nothing", "each class", "2K")
        return Traits("scaling", "nothing", "full", "K²")

    def _fit(self, sample: Sample) -> FitReport:
        with small_products(sample.n_classes):
            return self._fit_parts(sample)

    def _fit_parts(self, sample: Sample) -> FitReport:
        start, loss = self._fit_base(sample)
        rows = sample.with_logits(self._base_logits(sample.logits))
        parts = [self._candidate(rows, None)]
        curve = OrderPreservingScaling()
        bent = curve.fit_sample(rows)
        if bent.loss_after * sample.total_weight + _effective(curve) < loss:
            rows = rows.with_logits(_bent(curve, rows.logits, self.least_))
            parts.append(self._candidate(rows, curve))
        return self._mix(parts, start, sample)

    def _mix(self, parts: list[_Candidate], start: FitReport, sample: Sample) -> FitReport:
        """Keep the parts that deserve a share, and report on their mixture."""
        shares = _shares(parts)
        parts = [part for part, share in zip(parts, shares, strict=True) if share > 0]
        self.shares_ = shares = shares[shares > 0]
        self.curve_ = [part.bend for part in parts if part.bend is not None]
        self.confidence_ = np.stack([part.confidence for part in parts])
        self.precisions_ = np.stack([part.fitted.precisions for part in parts])
        linear = [part.problem.plain(part.fitted.point.theta) for part in parts]
        self.weights_, self.intercept_ = (np.stack(arrays) for arrays in zip(*linear, strict=True))
        main = parts[int(shares.argmax())]
        report = main.fitted.report(start, sample.total_weight)
        if len(parts) > 1:
            p = shares @ np.exp([-part.losses() for part in parts])
            report = replace(report, loss_after=float(np.average(-np.log(p), weights=sample.weights)))
        return with_estimate(report, main.problem, sample, main.fitted.point.theta, main.effective + 3.0)

    def _candidate(self, rows: Sample, curve: OrderPreservingScaling | None) -> _Candidate:
        """Fit (D, b) to rows whose logits are log p₀, as bent by the curve."""
        means = rows.logits.mean(axis=1, dtype=np.float64)
        mean = np.average(means, weights=rows.weights)
        deviation = np.sqrt(np.average((means - mean) ** 2, weights=rows.weights))
        confidence = np.array([mean, deviation if deviation > 1e-9 else 1.0])
        problem = Problem.of(rows, self._frame(confidence), self.shape == "matrix")
        prior = Prior(parts_of(rows.n_classes, problem.size), np.ones(problem.size))
        start = first_guess(rows.n_classes)
        rule = np.where(np.arange(len(start)) == _INTERCEPTS, np.minimum(start, _SHIFTED), start)
        return _Candidate(curve, confidence, problem, fit_by_evidence(problem, prior, start, rule))

    def _fit_base(self, sample: Sample) -> tuple[FitReport, float]:
        """Take the ensemble temperature if its two more parameters pay for themselves (BIC), else one temperature.

        Returns its report and its summed log-loss.
        """
        self.least_ = least = 1.0 / (sample.total_weight + 1.0)
        single, ensemble = TemperatureScaling(), EnsembleTemperatureScaling()
        reports = [single.fit_sample(sample), ensemble.fit_sample(sample)]
        temperatures = [single.temperature_, ensemble.temperature_]
        mixtures = [_at_least(np.array([1.0, 0.0, 0.0]), least), _at_least(ensemble.weights_, least)]
        losses = [_mixture_loss(sample, t, w) for t, w in zip(temperatures, mixtures, strict=True)]
        better = int(losses[0] - losses[1] > np.log(sample.total_weight + 1.0))
        self.temperature_, self.ensemble_weights_ = temperatures[better], mixtures[better]
        return reports[better], losses[better]

    def _base_logits(self, logits: NDArray[np.floating]) -> NDArray[np.floating]:
        first, second, third = self.ensemble_weights_.tolist()
        p = tempered_softmax(logits, 1.0 / self.temperature_, (first, second, third))
        return np.log(p, out=p)

    def _frame(self, confidence: NDArray[np.float64]) -> Frame:
        full = self.shape == "matrix"
        mean, deviation = confidence.tolist()
        return Frame(1.0, -np.inf, centred=full, confidence=(mean, deviation) if full else None)

    def _map(self, logits: NDArray[np.floating]) -> NDArray[np.floating]:
        bases = [self._base_logits(logits)]
        bases += [_bent(curve, bases[0], self.least_) for curve in self.curve_]
        answers = [
            self._frame(confidence).apply(base, weights, intercept)
            for base, confidence, weights, intercept in zip(
                bases[-len(self.shares_) :], self.confidence_, self.weights_, self.intercept_, strict=True
            )
        ]
        for answer, share in zip(answers, self.shares_.tolist(), strict=True):
            answer *= share
        return answers[0] if len(answers) == 1 else np.add(*answers, out=answers[0])


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A fit of (D, b) on p₀, bent by a curve or as it is."""

    bend: OrderPreservingScaling | None
    confidence: NDArray[np.float64]
    problem: Problem
    fitted: Fitted

    @property
    def effective(self) -> float:
        """How many parameters the rows determine."""
        return self.fitted.effective + (0.0 if self.bend is None else _effective(self.bend))

    @property
    def estimate(self) -> float:
        """Log-loss expected on as many other rows: a parameter that the rows determine costs one nat (Akaike)."""
        return self.fitted.point.sums.loss + self.effective

    def losses(self) -> NDArray[np.float64]:
        """Log-losses of the rows."""
        return self.problem.losses(self.fitted.point.theta, np.arange(self.problem.sample.n))


def _shares(parts: list[_Candidate]) -> NDArray[np.float64]:
    """Return the probability of each of two maps to be the better on other rows; what has hardly any has none."""
    if len(parts) == 1:
        return np.ones(1)
    weights = parts[0].problem.sample.weight_array
    ahead = parts[0].losses() - parts[1].losses()
    error = float(np.sqrt(weights @ (ahead - np.average(ahead, weights=weights)) ** 2))
    bent = float(ndtr((parts[0].estimate - parts[1].estimate) / max(error, 1e-9)))
    bent = round(bent) if min(bent, 1.0 - bent) < _HARDLY else bent
    return np.array([1.0 - bent, bent])


def _effective(curve: OrderPreservingScaling) -> float:
    return float(curve.fit_report_.details["effective_parameters"])


def _bent(curve: OrderPreservingScaling, logits: NDArray[np.floating], least: float) -> NDArray[np.floating]:
    """Return the logarithm of what a curve answers, with a share of the uniform distribution."""
    p = curve._map(logits)
    p *= 1.0 - least
    p += least / p.shape[1]
    return np.log(p, out=p)


def _at_least(weights: NDArray[np.float64], uniform: float) -> NDArray[np.float64]:
    """Return mixture weights with at least so much of the uniform distribution."""
    if weights[2] >= uniform:
        return weights
    rest = weights[:2] * (1.0 - uniform) / max(weights[:2].sum(), 1e-300)
    return np.append(rest, uniform)


def _mixture_loss(sample: Sample, temperature: float, weights: NDArray[np.float64]) -> float:
    """Return the summed log-loss of w₁ softmax(z / T) + w₂ softmax(z) + w₃ / K."""

    def one_pass(rows: Sample) -> float:
        scaled, plain = (
            _core.temperature_rows(rows.logits, rows.labels, beta, get_threads())[:, 0]
            for beta in (1.0 / temperature, 1.0)
        )
        p = weights[0] * scaled + weights[1] * plain + weights[2] / rows.n_classes
        return float(-rows.weight_array @ np.log(p))

    return reduce(one_pass, sample)
