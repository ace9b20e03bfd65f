"""Searches that begin where they end, or whose last step promises exactly the tolerance, say that they have arrived."""

import numpy as np
import pytest

from calibrant.fits.solvers.line import LineSums, newton_line
from calibrant.fits.solvers.many import minimise
from calibrant.fits.solvers.newton import Sums, newton
from calibrant.fits.solvers.simplex import Sums as SimplexSums
from calibrant.fits.solvers.simplex import minimise_on_simplex


def parabola(theta, _=None):
    """2 (θ - 3)²: a step of Newton's from 1 promises 16, from 3 nothing; all numbers are exact."""
    value, slope = 2 * (theta[:, 0] - 3) ** 2, 4 * (theta - 3)
    return Sums(value, slope, np.full((len(theta), 1, 1), 4.0))


@pytest.mark.parametrize(("tolerance", "passes"), [(16.0, 1), (15.999, 2), (0.0, 2)])
def test_newton_arrives_where_a_step_promises_the_tolerance(tolerance, passes):
    """The last step is taken unseen, and the value moved along: from 8 by the 8 that the parabola falls."""
    found = newton(parabola, np.array([[1.0]]), tolerance)
    assert found.theta.tolist() == [[3.0]]
    assert found.passes == passes
    assert found.converged.all()
    assert found.sums.value.tolist() == [0.0]
    assert found.sums.gradient.tolist() == [[0.0]]


@pytest.mark.parametrize("low", [-np.inf, 3.0])
def test_newton_stays_where_it_begins_at_the_optimum(low):
    found = newton(parabola, np.array([[3.0], [3.0]]), 0.0, low=low)
    assert found.theta.tolist() == [[3.0], [3.0]]
    assert found.passes == 1
    assert found.converged.all()


def test_newton_counts_no_pass_for_sums_that_are_known():
    found = newton(parabola, np.array([[1.0]]), 0.0, known=parabola(np.array([[1.0]])))
    assert found.passes == 1
    assert found.theta.tolist() == [[3.0]]


@pytest.mark.parametrize("curvature", [0.39, 0.41, 7.9, 8.1])
def test_a_last_step_within_the_bounds_is_taken_unseen(curvature):
    """Newton's own step accounts for all of its promise, whatever the curvature."""
    asked = []

    def problem(theta, _):
        asked.append(theta.copy())
        return Sums(np.array([10.0]), np.array([[-curvature]]), np.array([[[curvature]]]))

    found = newton(problem, np.array([[0.0]]), 100.0, high=1.0)
    assert found.theta.tolist() == [[1.0]]
    assert found.sums.value[0] == pytest.approx(10.0 - 0.5 * curvature)
    assert len(asked) == 1


def bent(theta, curvature):
    """Slope -4 at 0, where a bound at 1 ends the step: it promises 4, whatever the curvature below 4."""
    return Sums(np.array([10.0]), np.array([[-4.0]]), np.array([[[curvature]]]))


@pytest.mark.parametrize(("curvature", "taken"), [(0.39, False), (0.41, True), (3.9, True)])
def test_a_last_step_to_a_bound_is_taken_unseen_where_curvature_accounts_for_it(curvature, taken):
    found = newton(lambda theta, _: bent(theta, curvature), np.array([[0.0]]), 100.0, high=1.0)
    assert found.theta.tolist() == [[1.0 if taken else 0.0]]
    assert found.sums.value[0] == pytest.approx(10.0 - 4.0 + 0.5 * curvature if taken else 10.0)


@pytest.mark.parametrize(("tolerance", "passes"), [(16.0, 1), (15.999, 2), (0.0, 2)])
def test_a_line_arrives_where_a_step_promises_the_tolerance(tolerance, passes):
    found = newton_line(lambda x: LineSums(2 * (x - 3) ** 2, 4 * (x - 3), 4.0), 1.0, tolerance, -9.0, 9.0)
    assert found == (3.0, 0.0, passes, True)


@pytest.mark.parametrize(("most", "converged"), [(2, False), (3, True), (9, True)])
def test_a_line_has_not_arrived_after_its_last_pass(most, converged):
    """x⁴ from 1 for a tolerance that its second step meets."""
    found = newton_line(lambda x: LineSums(x**4, 4 * x**3, 12 * x * x), 1.0, 0.2, -9.0, 9.0, most=most)
    assert found.converged == converged
    assert found.passes <= most


@pytest.mark.parametrize(("tolerance", "passes"), [(8.0, 0), (7.999, 1), (0.0, 1)])
def test_a_search_of_many_arrives_where_half_the_slope_is_the_tolerance(tolerance, passes):
    """½ (θ - 5)² from 1: half of g H⁻¹ g is 8."""

    def objective(theta):
        return 0.5 * float((theta - 5) @ (theta - 5)), theta - 5

    start = np.array([1.0])
    found = minimise(objective, start, objective(start), np.copy, tolerance, 60)
    assert found.passes == passes
    assert found.converged
    assert found.theta.tolist() == [1.0 if passes == 0 else 5.0]


def test_a_search_of_many_does_not_begin_where_nothing_is_finite():
    start = np.array([1.0])
    for first in ((np.inf, start), (1.0, np.array([np.nan]))):
        found = minimise(lambda x: (0.0, x), start, first, np.copy, 1e-9)
        assert (found.passes, found.converged) == (0, False)


def test_a_search_of_many_leaves_a_metric_that_leads_up():
    """A metric with the wrong sign is left for the gradient, by a step of one in its steepest parameter."""
    asked = []

    def objective(theta):
        asked.append(theta.copy())
        return float(theta @ theta), 2 * theta

    start = np.array([4.0, -2.0])
    minimise(objective, start, objective(start), lambda v: -v, 1e-9, 1)
    np.testing.assert_array_equal(asked[1], [3.0, -1.5])


def quadratic(pull):
    def problem(w, _):
        return SimplexSums(0.5 * float((w - pull) @ (w - pull)), w - pull, np.eye(len(pull)))

    return problem


@pytest.mark.parametrize("start", [[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]])
@pytest.mark.parametrize("tolerance", [1.0, 0.0])
def test_weights_come_to_the_nearest_point_of_the_simplex(start, tolerance):
    pull = np.array([0.125, 0.375, 0.5])
    found = minimise_on_simplex(quadratic(pull), np.array(start), tolerance)
    np.testing.assert_allclose(found.weights, pull, atol=1e-12)
    assert found.value == pytest.approx(0.0, abs=1e-9)
    assert found.converged
    assert found.passes <= (3 if start[1] else 4)  # a corner that it must leave is left by a start inside


def test_weights_that_begin_at_their_optimum_take_one_pass():
    pull = np.array([0.125, 0.375, 0.5])
    found = minimise_on_simplex(quadratic(pull), pull, 0.0)
    assert (found.weights.tolist(), found.passes, found.converged) == (pull.tolist(), 1, True)


def test_weights_begin_equal_where_their_start_is_not_finite():
    asked = []

    def problem(w, _):
        asked.append(w.tolist())
        return SimplexSums(np.inf if len(asked) == 1 else 1.0, np.zeros(2), np.zeros((2, 2)))

    found = minimise_on_simplex(problem, np.array([1.0, 0.0]), 1e-9)
    assert asked[1] == [0.5, 0.5]
    assert (found.passes, found.converged) == (2, True)
    never = minimise_on_simplex(lambda w, _: SimplexSums(np.nan, np.zeros(2), np.zeros((2, 2))), np.ones(2) / 2, 1e-9)
    assert (never.passes, never.converged) == (2, False)
