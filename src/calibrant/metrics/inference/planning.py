"""How many rows, and how sure: what to know before and after a measurement."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from scipy.optimize import root_scalar
from scipy.special import rel_entr

from ...errors import InvalidInput
from ...parameters import Integer, Number, check_value, generator
from ...types import Array
from ...validation import as_array
from ..estimators.norms import check_norm
from .replicates import Replicates, from_rows, prefix

LARGEST = 2_000_000
MOST_APART = 20_000  # rows that are drawn one by one
_UNIFORM = (np.arange(4096) + 0.5) / 4096


def calibration_error_bound(ece: float, n: int, bins: int, delta: float = 0.05) -> float:
    """Return a bound that the calibration error keeps with probability 1 - δ (paper 004, Theorem 2).

    CE ≤ ECE + J·√((2/N)·(2 ln 2 - ln δ)) for J bins and N rows. A worst-case bound: with 15 bins it says something
    from about 10,000 rows on.

    Examples
    --------
    >>> round(calibration_error_bound(0.02, 100_000, 10), 4)
    0.1136
    """
    if not 0 <= ece <= 1:
        raise InvalidInput("ece must lie in [0, 1]", seen=repr(ece))
    if n < 1 or bins < 1:
        raise InvalidInput("n and bins must be positive", seen=f"n={n}, bins={bins}")
    if not (isinstance(delta, Real) and 0 < delta < 1):
        raise InvalidInput("delta must lie between 0 and 1", seen=repr(delta))
    return float(ece + bins * np.sqrt(2 / n * (2 * np.log(2) - np.log(delta))))


def required_samples(
    tce: float,
    power: float = 0.8,
    *,
    false_alarms: float = 0.05,
    scores: Any = None,
    norm: int = 2,
    repeats: int = 500,
    random_state: int = 0,
) -> int:
    """Return about how many rows the sweep test needs to notice a calibration error (paper 003, §5.4, Figure 8).

    By simulation: outcomes follow the curve c^d with d such that the true error is ``tce``, and the smallest n is
    sought at which the sweep error exceeds its ``1 - false_alarms`` quantile under calibration with probability
    ``power``. The answer is good to some 10 %.

    Parameters
    ----------
    tce : float
        True calibration error of the given norm.
    scores : array-like, optional
        Typical scores of the model; uniform on [0, 1] where none are given, as in the paper.

    Examples
    --------
    >>> required_samples(0.1) < required_samples(0.05)
    True
    """
    between = Number(1e-9, 1 - 1e-9)
    if not between.accepts(power) or not between.accepts(false_alarms):
        raise InvalidInput("power and false_alarms must lie between 0 and 1", seen=f"{power}, {false_alarms}")
    check_norm(norm, (1, 2))
    check_value("tce", tce, Number(1e-9, 1.0))
    if not Integer(20).accepts(repeats):
        raise InvalidInput("repeats is not valid", seen=repr(repeats), allowed=Integer(20).allowed)
    law = None if scores is None else np.asarray(as_array(scores, "scores")[0], dtype=np.float64).ravel()
    if law is not None and (len(law) == 0 or not (law.min() >= 0 and law.max() <= 1)):
        raise InvalidInput("scores must be probabilities", allowed="values in [0, 1]")
    exponent = _exponent(_UNIFORM if law is None else law, tce, norm)
    low, high, least = 16, 32, _least(_UNIFORM if law is None else law, exponent, power - false_alarms)
    while high <= LARGEST and (
        high < least or _power(law, exponent, high, false_alarms, norm, repeats, random_state) < power
    ):
        low, high = high, 2 * high
    if high > LARGEST:
        raise InvalidInput("tce is too small to be noticed", seen=repr(tce), hint=f"more than {LARGEST:,} rows")
    while high - low > max(1, low // 16):
        middle = (low + high) // 2
        enough = _power(law, exponent, middle, false_alarms, norm, repeats, random_state) >= power
        low, high = (low, middle) if enough else (middle, high)
    return high


def _exponent(law: Array, tce: float, norm: int) -> float:
    def excess(log_d: float) -> float:
        return float(np.mean(np.abs(law - law ** np.exp(log_d)) ** norm) ** (1 / norm)) - tce

    if not 0 < tce < excess(7.0) + tce:
        raise InvalidInput("tce cannot be reached by c^d", seen=repr(tce), allowed=f"0 to {excess(7.0) + tce:.4g}")
    return float(np.exp(root_scalar(excess, bracket=(1e-12, 7.0), method="brentq").root))


def _least(law: Array, exponent: float, gain: float) -> float:
    """Return below how many rows no test has a power that is by the gain above its false alarms.

    It is above them by √(n·KL/2) at most (Pinsker's inequality).
    """
    curve = law**exponent
    information = float(np.mean(rel_entr(curve, law) + rel_entr(1 - curve, 1 - law)))
    return 2 * gain**2 / max(information, 1e-300) if gain > 0 else 0.0


def _power(
    law: Array | None, exponent: float, n: int, false_alarms: float, norm: int, repeats: int, random_state: int
) -> float:
    """Share of samples in which the sweep error exceeds its quantile under calibration; no law means uniform scores."""
    rng = generator(random_state, n)
    # A few million scores in all: fewer repeats for large n, and of more rows those that share a score are counted.
    cells = None if n <= MOST_APART else _UNIFORM if law is None else np.sort(law)[:: -(-len(law) // 4096)]
    width = n if cells is None else len(cells)
    repeats = max(100, min(repeats, (4_000_000 if cells is None else 1_000_000) // width))
    values = []
    for curve in (1.0, exponent):
        parts = []
        for rows in np.array_split(np.arange(repeats), max(1, min(repeats, repeats * width // 1_000_000))):
            if cells is None:
                s = rng.random((len(rows), n)) if law is None else rng.choice(law, (len(rows), n))
                drawn = from_rows(s, rng.random(s.shape) < s**curve)
            else:
                counts = rng.multinomial(n, np.full(width, 1 / width), len(rows))
                events = rng.binomial(counts, cells**curve).astype(np.float64)
                mass = np.cumsum(np.pad(counts, ((0, 0), (1, 0))), axis=1)
                drawn = Replicates(cells[None], mass, prefix(events), prefix(counts * cells - events))
            parts.append(drawn.sweep("equal_mass", norm)[0])
        values.append(np.concatenate(parts))
    return float((values[1] > np.quantile(values[0], 1 - false_alarms, method="higher")).mean())
