"""Where a model's scores lie: distributions on [0, 1], always with the complement 1 - s beside the score s.

A model's top score is often within rounding of 1 (18 % of the draws of Beta(2.7752, 0.0478) are 1.0 in float64), so
scores travel as a pair (s, 1 - s), each computed without the other. Integrals are taken on the axis of log-odds, where
the density s^α (1-s)^β / B(α, β) is smooth and decays exponentially, whatever poles it has at 0 and 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ..errors import InvalidInput
from ..parameters import MOST, SCALE, Instance, Number, check_drawing, check_value
from ..types import Array
from ..validation import as_numbers
from .curves import LEAST, Pair

TINY = LEAST  # nothing smaller contributes to an integral
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)


def from_log_odds(x: Array) -> Pair:
    """Return (s, 1 - s) for log-odds x, each to full relative precision."""
    return np.maximum(special.expit(x), TINY), np.maximum(special.expit(-x), TINY)


class ScoreDistribution(ABC):
    """A distribution of scores on [0, 1]."""

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Pair:
        """Draw scores and their complements."""
        check_drawing(shape, rng)
        return self._draw(shape, rng)

    @abstractmethod
    def _draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Pair:
        """Draw what has been checked."""

    def expectation(self, function: Callable[[Array, Array], Array], breaks: Sequence[float] = ()) -> float:
        """Return E[function(s, 1 - s)]; ``breaks`` are log-odds at which the function has kinks."""
        check_value("function", function, Instance((Callable,), "a function of (s, 1 - s)"))
        return self._mean(function, as_numbers(breaks, "breaks", ndim=1, least=0))

    @abstractmethod
    def _mean(self, function: Callable[[Array, Array], Array], breaks: Array) -> float:
        """Return the expectation of what has been checked."""

    @abstractmethod
    def support(self) -> Array:
        """Return log-odds that cover the support, in ascending order."""


class Continuous(ScoreDistribution):
    """A distribution with a density: integrals by composite Gauss-Legendre quadrature on the axis of log-odds."""

    def log_odds_density(self, x: Array) -> Array:
        """Density of the log-odds at x."""
        with np.errstate(over="ignore"):  # far out it is zero
            return self._density(as_numbers(x, "x"))

    @abstractmethod
    def _density(self, x: Array) -> Array:
        """Density at what has been checked."""

    @abstractmethod
    def log_odds_range(self) -> tuple[float, float]:
        """Log-odds outside of which less than 1e-16 of the mass lies."""

    def support(self) -> Array:
        """Return the ends of the panels: spaced by 1/4 near even odds, by 2 % of their distance further out."""
        low, high = self.log_odds_range()
        near = np.arange(0.0, 16.0, 0.25)
        far = 16.0 * 1.02 ** np.arange(220)
        axis = np.concatenate([-far[::-1], -near[:0:-1], near, far])
        return np.concatenate([[low], axis[(axis > low) & (axis < high)], [high]])

    def _mean(self, function: Callable[[Array, Array], Array], breaks: Array) -> float:
        """Return E[function(s, 1 - s)] to about 1e-12."""
        ends = self.support()
        ends = np.unique(np.concatenate([ends, breaks[(breaks > ends[0]) & (breaks < ends[-1])]]))
        half = np.diff(ends)[:, None] / 2
        x = (ends[:-1, None] + half) + half * NODES
        mass = half * WEIGHTS * self.log_odds_density(x)
        if not abs(mass.sum() - 1) < 1e-6:
            raise InvalidInput("the distribution is too narrow or too wide for an integral", seen=repr(self)[:80])
        return float((mass * function(*from_log_odds(x))).sum() / mass.sum())


@dataclass(frozen=True)
class Beta(Continuous):
    """Beta(α, β): density s^(α-1) (1-s)^(β-1) / B(α, β) (paper 003, §5.1)."""

    alpha: float
    beta: float

    def __post_init__(self) -> None:
        check_value("alpha", self.alpha, SCALE)
        check_value("beta", self.beta, SCALE)

    def _draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Pair:
        """Draw by a ratio of gamma variates, so that both ends keep their precision."""
        up, down = rng.standard_gamma(self.alpha, shape), rng.standard_gamma(self.beta, shape)
        total = np.maximum(up + down, TINY)
        return up / total, down / total

    def _density(self, x: Array) -> Array:
        """Density of the log-odds: s^α (1-s)^β / B(α, β)."""
        log_s, log_t = -np.logaddexp(0, -x), -np.logaddexp(0, x)
        return np.exp(self.alpha * log_s + self.beta * log_t - special.betaln(self.alpha, self.beta))

    def log_odds_range(self) -> tuple[float, float]:
        """Both tails lie below exp(-α|x|) / B(α, β) and exp(-βx) / B(α, β)."""
        tail, peak = 38.0, min(0.0, float(special.betaln(self.alpha, self.beta)))
        below, above = (tail - min(0.0, np.log(a) + peak) for a in (self.alpha, self.beta))
        return -below / self.alpha, above / self.beta


@dataclass(frozen=True)
class Uniform(Continuous):
    """Uniform on [low, high]."""

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        check_value("low", self.low, Number(0, 1))
        check_value("high", self.high, Number(0, 1))
        if self.low >= self.high:
            raise InvalidInput("low and high must be 0 <= low < high <= 1", seen=f"{self.low}, {self.high}")

    def _draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Pair:
        """Draw scores; the spacing of a float64 is the precision at both ends."""
        s = self.low + (self.high - self.low) * rng.random(shape)
        return s, 1.0 - s

    def _density(self, x: Array) -> Array:
        """Density of the log-odds: s (1-s) / (high - low)."""
        return special.expit(x) * special.expit(-x) / (self.high - self.low)

    def log_odds_range(self) -> tuple[float, float]:
        """Log-odds of the two ends, cut at 1e-17 of the mass."""
        low, high = special.logit([self.low, self.high])
        return max(float(low), -40.0), min(float(high), 40.0)


@dataclass(frozen=True)
class LogitNormal(Continuous):
    """Log-odds from a mixture of normals of equal weight.

    With means β₀ ∓ β₁ and deviation ``|β₁|`` this is the score of Mix-n-Match's synthetic problem (paper 000, App. E).
    """

    means: tuple[float, ...]
    deviation: float

    def __post_init__(self) -> None:
        check_value("deviation", self.deviation, SCALE)
        if not isinstance(self.means, (tuple, list)) or not self.means:
            raise InvalidInput("means must be some numbers", seen=repr(self.means)[:80], allowed="a tuple")
        for mean in self.means:
            check_value("means", mean, Number(-MOST, MOST))

    def _draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Pair:
        """Draw a component, then its log-odds."""
        centre = np.asarray(self.means)[rng.integers(len(self.means), size=shape)]
        return from_log_odds(centre + self.deviation * rng.standard_normal(shape))

    def _density(self, x: Array) -> Array:
        """Density of the mixture."""
        z = (x[..., None] - np.asarray(self.means)) / self.deviation
        return (np.exp(-0.5 * z * z) / (np.sqrt(2 * np.pi) * self.deviation)).mean(axis=-1)

    def log_odds_range(self) -> tuple[float, float]:
        """Nine deviations beyond the outer means."""
        return min(self.means) - 9 * self.deviation, max(self.means) + 9 * self.deviation


@dataclass(frozen=True, eq=False)
class Empirical(ScoreDistribution):
    """The scores of a data set, each with the same probability."""

    scores: ArrayLike
    _values: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        values = np.sort(as_numbers(self.scores, "scores", 0, 1).ravel())
        object.__setattr__(self, "_values", values)

    def _draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Pair:
        """Draw with replacement."""
        s = self._values[rng.integers(len(self._values), size=shape)]
        return s, 1.0 - s

    def _mean(self, function: Callable[[Array, Array], Array], breaks: Array) -> float:
        """Return the mean over the scores."""
        s = self._values
        return float(np.mean(function(np.maximum(s, TINY), np.maximum(1.0 - s, TINY))))

    def support(self) -> Array:
        """Return the log-odds of the distinct scores."""
        return special.logit(np.clip(np.unique(self._values), TINY, 1 - 1e-16))
