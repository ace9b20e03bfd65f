"""A loss at parameters θ: its value, gradient and curvature, each by one pass over the rows; and its penalised optimum.

What a map brings is a `Problem`: it knows how to make the passes. What stands here and in `priors`, `evidence`, `path`
and `solvers` sees their sums only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from ..passes import Data
from ..types import Array, Self
from .priors import Prior
from .solvers.many import minimise

_TOLERANCE = 3e-7  # of the loss of a row: the fourth digit of a probability does not see it
_SLOW = 20  # passes after which a search has left the place where its metric is good: most take three to eight
_SHARPER = 1e-4  # of the tolerance, where it goes on: naive Bayes in single precision was 20 tolerances short
_LONGEST = 100  # passes that it goes on for at most: single precision may know the last of them no better
_VECTORS = 48  # of as many numbers as parameters that searches hold at once, as measured: steps and changes of each
_SHARE = 3e-4  # of a nat for each parameter that the rows determine: there are many where there are many classes


class Sums(NamedTuple):
    """Sums over rows: the loss, and its gradient in the parameters."""

    loss: float
    gradient: Array


class Metric(Protocol):
    """About the inverse of the Hessian of the penalised loss: symmetric and positive."""

    def apply(self, vector: Array) -> Array:
        """Return H⁻¹ times a vector."""
        ...

    def diagonal(self) -> Array:
        """Return (H⁻¹)_jj of every parameter."""
        ...


class Outlook(Protocol):
    """The penalised optimum as the quadratic around one point has it: no pass over the rows."""

    def under(self, precisions: Array) -> tuple[Array, Array]:
        """Return, for each group of parameters, Σ s θ² and how many of them the rows determine."""
        ...


class Curvature(Protocol):
    """The Hessian of the loss alone, to which a penalty is added."""

    def metric(self, penalty: Array) -> Metric:
        """Return the inverse with a penalty of precision ``penalty`` on each parameter."""
        ...

    def outlook(self, theta: Array, gradient: Array, prior: Prior) -> Outlook:
        """Return the outlook from θ, where the loss has this gradient and about this curvature."""
        ...


@dataclass(frozen=True, eq=False)
class PlainOutlook:
    """The outlook by whole metrics, for any curvature."""

    near: Curvature
    theta: Array
    gradient: Array
    prior: Prior

    def under(self, precisions: Array) -> tuple[Array, Array]:
        """Return Σ s θ² and the number of parameters determined, by group."""
        penalty, count = self.prior.penalty(precisions), len(precisions)
        metric = self.near.metric(penalty)
        theta = self.theta - metric.apply(self.gradient + penalty * self.theta)
        shares = np.clip(1.0 - penalty * metric.diagonal(), 0.0, 1.0)
        return self.prior.by_group(self.prior.shape * theta**2, count), self.prior.by_group(shares, count)


class Problem(Protocol):
    """A loss summed over rows, as a function of parameters that are all zero where a fit begins."""

    @property
    def data(self) -> Data:
        """The rows."""
        ...

    @property
    def size(self) -> int:
        """Number of parameters."""
        ...

    @property
    def sharp(self) -> bool:
        """Whether the curvature is so good that a sharp optimum costs few passes."""
        ...

    def on(self, data: Data) -> Self:
        """Return the same problem on other rows."""
        ...

    def sums(self, theta: Array) -> Sums:
        """One pass: the loss and its gradient."""
        ...

    def curvature(self, theta: Array) -> tuple[Sums, Curvature]:
        """Few passes: about the Hessian, and the sums, which may come with it."""
        ...


class Point(NamedTuple):
    """Parameters, and the sums of the pass there."""

    theta: Array
    sums: Sums

    @classmethod
    def zero(cls, problem: Problem) -> Point:
        """Return where every fit begins: all parameters zero."""
        theta = np.zeros(problem.size)
        return cls(theta, problem.sums(theta))

    @classmethod
    def zero_and_curvature(cls, problem: Problem) -> tuple[Point, Curvature]:
        """Return where every fit begins, and the curvature there."""
        theta = np.zeros(problem.size)
        sums, near = problem.curvature(theta)
        return cls(theta, sums), near


class Solved(NamedTuple):
    """The optimum, the passes it took, and whether the solver met its tolerance."""

    point: Point
    passes: int
    converged: bool


def solve(problem: Problem, penalty: Array, start: Point, metric: Metric, tolerance: float = 1.0) -> Solved:
    """Minimise the summed loss + ½ Σ penalty · θ² from a start, in a metric."""

    def penalised(theta: Array, sums: Sums) -> tuple[float, Array]:
        return sums.loss + 0.5 * float(penalty @ theta**2), sums.gradient + penalty * theta

    problem.data.takes(_VECTORS * start.theta.nbytes, f"a search for {start.theta.size:,} numbers")
    unit = _TOLERANCE * problem.data.total_weight
    if not problem.sharp:
        unit = max(unit, _SHARE * float(np.clip(1.0 - penalty * metric.diagonal(), 0.0, 1.0).sum()))

    def objective(theta: Array) -> tuple[float, Array]:
        return penalised(theta, problem.sums(theta))

    found = minimise(objective, start.theta, penalised(*start), metric.apply, tolerance * unit)
    passes, converged = found.passes, found.converged
    last = tolerance <= 1.0  # those that are looser find where the last one begins
    if problem.sharp and converged and passes > _SLOW and last:
        # What is left to gain is known by the metric, which is another where the search was long: it goes on in that.
        near = problem.curvature(found.theta)[1].metric(penalty)
        value = found.value, found.gradient
        found = minimise(objective, found.theta, value, near.apply, _SHARPER * unit, _LONGEST)
        passes += found.passes + 2
    value = found.value - 0.5 * float(penalty @ found.theta**2)
    sums = Sums(value, found.gradient - penalty * found.theta)
    return Solved(Point(found.theta, sums), passes, converged)
