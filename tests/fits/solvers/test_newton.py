"""The one Newton on textbook problems, and on what real scores bring."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from calibrant.fits.solvers.newton import Sums, newton


def one(value, gradient, hessian):
    """Return a function of one point as a problem of its own, and the list of points it was asked for."""
    asked = []

    def problem(theta, wanted):
        asked.append(theta[0].copy())
        x = theta[0]
        parts = np.atleast_1d(value(x)), np.atleast_1d(gradient(x))[None], np.atleast_2d(hessian(x))[None]
        return Sums(*(np.asarray(part, dtype=float) for part in parts))

    return problem, asked


def rosenbrock():
    return one(
        lambda x: (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2,
        lambda x: [-2 * (1 - x[0]) - 400 * x[0] * (x[1] - x[0] ** 2), 200 * (x[1] - x[0] ** 2)],
        lambda x: [[2 - 400 * (x[1] - 3 * x[0] ** 2), -400 * x[0]], [-400 * x[0], 200]],
    )


@pytest.fixture(autouse=True)
def silence_is_kept():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_a_parabola_takes_one_step():
    problem, asked = one(lambda x: (x[0] - 3) ** 2, lambda x: 2 * (x - 3), lambda x: 2.0)
    found = newton(problem, np.array([[0.0]]), 1e-9)
    assert_allclose(found.theta, [[3.0]])
    assert found.passes == len(asked) == 2


@pytest.mark.parametrize("start", [(-1.2, 1.0), (0.0, 0.0), (-3.0, -4.0), (5.0, 5.0)])
def test_rosenbrock(start):
    problem, _ = rosenbrock()
    found = newton(problem, np.array([start]), 1e-14)
    assert found.converged.all()
    assert_allclose(found.theta, [[1.0, 1.0]], atol=1e-6)
    assert found.passes < 60


def test_rosenbrock_against_a_bound():
    problem, _ = rosenbrock()
    found = newton(problem, np.array([[-1.2, 1.0]]), 1e-14, high=np.array([[0.5, np.inf]]))
    assert_allclose(found.theta, [[0.5, 0.25]], atol=1e-6)
    assert found.converged.all()


def test_leaves_a_hill_top_downwards():
    problem, _ = one(lambda x: np.cos(x[0]), lambda x: -np.sin(x), lambda x: -np.cos(x[0]))
    found = newton(problem, np.array([[0.1]]), 1e-14)
    assert_allclose(found.theta, [[np.pi]], atol=1e-6)


def test_negative_curvature_in_one_of_two_directions():
    problem, _ = one(
        lambda x: x[0] ** 2 - x[1] ** 2 + x[1] ** 4,
        lambda x: [2 * x[0], -2 * x[1] + 4 * x[1] ** 3],
        lambda x: [[2, 0], [0, -2 + 12 * x[1] ** 2]],
    )
    found = newton(problem, np.array([[1.0, 0.1]]), 1e-14)
    assert_allclose(found.theta, [[0.0, np.sqrt(0.5)]], atol=1e-6)


def test_a_direction_without_curvature_is_followed_to_its_bound():
    problem, _ = one(lambda x: x[0] ** 2 + x[1], lambda x: [2 * x[0], 1.0], lambda x: [[2, 0], [0, 0]])
    found = newton(problem, np.array([[1.0, 1.0]]), 1e-12, low=-5.0)
    assert_allclose(found.theta, [[0.0, -5.0]])


def test_unknowns_that_do_nothing_stay():
    problem, _ = one(lambda x: (x[0] - 1) ** 2, lambda x: [2 * (x[0] - 1), 0.0], lambda x: [[2, 0], [0, 0]])
    found = newton(problem, np.array([[5.0, 7.0]]), 1e-12)
    assert_allclose(found.theta, [[1.0, 7.0]])


def test_unknowns_that_only_count_together_end_at_an_optimum():
    problem, _ = one(
        lambda x: (x.sum() - 4) ** 2, lambda x: np.full(3, 2 * (x.sum() - 4)), lambda x: np.full((3, 3), 2.0)
    )
    found = newton(problem, np.zeros((1, 3)), 1e-12)
    assert_allclose(found.theta.sum(), 4.0)
    assert np.abs(found.theta).max() < 10


def test_a_flat_function_is_left_at_once():
    problem, asked = one(lambda x: 5.0, lambda x: np.zeros(3), lambda x: np.zeros((3, 3)))
    found = newton(problem, np.ones((1, 3)), 0.0)
    assert_array_equal(found.theta, np.ones((1, 3)))
    assert found.converged.all()
    assert len(asked) == 1


def logistic(x, y):
    """Return the log-loss of a logistic regression as a problem."""

    def problem(theta, wanted):
        f = x @ theta[0]
        p = 1 / (1 + np.exp(-f))
        value = np.logaddexp(0, f).sum() - f @ y
        hessian = (x * (p * (1 - p))[:, None]).T @ x
        return Sums(np.array([value]), (x.T @ (p - y))[None], hessian[None])

    return problem


def test_a_logistic_regression_agrees_with_scipy(rng):
    x = rng.normal(size=(200, 4))
    y = (rng.random(200) < 1 / (1 + np.exp(-x @ [1.0, -2.0, 0.5, 0.0]))).astype(float)
    found = newton(logistic(x, y), np.zeros((1, 4)), 1e-10)
    slow = minimize(lambda t: np.logaddexp(0, x @ t).sum() - (x @ t) @ y, np.zeros(4), method="BFGS", tol=1e-8)
    assert_allclose(found.theta[0], slow.x, atol=1e-5)
    assert found.passes < 9


def test_separable_rows_end_where_next_to_nothing_is_left_to_gain(rng):
    x = rng.normal(size=(60, 3))
    found = newton(logistic(x, (x[:, 0] > 0).astype(float)), np.zeros((1, 3)), 1e-8)
    assert found.converged.all()
    assert np.isfinite(found.theta).all()
    assert found.sums.value[0] < 1e-7


def test_only_descends_and_reports_where_it_stands():
    problem, asked = rosenbrock()
    found = newton(problem, np.array([[-1.2, 1.0]]), 1e-14, most=6)
    assert found.passes == len(asked) == 6
    assert not found.converged.any()
    assert any((found.theta[0] == point).all() for point in asked)
    assert found.sums.value[0] < problem(np.array([[-1.2, 1.0]]), None).value[0]


def test_values_that_overflow_are_stepped_back_from():
    # exp(x²) - 20 x with a curvature that says little about what comes: the first steps end in inf and nan.
    problem, asked = one(lambda x: np.exp(x[0] ** 2) - 20 * x[0], lambda x: 2 * x * np.exp(x**2) - 20, lambda x: 1e-3)
    found = newton(problem, np.array([[0.0]]), 1e-10)
    assert np.abs(asked[1]) > 1e3
    slope = 2 * found.theta[0, 0] * np.exp(found.theta[0, 0] ** 2)
    assert_allclose(slope, 20, rtol=1e-2)


def test_a_step_three_hundred_decades_too_long_is_cut_in_time():
    problem, _ = one(lambda x: (x[0] - 1) ** 2, lambda x: 2 * (x - 1), lambda x: 1e-300 if x[0] == 0 else 2.0)
    found = newton(problem, np.array([[0.0]]), 1e-12)
    assert_allclose(found.theta, [[1.0]])
    assert found.passes < 30


@pytest.mark.parametrize("hessian", [np.inf, np.nan])
def test_curvature_that_is_missing_at_the_start_is_done_without(hessian):
    def curvature(x):
        return np.full((2, 2), hessian) if (x == 0).all() else 2 * np.eye(2)

    problem, _ = one(lambda x: ((x - [3, -4]) ** 2).sum(), lambda x: 2 * (x - [3, -4]), curvature)
    found = newton(problem, np.zeros((1, 2)), 1e-12)
    assert_allclose(found.theta, [[3.0, -4.0]])
    assert found.converged.all()


@pytest.mark.parametrize("unit", [1e-30, 1e30])
@pytest.mark.parametrize("height", [1e-30, 1e30])
def test_units_do_not_matter(unit, height):
    first, _ = rosenbrock()

    def problem(theta, wanted):
        found = first(theta / unit, wanted)
        return Sums(height * found.value, height / unit * found.gradient, height / unit**2 * found.hessian)

    plain = newton(first, np.array([[-1.2, 1.0]]), 1e-12)
    found = newton(problem, unit * np.array([[-1.2, 1.0]]), 1e-12 * height)
    assert found.passes == plain.passes
    assert_allclose(found.theta / unit, plain.theta, rtol=1e-9)


@pytest.mark.parametrize("unit", [1e-30, 1.0, 1e30])
def test_a_scale_that_nothing_tells_is_found(unit):
    """No curvature anywhere: |x - unit|."""
    problem, _ = one(lambda x: abs(x[0] / unit - 1), lambda x: np.sign(x / unit - 1) / unit, lambda x: 0.0)
    found = newton(problem, np.array([[0.01 * unit]]), 1e-3)
    assert abs(found.theta[0, 0] / unit - 1) < 0.5


def test_optima_at_many_bounds_are_exact(rng):
    for _ in range(30):
        d = int(rng.integers(2, 20))
        root = rng.normal(size=(d, d))
        h = root @ root.T + 1e-3 * np.eye(d)
        g = rng.normal(size=d) * 3
        low, high = -rng.random(d), rng.random(d)
        problem, _ = one(lambda x, g=g, h=h: g @ x + 0.5 * x @ h @ x, lambda x, g=g, h=h: g + h @ x, lambda x, h=h: h)
        found = newton(problem, np.zeros((1, d)), 1e-12, low=low, high=high)
        slope = g + h @ found.theta[0]
        at_low, at_high = found.theta[0] <= low, found.theta[0] >= high
        assert_allclose(slope[~at_low & ~at_high], 0, atol=1e-7)
        assert (slope[at_low] > -1e-7).all()
        assert (slope[at_high] < 1e-7).all()
        assert found.passes <= 2


def test_a_start_outside_its_bounds_is_moved_in_and_nothing_is_asked_outside():
    problem, asked = rosenbrock()
    found = newton(problem, np.array([[9.0, -9.0]]), 1e-12, low=-2.0, high=np.array([2.0, 0.5]))
    assert all((point >= -2).all() and (point <= [2.0, 0.5]).all() for point in asked)
    assert_allclose(found.theta[0, 1], 0.5)


def test_many_problems_of_which_some_are_hopeless():
    """Problem 0 is a parabola, 1 always nan, 2 nan but at its start, 3 unbounded below, 4 logistic without an end."""

    def problem(theta, wanted):
        x = theta[:, 0]
        value = np.array([(x[0] - 2) ** 2, np.nan, 1.0 if x[2] == 0 else np.nan, -x[3], np.logaddexp(0, -x[4])])
        p = 1 / (1 + np.exp(x[4]))
        gradient = np.array([2 * (x[0] - 2), np.nan, 1.0, -1.0, -p])
        hessian = np.array([2.0, np.nan, 1.0, 0.0, p * (1 - p)])
        return Sums(value, gradient[:, None], hessian[:, None, None])

    found = newton(problem, np.zeros((5, 1)), 1e-9, most=60)
    assert_allclose(found.theta[0], 2.0)
    assert_array_equal(found.theta[1:3], 0.0)
    assert found.theta[3, 0] > 1e9
    assert found.theta[4, 0] > 15
    assert_array_equal(found.converged, [True, False, False, False, True])
    assert np.isfinite(found.theta).all()


def test_problems_side_by_side_go_the_way_they_go_alone():
    first, _ = rosenbrock()
    starts = np.array([[-1.2, 1.0], [0.0, 0.0], [1.0, 1.0]])

    def problem(theta, wanted):
        parts = [first(row[None], None) for row in theta]
        return Sums(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    together = newton(problem, starts, 1e-12)
    alone = [newton(first, start[None], 1e-12) for start in starts]
    assert together.passes == max(found.passes for found in alone)
    assert_allclose(together.theta, np.concatenate([found.theta for found in alone]), rtol=1e-9)


def test_problems_that_are_done_are_not_wanted():
    wishes = []

    def problem(theta, wanted):
        wishes.append(wanted.copy())
        x = theta[:, 0]
        return Sums(np.cosh(x), np.sinh(x)[:, None], np.cosh(x)[:, None, None])

    newton(problem, np.array([[0.0], [3.0]]), 1e-9)
    assert wishes[0].all()
    assert not any(wanted[0] for wanted in wishes[1:])


def test_what_is_known_saves_a_pass():
    problem, asked = rosenbrock()
    start = np.array([[-1.2, 1.0]])
    plain = newton(problem, start, 1e-12)
    known = problem(start, None)
    asked.clear()
    found = newton(problem, start, 1e-12, known=known)
    assert found.passes == len(asked) == plain.passes - 1
    assert_array_equal(found.theta, plain.theta)
    assert known.value[0] == problem(start, None).value[0]  # and is not written into


def test_the_last_step_is_in_the_sums():
    problem, _ = one(lambda x: np.cosh(x[0] - 1), lambda x: np.sinh(x - 1), lambda x: np.cosh(x[0] - 1))
    found = newton(problem, np.array([[0.5]]), 1e-3)
    there = problem(found.theta, None)
    assert_allclose(found.sums.value, there.value, rtol=1e-6)
    assert_allclose(found.sums.gradient, there.gradient, atol=1e-3)


def test_values_of_single_precision_do_not_keep_it_from_arriving(rng):
    """A loss of many rows, small in the end: its rounding is that of its terms, and far above what is left to gain."""
    x = rng.normal(size=(1000, 2))
    y = (rng.random(1000) < 1 / (1 + np.exp(-x @ [6.0, -4.0]))).astype(float)
    exact = logistic(x, y)

    def problem(theta, wanted):
        found = exact(theta, wanted)
        return found._replace(value=np.round(found.value, 5))

    found = newton(problem, np.zeros((1, 2)), 1e-7)
    assert found.converged.all()
    assert found.passes < 15
    assert_allclose(found.theta, newton(exact, np.zeros((1, 2)), 1e-10).theta, atol=1e-5)
