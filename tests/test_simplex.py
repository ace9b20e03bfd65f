import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit

from calibrant.simplex import best_log_mixture, best_quadratic, likely_best, log_mixture


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


def test_likely_best_of_two_is_the_mean_over_what_their_difference_may_be():
    rng = np.random.default_rng(0)
    losses = np.stack([rng.gamma(1.0, size=500), np.zeros(500)])
    losses[1] = losses[0] + 0.3 * rng.normal(size=500)
    losses[1] -= (losses[1] - losses[0]).mean()  # equal on these rows: the costs decide
    spread = np.sqrt(((losses[1] - losses[0]) ** 2).sum())
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    behind = 0.5 * spread
    truth = weights @ expit(behind + spread * nodes) / weights.sum()
    shares = likely_best(losses, np.array([0.0, behind]), np.ones(500))
    assert abs(shares[0] - truth) < 0.03
    assert abs(truth - 0.69) < 0.02


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 6), st.integers(0, 10**6))
def test_likely_best_counts_a_weight_as_rows_and_likes_what_costs_less(m, seed):
    rng = np.random.default_rng(seed)
    losses, costs, weights = rng.gamma(1.0, size=(m, 40)), 5 * rng.random(m), rng.integers(1, 4, 40)
    shares = likely_best(losses, costs, weights.astype(float))
    assert abs(shares.sum() - 1) < 1e-12
    assert (shares[shares > 0] >= 0.05).all()
    np.testing.assert_allclose(shares, likely_best(np.repeat(losses, weights, axis=1), costs, np.ones(weights.sum())))
    cheaper = costs.copy()
    cheaper[0] = 0.0
    assert likely_best(losses, cheaper, weights.astype(float))[0] >= shares[0] - 1e-12


def test_likely_best_parts_the_same_map_evenly_and_drops_what_is_hopeless():
    losses = np.random.default_rng(0).gamma(1.0, size=50)
    np.testing.assert_allclose(
        likely_best(np.stack([losses, losses, losses + 5]), np.zeros(3), np.ones(50)), [0.5, 0.5, 0]
    )
