"""The deviations of groups, against their formula and a solver of SciPy's."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from calibrant.operators._group_effects import _FAR, _one_group, shifted
from calibrant.operators._parts import alike


def test_effects_shift_by_class_and_stretch_about_the_centre(rng):
    z, centre, effects = rng.normal(size=(5, 3)), rng.normal(size=3), rng.normal(size=(5, 4))
    wanted = [[z[i, j] + effects[i, j] + effects[i, 3] * (z[i, j] - centre[j]) for j in range(3)] for i in range(5)]
    np.testing.assert_allclose(shifted(z, centre, effects), wanted)


def test_one_group_is_at_the_greatest_penalised_likelihood(rng):
    z, labels, weights = rng.normal(size=(80, 3)) / 2, rng.integers(0, 3, 80), rng.integers(1, 4, 80) * 1.0
    centre, precision, mean = rng.normal(size=3) / 4, np.array([2.0, 2.0, 2.0, 5.0]), np.array([0.0, 0.0, 0.0, 0.3])

    def loss(u):
        a = z + u[:3] + u[3] * np.clip(z - centre, -_FAR, _FAR)
        fit = weights @ (logsumexp(a, axis=1) - a[np.arange(80), labels])
        return fit + 0.5 * (u - mean) @ (precision * (u - mean))

    best = minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-8})
    found, variances, gamma, _ = _one_group(z, labels, weights, centre, precision, mean, np.zeros(4))
    np.testing.assert_allclose(found, best.x, atol=1e-4)
    assert 0 < gamma < 4
    assert (variances < 1 / precision).all()


def test_values_are_alike_where_type_and_numbers_are():
    ones = np.ones(3)
    assert alike(ones, ones.copy())
    assert not alike(ones, ones.astype(np.float32))
    assert not alike(ones, ones + 1)
    assert not alike([ones], (ones,))
    assert alike([ones, 2.0], [ones.copy(), 2.0])
