"""The solver on the simplex by itself: textbook problems, general solvers as a reference, and hostile problems."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from calibrant import _core
from calibrant.fits.solvers import simplex
from calibrant.fits.solvers.simplex import Sums, minimise_on_simplex


def log_mixture(columns, weights):
    """-Σ ω log(Σ w c), its gradient and its Hessian."""

    def problem(w, _):
        mixed = columns @ w
        ratio = columns / mixed[:, None]
        return Sums(-float(weights @ np.log(mixed)), -(weights @ ratio), (ratio * weights[:, None]).T @ ratio)

    return problem


def quadratic(gram, linear):
    return lambda w, _: Sums(float(0.5 * w @ gram @ w - linear @ w), gram @ w - linear, gram)


def reference(function, m):
    """A general solver from several starts: slow, and independent of ours."""
    starts = [np.full(m, 1 / m), *(0.9 * np.eye(m) + 0.1 / m)]
    constraint = {"type": "eq", "fun": lambda w: w.sum() - 1}
    answers = [
        minimize(function, s, bounds=[(1e-12, 1)] * m, constraints=constraint, method="SLSQP", tol=1e-12)
        for s in starts
    ]
    return min(a.fun for a in answers)


def best_on_faces(gram, linear):
    """The least value of ½ w'Gw - c'w over all faces of the simplex, by least squares on each."""
    m, best = len(linear), np.inf
    for size in range(1, m + 1):
        for face in map(list, combinations(range(m), size)):
            system = np.ones((size + 1, size + 1))
            system[:size, :size], system[size, size] = gram[np.ix_(face, face)], 0.0
            inside = np.linalg.lstsq(system, np.append(linear[face], 1.0), rcond=None)[0][:size]
            if inside.min() >= -1e-12:
                w = np.zeros(m)
                w[face] = np.maximum(inside, 0) / np.maximum(inside, 0).sum()
                best = min(best, 0.5 * w @ gram @ w - linear @ w)
    return best


def require_on_simplex(w):
    assert w.min() >= 0
    assert w.sum() == pytest.approx(1, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 10**6))
def test_quadratics_of_any_rank_reach_the_best_of_all_faces(m, rank, seed):
    rng = np.random.default_rng(seed)
    root = rng.integers(-2, 3, size=(m, rank)).astype(float)  # whole numbers: equal columns and exact singularity
    gram, linear = root @ root.T, root @ rng.normal(size=rank)
    w = _core.best_quadratic(gram, linear, rng.dirichlet(np.ones(m)))
    require_on_simplex(w)
    assert 0.5 * w @ gram @ w - linear @ w <= best_on_faces(gram, linear) + 1e-9


@pytest.mark.parametrize("m", [18, 60])
def test_many_weights_are_optimal_in_milliseconds(m):
    rng = np.random.default_rng(m)
    root = rng.normal(size=(m, m))
    gram = root @ root.T / m
    linear = gram @ rng.dirichlet(np.ones(m) * 0.3) + 0.01 * rng.normal(size=m)
    w = _core.best_quadratic(gram, linear, np.full(m, 1 / m))
    require_on_simplex(w)
    slope = gram @ w - linear
    level = slope @ w
    assert (slope >= level - 1e-10).all()  # Karush, Kuhn and Tucker: no other weight would pay
    assert_allclose(slope[w > 0], level, atol=1e-10)


def test_of_many_optima_the_nearest_is_taken():
    start = np.array([0.2, 0.5, 0.3])
    assert_allclose(_core.best_quadratic(np.ones((3, 3)), np.ones(3), start), start, atol=1e-6)
    assert_allclose(_core.best_quadratic(np.zeros((3, 3)), np.zeros(3), start), start)
    assert_allclose(_core.best_quadratic(np.zeros((3, 3)), np.array([0.0, 0.0, 1.0]), start), [0, 0, 1])
    apart = _core.best_quadratic(np.diag([1e-30, 1.0, 1e30]), np.array([0.0, 1.0, 1.0]), start)
    require_on_simplex(apart)


@pytest.mark.parametrize(
    ("gram", "convex"),
    [
        (np.eye(3), True),
        (np.zeros((3, 3)), True),
        (-np.ones((3, 3)), True),  # constant where weights sum to one
        (np.diag([1.0, 1.0, -0.4]), True),
        (np.diag([1.0, 1.0, -0.6]), False),
        (np.diag([1.0, -1.0, 3.0]), False),
        (np.array([[-5.0]]), True),
    ],
)
def test_convexity_counts_where_weights_sum_to_one(gram, convex):
    assert _core.convex_on_simplex(gram) == convex
    if convex and len(gram) > 1:
        basis = np.vstack([-np.ones(len(gram) - 1), np.eye(len(gram) - 1)])
        assert np.linalg.eigvalsh(basis.T @ gram @ basis).min() > -1e-12


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 5), st.integers(3, 60), st.integers(0, 10**6))
def test_log_mixtures_are_solved_to_the_optimum(m, n, seed):
    rng = np.random.default_rng(seed)
    columns, weights = rng.beta(0.4, 0.8, size=(n, m)) + 1e-6, rng.random(n)
    problem = log_mixture(columns, weights)
    found = minimise_on_simplex(problem, np.full(m, 1 / m), 1e-10)
    require_on_simplex(found.weights)
    assert found.converged
    assert found.value == pytest.approx(problem(found.weights, None).value, abs=1e-9)
    assert found.value <= reference(lambda v: problem(v, None).value, m) + 1e-6
    corner = minimise_on_simplex(problem, np.eye(m)[0], 1e-10)
    assert corner.value == pytest.approx(found.value, abs=1e-7)


def test_a_quadratic_takes_one_step():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    problem = quadratic(root @ root.T, rng.normal(size=4))
    found = minimise_on_simplex(problem, np.full(4, 0.25), 1e-12)
    assert found.passes == 2
    assert found.converged


def beside(function, m, f):
    """A function of weights and unknowns with derivatives by differences, for functions that are written plainly."""

    def problem(w, x):
        at, h = np.append(w, x), 1e-4
        steps = np.eye(m + f) * h
        value = function(at)
        gradient = np.array([(function(at + s) - function(at - s)) / (2 * h) for s in steps])
        hessian = np.array(
            [
                [
                    (function(at + a + b) - function(at + a - b) - function(at - a + b) + function(at - a - b))
                    / (4 * h * h)
                    for b in steps
                ]
                for a in steps
            ]
        )
        return Sums(value, gradient, hessian)

    return problem


def test_rosenbrock_beside_weights():
    def function(t):
        w, x = t[:2], t[2:]
        return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2 + (w[0] - 0.3 * x[0]) ** 2

    found = minimise_on_simplex(beside(function, 2, 2), np.array([0.5, 0.5]), 1e-12, beside=np.array([-1.2, 1.0]))
    assert found.converged
    assert_allclose(found.beside, [1, 1], atol=1e-3)
    assert_allclose(found.weights, [0.3, 0.7], atol=1e-3)


def test_an_unknown_stops_at_its_bound():
    def function(t):
        return (t[2] - 5.0) ** 2 + (t[0] - 0.2 * t[2]) ** 2

    found = minimise_on_simplex(
        beside(function, 2, 1), np.array([0.5, 0.5]), 1e-12, beside=np.array([0.0]), low=-1.0, high=2.0
    )
    assert found.converged
    assert_allclose(found.beside, [2.0])
    assert_allclose(found.weights, [0.4, 0.6], atol=1e-4)


def test_negative_curvature_is_left_downhill():
    def function(t):  # a saddle between two optima of the unknown, coupled to the weights
        return t[2] ** 4 - t[2] ** 2 + 0.1 * t[2] + (t[0] - 0.5 - 0.2 * t[2]) ** 2

    found = minimise_on_simplex(beside(function, 2, 1), np.array([0.9, 0.1]), 1e-12, beside=np.array([0.0]))
    assert found.converged
    assert found.value < -0.2
    gradient = beside(function, 2, 1)(found.weights, found.beside).gradient
    assert abs(gradient[2]) < 1e-4
    assert abs(gradient[0] - gradient[1]) < 1e-4


def test_a_concave_function_ends_in_a_corner():
    found = minimise_on_simplex(quadratic(-np.diag([1.0, 2.0, 3.0]), np.zeros(3)), np.array([0.3, 0.3, 0.4]), 1e-12)
    assert found.converged
    assert sorted(found.weights) == pytest.approx([0, 0, 1])


def test_a_flat_unknown_stays_where_it_is():
    def function(t):
        return (t[0] - 0.3) ** 2

    found = minimise_on_simplex(beside(function, 2, 1), np.array([0.5, 0.5]), 1e-12, beside=np.array([0.7]))
    assert found.converged
    assert_allclose(found.beside, [0.7], atol=1e-6)


def test_a_fall_without_end_stops_at_the_bound():
    def function(t):
        return float(np.exp(-t[2])) + t[0]

    found = minimise_on_simplex(
        beside(function, 2, 1), np.array([0.5, 0.5]), 1e-9, beside=np.array([0.0]), low=-9.0, high=9.0
    )
    assert found.beside[0] > 6.0
    assert_allclose(found.weights, [0, 1], atol=1e-9)


def test_equal_parts_and_certain_rows_do_no_harm():
    columns = np.repeat(np.random.default_rng(0).random((30, 1)), 5, axis=1)
    found = minimise_on_simplex(log_mixture(columns, np.ones(30)), np.full(5, 0.2), 1e-10)
    require_on_simplex(found.weights)
    assert found.converged
    same = minimise_on_simplex(log_mixture(np.ones((4, 2)), np.ones(4)), np.array([0.1, 0.9]), 1e-10)
    assert_allclose(same.weights, [0.1, 0.9], atol=1e-6)


@pytest.mark.parametrize("tiny", [1e-12, 1e-60, 1e-100])
def test_a_label_thought_impossible_by_one_part_keeps_the_other(tiny):
    columns = np.column_stack([np.full(2000, 0.9), np.full(2000, 0.25)])
    columns[7] = [tiny, 0.25]
    found = minimise_on_simplex(log_mixture(columns, np.ones(2000)), np.full(2, 0.5), 1e-9)
    assert found.converged
    mass = 0.9 / 0.65 / 2000  # where the slope of one row balances that of the others
    assert found.weights[1] == pytest.approx(mass, rel=0.05)


def test_values_that_are_not_finite_are_walked_around():
    columns = np.array([[0.0, 0.5], [0.7, 0.1]])
    problem = log_mixture(columns, np.ones(2))
    found = minimise_on_simplex(problem, np.array([1.0, 0.0]), 1e-10)  # infinite there
    assert found.converged
    assert found.value == pytest.approx(reference(lambda v: problem(v, None).value, 2), abs=1e-8)
    nowhere = minimise_on_simplex(lambda w, _: Sums(np.inf, np.full(2, np.nan), np.full((2, 2), np.nan)), columns[0], 1)
    assert not nowhere.converged
    assert_allclose(nowhere.weights, [0.5, 0.5])


def test_a_search_without_passes_left_has_arrived_if_its_step_promises_no_more_than_enough():
    rng = np.random.default_rng(0)
    problem = log_mixture(rng.dirichlet(np.ones(3), 50), np.ones(50))
    start = np.full(3, 1 / 3)
    promised = simplex._newton_step(problem(start, np.zeros(0)), start, np.zeros(0), -np.inf, np.inf).decrease
    assert promised > 0
    for enough, arrived in ((promised, True), (promised * (1 - 1e-9), False)):
        found = minimise_on_simplex(problem, start, 0.0, most=1, enough=enough)
        assert found.converged == arrived
        assert found.passes == 1
