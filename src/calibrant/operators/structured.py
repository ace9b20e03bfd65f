"""Structured scaling: vector or matrix scaling whose parts are held by strengths of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..arrays import softmax
from ..calibrator import Calibrator, Summand
from ..declared import attribute, declared, parameter
from ..fits.judge import estimate
from ..fits.report import FitReport
from ..formulas import Term
from ..invariants import Fitted
from ..maps.scaling._problem import small_products
from ..maps.scaling._structured_part import StructuredPart
from ..maps.scaling.floored import FlooredTemperature
from ..maps.scaling.order_preserving import OrderPreservingScaling
from ..maps.scaling.trivial import Uniform
from ..parameters import OneOf
from ..passes import Data
from ..traits import Traits
from ..types import Floats
from .chain import Chain, Link
from .mixture import Mixture

_DIAGONAL = Traits("scaling", "nothing", "each class", "2K")
_FULL = Traits("scaling", "nothing", "full", "K²")
# Classes beyond which a full D takes seconds, and one form of it is enough; behind the curve it brought nothing. On
# realistic scores and on images of 100 to 1,000 classes held-out log-loss moved by .0006 at most, to either side.
_MANY = 256


@declared
class StructuredScaling(Calibrator):
    """p = Σ sᵢ softmax(u + Dᵢ xᵢ + bᵢ) around an ensemble temperature, each part of (D, b) with a strength of its own.

    A composition of the operators, `Chain` and `Mixture`:

    1. The first link answers p₀, the temperature scaling of the scores, log T with a prior, or, where it pays for its
       parameters, the ensemble temperature, with some of the uniform distribution, up to 1/(n + 1): what n rows cannot
       tell from zero stays off zero, and a few labels that the model thought impossible do not bend everything else.
       u = log p₀.
    2. The second is a mixture of `StructuredPart`: the parts of (D, b) - the classes' own slopes, the weights between
       classes, the intercepts and the weight of how sure a row is (its mean log-probability) - each have a Gaussian
       prior around zero. Their precisions maximise the evidence (MacKay 1992), with half a parameter's worth of a rule
       in K (Berta et al. 2026); for intercepts that of classes whose shares are off by a factor of two.
    3. Where that gains no more on its rows than chance would (half the number of parameters that they determine), p₀
       stays alone.
    4. The matrix comes in three forms: with a diagonal D only, with features that are centred by row, and with the
       log-probabilities as they are (up to 256 classes). Where an order-preserving curve pays on p₀, each is fitted on
       p₀ bent by it as well, beyond 256 classes the diagonal one only. The share of a map is the probability that it
       is the best on other rows (pseudo-BMA+ of Yao et al. 2018), from the log-losses expected there and their
       covariance.

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
    chain_ : Chain
        The two links: p₀, with its ``temperature_``, the ``weights_`` of the scaled scores, of the scores as they came
        and of the uniform distribution, and ε as ``least_``; and the `Mixture`. Its ``parts_`` are the maps that are
        mixed, each a `StructuredPart` or a chain of the curve and one, with their shares as ``weights_``.
    """

    _identifier = "structured-scaling"
    shape: str = parameter(OneOf("matrix", "vector"), default="matrix")
    chain_: Chain = attribute(Fitted(), counted=True)

    @property
    def traits(self) -> Traits:
        """Full calibration with K² parameters, or each class with 2K."""
        return _DIAGONAL if self.shape == "vector" else _FULL

    def _fit(self, data: Data) -> FitReport:
        with small_products(data.n_classes):  # over all links: the BLAS's threads would wake between them
            return self._fit_links(data)

    def _fit_links(self, data: Data) -> FitReport:
        base = FlooredTemperature()
        link = Link(base, base.fit_data(data), data)
        parts = [StructuredPart(form) for form in self._forms(data.n_classes)]
        curve = _curve(base.least_)
        bent = [Chain([curve, part]) for part in (parts[:1] if data.n_classes > _MANY else parts)]
        self.chain_ = Chain([FlooredTemperature(), Mixture([*parts, *bent], weights="likely")])
        report = self.chain_.fit_behind(link)
        effective = report.details["effective_parameters"]
        # What the report says beside is of parts that may have no share.
        report = replace(report, details={}, at_bound=(), messages=(), caveat="")
        return estimate(report, data, softmax, self._map, effective)

    def _forms(self, k: int) -> list[str]:
        if self.shape == "vector":
            return ["own"]
        return ["own", "centred"] if k > _MANY else ["own", "centred", "plain"]

    def _summands(self) -> list[Summand]:
        return self.chain_._summands()

    def _map(self, logits: Floats) -> Floats:
        return self.chain_._map(logits)

    def _map_precisely(self, logits: Floats) -> Floats:
        return self.chain_._map_precisely(logits)

    def _formula(self, z: Term) -> Term:
        return self.chain_._formula(z)

    @classmethod
    def _upgraded_state(cls, state: dict[str, Any]) -> dict[str, Any]:
        """Turn what version 0.1.0 wrote, its links apart, into a chain."""
        if "base_" not in state:
            return state
        old = {name: state.pop(name) for name in ("base_", "curve_", "parts_", "bent_", "shares_")}
        base, parts = old["base_"], []
        bends = [_fitted(_curve(base.least_), [curve, Uniform()]) for curve in old["curve_"]]
        for part, bent in zip(old["parts_"], old["bent_"], strict=True):
            parts.append(_fitted(Chain([bends[0].unfitted(), part.unfitted()]), [bends[0], part]) if bent else part)
        mixture = _fitted(Mixture([part.unfitted() for part in parts], weights="likely"), parts)
        mixture.weights_ = np.asarray(old["shares_"])
        return {**state, "chain_": _fitted(Chain([base.unfitted(), mixture.unfitted()]), [base, mixture])}


def _curve(least: float) -> Mixture:
    """Return a curve through log p₀ whose answer has at least such a share of the uniform distribution, like p₀."""
    return Mixture([OrderPreservingScaling(temperature=1.0), Uniform()], weights=(1.0 - least, least))


def _fitted(composition: Any, parts: list[Calibrator]) -> Any:
    """Return a composition whose parts are fitted already."""
    composition.parts_ = parts
    if isinstance(composition, Mixture) and not isinstance(composition.weights, str):
        composition.weights_ = np.asarray(composition.weights, dtype=np.float64)
    return composition
