"""The solver for many parameters, by itself: textbook problems, and hostile ones."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimise

from calibrant.fits.solvers.many import minimise


def plain(vector):
    """The metric of someone who knows nothing."""
    return vector.copy()


def solve(function, start, inverse=plain, tolerance=1e-10, most=300):
    start = np.asarray(start, dtype=np.float64)
    calls = []

    def counted(theta):
        calls.append(theta)
        return function(theta)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = minimise(counted, start, function(start), inverse, tolerance, most)
    assert found.passes == len(calls)
    assert np.isfinite(found.theta).all()
    return found


def quadratic(matrix, centre):
    return lambda theta: (
        0.5 * float((theta - centre) @ matrix @ (theta - centre)),
        matrix @ (theta - centre),
    )


def test_a_quadratic_with_its_own_metric_takes_one_pass(rng):
    root = rng.normal(size=(30, 30))
    matrix, centre = root @ root.T + np.eye(30), rng.normal(size=30)
    found = solve(quadratic(matrix, centre), np.zeros(30), lambda v: np.linalg.solve(matrix, v))
    np.testing.assert_allclose(found.theta, centre, atol=1e-8)
    assert found.passes == 1
    assert found.converged


@pytest.mark.parametrize("condition", [1e2, 1e5])
def test_an_ill_conditioned_quadratic_is_solved_as_scipy_does(rng, condition):
    turned = np.linalg.qr(rng.normal(size=(40, 40)))[0]
    matrix, centre = (turned * np.geomspace(1, condition, 40)) @ turned.T, rng.normal(size=40)
    function = quadratic(matrix, centre)
    found = solve(function, np.zeros(40), tolerance=1e-9, most=5000)
    theirs = scipy_minimise(
        function, np.zeros(40), jac=True, method="L-BFGS-B", options={"maxcor": 12, "maxiter": 5000, "maxfun": 9000}
    )
    assert found.converged
    assert found.value <= max(theirs.fun, 1e-6)


def test_a_rough_metric_saves_most_passes(rng):
    scale = np.geomspace(1, 1e6, 50)
    turned = np.linalg.qr(rng.normal(size=(50, 50)))[0]
    matrix = np.sqrt(scale)[:, None] * (np.eye(50) + 0.1 * turned @ turned[::-1].T) * np.sqrt(scale)
    function = quadratic((matrix + matrix.T) / 2, rng.normal(size=50))
    with_metric = solve(function, np.zeros(50), lambda v: v / scale)
    without = solve(function, np.zeros(50), most=3000)
    assert with_metric.converged
    assert 10 * with_metric.passes < without.passes


def bent_valley(theta):
    """A convex valley that bends: Σ cosh of neighbours' differences and a little of each parameter."""
    difference = theta[1:] - theta[:-1] - 1.0
    gradient = 0.01 * theta
    gradient[1:] += np.sinh(difference)
    gradient[:-1] -= np.sinh(difference)
    return float(np.cosh(difference).sum() + 0.005 * theta @ theta), gradient


def rosenbrock(theta):
    a, b = theta[:-1], theta[1:]
    gradient = np.zeros_like(theta)
    gradient[:-1] = -400 * a * (b - a**2) - 2 * (1 - a)
    gradient[1:] += 200 * (b - a**2)
    return float((100 * (b - a**2) ** 2 + (1 - a) ** 2).sum()), gradient


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_valley_that_overflows_far_away():
    found = solve(bent_valley, np.linspace(0, 300, 12))  # cosh(27 - 1): 10¹¹ at the start, and no metric
    best = scipy_minimise(bent_valley, np.zeros(12), jac=True, method="BFGS", options={"gtol": 1e-8})
    assert found.value == pytest.approx(best.fun, rel=1e-8)


def test_rosenbrock_though_not_convex():
    found = solve(rosenbrock, [-1.2, 1.0, -1.2, 1.0])
    assert found.value < 1e-6 or rosenbrock(found.theta)[0] == pytest.approx(3.70142, abs=1e-3)  # the local minimum


