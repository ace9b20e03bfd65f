"""SKCE and the Dirichlet-kernel error against slow twins."""

import numpy as np
import pytest
from scipy.stats import dirichlet

from calibrant.metrics import canonical_error, skce
from calibrant.metrics.inference.kernel_test import kernel_features


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
def test_skce_is_its_definition(rng, kernel):
    p, y = rng.dirichlet(np.ones(3), 30), rng.integers(0, 3, 30)
    r = np.eye(3)[y] - p
    terms = np.empty((30, 30))
    for i in range(30):
        for j in range(30):
            apart = np.abs(p[i] - p[j])
            k = np.exp(-apart.sum() / 2 / 0.3) if kernel == "laplacian" else np.exp(-(apart**2).sum() / 2 / 0.09)
            terms[i, j] = k * (r[i] @ r[j])
    choose = {"kernel": kernel, "bandwidth": 0.3}
    off = ~np.eye(30, dtype=bool)
    assert skce(y, p, **choose) == pytest.approx(terms[off].mean())
    assert skce(y, p, estimator="biased", **choose) == pytest.approx(terms.mean())
    linear = np.mean([terms[i, i + 1] for i in range(0, 30, 2)])
    assert skce(y, p, estimator="linear", **choose) == pytest.approx(linear)


def test_skce_counts_weights_and_ignores_order(rng):
    p, y, w = rng.dirichlet(np.ones(4), 60), rng.integers(0, 4, 60), rng.integers(0, 3, 60)
    rows = np.repeat(np.arange(60), w)
    value = skce(y, p, sample_weight=w, bandwidth=0.4)
    assert skce(y[rows], p[rows], bandwidth=0.4) == pytest.approx(value)
    order = rng.permutation(60)
    assert skce(y[order], p[order]) == pytest.approx(skce(y, p))


def test_skce_is_unbiased(rng):
    values = []
    for _ in range(150):
        p = rng.dirichlet(np.ones(3), 40)
        y = (p.cumsum(axis=1) < rng.random((40, 1))).sum(axis=1)
        values.append(skce(np.minimum(y, 2), p, bandwidth=0.5))
    assert abs(np.mean(values)) < 4 * np.std(values) / np.sqrt(150)
    assert skce(np.zeros(300, dtype=int), rng.dirichlet(np.ones(3), 300), bandwidth=0.5) > 5 * np.std(values)


def test_canonical_error_is_its_definition(rng):
    p, y = rng.dirichlet(np.ones(3), 25), rng.integers(0, 3, 25)
    h = 0.1
    for norm in (1, 2):
        total = 0.0
        for j in range(25):
            k = np.array([0.0 if i == j else dirichlet.pdf(p[j] / p[j].sum(), p[i] / h + 1) for i in range(25)])
            total += (np.abs(k @ np.eye(3)[y] / k.sum() - p[j]) ** norm).sum()
        assert canonical_error(y, p, norm=norm, bandwidth=h) == pytest.approx((total / 25) ** (1 / norm), rel=1e-6)


def test_canonical_error_counts_weights_and_sees_miscalibration(rng):
    p, y, w = rng.dirichlet(np.ones(3), 60), rng.integers(0, 3, 60), rng.integers(0, 3, 60)
    rows = np.repeat(np.arange(60), w)
    assert canonical_error(y[rows], p[rows], bandwidth=0.2) == pytest.approx(
        canonical_error(y, p, sample_weight=w, bandwidth=0.2)
    )
    p = rng.dirichlet(np.ones(3), 400)
    calibrated = np.minimum((p.cumsum(axis=1) < rng.random((400, 1))).sum(axis=1), 2)
    assert canonical_error(calibrated, p, norm=2) < 0.5 * canonical_error(np.zeros(400, dtype=int), p, norm=2)


def test_one_event_is_two_classes(rng):
    p, y = rng.random(50), rng.integers(0, 2, 50)
    both = np.column_stack([1 - p, p])
    assert skce(y, p) == pytest.approx(skce(y, both))
    assert canonical_error(y, p) == pytest.approx(canonical_error(y, both))
    for bad in ({"kernel": "no"}, {"estimator": "no"}, {"bandwidth": 0}):
        with pytest.raises(ValueError, match="allowed"):
            skce(y, p, **bad)
    for bad in ({"norm": "max"}, {"bandwidth": 0}):
        with pytest.raises(ValueError, match="allowed"):
            canonical_error(y, p, **bad)


def test_kernel_features_are_a_factor_of_the_kernel(rng):
    p = rng.dirichlet(np.ones(3), 300)
    distances = ((p[:, None] - p) ** 2).sum(axis=2)
    for width in (0.3, 2.0):
        features = kernel_features(p, width)
        assert features.shape[1] <= 64
        np.testing.assert_allclose(features @ features.T, np.exp(-distances / (2 * width**2)), atol=1e-4)
    few = kernel_features(np.repeat(p[:2], 5, axis=0), 0.1)
    assert few.shape == (10, 2)
