"""A convex combination of maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..arrays import keep_top, row_blocks, softmax
from ..calibrator import Calibrator
from ..errors import InvalidInput
from ..fits.judge import mean_losses
from ..fits.report import FitReport
from ..maps.scaling.temperature import TemperatureScaling
from ..parameters import AnyOf, Integer, OneOf
from ..passes import Block, in_memory, reduce
from ..simplex import best_log_mixture, best_quadratic
from ..traits import Target, Traits, weakest
from ._joint import fit_jointly
from .composition import Composition

__all__ = ["Mixture"]

Array = NDArray[np.float64]
_TARGETS: tuple[Target, ...] = ("top label", "each class", "full")


class Mixture(Composition):
    """p = Σ wᵢ pᵢ, the pᵢ the answers of the parts and w on the simplex (the *model ensemble* of Mix-n-Match, §3.2).

    For given parts the weights are a convex problem, solved to the global optimum: by log-loss on the parts'
    probabilities of the labels, by Brier score on their Gram matrix. A mixture of maps that keep the ranking keeps it.

    Parameters
    ----------
    parts : sequence of Calibrator
        They are cloned, not changed; each sees the scores.
    weights : {"after", "joint"}
        "after": each part is fitted by itself, then the weights. "joint": the temperatures of the parts and the
        weights together minimise ``loss``; every part must then be a `TemperatureScaling` or have nothing to learn
        (`Identity`, `Uniform`). ``Mixture([TemperatureScaling(), Identity(), Uniform()], weights="joint")`` is
        `EnsembleTemperatureScaling`, which is faster.
    loss : {"nll", "brier"}
        What the weights minimise.
    cv : int, optional
        For "after": learn the weights from answers of parts that were fitted on the other folds (stacking), so that a
        part that memorises its rows is not favoured. None: from the answers on the rows they were fitted on.
    inputs, classes, saturated
        See `Calibrator`; those of the parts play no role.

    Attributes
    ----------
    parts_ : list of Calibrator
    weights_ : array of shape (parts,)
    """

    _identifier = "mixture"
    _constraints: ClassVar[Mapping[str, Any]] = {
        "weights": OneOf("after", "joint"),
        "loss": OneOf("nll", "brier"),
        "cv": AnyOf(OneOf(None), Integer(2)),
    }
    weights_: Array

    def __init__(
        self,
        parts: Sequence[Calibrator],
        weights: str = "after",
        loss: str = "nll",
        cv: int | None = None,
        *,
        inputs: str = "logits",
        classes: Any = None,
        saturated: str = "small",
    ) -> None:
        self.parts = parts
        self.weights = weights
        self.loss = loss
        self.cv = cv
        self.inputs = inputs
        self.classes = classes
        self.saturated = saturated

    @property
    def traits(self) -> Traits:
        """What all parts have: the weakest promise and the least that is calibrated."""
        parts = [part.traits for part in self.parts]
        promise = weakest([traits.preserves for traits in parts])
        target = _TARGETS[min(_TARGETS.index(traits.calibrates) for traits in parts)]
        growth = " + ".join([*(traits.parameters for traits in parts), str(len(parts) - 1)])
        return Traits(parts[0].shape, promise, target, growth, parts[0].needs)

    def _fit_rows(self, sample: Block) -> FitReport:
        self.parts_ = [part.unfitted() for part in self.parts]
        reports = [part.fit_sample(sample) for part in self.parts_]
        steps, converged = sum(r.iterations for r in reports), all(r.converged for r in reports)
        if self.weights == "joint":
            steps, converged = self._fit_jointly(sample)
        else:
            self.weights_ = best_weights(self._answers(sample), self.loss)
        return FitReport(
            steps,
            converged,
            self.loss,
            *mean_losses(in_memory(sample), softmax, self._map, self.loss),
            caveat=next((r.caveat for r in reports if r.caveat), ""),
            messages=() if self.weights == "joint" else tuple(m for r in reports for m in r.messages),
            details={"parts": reports},
        )

    def _fit_jointly(self, sample: Block) -> tuple[int, bool]:
        free = [isinstance(part, TemperatureScaling) for part in self.parts_]
        found = fit_jointly(sample, [None if f else p._map for f, p in zip(free, self.parts_, strict=True)], self.loss)
        for part, beta in zip(self.parts_, found.betas, strict=True):
            if isinstance(part, TemperatureScaling):
                part.temperature_ = 1.0 / beta
        self.weights_ = found.weights
        return found.passes, found.converged

    def _answers(self, sample: Block) -> list[tuple[Block, list[Calibrator]]]:
        """Rows with the fitted parts whose answers on them the weights are learnt from."""
        if self.cv is None or sample.n < 2 * self.cv:
            return [(sample, self.parts_)]
        pairs: list[tuple[Block, list[Calibrator]]] = []
        data = in_memory(sample)
        for number in range(self.cv):
            rest, fold = data.without(number, self.cv).rows(), data.only(number, self.cv).rows()
            parts = [part.unfitted() for part in self.parts]
            for part in parts:
                part.fit_sample(rest)
            pairs.append((fold, parts))
        return pairs

    def _map(self, logits: NDArray[np.floating]) -> NDArray[np.floating]:
        total = np.zeros_like(logits)
        for weight, part in zip(self.weights_, self.parts_, strict=True):
            if weight > 0:
                total += logits.dtype.type(weight) * part._map(logits)
        return keep_top(total, logits) if self.traits.preserves_accuracy else total

    def _check_parts(self) -> None:
        for i, part in enumerate(self.parts):
            if part.traits.needs != "scores":
                raise InvalidInput(f"Mixture: parts[{i}] ({type(part).__name__}) needs {part.traits.needs}, not scores")
            if self.weights == "joint" and not isinstance(part, TemperatureScaling) and part.traits.parameters != "0":
                raise InvalidInput(
                    f'Mixture: weights="joint" cannot refit parts[{i}] ({type(part).__name__}) with the weights',
                    allowed="TemperatureScaling, and maps with nothing to learn",
                    hint='use weights="after"',
                )


def best_weights(answers: list[tuple[Block, list[Calibrator]]], loss: str) -> Array:
    """Return the weights of the least loss over rows and parts that are fitted already."""
    if loss == "nll":
        columns = np.concatenate([reduce(lambda rows, p=parts: _columns(rows, p), rows) for rows, parts in answers])
        weights = np.concatenate([rows.weight_array for rows, _ in answers])
        possible = columns.max(axis=1) > 0  # where every part says 0 the loss is infinite, whatever the weights
        return best_log_mixture(columns[possible], weights[possible])
    sums = [reduce(lambda rows, p=parts: _gram(rows, p), rows) for rows, parts in answers]
    total = np.sum(sums, axis=0)
    return best_quadratic(total[:, :-1], total[:, -1])


def _columns(rows: Block, parts: list[Calibrator]) -> Array:
    """Each part's probability of each row's label, (n, parts)."""
    out = np.empty((rows.n, len(parts)))
    for block in row_blocks(*rows.logits.shape):
        labels = rows.labels[block]
        for i, part in enumerate(parts):
            out[block, i] = part._map(rows.logits[block])[np.arange(len(labels)), labels]
    return out


def _gram(rows: Block, parts: list[Calibrator]) -> Array:
    """Weighted sums of ⟨pᵢ, pⱼ⟩, and in a last column of pᵢ's probability of the label: (parts, parts + 1)."""
    out = np.zeros((len(parts), len(parts) + 1))
    for block in row_blocks(*rows.logits.shape):
        labels, weights = rows.labels[block], rows.weight_array[block]
        answers = np.stack([part._map(rows.logits[block]) for part in parts]).astype(np.float64)
        out[:, :-1] += np.einsum("n,ink,jnk->ij", weights, answers, answers, optimize=True)
        out[:, -1] += answers[:, np.arange(len(labels)), labels] @ weights
    return out