@pytest.mark.parametrize("bad", [np.inf, np.nan, -np.inf])
def test_steps_into_what_is_not_finite_are_cut(bad):
    """-log(1 - θ) + … is finite only below one; a full step from zero leaves its domain."""

    def barrier(theta):
        if (theta >= 1).any():
            return bad, np.full_like(theta, bad)
        return float((-np.log1p(-theta) - 30 * theta).sum()), 1 / (1 - theta) - 30

    found = solve(barrier, np.zeros(3))
    np.testing.assert_allclose(found.theta, 1 - 1 / 30, rtol=1e-4)
    assert found.converged


def test_a_start_that_is_not_finite_is_given_back():
    found = solve(lambda theta: (np.inf, np.full_like(theta, np.nan)), np.zeros(2))
    assert not found.converged
    assert found.passes == 0


@pytest.mark.parametrize("value", [0.0, 7.0, 1e300])
def test_what_is_flat_stays(value):
    found = solve(lambda theta: (value, np.zeros_like(theta)), np.ones(4), tolerance=0.0)
    np.testing.assert_array_equal(found.theta, np.ones(4))
    assert found.converged
    assert found.passes == 0


def test_a_flat_direction_is_left_alone():
    found = solve(lambda theta: (float((theta[0] - 3) ** 2), np.array([2 * (theta[0] - 3), 0.0])), [0.0, 5.0])
    np.testing.assert_allclose(found.theta, [3.0, 5.0], atol=1e-5)


def test_a_loss_that_falls_for_ever_ends():
    found = solve(lambda theta: (float(np.exp(-theta).sum()), -np.exp(-theta)), np.zeros(2), tolerance=1e-8)
    assert found.converged
    assert found.value < 1e-7


@pytest.mark.parametrize("inverse", [lambda v: -v, lambda v: np.full_like(v, np.nan), lambda v: v * 1e60])
def test_a_metric_that_misleads_does_not_stop_the_descent(rng, inverse):
    centre = rng.normal(size=5)
    found = solve(quadratic(np.diag([1.0, 2.0, 3.0, 4.0, 5.0]), centre), np.zeros(5), inverse)
    assert found.value < 1e-3 * quadratic(np.eye(5), centre)(np.zeros(5))[0]


def test_single_precision_does_not_cost_passes(rng):
    """Values with the rounding of float32 near the optimum: steps are judged by their slope."""
    root = rng.normal(size=(20, 20))
    matrix, centre = root @ root.T + np.eye(20), rng.normal(size=20)

    def rounded(theta):
        value, gradient = quadratic(matrix, centre)(theta)
        return float(np.float32(value + 1e4)), gradient

    near = np.linalg.inv(matrix) * 1.3
    found = solve(rounded, centre + 1e-3 * rng.normal(size=20), lambda v: near @ v, tolerance=1e-12)
    assert found.converged
    assert found.passes < 15


def test_never_above_its_start(rng):
    for seed in range(20):
        start = np.random.default_rng(seed).normal(size=8) * 3
        found = solve(rosenbrock, start, most=7)
        assert found.value <= rosenbrock(start)[0]


@pytest.mark.parametrize(("share", "taken"), [(0.9e-4, False), (1.1e-4, True)])
def test_a_step_must_bring_a_ten_thousandth_of_what_its_slope_promised(share, taken):
    def stairs(theta):
        """Falls by the share at one, is flat from there, and nowhere else lower."""
        below = theta[0] >= 1
        return (1.0 - share if below else 1.0 + 1e-6 * theta[0]), np.array([0.0 if below else -1.0])

    found = minimise(stairs, np.zeros(1), (1.0, -np.ones(1)), plain, 1e-10)
    assert (found.theta[0] == 1.0) == taken
    assert found.passes == (1 if taken else 15)  # shortenings of one step


def test_a_step_into_the_void_is_cut_ever_more_boldly():
    """To a tenth, a hundredth of that, a thousandth of that: 1e-6 after three."""
    seen = []

    def void(theta):
        seen.append(theta[0])
        return (np.nan if theta[0] > 2e-6 else -theta[0]), np.array([0.0])

    found = minimise(void, np.zeros(1), (0.0, -np.ones(1)), plain, 1e-10)
    np.testing.assert_allclose(seen, [1.0, 1e-1, 1e-3, 1e-6], rtol=1e-12)
    assert found.theta[0] == seen[-1]
