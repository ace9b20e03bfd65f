"""Structured scaling: vector or matrix scaling whose parts are held by strengths of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...calibrator import Calibrator
from ...fits.report import FitReport
from ...parameters import OneOf
from ...passes import Block
from ...simplex import likely_best
from ...traits import Traits
from ._path import with_estimate
from ._problem import small_products
from ._structured_base import FlooredTemperature, with_least
from ._structured_part import StructuredPart
from .order_preserving import OrderPreservingScaling

__all__ = ["StructuredScaling"]

_MANY = 256  # classes beyond which a full D takes seconds, and one form of it is enough


class StructuredScaling(Calibrator):
    """p = Σ sᵢ softmax(u + Dᵢ xᵢ + bᵢ) around an ensemble temperature, each part of (D, b) with a strength of its own.

    1. u = log p₀, where p₀ is the temperature scaling of the scores, log T with a prior, or, where it pays for its
       parameters, the ensemble temperature, with some of the uniform distribution, up to 1/(n + 1): what n rows cannot
       tell from zero stays off zero, and a few labels that the model thought impossible do not bend everything else.
    2. The parts of (D, b) - the classes' own slopes, the weights between classes, the intercepts and the weight of how
       sure a row is (its mean log-probability) - each have a Gaussian prior around zero. Their precisions maximise the
       evidence (MacKay 1992), with half a parameter's worth of a rule in K (Berta et al. 2026); for intercepts that of
       classes whose shares are off by a factor of two.
    3. Where that gains no more on its rows than chance would (half the number of parameters that they determine), p₀
       stays alone.
    4. The matrix comes in three forms: with a diagonal D only, with features that are centred by row, and with the
       log-probabilities as they are (up to 256 classes). Where an order-preserving curve pays on p₀, each is fitted on
       p₀ bent by it as well. The answer mixes these maps: the share of one is the probability that it is the best on
       other rows (pseudo-BMA+ of Yao et al. 2018), from the log-losses expected there and their covariance.

    The idea of structure, and the comparison with it, is due to Berta et al. 2026 (structured matrix scaling), who set
    the strengths by a rule in n and K.

    Parameters
    ----------
    shape : {"matrix", "vector"}
        Full D ("sms") or a diagonal one ("svs").
    inputs, classes, saturated
        See `Calibrator`.

    Attributes
    ----------
    base_ : FlooredTemperature
        p₀: its ``temperature_`` and the ``weights_`` of the scaled scores, of the scores as they came and of the
        uniform distribution.
    curve_ : list
        The `OrderPreservingScaling` that bends p₀ for some parts, or nothing.
    parts_ : list of StructuredPart
        The maps that are mixed: ``form``, D as ``weights_``, b as ``intercept_``, the strengths as ``precisions_``.
    bent_ : array of shape (parts,)
        Whether a part acts on p₀ bent by the curve.
    shares_ : array of shape (parts,)
    """

    _identifier = "structured-scaling"
    _constraints: ClassVar[Mapping[str, Any]] = {"shape": OneOf("matrix", "vector")}
    base_: FlooredTemperature
    curve_: list[OrderPreservingScaling]
    parts_: list[StructuredPart]
    bent_: NDArray[np.bool_]
    shares_: NDArray[np.float64]

    def __init__(
        self, shape: str = "matrix", *, inputs: str = "logits", classes: Any = None, saturated: str = "small"
    ) -> None:
        self.shape = shape
        self.inputs = inputs
        self.classes = classes
        self.saturated = saturated

    @property
    def traits(self) -> Traits:
        """Full calibration with K² parameters, or each class with 2K."""
        if self.shape == "vector":
            return Traits("scaling", "nothing", "each class", "2K")
        return Traits("scaling", "nothing", "full", "K²")

    def _fit_rows(self, sample: Block) -> FitReport:
        with small_products(sample.n_classes):
            return self._fit_parts(sample)

    def _fit_parts(self, sample: Block) -> FitReport:
        self.base_, curve = FlooredTemperature(), OrderPreservingScaling(temperature=1.0)
        start = self.base_.fit_sample(sample)
        rows = sample.with_logits(self.base_._map_logits(sample.logits))
        forms = self._forms(sample.n_classes)
        candidates = [_candidate(form, rows) for form in forms]
        cost = curve.fit_sample(rows)
        effective = float(cost.details["effective_parameters"])
        if cost.loss_after + effective / sample.total_weight < start.loss_after:
            rows = sample.with_logits(with_least(curve._map(rows.logits), self.base_.least_))
            candidates += [_candidate(form, rows, curve, effective) for form in forms]
        return self._mix(candidates, start, sample)

    def _forms(self, k: int) -> list[str]:
        if self.shape == "vector":
            return ["own"]
        return ["own", "centred"] if k > _MANY else ["own", "centred", "plain"]

    def _mix(self, candidates: list[_Candidate], start: FitReport, sample: Block) -> FitReport:
        """Keep the candidates that deserve a share, and report on their mixture."""
        candidates = _distinct(candidates)
        reports = [c.report for c in candidates]
        costs = np.array([c.effective for c in candidates])
        losses = np.stack([c.losses for c in candidates])
        shares = likely_best(losses, costs, sample.weight_array)
        kept = [c for c, share in zip(candidates, shares, strict=True) if share > 0]
        self.parts_ = [c.part for c in kept]
        self.bent_ = np.array([c.bend is not None for c in kept])
        self.curve_ = [c.bend for c in kept if c.bend is not None][:1]
        self.shares_ = shares[shares > 0]
        mixed = -np.log(shares @ np.exp(-losses))
        effective = float(costs @ shares) + start.details["effective_parameters"]
        report = replace(
            start,
            iterations=start.iterations + sum(r.iterations for r in reports),
            converged=start.converged and all(r.converged for r in reports),
            loss_after=float(np.average(mixed, weights=sample.weights)),
            details={"effective_parameters": effective},
        )
        return with_estimate(report, sample, mixed.__getitem__, effective)

    def _map(self, logits: NDArray[np.floating]) -> NDArray[np.floating]:
        straight = self.base_._map_logits(logits)
        bent = [with_least(curve._map(straight), self.base_.least_) for curve in self.curve_]
        total = np.zeros_like(straight)
        for part, on_bent, share in zip(self.parts_, self.bent_, self.shares_.tolist(), strict=True):
            answer = part._map(bent[0] if on_bent else straight)
            answer *= share
            total += answer
        return total


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A part fitted on p₀, bent by a curve or as it is: the log-losses of its rows, and what they determine of it."""

    part: StructuredPart
    bend: OrderPreservingScaling | None
    report: FitReport
    losses: NDArray[np.float64]
    effective: float


def _candidate(form: str, rows: Block, bend: OrderPreservingScaling | None = None, of_bend: float = 0.0) -> _Candidate:
    part = StructuredPart(form)
    report = part.fit_sample(rows)
    effective = float(report.details["effective_parameters"]) + of_bend
    return _Candidate(part, bend, report, part.losses(rows), effective)


def _distinct(candidates: list[_Candidate]) -> list[_Candidate]:
    """Return the candidates, but of those that leave the same log-probabilities as they are only the first."""
    known: set[bool] = set()
    kept = []
    for candidate in candidates:
        bent = candidate.bend is not None
        if candidate.part.adds or bent not in known:
            kept.append(candidate)
        if not candidate.part.adds:
            known.add(bent)
    return kept
