"""The coordinates of a valley against differences of the function itself, and what they promise."""

import numpy as np
import pytest

from calibrant.fits.mixing import ENSEMBLE, Mixing
from calibrant.fits.solvers.simplex import Sums, minimise_on_simplex
from calibrant.fits.solvers.valley import Valley
from calibrant.passes import Block, in_memory

VALLEY = Valley(0, 1)


@pytest.fixture
def problem(rng):
    z = rng.normal(size=(3000, 4)) * 2
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    y = (p.cumsum(axis=1) > rng.random((len(z), 1))).argmax(axis=1)
    data = in_memory(Block(z, y, None, 4))
    return lambda w, x: Mixing(ENSEMBLE, "nll").sums(data, w, x)


@pytest.mark.parametrize("away", [0.4, -0.7])
def test_gradient_and_hessian_are_those_of_the_turned_function(problem, away):
    w, x = np.array([0.2, 0.7, 0.1]), np.array([away])

    def value(omega, moved):
        weight = omega[0] * away / moved
        return problem(np.array([weight, omega[0] + omega[1] - weight, omega[2]]), np.array([moved])).value

    def at(d):
        return value(w + d[:3], away + d[3])

    h = 1e-3
    unit = np.eye(4) * h
    gradient = np.array([(at(e) - at(-e)) / (2 * h) for e in unit])
    hessian = np.array([[(at(a + b) - at(a - b) - at(b - a) + at(-a - b)) / (4 * h * h) for a in unit] for b in unit])
    turned = VALLEY.turned(problem(w, x), w, x)
    np.testing.assert_allclose(turned.gradient, gradient, atol=1e-5)
    np.testing.assert_allclose(turned.hessian, hessian, atol=1e-3)


@pytest.mark.parametrize("away", [0.01, -0.2, 0.25, 3.0])
def test_a_start_is_moved_away_from_zero_along_the_valley(away):
    w, x = VALLEY.start(np.array([0.8, 0.1, 0.1]), np.array([away]), -5.0, 5.0)
    assert abs(x[0]) >= 0.25
    assert w[0] * x[0] == pytest.approx(0.8 * away)
    assert w.sum() == pytest.approx(1)
    assert w[2] == 0.1


def test_a_start_stays_within_its_bounds():
    w, x = np.array([0.8, 0.1, 0.1]), np.array([0.05])
    assert VALLEY.start(w, x, -5.0, 0.1) == (w, x)


def test_a_step_never_leaves_the_simplex_nor_crosses_zero(rng):
    for _ in range(500):
        omega = rng.dirichlet([0.3, 0.3, 0.3])
        before, moved = rng.normal(size=(2, 1)) * 2
        w, x = VALLEY.reached(before, omega, moved)
        assert (w >= 0).all()
        assert w.sum() == pytest.approx(1)
        assert x[0] * before[0] > 0
        assert w[2] == pytest.approx(omega[2])


def test_both_coordinates_lead_to_the_same_value(problem):
    start, beside = np.array([1.0, 0.0, 0.0]), np.array([0.02])
    plain = minimise_on_simplex(problem, start, 1e-12, beside=beside, low=-5, high=5, most=400)
    turned = minimise_on_simplex(problem, start, 1e-12, beside=beside, low=-5, high=5, valley=VALLEY)
    assert turned.value <= plain.value + 1e-9
    assert turned.passes <= 25


def test_a_search_that_ran_out_of_passes_says_whether_what_is_left_matters(problem):
    options = {"beside": np.array([0.5]), "low": -5.0, "high": 5.0, "most": 1}
    start = np.array([0.4, 0.5, 0.1])
    assert not minimise_on_simplex(problem, start, 1e-12, **options).converged
    assert minimise_on_simplex(problem, start, 1e-12, enough=1.0, **options).converged


def test_the_coordinates_apply_where_both_parts_count():
    falls, rises = (
        Sums(0.0, np.array([2.0, 1.0, 0.0, 0.0]), np.eye(4)),
        Sums(0.0, np.array([1.0, 2.0, 0.0, 0.0]), np.eye(4)),
    )
    inside, alone, without = (np.array(w) for w in ([0.5, 0.4, 0.1], [0.9, 0.0, 0.1], [0.0, 0.9, 0.1]))
    assert VALLEY.applies(rises, inside, np.array([0.5]))
    assert not VALLEY.applies(falls, inside, np.array([0.0]))  # nothing to divide by
    assert not VALLEY.applies(falls, without, np.array([0.5]))
    assert VALLEY.applies(falls, alone, np.array([0.5]))  # the other part would gain
    assert not VALLEY.applies(rises, alone, np.array([0.5]))
    assert not VALLEY.start(without, np.array([0.1]), -5.0, 5.0)[1][0] > 0.1


def test_the_border_is_left_only_by_a_step_that_leads_inside():
    alone, inside = np.array([0.9, 0.0, 0.1]), np.array([0.5, 0.4, 0.1])
    assert VALLEY.on_border(alone, np.array([0.0, -0.1, 0.1]))
    assert VALLEY.on_border(alone, np.array([0.0, 0.0, 0.1]))
    assert not VALLEY.on_border(alone, np.array([-0.1, 0.1, 0.0]))
    assert not VALLEY.on_border(inside, np.array([0.0, -0.1, 0.1]))


def test_a_step_keeps_the_product_and_a_quarter_of_the_way():
    omega = np.array([0.3, 0.6, 0.1])
    w, x = VALLEY.reached(np.array([0.8]), omega, np.array([0.4]))
    assert (w[0], x[0]) == pytest.approx((0.6, 0.4))  # t = .24
    w, x = VALLEY.reached(np.array([0.8]), omega, np.array([-1.0]))
    assert x[0] == pytest.approx(0.24 / 0.9)  # as far as both weights reach, beyond a quarter of .8


def test_a_weight_that_only_rounding_left_is_none():
    w, x = VALLEY.reached(np.array([0.8]), np.array([0.7, 0.2, 0.1]), np.array([0.1]))
    assert x[0] == pytest.approx(0.56 / 0.9)
    assert w[1] == 0.0
    assert w.sum() == pytest.approx(1.0, abs=1e-15)
    assert VALLEY._at(np.array([0.9, 0.0, 0.1]), np.nextafter(0.9, 0.0))[1] == 0.0
    assert VALLEY._at(np.array([0.9, 0.0, 0.1]), 0.9 * (1.0 - 1e-11))[1] > 0.0
