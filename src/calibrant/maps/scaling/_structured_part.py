"""A linear map around given log-probabilities, each of whose parts is held by a strength of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...arrays import row_blocks
from ...calibrator import Calibrator
from ...fits.report import FitReport
from ...parameters import OneOf
from ...passes import Block
from ...traits import Traits
from ._evidence import fit_by_evidence
from ._frame import Frame
from ._prior import Prior, first_guess, parts_of
from ._problem import Problem

__all__ = ["StructuredPart"]

_INTERCEPTS = 2  # their part, see `parts_of`
_SHIFTED = 2.0  # their precision by the rule: the classes' shares are off by a factor of two, e^(1/√2)


class StructuredPart(Calibrator):
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
    _constraints: ClassVar[Mapping[str, Any]] = {"form": OneOf("own", "centred", "plain")}
    weights_: NDArray[np.float64]
    intercept_: NDArray[np.float64]
    confidence_: NDArray[np.float64]
    precisions_: NDArray[np.float64]

    def __init__(
        self, form: str = "centred", *, inputs: str = "logits", classes: Any = None, saturated: str = "small"
    ) -> None:
        self.form = form
        self.inputs = inputs
        self.classes = classes
        self.saturated = saturated

    @property
    def traits(self) -> Traits:
        """Full calibration with K² parameters, or each class with 2K."""
        if self.form == "own":
            return Traits("scaling", "nothing", "each class", "2K")
        return Traits("scaling", "nothing", "full", "K²")

    def _fit_rows(self, sample: Block) -> FitReport:
        means = sample.logits.mean(axis=1, dtype=np.float64)
        mean = np.average(means, weights=sample.weights)
        deviation = np.sqrt(np.average((means - mean) ** 2, weights=sample.weights))
        self.confidence_ = np.array([mean, deviation if deviation > 1e-9 else 1.0])
        problem = Problem.of(sample, self._frame(), self.form != "own", at_average=self.form != "plain")
        prior = Prior(parts_of(sample.n_classes, problem.size), np.ones(problem.size))
        start = rule = first_guess(sample.n_classes)
        if self.form != "plain":
            rule = np.where(np.arange(len(start)) == _INTERCEPTS, np.minimum(start, _SHIFTED), start)
        fitted = fit_by_evidence(problem, prior, start, rule)
        self.precisions_ = fitted.precisions
        self.weights_, self.intercept_ = problem.plain(fitted.point.theta)
        before = -float(np.average(sample.logits[np.arange(sample.n), sample.labels], weights=sample.weights))
        report = fitted.report(FitReport(0, True, "nll", before, before), sample.total_weight)
        report.details["effective_parameters"] = fitted.effective
        return report

    @property
    def adds(self) -> bool:
        """Whether the rows gave reason to change anything."""
        return bool(np.isfinite(self.precisions_).any())

    def losses(self, rows: Block) -> NDArray[np.float64]:
        """Return the log-losses of rows."""
        frame = self._frame()
        blocks = row_blocks(*rows.logits.shape)
        return np.concatenate([
            frame.losses(rows.logits[b], rows.labels[b], self.weights_, self.intercept_) for b in blocks
        ])  # fmt: skip

    def _frame(self) -> Frame:
        mean, deviation = self.confidence_.tolist()
        centred = self.form == "centred"
        return Frame(1.0, -np.inf, centred=centred, confidence=(mean, deviation) if centred else None)

    def _map(self, logits: NDArray[np.floating]) -> NDArray[np.floating]:
        return self._frame().apply(logits, self.weights_, self.intercept_)
