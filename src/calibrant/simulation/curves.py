"""What a score means: calibration curves c(s) = P(event | score s), always with 1 - c(s) beside c(s)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from ..errors import InvalidInput
from ..parameters import MOST, Number, check_value, is_one_of
from ..types import Array
from ..validation import as_numbers

Pair = tuple[Array, Array]
LEAST = 1e-300  # a score or a complement: its logarithm is finite

transforms: dict[str, Callable[[Array, Array], Array]] = {
    "logit": lambda s, t: np.log(s) - np.log(t),
    "log": lambda s, t: np.log(s),
    "logflip": lambda s, t: np.log(t),
    "identity": lambda s, t: s,
}


def _inverse_logit(eta: Array) -> Pair:
    return special.expit(eta), special.expit(-eta)


def _inverse_log(eta: Array) -> Pair:
    eta = np.minimum(eta, 0.0)
    return np.exp(eta), -np.expm1(eta)


def _inverse_logflip(eta: Array) -> Pair:
    c, complement = _inverse_log(eta)
    return complement, c


inverse_links: dict[str, Callable[[Array], Pair]] = {
    "logit": _inverse_logit,
    "log": _inverse_log,
    "logflip": _inverse_logflip,
}


def _pair(score: Any, complement: Any) -> Pair:
    s, t = as_numbers(score, "score", LEAST, 1), as_numbers(complement, "complement", LEAST, 1)
    if s.shape != t.shape:
        raise InvalidInput("score and complement are not alike", seen=f"shapes {s.shape} and {t.shape}")
    return s, t


class CalibrationCurve(ABC):
    """A calibration curve c(s)."""

    def probabilities(self, score: Array, complement: Array) -> Pair:
        """Return c(s) and 1 - c(s) for scores s and their complements 1 - s, both above 0."""
        return self._at(*_pair(score, complement))

    @abstractmethod
    def _at(self, score: Array, complement: Array) -> Pair:
        """Return c(s) and 1 - c(s) for what has been checked."""

    def gap(self, score: Array, complement: Array) -> Array:
        """Return s - c(s), from the complements where those are smaller and so more precise."""
        score, complement = _pair(score, complement)
        c, flipped = self._at(score, complement)
        return np.where(score > 0.5, flipped - complement, score - c)


@dataclass(frozen=True)
class Power(CalibrationCurve):
    """c(s) = s^d; d = 1 is perfect calibration, larger d over-confidence (paper 003, §5.3)."""

    exponent: float = 1.0

    def __post_init__(self) -> None:
        check_value("exponent", self.exponent, Number(0, MOST, open_low=True))

    def _at(self, score: Array, complement: Array) -> Pair:
        """Return s^d and 1 - s^d."""
        if self.exponent == 1.0:
            return score, complement
        log_c = self.exponent * np.where(score > 0.5, np.log1p(-np.minimum(complement, 0.5)), np.log(score))
        return np.exp(log_c), -np.expm1(log_c)


@dataclass(frozen=True)
class GLM(CalibrationCurve):
    """g(c(s)) = b₀ + b₁ t(s), a generalised linear model (paper 003, App. A, Eq. 9).

    Parameters
    ----------
    link : {"logit", "log", "logflip"}
        g: log c/(1-c), log c, or log(1-c).
    transform : {"logit", "log", "logflip", "identity"}
        t: the same functions of the score.
    intercept, slope : float
        b₀ and b₁. Values that leave [0, 1] under the logarithmic links are held at its end.
    """

    link: str
    transform: str
    intercept: float
    slope: float

    def __post_init__(self) -> None:
        if not is_one_of(self.link, inverse_links) or not is_one_of(self.transform, transforms):
            raise InvalidInput(
                "link or transform is not known",
                seen=f"{self.link!r}, {self.transform!r}",
                allowed=f"link {', '.join(inverse_links)}; transform {', '.join(transforms)}",
            )
        check_value("intercept", self.intercept, Number(-MOST, MOST))
        check_value("slope", self.slope, Number(-MOST, MOST))

    def _at(self, score: Array, complement: Array) -> Pair:
        """Return g⁻¹(b₀ + b₁ t(s)) and its complement."""
        eta = np.full_like(score, self.intercept)
        if self.slope:
            eta += self.slope * transforms[self.transform](score, complement)
        return inverse_links[self.link](eta)
