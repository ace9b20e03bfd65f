"""How a mixture answers: its fitted parts sorted by the rows they see, once for a fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..arrays import keep_top
from ..calibrator import Calibrator
from ..maps.scaling._linear_stack import LinearStack
from ..maps.scaling._structured_part import StructuredPart
from ..maps.scaling.trivial import Uniform
from ..validation.saturation import finite_logs
from .chain import Chain

__all__ = ["Blend"]

Scores = NDArray[np.floating]
Weighed = tuple[Callable[[Scores], Scores], float]


class Blend:
    """Σ wᵢ pᵢ of fitted parts: chains that begin alike share that answer, and linear maps of few rows share a sweep."""

    def __init__(self, parts: list[Calibrator], weights: NDArray[np.float64]) -> None:
        self._made_of = parts, weights
        weighed = list(zip(parts, weights.tolist(), strict=True))
        self._level = sum(weight for part, weight in weighed if type(part) is Uniform)
        self._keeps = all(part.traits.preserves_accuracy for part in parts)
        self._groups = _grouped([(part, w) for part, w in weighed if w > 0 and type(part) is not Uniform])
        answers = [answer for group in self._groups for answer in group.answers]
        self._only = answers[0] if len(answers) == 1 and self._groups[0].link is None else None
        stacks = [group.stack for group in self._groups if group.stack is not None]
        self._stacked = [(part, part.weights_) for stack in stacks for part in stack.parts]

    def is_of(self, parts: list[Calibrator], weights: NDArray[np.float64]) -> bool:
        """Tell whether it was made of these, and they are still as they were."""
        if self._made_of[0] is not parts or self._made_of[1] is not weights:
            return False
        return all(part.weights_ is matrix for part, matrix in self._stacked)

    def __call__(self, logits: Scores) -> Scores:
        """Return the mixture's probabilities."""
        logits = np.ascontiguousarray(logits)
        total = np.empty_like(logits)
        total.fill(self._level / logits.shape[1])
        for group in self._groups:
            group.add_to(total, logits)
        return keep_top(total, logits) if self._keeps else total

    def link_logits(self, logits: Scores) -> Scores:
        """Return the answer as finite logits; one part that is mixed with the uniform distribution takes one sweep."""
        if self._only is None:
            return finite_logs(self(logits), logits)
        answer, weight = self._only
        return finite_logs(answer(logits), logits, weight, self._level / logits.shape[1], keeps_top=self._keeps)


@dataclass(frozen=True, eq=False)
class _Group:
    """Parts that see the same rows: the scores, or the answer of a link that is the first of each."""

    link: Calibrator | None
    answers: list[Weighed]
    stack: LinearStack | None  # of the linear ones, for few rows
    beside: list[Weighed]  # those that are not in the stack

    def add_to(self, total: Scores, logits: Scores) -> None:
        rows = logits if self.link is None else self.link.link_logits(logits)
        answers = self.answers
        if self.stack is not None and self.stack.suits(rows):
            self.stack.add_to(total, rows)
            answers = self.beside
        for answer, weight in answers:
            total += answer(rows) * weight


def _grouped(weighed: Sequence[tuple[Calibrator, float]]) -> list[_Group]:
    links: dict[int, Calibrator | None] = {}
    members: dict[int, list[tuple[Calibrator, float]]] = {}
    for part, weight in weighed:
        link = part.parts_[0] if isinstance(part, Chain) and len(part.parts_) > 1 else None
        links[id(link)] = link
        members.setdefault(id(link), []).append((part, weight))
    return [_group(link, members[key]) for key, link in links.items()]


def _group(link: Calibrator | None, weighed: list[tuple[Calibrator, float]]) -> _Group:
    linear: list[tuple[StructuredPart, float]] = []
    answers: list[Weighed] = []
    beside: list[Weighed] = []
    for part, weight in weighed:
        answer, last = part._map, part
        if isinstance(part, Chain) and link is not None:
            answer, last = part.map_behind, part.parts_[1] if len(part.parts_) == 2 else None
        answers.append((answer, weight))
        if type(last) is StructuredPart:
            linear.append((last, weight))
        else:
            beside.append((answer, weight))
    stack = LinearStack([part for part, _ in linear], [weight for _, weight in linear]) if linear else None
    return _Group(link, answers, stack, beside)
