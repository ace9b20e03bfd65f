"""Newton for one unknown takes the steps of Newton for many."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.fits.solvers.line import LineSums, newton_line
from calibrant.fits.solvers.newton import Sums, newton


def logistic(z, y):
    """Log-loss of y under σ(x z), and its derivatives in x."""

    def at(x):
        with np.errstate(over="ignore"):
            p = 1 / (1 + np.exp(-x * z))
        return LineSums(
            float(np.logaddexp(0, np.where(y, -x * z, x * z)).sum()),
            float(((p - y) * z).sum()),
            float((p * (1 - p) * z**2).sum()),
        )

    return at


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.floats(-3, 3), st.floats(0.01, 30))
def test_it_ends_where_newton_for_many_does(seed, start, scale):
    generator = np.random.default_rng(seed)
    z = generator.normal(size=60) * scale
    y = generator.random(60) < 1 / (1 + np.exp(-0.5 * z / scale))
    function = logistic(z, y)

    def many(theta, _):
        found = function(float(theta[0, 0]))
        return Sums(np.array([found.value]), np.array([[found.slope]]), np.array([[[found.curvature]]]))

    one = newton_line(function, start, 1e-12, -50.0, 50.0)
    several = newton(many, np.array([[start]]), 1e-12, low=-50.0, high=50.0)
    assert one.converged
    assert one.value == pytest.approx(several.sums.value[0], rel=1e-9)
    assert abs(one.x) == 50.0 or abs(function(one.x).slope) < 1e-4 * max(1.0, scale)


def test_a_parabola_takes_one_step():
    found = newton_line(lambda x: LineSums((x - 3) ** 2, 2 * (x - 3), 2.0), 0.0, 1e-12, -10.0, 10.0)
    assert found.x == pytest.approx(3.0)
    assert found.passes <= 2


@pytest.mark.parametrize(("low", "high", "wanted"), [(4.0, 9.0, 4.0), (-9.0, 1.0, 1.0)])
def test_an_optimum_beyond_a_bound_ends_on_it(low, high, wanted):
    found = newton_line(lambda x: LineSums((x - 3) ** 2, 2 * (x - 3), 2.0), 5.0, 1e-12, low, high)
    assert found.x == wanted
    assert found.converged


def test_what_floating_point_cannot_hold_is_stepped_back_from():
    def function(x):
        if x > 5:
            return LineSums(math.inf, math.nan, math.nan)
        return LineSums(math.exp(x) - 10 * x, math.exp(x) - 10, 1e-3)  # a curvature that promises far too much

    found = newton_line(function, 0.0, 1e-10, -1e6, 1e6)
    assert found.x == pytest.approx(math.log(10), abs=1e-3)


def test_flat_and_falling_functions_end():
    flat = newton_line(lambda x: LineSums(7.0, 0.0, 0.0), 1.0, 1e-12, -5.0, 5.0)
    assert (flat.x, flat.converged) == (1.0, True)
    falling = newton_line(lambda x: LineSums(-x, -1.0, 0.0), 1.0, 1e-12, -5.0, 1e9)
    assert falling.x == 1e9


def test_it_gives_up_after_the_passes_it_is_allowed():
    found = newton_line(lambda x: LineSums(math.exp(-x), -math.exp(-x), math.exp(-x)), 0.0, 0.0, -5.0, 1e9, most=7)
    assert found.passes == 7
    assert not found.converged
