import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from calibrant.simplex import best_log_mixture, best_quadratic, log_mixture


def reference(function, m):
    """A general solver from several starts: slow, and independent of ours."""
    starts = [np.full(m, 1 / m), *(0.9 * np.eye(m) + 0.1 / m)]
    constraint = {"type": "eq", "fun": lambda w: w.sum() - 1}
    answers = [
        minimize(function, s, bounds=[(1e-12, 1)] * m, constraints=constraint, method="SLSQP", tol=1e-12)
        for s in starts
    ]
    return min(a.fun for a in answers)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 4), st.integers(0, 10**6))
def test_quadratic_is_solved_to_the_optimum(m, seed):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(m, m))
    gram, linear = root @ root.T, rng.normal(size=m)
    w = best_quadratic(gram, linear)
    assert w.min() >= 0
    assert abs(w.sum() - 1) < 1e-12
    assert 0.5 * w @ gram @ w - linear @ w <= reference(lambda v: 0.5 * v @ gram @ v - linear @ v, m) + 1e-7


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 4), st.integers(3, 60), st.integers(0, 10**6))
def test_log_mixture_is_solved_to_the_optimum(m, n, seed):
    rng = np.random.default_rng(seed)
    columns, weights = rng.beta(0.4, 0.8, size=(n, m)) + 1e-6, rng.random(n)
    w = best_log_mixture(columns, weights)
    assert w.min() >= 0
    assert abs(w.sum() - 1) < 1e-12
    ours = log_mixture(columns, weights, w)[0]
    assert ours <= reference(lambda v: log_mixture(columns, weights, v)[0], m) + 1e-6
    assert abs(log_mixture(columns, weights, best_log_mixture(columns, weights, np.eye(m)[0]))[0] - ours) < 1e-8


def test_singular_quadratic_has_an_answer():
    w = best_quadratic(np.ones((3, 3)), np.ones(3))
    assert abs(w.sum() - 1) < 1e-12
