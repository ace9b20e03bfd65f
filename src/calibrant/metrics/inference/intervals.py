"""Intervals: what an estimate comes with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, ndtri

from ...errors import InvalidInput
from ...parameters import Integer
from ...types import Array
from ...validation.arrays import as_array, as_float

_MOST_RESAMPLES = 100_000  # a p-value of 1e-5
_NO_TRIALS = 1e-100  # fewer say nothing, and one over their square overflows

_RATES = ("clopper-pearson", "log-normal")  # methods of figures that are no errors
BIASED = "chance alone raises this estimate; the interval is for the true value, corrected for that"


@dataclass(frozen=True)
class Interval:
    """An estimate with an interval that covers the truth with the stated confidence.

    Attributes
    ----------
    estimate : float
    low, high : float or None
        None where no interval would cover; ``note`` says why.
    confidence : float
        Nominal coverage, such as 0.95.
    standard_error : float
    bias : float
        How much too large the estimate is on average, as the resamples tell it; already taken out of low and high,
        not out of the estimate.
    method : str
        How the interval was made.
    norm : 1, 2, "max" or None
        Of a calibration error: errors of different norms are different figures.
    note : str
        Why there is no interval, why it is so wide, or why the estimate lies outside it; else empty.
    wide : bool
        Whether such intervals hold more often than they claim (docs/evidence/coverage.md): those of errors that begin
        at 0 as no test rejects, those of the largest gap, which hold at all places at once, those of distances of a
        smooth curve, which hold for any shape, exact ones of few events, and those of observed over expected where
        scores differ much.
    """

    estimate: float
    low: float | None
    high: float | None
    confidence: float
    standard_error: float
    bias: float
    method: str
    norm: int | str | None = None
    note: str = ""
    wide: bool = False

    @property
    def outside(self) -> bool:
        """Whether the estimate lies outside its own interval."""
        if self.low is None or self.high is None:
            return False
        return not self.low <= self.estimate <= self.high

    @property
    def brackets(self) -> str:
        """The interval in brackets, or that there is none."""
        if self.low is None or self.high is None:
            return "no interval"
        return f"[{_number(self.low)}, {_number(self.high)}]"

    def covers(self, value: float) -> bool:
        """Tell whether a value lies in the interval; every value does where there is none."""
        if self.low is None or self.high is None:
            return True
        return self.low <= value <= self.high

    def squared(self) -> Interval:
        """Return the interval of the square."""
        low, high = (None if end is None else end**2 for end in (self.low, self.high))
        error = 2 * self.estimate * self.standard_error
        return replace(self, estimate=self.estimate**2, low=low, high=high, standard_error=error)

    def moved(self, estimate: float, method: str, note: str = "") -> Interval:
        """Return an interval of the same reach on either side of another estimate."""
        moved = estimate - self.estimate
        low, high = (None if end is None else end + moved for end in (self.low, self.high))
        return replace(self, estimate=estimate, low=low, high=high, method=method, note=note)

    def explained(self) -> Interval:
        """Return the same with a note where the estimate lies outside the interval and nothing says why yet."""
        return replace(self, note=BIASED) if self.outside and not self.note else self

    @property
    def shown(self) -> str:
        """The estimate in words where it is no number: some figures are not defined for some rows."""
        if np.isnan(self.estimate):
            return "none"
        return {np.inf: "∞", -np.inf: "-∞"}.get(self.estimate, _number(self.estimate))

    def __str__(self) -> str:
        return f"{self.shown} {self.brackets}"


def wide_words(*tables: Mapping[str, Interval]) -> str:
    """Say once, below tables of figures, which intervals hold more often than they claim; nothing where none does."""
    wide = [(name, found) for figures in tables for name, found in figures.items() if found.wide]
    named = list(dict.fromkeys(name for name, found in wide if found.low != 0 or found.method in _RATES))
    parts = ["of errors that begin at 0"] * any(name not in named for name, _ in wide)
    if named:
        *others, last = named
        parts.append(f"of {', '.join(others)} and {last}" if others else f"of {last}")
    return f"intervals {' and '.join(parts)} hold more often than {100 * wide[0][1].confidence:.3g} %" if wide else ""


def _number(value: float) -> str:
    return f"{value:.1e}" if 0 < abs(value) < 1e-4 else f"{value:.4f}"


def check_confidence(confidence: float) -> None:
    """Refuse a level that is no level."""
    if not (isinstance(confidence, Real) and 0 < confidence < 1):
        raise InvalidInput("confidence must lie between 0 and 1", seen=repr(confidence), allowed="0.95, for example")


def check_resamples(resamples: object, least: int) -> None:
    """Refuse a number of resamples that is none, too small to say anything, or more than can be waited for."""
    if not Integer(least).accepts(resamples) or resamples > _MOST_RESAMPLES:  # pyright: ignore[reportOperatorIssue]
        allowed = f"{Integer(least).allowed}, and at most {_MOST_RESAMPLES:,}"
        raise InvalidInput("resamples is not valid", seen=repr(resamples)[:40], allowed=allowed)


def drawn_pvalue(seen: float, null: Array) -> float:
    """Return the mid-p of a statistic among drawn ones: (1 + #{larger} + #{equal}/2)/(1 + #{drawn}).

    Where few sets of outcomes are possible, many that are drawn equal the one seen: counted whole, the sweep's test
    raised 2.8 % where half an event was expected. Where all are equal nothing can be told, and it is 1.
    """
    slack = 1e-9 * abs(seen)
    least, larger = int((null >= seen - slack).sum()), int((null > seen + slack).sum())
    equal = least - larger
    return 1.0 if equal == len(null) else (1 + larger + equal / 2) / (1 + len(null))


def deviations_of(confidence: float) -> float:
    """Return how many standard deviations a two-sided normal interval reaches: 1.96 for 0.95."""
    check_confidence(confidence)
    return float(ndtri(0.5 + confidence / 2))


def frequency_interval(
    events: ArrayLike, counts: ArrayLike, *, confidence: float = 0.95, method: str = "wilson"
) -> tuple[Array, Array]:
    """Return lower and upper limits of a probability of which ``events`` of ``counts`` trials were seen.

    Parameters
    ----------
    method : {"wilson", "clopper_pearson"}
        Wilson's score interval covers the stated share on average; Clopper and Pearson's at least that share always,
        at the price of length. Bins without trials get [0, 1].

    Examples
    --------
    >>> low, high = frequency_interval([8], [10])
    >>> print(low.round(3), high.round(3))
    [0.49] [0.943]
    """
    k, n = _numbers(events, "events"), _numbers(counts, "counts")
    some = n > _NO_TRIALS
    z = deviations_of(confidence)
    if method == "wilson":
        size = np.where(some, n, 1.0)
        rate, spread = k / size, z * z / size
        centre = (rate + spread / 2) / (1 + spread)
        half = z * np.sqrt(np.maximum(rate * (1 - rate), 0) / size + spread / (4 * size)) / (1 + spread)
        low, high = np.where(k <= 0, 0.0, centre - half), np.where(k >= n, 1.0, centre + half)
    elif method == "clopper_pearson":
        tail = (1 - confidence) / 2
        low = np.where(k > 0, betaincinv(np.maximum(k, 1e-9), n - k + 1, tail), 0.0)
        high = np.where(k < n, betaincinv(k + 1, np.maximum(n - k, 1e-9), 1 - tail), 1.0)
    else:
        raise InvalidInput("no such interval", seen=repr(method), allowed="'wilson' or 'clopper_pearson'")
    return np.where(some, np.clip(low, 0, 1), 0.0), np.where(some, np.clip(high, 0, 1), 1.0)


def _numbers(given: ArrayLike, name: str) -> Array:
    found = as_float(as_array(given, name)[0], name).astype(np.float64)
    if not np.isfinite(found).all():
        raise InvalidInput(f"{name} must be finite numbers", seen=repr(given)[:80])
    return found
