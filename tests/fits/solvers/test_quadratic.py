"""Steps on bounded quadratics against SciPy, and on matrices that are none."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import lsq_linear

from calibrant.fits.solvers.quadratic import quadratic_step


def step_of(hessian, gradient, low, high):
    shape = np.shape(gradient)
    bounds = (np.broadcast_to(np.asarray(bound, dtype=float), shape) for bound in (low, high))
    return quadratic_step(np.asarray(hessian, dtype=float), np.asarray(gradient, dtype=float), *bounds, np.ones(shape))


@pytest.mark.parametrize("d", [2, 5, 32])
def test_equals_bounded_least_squares(rng, d):
    roots = rng.normal(size=(20, d + 2, d)) * 10.0 ** rng.uniform(-2, 2, size=(20, 1, d))
    hessian = roots.transpose(0, 2, 1) @ roots
    target = rng.normal(size=(20, d + 2))
    gradient = -np.einsum("gij,gi->gj", roots, target)
    low, high = -0.1 * rng.random((20, d)), np.where(rng.random((20, d)) < 0.5, np.inf, 0.1)
    low[rng.random((20, d)) < 0.2] = 0.0
    found = step_of(hessian, gradient, low, high)
    for g in range(20):
        exact = lsq_linear(roots[g], target[g], bounds=(low[g] - 1e-300, high[g]), method="bvls", max_iter=1000).x
        of = [gradient[g] @ x + 0.5 * x @ hessian[g] @ x for x in (found[g], exact)]
        assert of[0] <= of[1] + 1e-9 * abs(of[1])
        assert (found[g] >= low[g]).all()
        assert (found[g] <= high[g]).all()


def test_without_bounds_it_is_the_newton_step(rng):
    root = rng.normal(size=(4, 6, 6))
    hessian, gradient = root @ root.transpose(0, 2, 1), rng.normal(size=(4, 6))
    expected = -np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
    assert_allclose(step_of(hessian, gradient, -np.inf, np.inf), expected, rtol=1e-7)


def test_every_step_descends_whatever_the_matrix(rng):
    for _ in range(200):
        d = int(rng.integers(2, 7))
        root = rng.normal(size=(d, d))
        hessian = (root + root.T)[None] * 10.0 ** rng.uniform(-20, 20)
        if rng.random() < 0.3:
            hessian = np.outer(root[0], root[0])[None]
        gradient = rng.normal(size=(1, d))
        low = np.where(rng.random((1, d)) < 0.5, -np.inf, -rng.random((1, d)))
        step = step_of(hessian, gradient, low, np.inf)
        assert np.isfinite(step).all()
        assert (gradient * step).sum() < 0
        assert (step >= low).all()


def test_a_point_that_no_unknown_can_leave_stays():
    hessian = np.array([[[2.0, 1.0], [1.0, 2.0]]])
    assert_array_equal(step_of(hessian, [[1.0, 2.0]], 0.0, np.inf), [[0.0, 0.0]])


def test_correlated_unknowns_are_not_just_clipped():
    """The free minimum is (-3, 2); with x ≥ 0 the second comes back to 1/2; clipping would leave it at 2."""
    hessian = np.array([[[1.0, 0.5], [0.5, 1.0]]])
    gradient = -hessian @ np.array([-3.0, 2.0])
    assert_allclose(step_of(hessian, gradient, [[0.0, -np.inf]], np.inf), [[0.0, 0.5]])


def test_without_curvature_each_unknown_moves_by_its_length():
    gradient, low, high = np.array([[5.0, -1e-9]]), np.full((1, 2), -0.5), np.full((1, 2), np.inf)
    found = quadratic_step(np.zeros((1, 2, 2)), gradient, low, high, np.full((1, 2), 2.0))
    assert_allclose(found, [[-0.5, 2.0]])
