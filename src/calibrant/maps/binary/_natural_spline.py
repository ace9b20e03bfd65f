"""Natural cubic splines whose slope is a sum of quadratic B-splines, so that bounds keep them from falling."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import BSpline, PPoly

from ...types import Array


class NaturalSpline:
    """f(t) = θ₀ + Σ θⱼ ∫Mⱼ through m knots, straight beyond them: f' is a sum of quadratic B-splines Mⱼ.

    f'' vanishes at the outer knots, which makes the two splines next to each of them one: m coefficients in all. With
    θ₁ … θₘ₋₁ not negative f does not fall; with all of them equal it is straight.

    Parameters
    ----------
    knots : array of shape (m,)
        Increasing, two at least.
    """

    def __init__(self, knots: Array) -> None:
        self.knots = knots
        count = len(knots)
        columns = np.clip(np.arange(count + 1) - 1, 0, count - 2)
        tied = np.zeros((count + 1, count - 1))
        tied[np.arange(count + 1), columns] = 1.0
        outer = np.repeat(knots[:1], 2), np.repeat(knots[-1:], 2)
        self._slope = BSpline(np.concatenate([outer[0], knots, outer[1]]), tied, 2)
        self._rise = self._slope.antiderivative()

    def __call__(self, t: Array) -> Array:
        """Return the columns of θ at each t: (n, m)."""
        first, last = self.knots[0], self.knots[-1]
        found = np.empty((len(t), len(self.knots)))
        found[:, 0] = 1.0
        found[:, 1:] = self._rise(np.clip(t, first, last))
        found[:, 1] += np.minimum(t - first, 0.0)  # next to the outer knots one spline alone makes the slope
        found[:, -1] += np.maximum(t - last, 0.0)
        return found

    @property
    def penalty(self) -> Array:
        """S with θᵀSθ = ∫f''², exactly: f'' is linear between knots, and two Gauss points integrate its square."""
        size = len(self.knots)
        total = np.zeros((size, size))
        middle, half = 0.5 * (self.knots[1:] + self.knots[:-1]), 0.5 * np.diff(self.knots)
        bend = self._slope.derivative()
        for sign in (-1.0, 1.0):
            found = bend(middle + sign * half / np.sqrt(3.0))
            total[1:, 1:] += (found * half[:, None]).T @ found
        return total

    def polynomials(self, theta: Array) -> Array:
        """Return value, slope, half the bend and a sixth of the third derivative at each knot: (m, 4)."""
        rise = BSpline(self._rise.t, self._rise.c @ theta[1:], 3)
        cubic = PPoly.from_spline(rise)
        places = np.clip(np.searchsorted(cubic.x, self.knots, side="right") - 1, 0, cubic.c.shape[1] - 1)
        pieces = cubic.c[::-1, places].T.copy()
        pieces[-1] = [rise(self.knots[-1]), theta[-1], 0.0, 0.0]
        pieces[:, 0] += theta[0]
        return pieces
