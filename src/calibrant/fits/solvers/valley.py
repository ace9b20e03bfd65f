"""Where a mixture's free temperature may come near to that of another part: coordinates in which it is no valley.

In w₁ S(x) + w₂ S(0) + …, S(x) the softmax at β = e^x, the two parts are one where x = 0. Near it only t = w₁ x is
known: (w₁, x) may be (1, .01) or (.02, .5) with hardly a difference, and Newton's steps in them are short. Written as

    (w₁ + w₂) S(0) + t · (S(x) - S(0)) / x + …

the mixture is linear in t, and x turns the direction in which t moves it, smoothly through zero. So steps are taken in
(t, x): from where the search stands, x₀, in weights ω whose first means w₁ = ω₁ x₀ / x, the second being what is left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...types import Array
from .sums import Sums

_APART = 0.25  # where a search begins at least: nearer to zero the turn of a direction is lost in rounding
_NOTHING = 1e-12  # a smaller part of both weights is none: a last bit would pass for the inside of the simplex
_NEARER = 0.25  # the part of x that one step leaves at least: the direction is another at zero


class Valley(NamedTuple):
    """Positions of the part whose temperature is free, the only one, and of the part that leaves the scores alone."""

    free: int
    same: int

    def start(self, w: Array, x: Array, low: float, high: float) -> tuple[Array, Array]:
        """Return a start that is about the same mixture, its temperature away from one where bounds allow it."""
        away = float(x[0])
        there = float(np.copysign(_APART, away))
        if away == 0.0 or abs(away) >= _APART or w[self.free] == 0.0 or not low <= there <= high:
            return w, x
        return self._at(w, float(w[self.free]) * away / there), np.array([there])

    def applies(self, sums: Sums, w: Array, x: Array) -> bool:
        """Whether both parts count here: on the border without the other part, the plain coordinates are good."""
        slope = sums.gradient
        return bool(x[0] != 0.0 and w[self.free] > 0.0 and (w[self.same] > 0.0 or slope[self.free] > slope[self.same]))

    def turned(self, sums: Sums, w: Array, x: Array) -> Sums:
        """Return gradient and Hessian in (ω, x), by the chain rule: ∂w₁/∂x = -w₁ / x₀, ∂²w₁/∂x² = 2 w₁ / x₀²."""
        m, away, weight = len(w), float(x[0]), float(w[self.free])
        jacobian = np.eye(m + 1)
        jacobian[self.free, m] = -weight / away
        jacobian[self.same, m] = weight / away
        slope = sums.gradient[self.free] - sums.gradient[self.same]
        hessian = jacobian.T @ sums.hessian @ jacobian
        hessian[self.free, m] -= slope / away
        hessian[m, self.free] -= slope / away
        hessian[m, m] += 2.0 * slope * weight / away**2
        return Sums(sums.value, jacobian.T @ sums.gradient, hessian)

    def on_border(self, w: Array, step: Array) -> bool:
        """Whether a step goes along the border where the other part has no weight: there w₁ is no matter of x."""
        return bool(w[self.same] == 0.0 and step[self.same] <= 0.0)

    def reached(self, x: Array, omega: Array, moved: Array) -> tuple[Array, Array]:
        """Return the weights and x that a step from x ends at: no further than where the other part has no weight."""
        before, away = float(x[0]), float(moved[0])
        if away / before < _NEARER:
            away = _NEARER * before
        t = float(omega[self.free]) * before
        both = float(omega[self.free] + omega[self.same])
        if abs(t) > both * abs(away) > 0.0:
            away = t / both
        return self._at(omega, t / away), np.array([away])

    def _at(self, w: Array, weight: float) -> Array:
        """Return the weights with this one for the free part, the other part taking what is left of both."""
        found = w.copy()
        both = w[self.free] + w[self.same]
        found[self.free] = weight if weight < both * (1.0 - _NOTHING) else both
        found[self.same] = both - found[self.free]
        return found
