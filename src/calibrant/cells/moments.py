"""Moments of a figure that is a mean over rows: what a state keeps of it, and all that its interval needs."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ..arrays import inner
from ..errors import FileProblem, reading_state
from ..passes.statistic import added
from ..types import Array

_MOST = 1e102  # of a mean gap, a deviation and a skewness: cubes are finite, and no rows come near
_NUMBERS = ("weight", "squares", "first", "second", "third", "shift", "infinite")  # all finite


@dataclass(frozen=True)
class Moments:
    """Weighted sums of a number a row; those of what is infinite are counted apart."""

    # Σw and Σw².
    weight: float
    squares: float
    # Σw(x - shift)ʲ about a fixed shift, which keeps digits.
    first: float
    second: float
    third: float
    shift: float
    least: float
    infinite: float = 0.0  # weight of the rows whose number is infinite
    whole: bool = True  # whether all weights are whole numbers, which count rows

    @property
    def mean(self) -> float:
        """The mean."""
        return np.inf if self.infinite > 0 else self.shift + self.first / self.weight

    @property
    def rows(self) -> float:
        """As how many rows these count."""
        return self.weight if self.whole else self.weight**2 / self.squares

    @property
    def spread(self) -> tuple[float, float]:
        """Standard deviation and skewness of a row."""
        gap, w = self.first / self.weight, self.weight
        variance = max(0.0, self.second / w - gap**2)
        third = self.third / w - 3 * gap * self.second / w + 2 * gap**3
        deviation = float(np.sqrt(variance * self.rows / max(self.rows - 1, 1e-300)))
        return deviation, third / deviation / deviation / deviation if deviation > 0 else 0.0  # its cube may be 0

    def about(self, shift: float) -> Moments:
        """Return the same about another shift."""
        d, w = self.shift - shift, self.weight - self.infinite
        second = self.second + 2 * d * self.first + d * d * w
        third = self.third + 3 * d * self.second + 3 * d * d * self.first + d**3 * w
        return replace(self, first=self.first + d * w, second=second, third=third, shift=shift)

    def __add__(self, other: Moments) -> Moments:
        sums = ("weight", "squares", "first", "second", "third", "infinite")
        least, whole = min(self.least, other.least), self.whole and other.whole
        return added(self, other.about(self.shift), *sums, least=least, whole=whole)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers."""
        return asdict(self)

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> Moments:
        """Return what `to_dict` told; what it cannot have told is refused."""
        with reading_state("sum of moments"):
            found = cls(**given)
            told = np.array([getattr(found, name) for name in _NUMBERS], dtype=np.float64)
            good = bool(np.isfinite(told).all()) and found.weight > 0 and found.squares >= 0 and found.second >= 0
            good &= 0 <= found.infinite <= found.weight and not np.isnan(found.least) and type(found.whole) is bool
            slack = 1e-9 * (abs(found.shift) + abs(found.least))
            good = good and found.mean >= found.least - slack
            # NaN and what overflows are not below it
            good = good and all(abs(number) < _MOST for number in (found.first / found.weight, *found.spread))
            if not good or any(isinstance(getattr(found, name), (bool, str)) for name in (*_NUMBERS, "least")):
                raise FileProblem("this is no sum of moments", seen="numbers that contradict each other")
            return found


def moments_of(values: Array, weights: Array | None, shift: float | None = None) -> Moments:
    """Return the moments of a number a row; the shift is the mean of these rows where none is given."""
    w = np.ones(len(values)) if weights is None else weights
    finite = np.isfinite(values)
    infinite = 0.0 if finite.all() else float(w[~finite].sum())
    x, own = (values, w) if infinite == 0 and finite.all() else (values[finite], w[finite])
    total = float(w.sum())
    middle = inner(own, x) / max(float(own.sum()), 1e-300) if shift is None else shift
    d = x - middle
    squares = d * d
    powers = (inner(own, d), inner(own, squares), inner(own, squares * d))
    whole = weights is None or bool((w == np.floor(w)).all())
    least = float(values[w > 0].min()) if (w > 0).any() else np.inf
    return Moments(total, float((w**2).sum()), *powers, middle, least, infinite, whole)
