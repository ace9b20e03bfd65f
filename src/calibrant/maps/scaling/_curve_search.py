"""The fit of a curve: a prior chosen by the evidence, and the optimum under it, in few passes.

The quadratic of one pass says which prior the evidence prefers and where the optimum under it should be. Newton goes
there, and the evidence is looked at again, until the choice stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from ...fits.solvers.newton import Sums, newton
from ._curve import Array, Curves, Family, Local, Optimum

Place = tuple[int, ...]
_SEARCH_TOLERANCE = 0.3  # nats over all rows, promised by a step that the quadratic takes: what it leaves is far less
_FINAL_TOLERANCE = 1e-7  # nats a row, before a last step: Newton squares what is left, to some 1e-12 a row
_PILOT_ROWS = 4000  # they lead so close to the optimum of all rows that three or four passes over these are left
_MOST_CHOICES = 12  # of a prior, each followed by a descent; seldom are there more than three


@dataclass(frozen=True, eq=False)
class FittedCurve:
    """The hyper-parameters chosen, the optimum under them, passes over all rows, and whether Newton arrived."""

    chosen: tuple[float, ...]
    optimum: Optimum
    passes: int
    converged: bool

    @property
    def values(self) -> Array:
        """The curve at its knots."""
        return self.optimum.family.values(self.optimum.theta)


def fit_curve(
    curves: Curves, family: Callable[..., Family], grids: Sequence[Sequence[float]], start: Place
) -> FittedCurve:
    """Choose hyper-parameters on a grid by the evidence, and find the optimum under them.

    Where there are many rows, some of them (`Data.pilot`) say where to begin.

    Parameters
    ----------
    curves : Curves
    family : callable
        From hyper-parameters to a `Family`.
    grids : sequence of sequences of float
        What each hyper-parameter may be.
    start : tuple of int
        The place on the grid to begin at.
    """
    choice = _Choice(family, grids)
    begin = choice.at(start).start
    if curves.data.n > 4 * _PILOT_ROWS:
        few = _search(replace(curves, data=curves.data.pilot(_PILOT_ROWS)), choice, start, begin)
        start, begin = few.place, few.theta
    found = _search(curves, choice, start, begin)
    tolerance = _FINAL_TOLERANCE * curves.data.total_weight
    last = _descend(curves, choice.at(found.place), found.theta, found.local, tolerance)
    [optimum] = last.local.under([choice.at(found.place)])
    return FittedCurve(choice.values(found.place), optimum, found.passes + last.passes, last.converged)


class _Choice:
    """A grid of families, made when they are first looked at."""

    def __init__(self, family: Callable[..., Family], grids: Sequence[Sequence[float]]) -> None:
        self.family, self.grids = family, grids
        self.made: dict[Place, Family] = {}

    def values(self, place: Place) -> tuple[float, ...]:
        """Return the hyper-parameters at a place."""
        return tuple(float(grid[i]) for grid, i in zip(self.grids, place, strict=True))

    def at(self, place: Place) -> Family:
        """Return the family at a place."""
        if place not in self.made:
            self.made[place] = self.family(*self.values(place))
        return self.made[place]

    def summit(self, local: Local, place: Place) -> Place:
        """Walk over the grid to a summit of the evidence, as the quadratic has it."""
        known: dict[Place, float] = {}
        while True:
            around = self._around(place)
            fresh = [near for near in around if near not in known]
            optima = local.under([self.at(near) for near in fresh]) if fresh else []
            known.update({near: found.evidence for near, found in zip(fresh, optima, strict=True)})
            best = max(around, key=lambda near: known[near])
            if best == place:
                return place
            place = best

    def _around(self, place: Place) -> list[Place]:
        """Return a place, first, and its neighbours, diagonal ones too."""
        spans = [range(max(0, i - 1), min(len(grid), i + 2)) for i, grid in zip(place, self.grids, strict=True)]
        return [place, *(near for near in product(*spans) if near != place)]


@dataclass(frozen=True, eq=False)
class _Found:
    """Where a search stands: the place on the grid, θ under its family, and what a pass found there."""

    place: Place
    theta: Array
    local: Local
    passes: int


@dataclass(frozen=True, eq=False)
class _Descent:
    """The lowest point that a descent has seen."""

    theta: Array
    local: Local
    value: float
    passes: int
    converged: bool


def _search(curves: Curves, choice: _Choice, place: Place, theta: Array) -> _Found:
    """Descend, choose by the evidence and descend again, until the choice stands."""
    passes, tried = 0, set[Place]()
    tolerance = max(_SEARCH_TOLERANCE, _FINAL_TOLERANCE * curves.data.total_weight)
    while True:
        tried.add(place)
        family = choice.at(place)
        descent = _descend(curves, family, theta, None, tolerance)
        passes += descent.passes
        if not descent.converged:  # a start that leads nowhere: from the centre every step goes down
            descent = _descend(curves, family, family.centre, None, tolerance)
            passes += descent.passes
        better = choice.summit(descent.local, place)
        if better in tried or len(tried) == _MOST_CHOICES:
            return _Found(place, descent.theta, descent.local, passes)
        place, theta = better, descent.local.under([choice.at(better)])[0].theta


def _descend(curves: Curves, family: Family, theta: Array, known: Local | None, tolerance: float) -> _Descent:
    """Newton from θ; ``known`` is what a pass found there."""
    seen: list[tuple[float, Array, Local]] = []

    def penalised(theta: Array, local: Local) -> Sums:
        sums = family.penalised(theta, local)
        seen.append((float(sums.value[0]), theta, local))
        return sums

    def problem(theta: Array, _: object) -> Sums:
        return penalised(theta[0], curves.at(family.values(theta[0])))

    sums = None if known is None else penalised(theta, known)
    found = newton(problem, theta[None], tolerance, low=family.low, known=sums)
    value, theta, local = min(seen, key=lambda point: point[0] if np.isfinite(point[0]) else np.inf)
    return _Descent(theta, local, value, found.passes, bool(found.converged[0]))
