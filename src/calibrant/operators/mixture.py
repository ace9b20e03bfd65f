"""A convex combination of maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..arrays import softmax
from ..calibrator import Calibrator, Summand
from ..declared import attribute, declared, parameter
from ..errors import InvalidInput
from ..fits.judge import compare_losses, estimate, judged
from ..fits.likely import likely_best, loss_moments
from ..fits.mixing import Mixing, Part
from ..fits.mixture_search import best_mixture, best_weights
from ..fits.report import FitReport
from ..formulas import Term
from ..invariants import Fitted, Values
from ..made import made_once
from ..maps.scaling.temperature import TemperatureScaling, best_temperature, temperature_sums
from ..maps.scaling.trivial import Identity, Uniform
from ..parameters import AnyOf, Instance, OneOf, count_from
from ..passes import Data
from ..traits import Target, Traits, most_of, weakest
from ..types import Array, Floats
from ._blend import Blend, matrices_of
from ._parts import Parts, effective_parameters, fitted_parts, share_links
from .composition import Composition

_TARGETS: tuple[Target, ...] = ("top label", "each class", "full")


@declared
class Mixture(Composition):
    """p = Σ wᵢ pᵢ, the pᵢ the answers of the parts and w on the simplex (the *model ensemble* of Mix-n-Match, §3.2).

    For given parts the weights are a convex problem, solved to the global optimum: by log-loss on the parts'
    probabilities of the labels, by Brier score on their Gram matrix. A mixture of maps that keep the ranking keeps it.
    Chains that begin with the same link share its fit and its answers.

    Parameters
    ----------
    parts : sequence of Calibrator
        They are cloned, not changed; each sees the scores.
    weights : {"after", "joint", "likely"} or tuple of float
        "after": each part is fitted by itself, then the weights.

        "joint": the temperatures of the parts and the weights together minimise ``loss``; every part must then be a
        `TemperatureScaling` or have nothing to learn (`Identity`, `Uniform`). ``Mixture([TemperatureScaling(),
        Identity(), Uniform()], weights="joint")`` is `EnsembleTemperatureScaling`.

        "likely": the weight of a part is the probability that it is the best on other rows (pseudo-BMA+, Yao et al.
        2018), from the log-losses expected there and their covariance. Chains whose first link gains less than its
        parameters cost are not tried, and parts that deserve less than a twentieth are left out of ``parts_``. With
        ``cv`` the losses are those of rows that the parts were not fitted on, so that maps of any kind can be weighed.

        Numbers that sum to one: the weights themselves.
    loss : {"nll", "brier"}
        What the weights minimise, and what the report is about.
    cv : int, optional
        For "after" and "likely": learn the weights from answers of parts that were fitted on the other folds, so that
        a part that memorises its rows is not favoured. None: from the answers on the rows they were fitted on.
    handicaps : tuple of float, optional
        For "likely": nats that each part is behind before its rows are looked at, as a prior has it.
    inputs, classes, saturated
        See `Calibrator`; those of the parts play no role.

    Attributes
    ----------
    parts_ : list of Calibrator
    weights_ : array of shape (parts,)
    """

    _identifier = "mixture"
    parts: Sequence[Calibrator] = parameter()
    weights: str | tuple[float, ...] = parameter(
        AnyOf(OneOf("after", "joint", "likely"), Instance((tuple,), "a tuple of numbers")), default="after"
    )
    loss: str = parameter(OneOf("nll", "brier"), default="nll")
    cv: int | None = parameter(AnyOf(OneOf(None), count_from(2)), default=None)
    handicaps: tuple[float, ...] | None = parameter(
        AnyOf(OneOf(None), Instance((tuple,), "a tuple of numbers")), default=None, kw_only=True
    )
    parts_: list[Calibrator] = attribute(Fitted("parts"))
    weights_: Array = attribute(Values("parts", low=0, total=1))

    @property
    def traits(self) -> Traits:
        """What all parts have: the weakest promise and the least that is calibrated."""
        parts = [part.traits for part in self.parts]
        promise = weakest([traits.preserves for traits in parts])
        target = _TARGETS[min(_TARGETS.index(traits.calibrates) for traits in parts)]
        growth = " + ".join([*(traits.parameters for traits in parts), str(len(parts) - 1)])
        sees = most_of([traits.sees for traits in parts])
        return Traits(parts[0].shape, promise, target, growth, parts[0].needs, sees)

    # Fitting --------------------------------------------------------------------------------------------------

    def _fit(self, data: Data) -> FitReport:
        self.parts_ = fitted_parts(self.parts, data, thrifty=self.weights == "likely" and self.cv is None)
        if isinstance(self.weights, str):
            return _RULES[self.weights](self, data)
        self.weights_ = np.asarray(self.weights, dtype=np.float64)
        return self._report(data, _answered(self.parts_, self.loss), 0, True)

    def _fit_after(self, data: Data) -> FitReport:
        mixing = _answered(self.parts_, self.loss)
        if self.cv is None or data.n < 2 * self.cv:
            found = best_mixture(data, mixing, 1.0, (1.0, 1.0))
        else:
            found = best_weights([self._held_out(data, fold, self.cv) for fold in range(self.cv)])
        self.weights_ = found.weights
        return self._report(data, mixing, found.passes, found.converged)

    def _held_out(self, data: Data, fold: int, folds: int) -> tuple[Data, Mixing]:
        """Return the rows of a fold, and the mixture of parts that were fitted on the others."""
        parts = fitted_parts(self.parts, data.without(fold, folds))
        return data.only(fold, folds), _answered(parts, self.loss)

    def _fit_jointly(self, data: Data) -> FitReport:
        kinds: tuple[Part, ...] = tuple(_kind(part) for part in self.parts_)
        others = [(i, self.parts_[i]) for i, kind in enumerate(kinds) if kind == "answered"]
        mixing = Mixing(kinds, self.loss, Parts(others) if others else None)
        alone = best_temperature(data, self.loss)
        found = best_mixture(data, mixing, alone.beta, alone.bounds)
        weights, betas = found.weights, np.exp(found.beside)
        if mixing.free and found.value > alone.after:
            weights, betas = np.eye(len(kinds))[mixing.free[0]], np.full(len(betas), alone.beta)
        for i, beta in zip(mixing.free, betas.tolist(), strict=True):
            setattr(self.parts_[i], "temperature_", 1.0 / beta)  # noqa: B010  only temperatures are free
        self.weights_ = weights
        passes = alone.passes + found.passes
        report = self._report(data, mixing.at(np.log(betas)), passes, found.converged, told=False)
        if self.loss != "nll":
            return report
        counted = np.count_nonzero(weights) - 1 + np.count_nonzero(weights[mixing.free])
        return estimate(report, data, softmax, self._map, float(counted))

    def _fit_likely(self, data: Data) -> FitReport:
        mixing = _answered(self.parts_, self.loss)
        if self.cv is not None and data.n >= 2 * self.cv:
            return self._fit_likely_apart(data, mixing, self.cv)
        costs = np.array([effective_parameters(part) for part in self.parts_])
        self.weights_ = likely_best(data.reduce(partial(loss_moments, mixing=mixing)), costs)
        report = self._report(data, mixing, 0, True)
        effective = float(costs @ self.weights_)
        self._keep_chosen()
        return estimate(report, data, softmax, self._map, effective)

    def _fit_likely_apart(self, data: Data, mixing: Mixing, folds: int) -> FitReport:
        """Weigh the parts by rows that they were not fitted on, and judge the mixture by the same rows."""
        apart = [self._held_out(data, fold, folds) for fold in range(folds)]
        apart = [(rows, held) for rows, held in apart if rows.total_weight > 0]
        moments = [rows.reduce(partial(loss_moments, mixing=held)) for rows, held in apart]
        self.weights_ = likely_best(sum(moments[1:], moments[0]), self._behind)
        report = self._report(data, mixing, 0, True)
        compared = [
            rows.reduce(partial(compare_losses, before=softmax, after=_Mixed(held.answers, self.weights_)))
            for rows, held in apart
        ]
        found = sum(compared[1:], compared[0])
        self._keep_chosen()
        return judged(report, found, data.total_weight * (folds - 1) / folds)

    @property
    def _behind(self) -> Array:
        """How many nats each part is behind at the start."""
        return np.zeros(len(self.parts_)) if self.handicaps is None else np.asarray(self.handicaps, dtype=np.float64)

    def _keep_chosen(self) -> None:
        """Leave out the parts without a weight."""
        chosen = np.flatnonzero(self.weights_)
        self.parts_, self.weights_ = [self.parts_[i] for i in chosen], self.weights_[chosen]

    def _report(self, data: Data, mixing: Mixing, passes: int, converged: bool, *, told: bool = True) -> FitReport:
        """Return what is to be said of the fit; ``told``: with the messages of the parts."""
        reports = [part.fit_report_ for part in self.parts_]
        before = data.reduce(partial(temperature_sums, betas=np.ones(1), loss=self.loss))[0, 0] / data.total_weight
        effective = float(self.weights_ @ [effective_parameters(part) for part in self.parts_])
        return FitReport(
            passes + sum(r.iterations for r in reports),
            converged and all(r.converged for r in reports),
            self.loss,
            float(before),
            mixing.mean_loss(data, self.weights_),
            caveat=next((r.caveat for r in reports if r.caveat), ""),
            messages=tuple(m for r in reports for m in r.messages) if told else (),
            details={"parts": reports, "effective_parameters": effective},
        )

    def _count_parameters(self) -> float:
        return super()._count_parameters() + (len(self.weights_) - 1 if isinstance(self.weights, str) else 0)

    # Answering ------------------------------------------------------------------------------------------------

    def _map(self, logits: Floats) -> Floats:
        return self._blend(logits)

    def _map_precisely(self, logits: Floats) -> Floats:
        return self._blend(logits, precisely=True)

    def _summands(self) -> list[Summand]:
        """The terms of all parts; a mixture that keeps the top label stays one: it looks at the sum for that."""
        if self.traits.preserves_accuracy:
            return super()._summands()
        weighed = [
            (part, weight) for part, weight in zip(self.parts_, self.weights_.tolist(), strict=True) if weight > 0
        ]
        return [term._replace(weight=weight * term.weight) for part, weight in weighed for term in part._summands()]

    def link_logits(self, logits: Floats) -> Floats:
        """Return the answer as finite logits, see `Calibrator.link_logits`."""
        return self._blend.link_logits(logits)

    def _formula(self, z: Term) -> Term:
        total = z.lift(0.0)
        for part, weight in zip(self.parts_, self.weights_.tolist(), strict=True):
            if weight > 0:
                total = total + part._formula(z) * weight
        return total

    @property
    def _blend(self) -> Blend:
        parts, weights = self.parts_, self.weights_
        return made_once(self, (parts, weights, *matrices_of(parts)), lambda: Blend(parts, weights))

    @classmethod
    def _upgraded_state(cls, state: dict[str, Any]) -> dict[str, Any]:
        """Let chains that were written one by one share their first link again."""
        share_links(state["parts_"])
        return state

    def _check_parts(self) -> None:
        self._check_weights()
        self._check_handicaps()
        for i, part in enumerate(self.parts):
            if part.traits.needs != "scores":
                raise InvalidInput(f"Mixture: parts[{i}] ({type(part).__name__}) needs {part.traits.needs}, not scores")
            if self.weights == "joint" and not isinstance(part, TemperatureScaling) and part.traits.parameters != "0":
                raise InvalidInput(
                    f'Mixture: weights="joint" cannot refit parts[{i}] ({type(part).__name__}) with the weights',
                    allowed="TemperatureScaling, and maps with nothing to learn",
                    hint='use weights="after"',
                )

    def _check_handicaps(self) -> None:
        if self.handicaps is None:
            return
        given = np.asarray(self.handicaps)
        numbers = given.dtype.kind in "if" and given.shape == (len(self.parts),) and bool(np.isfinite(given).all())
        if not numbers or self.weights != "likely" or self.cv is None:
            raise InvalidInput(
                'Mixture: handicaps are one number for each part, with weights="likely" and cv',
                seen=f"{self.handicaps!r} for {len(self.parts)} parts, weights={self.weights!r}, cv={self.cv!r}",
            )

    def _check_weights(self) -> None:
        if self.weights == "likely" and self.loss != "nll":
            raise InvalidInput('Mixture: weights="likely" goes by the log-loss', seen=f"loss={self.loss!r}")
        if isinstance(self.weights, str):
            return
        given = np.asarray(self.weights)
        numbers = given.dtype.kind in "if" and given.shape == (len(self.parts),)
        if not (numbers and (given >= 0).all() and abs(given.sum() - 1) < 1e-9):
            raise InvalidInput(
                "Mixture: weights must be a rule, or one number for each part that is not negative, with a sum of one",
                seen=repr(self.weights),
            )


_RULES = {"after": Mixture._fit_after, "joint": Mixture._fit_jointly, "likely": Mixture._fit_likely}


@dataclass(frozen=True, eq=False)
class _Mixed:
    """Answers the mixture of fitted parts with given weights."""

    answers: Any
    weights: Array

    def __call__(self, logits: Floats) -> Floats:
        total = np.zeros_like(logits)
        for i, p in self.answers(logits):
            total += p * logits.dtype.type(self.weights[i])
        return total


def _answered(parts: list[Calibrator], loss: str) -> Mixing:
    """Return the mixture of fitted parts as a problem in its weights."""
    return Mixing(("answered",) * len(parts), loss, Parts(list(enumerate(parts))))


def _kind(part: Calibrator) -> Part:
    """Return what a part is to a fit of temperatures and weights together."""
    if isinstance(part, TemperatureScaling):
        return None
    if isinstance(part, (Identity, Uniform)):
        return 1.0 if isinstance(part, Identity) else 0.0
    return "answered"
