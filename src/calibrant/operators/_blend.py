"""How a mixture answers: its fitted parts sorted by the rows they see, once for a fit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import keep_top, rounded_once
from ..calibrator import Calibrator, Summand
from ..maps.scaling._linear_stack import LinearMap, LinearStack
from ..maps.scaling.trivial import Uniform
from ..types import Array, Floats
from ..validation.saturation import finite_logs
from ._parts import alike
from .chain import Chain

Links = tuple[Calibrator, ...]


class Blend:
    """Σ wᵢ pᵢ of fitted parts, taken apart into chains: what begins alike shares links, linear maps share a sweep."""

    def __init__(self, parts: list[Calibrator], weights: Array) -> None:
        weighed = list(zip(parts, weights.tolist(), strict=True))
        self._level = sum(weight for part, weight in weighed if type(part) is Uniform)
        self._keeps = all(part.traits.preserves_accuracy for part in parts)
        self._groups = _grouped([(part, w) for part, w in weighed if w > 0 and type(part) is not Uniform])
        others = self._groups[0].others if len(self._groups) == 1 else []
        single = len(others) == 1 and not self._groups[0].links and self._groups[0].stack is None
        self._only = others[0] if single else None

    def __call__(self, logits: Floats, *, precisely: bool = False) -> Floats:
        """Return the mixture's probabilities; ``precisely``: its parts are computed in double where they need it."""
        logits = np.ascontiguousarray(logits)
        total = np.empty_like(logits)
        total.fill(self._level / logits.shape[1])
        linked: dict[Links, Floats] = {(): logits}
        for group in self._groups:
            group.add_to(total, _behind(group.links, linked), precisely)
        return keep_top(total, logits) if self._keeps else total

    def link_logits(self, logits: Floats) -> Floats:
        """Return the answer as finite logits; one part that is mixed with the uniform distribution takes one sweep."""
        if self._only is None:
            return finite_logs(self(logits), logits)
        last, weight = self._only
        return finite_logs(last._map(logits), logits, weight, self._level / logits.shape[1], keeps_top=self._keeps)


def matrices_of(parts: list[Calibrator]) -> list[Array]:
    """Return the weights of the linear maps among the parts, which a blend has put together."""
    last = [part.parts_[-1] if isinstance(part, Chain) else part for part in parts]
    return [part.weights_ for part in last if isinstance(part, LinearMap)]


class _Group(NamedTuple):
    """Maps that see the same rows: what links make of the scores."""

    links: Links
    stack: LinearStack | None  # of the linear maps
    others: list[tuple[Calibrator, float]]

    def add_to(self, total: Floats, rows: Floats, precisely: bool) -> None:
        if self.stack is not None and precisely:
            total += rounded_once(self.stack, rows)
        elif self.stack is not None:
            self.stack.add_to(total, rows)
        for last, weight in self.others:
            total += (last._map_precisely if precisely else last._map)(rows) * weight


def _behind(links: Links, linked: dict[Links, Floats]) -> Floats:
    """Return what links make of the scores, from what is known of the first of them."""
    if links not in linked:
        linked[links] = links[-1].link_logits(_behind(links[:-1], linked))
    return linked[links]


def _grouped(weighed: list[tuple[Calibrator, float]]) -> list[_Group]:
    """Sort the terms of all parts by their links; maps that are alike are one, with the sum of their weights."""
    known: list[Calibrator] = []
    groups: dict[Links, list[Summand]] = {}
    for part, weight in weighed:
        for term in part._summands():
            links = tuple(_known(link, known) for link in term.links)
            own = Summand(links, _known(term.last, known), weight * term.weight)
            members = groups.setdefault(links, [])
            same = next((i for i, other in enumerate(members) if other.last is own.last), None)
            if same is None:
                members.append(own)
            else:
                members[same] = own._replace(weight=own.weight + members[same].weight)
    return [_group(links, members) for links, members in groups.items()]


def _known(map_: Calibrator, known: list[Calibrator]) -> Calibrator:
    """Return the first map that is like this one, which may be itself."""
    for other in known:
        if alike(map_, other):
            return other
    known.append(map_)
    return map_


def _group(links: Links, terms: list[Summand]) -> _Group:
    linear = [(term.last.linear, term.weight) for term in terms if isinstance(term.last, LinearMap)]
    others = [(term.last, term.weight) for term in terms if not isinstance(term.last, LinearMap)]
    stack = LinearStack([one for one, _ in linear], [weight for _, weight in linear]) if linear else None
    return _Group(links, stack, others)
