"""The deviations of groups, against their formula and a solver of SciPy's."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from calibrant.operators._group_effects import _FAR, _one_group, _sums, find_effects, shifted
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


def drawn(seed, rows=60):
    rng = np.random.default_rng(seed)
    z, weights = rng.normal(size=(rows, 3)), rng.choice([0.5, 1.0, 3.0], rows)
    groups = np.arange(rows) % 4
    labels = (z + [0.0, 1.2, -0.9] * (groups[:, None] - 1.5) + rng.gumbel(size=(rows, 3))).argmax(axis=1)
    return z, labels, weights, groups, z.mean(axis=0)


def test_sums_are_the_derivatives_of_the_weighted_loss():
    z, labels, weights, _, centre = drawn(0)
    features, u = np.clip(z - centre, -_FAR, _FAR), np.array([0.3, -0.2, 0.5, 0.4])
    value, gradient, hessian = _sums(z, features, labels, weights, u)
    a = z + u[:3] + u[3] * features
    assert value == pytest.approx(weights @ (logsumexp(a, axis=1) - a[np.arange(60), labels]))
    for i, away in enumerate(1e-5 * np.eye(4)):
        up, down = (_sums(z, features, labels, weights, u + sign * away) for sign in (1, -1))
        assert gradient[i] == pytest.approx((up[0] - down[0]) / 2e-5, rel=1e-6)
        np.testing.assert_allclose(hessian[i], (up[1] - down[1]) / 2e-5, rtol=1e-5, atol=1e-6)


def test_one_group_tells_its_evidence_and_how_much_it_determines():
    """By Laplace: the gain in log-loss and penalty, and half the logarithm of how far rows narrow each number."""
    z, labels, weights, _, centre = drawn(1)
    precision, mean = np.array([2.0, 2.0, 2.0, 5.0]), np.array([0.0, 0.0, 0.0, 0.2])
    features, start = np.clip(z - centre, -_FAR, _FAR), np.zeros(4)
    for _ in range(5):
        start, variances, gamma, evidence = _one_group(z, labels, weights, centre, precision, mean, start)
    value, gradient, hessian = _sums(z, features, labels, weights, start)
    np.testing.assert_allclose(gradient, -precision * (start - mean), atol=1e-6)
    whole = hessian + np.diag(precision)
    np.testing.assert_allclose(variances, np.diag(np.linalg.inv(whole)), rtol=1e-5)
    assert gamma == pytest.approx(np.trace(np.linalg.solve(whole, hessian)), rel=1e-5)
    gain = _sums(z, features, labels, weights, np.zeros(4))[0] - value
    gain -= 0.5 * (start - mean) @ (precision * (start - mean))
    narrowed = 0.5 * (np.log(precision).sum() - np.linalg.slogdet(whole)[1])
    assert evidence == pytest.approx(gain + narrowed, rel=1e-5)


def test_variances_are_where_they_explain_themselves():
    """τ² = Σ(u - m)² / Σγ by kind of number, and what the groups say of the common slope adds up to nothing."""
    z, labels, weights, groups, centre = drawn(2, 400)
    found = find_effects(z, labels, weights, groups, centre)
    assert found.gain > 0
    assert 1 < found.rounds < 60
    precision = 1 / np.r_[np.full(3, found.variances[0]), found.variances[1]]
    mean = np.array([0.0, 0.0, 0.0, found.values[:, 3].mean()])
    parts = [np.flatnonzero(groups == g) for g in range(4)]
    ends = [
        _one_group(z[own], labels[own], weights[own], centre, precision, mean, found.values[g])
        for g, own in enumerate(parts)
    ]
    values, variances = (np.array([end[i] for end in ends]) for i in (0, 1))
    np.testing.assert_allclose(values, found.values, atol=5e-3)
    np.testing.assert_allclose([end[2] for end in ends], found.effective, rtol=0.02)
    determined = 1 - variances * precision
    levels = ((values - mean)[:, :3] ** 2).sum() / determined[:, :3].sum()
    assert found.variances[0] == pytest.approx(levels, rel=0.02)
    assert found.gain == pytest.approx(sum(end[3] for end in ends), rel=0.02)


def test_groups_that_do_not_differ_get_nothing():
    z, _, _, groups, centre = drawn(3, 400)
    labels = (z + np.random.default_rng(9).gumbel(size=z.shape)).argmax(axis=1)
    found = find_effects(z, labels, np.ones(400), groups, centre)
    assert not found.values.any()
    assert not found.variances.any()
    assert (found.gain, found.effective.tolist()) == (0.0, [0.0] * 4)
