"""A score distribution times a calibration curve: a model whose true calibration error is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import root_scalar

from ..errors import InvalidInput
from ..parameters import Instance, Number, any_generator, check_value, is_one_of
from ..types import Array, Integers, Mask
from .curves import CalibrationCurve, Power
from .distributions import TINY, ScoreDistribution, from_log_odds

LAW = Instance((ScoreDistribution,), "a distribution of scores, such as Beta(2, 3)")


class Sampled(NamedTuple):
    """Outcomes and scores, in the order the metrics take them."""

    y_true: Integers
    y_prob: Array


@dataclass(frozen=True, eq=False)
class Draw:
    """Many samples at once: arrays of shape (repeats, n)."""

    scores: Array
    complements: Array
    outcomes: Mask


@dataclass(frozen=True)
class Scenario:
    """A score distribution, and the curve that says how often the event happens at each score.

    Examples
    --------
    >>> from calibrant.simulation import Power, Scenario, Uniform
    >>> over_confident = Scenario(Uniform(), Power(2))
    >>> round(over_confident.true_error(norm=1), 6)  # ∫ s - s² ds
    0.166667
    """

    distribution: ScoreDistribution
    curve: CalibrationCurve
    name: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        check_value("distribution", self.distribution, LAW)
        check_value("curve", self.curve, Instance((CalibrationCurve,), "a calibration curve, such as Power(2)"))

    def true_error(self, norm: int | str = 1) -> float:
        """Return the true calibration error ``(E |s - c(s)|^p)^(1/p)`` by quadrature; "max" is the largest gap."""
        if is_one_of(norm, ("max",)):
            return float(np.abs(self._gap_at(self._axis())).max())
        if not is_one_of(norm, (1, 2)):
            raise InvalidInput("norm is not known", seen=repr(norm), allowed='1, 2 or "max"')
        p = int(norm)
        power = self.distribution.expectation(lambda s, t: np.abs(self.curve.gap(s, t)) ** p, self._crossings())
        return float(power ** (1 / p))

    def event_rate(self) -> float:
        """Return P(event): the accuracy, where the event is that the top label is right."""
        return self.distribution.expectation(lambda s, t: self.curve.probabilities(s, t)[0])

    def draw(self, repeats: int, n: int, rng: np.random.Generator) -> Draw:
        """Draw ``repeats`` independent samples of n rows."""
        s, t = self.distribution.sample((repeats, n), rng)
        if not s.size:
            return Draw(s, t, np.zeros(s.shape, dtype=bool))
        c, flipped = self.curve.probabilities(np.maximum(s, TINY), np.maximum(t, TINY))
        coin = rng.random((repeats, n))
        # Compare with the smaller of the two probabilities: a coin in steps of 2^-53 cannot tell c = 1 - 1e-20 from 1.
        return Draw(s, t, np.where(c < 0.5, coin < c, coin >= flipped))

    def sample(self, n: int, random_state: Any = None) -> Sampled:
        """Return n outcomes and scores, as a data set would hold them."""
        drawn = self.draw(1, n, any_generator(random_state))
        return Sampled(drawn.outcomes[0].astype(np.int64), drawn.scores[0])

    def _gap_at(self, x: Array) -> Array:
        return self.curve.gap(*from_log_odds(x))

    def _axis(self) -> Array:
        ends = self.distribution.support()
        return np.unique(np.concatenate([ends, (ends[1:] + ends[:-1]) / 2]))

    def _crossings(self) -> list[float]:
        # |s - c(s)| has a kink where the curve crosses the diagonal; panels must end there.
        axis = self._axis()
        sign = np.sign(self._gap_at(axis))
        places = np.flatnonzero(sign[1:] * sign[:-1] < 0)
        return [_root(lambda x: float(self._gap_at(np.array(x))), float(axis[i]), float(axis[i + 1])) for i in places]


def power_scenario(distribution: ScoreDistribution, tce: float, norm: int = 2) -> Scenario:
    """Return the scenario with curve c^d whose true calibration error is ``tce`` (paper 003, §5.4)."""
    check_value("distribution", distribution, LAW)
    check_value("tce", tce, Number(0, 1))
    if tce < 1e-9:  # no curve is nearer to the diagonal, and further from it, than rounding
        return Scenario(distribution, Power(1.0))
    largest = Scenario(distribution, Power(1e3)).true_error(norm)
    if not 0 < tce < largest:
        raise InvalidInput("tce cannot be reached by c^d", seen=repr(tce), allowed=f"0 to {largest:.4g}")

    def excess(log_d: float) -> float:
        return Scenario(distribution, Power(float(np.exp(log_d)))).true_error(norm) - tce

    return Scenario(distribution, Power(float(np.exp(_root(excess, 1e-9, float(np.log(1e3)))))))


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    return float(root_scalar(function, bracket=(low, high), method="brentq", xtol=1e-12).root)
