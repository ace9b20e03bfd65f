"""The parts of a mixture, fitted and answered together: chains that begin with the same link share it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy as shallow
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..calibrator import Calibrator
from ..passes import Data, together
from ..types import Floats
from .chain import Chain, Link


@dataclass(frozen=True, eq=False)
class Parts:
    """Fitted maps with their positions in a mixture."""

    maps: Sequence[tuple[int, Calibrator]]

    def __call__(self, logits: Floats) -> Iterator[tuple[int, Floats]]:
        """Yield the position and the probabilities of each part."""
        linked: dict[int, Floats] = {}
        for i, part in self.maps:
            if not isinstance(part, Chain) or len(part.parts_) < 2:
                yield i, part._map(logits)
                continue
            link = part.parts_[0]
            if id(link) not in linked:
                linked[id(link)] = link.link_logits(logits)
            yield i, part.map_behind(linked[id(link)])


def fitted_parts(parts: Sequence[Calibrator], data: Data, *, thrifty: bool = False) -> list[Calibrator]:
    """Return the parts fitted: first those that see the rows and all links, each once, then what is behind the links.

    ``thrifty``: leave out chains whose first link gains no more on its rows than its parameters cost on others.
    """
    copies = [part.unfitted() for part in parts]
    firsts: list[Calibrator] = []
    for copy in copies:
        if not any(alike(_first(copy), known) for known in firsts):
            firsts.append(_first(copy))
    found = together(data, [partial(_link_of, part=first) for first in firsts])
    links = [next(link for first, link in zip(firsts, found, strict=True) if alike(first, _first(c))) for c in copies]
    kept = [
        (copy, link)
        for copy, link in zip(copies, links, strict=True)
        if _first(copy) is copy or not thrifty or _pays(link, data)
    ]
    return together(data, [partial(_behind, copy=copy, link=link) for copy, link in kept]) or fitted_parts(parts, data)


def _first(part: Calibrator) -> Calibrator:
    return part.parts[0] if isinstance(part, Chain) and len(part.parts) > 1 else part


def _link_of(data: Data, part: Calibrator) -> Link:
    return Link.fit(part, data)


def _behind(data: Data, copy: Calibrator, link: Link) -> Calibrator:
    if not isinstance(copy, Chain) or _first(copy) is copy:
        return shallow(link.part)  # its own: parts that begin alike may be told other temperatures
    copy.fit_behind(link if data is link.data else replace(link, data=data))
    return copy


def _pays(link: Link, data: Data) -> bool:
    return link.report.loss_after + effective_parameters(link.part) / data.total_weight < link.report.loss_before


def effective_parameters(part: Calibrator) -> float:
    """Return how many numbers of a fitted map its rows determine, or else how many it has."""
    known = part.fit_report_.details.get("effective_parameters")
    return float(part._count_parameters()) if known is None else float(known)


def share_links(parts: Sequence[Calibrator]) -> None:
    """Let chains that begin with the same fitted map begin with the same object, as they do after a fit."""
    chains = [part for part in parts if isinstance(part, Chain)]
    for chain in chains:
        chain.parts_[0] = next(other.parts_[0] for other in chains if alike(other.parts_[0], chain.parts_[0]))


def alike(one: Any, other: Any) -> bool:
    """Tell whether two values are the same map, with the same parameters and the same learnt numbers."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, Calibrator):
        mine, theirs = (_told(value) for value in (one, other))
        return mine.keys() == theirs.keys() and all(alike(mine[name], theirs[name]) for name in mine)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    return bool(one == other)


def _told(calibrator: Calibrator) -> dict[str, Any]:
    """Return the parameters and what was learnt, but not how."""
    found = vars(calibrator).items()
    return {name: value for name, value in found if name != "fit_report_" and not name.startswith("_")}
