"""Comparing forecasts of the same rows: the calibration gain, and which of two calibrators is better."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from ...arrays import inner
from ...cells.pairs import rows_of
from ...errors import InvalidInput
from ...parameters import is_one_of
from ...types import Array
from ..views.forecasts import read
from .proper import brier_rows, nll_rows

REACH = 1.96  # standard errors of half of a 95 % interval: what ± means everywhere


class Gain(float):
    """A number with its standard error; shown with ± half of its 95 % interval.

    Attributes
    ----------
    standard_error : float
    """

    standard_error: float

    def __new__(cls, value: float, standard_error: float = math.nan) -> Gain:
        """Make the number and attach its standard error."""
        made = super().__new__(cls, value)
        made.standard_error = standard_error
        return made

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the normal interval of this confidence level."""
        reach = float(ndtri(0.5 + level / 2)) * self.standard_error
        return float(self) - reach, float(self) + reach

    def __repr__(self) -> str:
        return f"{float(self):.6g} ± {REACH * self.standard_error:.2g}"


@dataclass(frozen=True)
class Comparison:
    """A paired comparison of two forecasts of the same rows.

    Attributes
    ----------
    difference : float
        Mean loss of the first less that of the second: positive where the second is better.
    standard_error : float
    z, pvalue : float
        Of the hypothesis that both have the same expected loss, two-sided.
    """

    difference: float
    standard_error: float
    z: float
    pvalue: float


def calibration_gain(y_true: Any, before: Any, after: Any, *, sample_weight: Any = None, classes: Any = None) -> Gain:
    """Calibration gain: the reduction of the squared loss (paper 000, Prop. 4.2), with its standard error.

    ΔECE² = E‖Z - Y‖² - E‖T(Z) - Y‖². For maps that keep the order of the classes it equals the reduction of the squared
    calibration error of the whole vector, without any binning and for any K; for others it is a lower bound. Of one
    event's probabilities it is the reduction of (p - y)².

    Returns
    -------
    Gain
        A float with ``standard_error`` and ``interval()``. Rows are paired, so the error is that of the differences.

    Examples
    --------
    >>> calibration_gain([0, 1, 1, 0], [0.1, 0.9, 0.9, 0.9], [0.2, 0.7, 0.7, 0.7])
    0.0325 ± 0.19
    """
    compared = compare_forecasts(y_true, before, after, sample_weight=sample_weight, classes=classes)
    return Gain(compared.difference, compared.standard_error)


def compare_forecasts(
    y_true: Any, first: Any, second: Any, *, loss: str = "brier", sample_weight: Any = None, classes: Any = None
) -> Comparison:
    """Which of two forecasts of the same rows has the lower loss, beyond chance.

    Parameters
    ----------
    first, second : array-like of shape (n, K) or (n,)
        Probabilities of two calibrators on the same rows.
    loss : {"brier", "nll"}
        A proper score: no binning is involved.
    """
    if not is_one_of(loss, ("brier", "nll")):
        raise InvalidInput("no such loss", seen=repr(loss), allowed="'brier' or 'nll'")
    one, two = (read(y_true, p, sample_weight, classes=classes) for p in (first, second))
    if one.probabilities.shape != two.probabilities.shape:
        raise InvalidInput(
            "the two forecasts differ in shape", seen=f"{one.probabilities.shape} and {two.probabilities.shape}"
        )
    rows = [brier_rows(f, "multi_class") if loss == "brier" else nll_rows(f) for f in (one, two)]
    same = rows[0] == rows[1]  # also where both are infinite
    difference, error = _mean_and_error(np.subtract(*rows, out=np.zeros(one.n), where=~same), one.weights)
    z = difference / error if error > 0 else math.copysign(math.inf, difference) if difference else 0.0
    return Comparison(difference, error, z, float(2 * ndtr(-abs(z))))


def _mean_and_error(values: Array, weights: Array | None) -> tuple[float, float]:
    w = np.ones(len(values)) if weights is None else weights
    total, rows = float(w.sum()), rows_of(len(values), weights)
    mean = inner(w, values) / total
    if rows <= 1:
        return mean, math.inf
    return mean, math.sqrt(inner(w, (values - mean) ** 2) / total / (rows - 1))
