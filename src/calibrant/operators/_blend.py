"""How a mixture answers: its fitted parts sorted by the rows they see, once for a fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..arrays import keep_top
from ..calibrator import Calibrator
from ..maps.scaling._linear_stack import LinearMap, LinearStack
from ..maps.scaling.trivial import Uniform
from ..types import Array, Floats
from ..validation.saturation import finite_logs
from .chain import Chain

__all__ = ["Blend", "matrices_of"]

Weighed = tuple[Callable[[Floats], Floats], float]


class Blend:
    """Σ wᵢ pᵢ of fitted parts: chains that begin alike share that answer, and linear maps share a sweep."""

    def __init__(self, parts: list[Calibrator], weights: Array) -> None:
        weighed = list(zip(parts, weights.tolist(), strict=True))
        self._level = sum(weight for part, weight in weighed if type(part) is Uniform)
        self._keeps = all(part.traits.preserves_accuracy for part in parts)
        self._groups = _grouped([(part, w) for part, w in weighed if w > 0 and type(part) is not Uniform])
        group = self._groups[0] if len(self._groups) == 1 else None
        single = group is not None and group.link is None and group.stack is None and len(group.answers) == 1
        self._only = group.answers[0] if group is not None and single else None

    def __call__(self, logits: Floats) -> Floats:
        """Return the mixture's probabilities."""
        logits = np.ascontiguousarray(logits)
        total = np.empty_like(logits)
        total.fill(self._level / logits.shape[1])
        for group in self._groups:
            group.add_to(total, logits)
        return keep_top(total, logits) if self._keeps else total

    def link_logits(self, logits: Floats) -> Floats:
        """Return the answer as finite logits; one part that is mixed with the uniform distribution takes one sweep."""
        if self._only is None:
            return finite_logs(self(logits), logits)
        answer, weight = self._only
        return finite_logs(answer(logits), logits, weight, self._level / logits.shape[1], keeps_top=self._keeps)


def matrices_of(parts: list[Calibrator]) -> list[Array]:
    """Return the weights of the linear maps among the parts, which a blend has put together."""
    last = [part.parts_[-1] if isinstance(part, Chain) else part for part in parts]
    return [part.weights_ for part in last if isinstance(part, LinearMap)]


class _Group(NamedTuple):
    """Parts that see the same rows: the scores, or the answer of a link that is the first of each."""

    link: Calibrator | None
    stack: LinearStack | None  # of the linear maps
    answers: list[Weighed]  # of the others

    def add_to(self, total: Floats, logits: Floats) -> None:
        rows = logits if self.link is None else self.link.link_logits(logits)
        if self.stack is not None:
            self.stack.add_to(total, rows)
        for answer, weight in self.answers:
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
    linear: list[tuple[LinearMap, float]] = []
    answers: list[Weighed] = []
    for part, weight in weighed:
        behind = part.parts_[-1] if isinstance(part, Chain) and len(part.parts_) == 2 else part
        if isinstance(behind, LinearMap):
            linear.append((behind, weight))
        else:
            answers.append((part.map_behind if isinstance(part, Chain) and link is not None else part._map, weight))
    stack = LinearStack([part.linear for part, _ in linear], [weight for _, weight in linear]) if linear else None
    return _Group(link, stack, answers)
