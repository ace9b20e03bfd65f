"""A linear map around given log-probabilities, each of whose parts is held by a strength of its own."""

from __future__ import annotations

import numpy as np

from ...declared import attribute, declared, parameter
from ...errors import InvalidInput
from ...fits.evidence import fit_by_evidence
from ...fits.priors import ridge, structured
from ...fits.report import FitReport
from ...invariants import Values
from ...parameters import AnyOf, OneOf
from ...passes import Block, Data
from ...traits import Traits
from ...types import Array
from ...validation.saturation import ZERO_LOG
from ._frame import Frame, centres_of
from ._linear_stack import LinearMap
from ._problem import LinearProblem, small_products

_INTERCEPTS = 2  # their part, see `parts_of`
_ALIKE = 1e-18  # a variance that is rounding: all rows are as sure
_SHIFTED = 2.0  # their precision by the rule: the classes' shares are off by a factor of two, e^(1/√2)


@declared
class StructuredPart(LinearMap):
    """p = softmax(u + D x + b) for rows whose logits are log-probabilities u, (D, b) by the evidence of the rows.

    Parameters
    ----------
    form : {"own", "centred", "plain"}
        "own": D is diagonal, x = u. "centred": x is u less its mean over the classes and, as one feature more, that
        mean, standardised: how sure a row is. "plain": x = u, which knows how sure a row is by itself; the prior on
        an intercept is then on b, not on what its class gets at an average row.
    inputs, classes, saturated
        See `Calibrator`.

    Attributes
    ----------
    weights_ : array of shape (K,), (K, K + 1) or (K, K)
        D, by form.
    intercept_ : array of shape (K,)
        b.
    confidence_ : array of shape (2,)
        Mean and deviation that standardise the mean log-probability of a row.
    precisions_ : array of shape (4,)
        Strengths used: of the slopes, the weights between classes, the intercepts and how sure a row is.
    """

    _identifier = "structured-part"
    form: str = parameter(OneOf("own", "centred", "plain"), default="centred")
    confidence_: Array = attribute(Values(2))
    precisions_: Array = attribute(Values("parts", low=0, high=np.inf, finite=False))
    weights_: Array = attribute(AnyOf(Values("K"), Values("K", "K"), Values("K", "K+1")), counted=True)
    intercept_: Array = attribute(Values("K"), counted=True)

    @property
    def traits(self) -> Traits:
        """Full calibration with K² parameters, or each class with 2K."""
        if self.form == "own":
            return Traits("scaling", "nothing", "each class", "2K")
        return Traits("scaling", "nothing", "full", "K²")

    def _fit(self, data: Data) -> FitReport:
        with small_products(data.n_classes):
            return self._fit_parts(data)

    def _fit_parts(self, data: Data) -> FitReport:
        total, first, second = data.reduce(_confidence_sums).tolist()
        mean = first / total
        variance = second / total - mean**2
        self.confidence_ = np.array([mean, np.sqrt(variance) if variance > _ALIKE else 1.0])
        problem = LinearProblem.of(data, self.frame, self.form != "own", at_average=self.form != "plain")
        start = rule = structured(data.n_classes)
        if self.form != "plain":
            rule = np.where(np.arange(len(start)) == _INTERCEPTS, np.minimum(start, _SHIFTED), start)
        fitted = fit_by_evidence(problem, ridge(data.n_classes, problem.size), start, rule)
        self.precisions_ = fitted.precisions
        self.weights_, self.intercept_ = problem.plain(fitted.point.theta)
        before = fitted.start.sums.loss / data.total_weight
        return fitted.report(FitReport(0, True, "nll", before, before), data.total_weight)

    def _check_state(self) -> None:
        k = len(self.intercept_)
        shape = {"own": (k,), "centred": (k, k + 1), "plain": (k, k)}[self.form]
        if self.weights_.shape != shape or not self.confidence_[1] > 0:
            raise InvalidInput("StructuredPart is not usable: its weights do not have its form", seen=self.form)

    @property
    def frame(self) -> Frame:
        """How logits become features."""
        mean, deviation = self.confidence_.tolist()
        centred = self.form == "centred"
        return Frame(1.0, ZERO_LOG, centred=centred, confidence=(mean, deviation) if centred else None)


def _confidence_sums(block: Block) -> Array:
    """One pass: Σ w, Σ w m and Σ w m², m the mean log-probability of a row."""
    means, weights = block.kept(centres_of, 1.0, ZERO_LOG)[:, 1], block.weight_array
    return np.array([weights.sum(), weights @ means, weights @ means**2])
