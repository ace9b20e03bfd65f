"""Every preset of maps on one score: weights, and rows that leave a class little or nothing to learn from."""

import warnings

import numpy as np
import pytest

from calibrant import (
    BayesianBinning,
    BetaCalibration,
    Binning,
    CalibrationWarning,
    Isotonic,
    PlattScaling,
    SplineCalibration,
    make,
)

PRESETS = [
    *(
        "platt",
        "platt-s",
        "beta",
        "beta-s",
        "isotonic-s",
        "irova",
        "irm",
        "irova-ts",
        "irova-ets",
        "irm-ts",
    ),
    *("hb-width", "hb-width-s", "hb-mass", "hb-mass-s", "bbq", "spline", "scaling-binning", "mi-binning"),
    *("imax", "imax-cw", "imax-ts", "imax-gp", "imax-beta", "imax-isotonic", "imax-platt"),
]
MAPS = [
    PlattScaling(), *(BetaCalibration(form) for form in ("abm", "ab", "am", "a")), BayesianBinning(),
    Isotonic(), Isotonic(strict=True), Isotonic(smoothing=0), SplineCalibration(), SplineCalibration(along="rank"),
    *(Binning(e) for e in ("equal_mass", "equal_width", "imax", "mi", "kmeans", [0.2, 0.5])),
    *(Binning("imax", representatives=r) for r in ("mean_score", PlattScaling())), Binning("imax", smoothing=0),
]  # fmt: skip
CASES = [*((name, 4) for name in PRESETS), *((i, 2) for i in range(len(MAPS)))]
every_map = pytest.mark.parametrize(("which", "k"), CASES, ids=[n if k > 2 else repr(MAPS[n]) for n, k in CASES])


def fitted(which, z, y, weights=None):
    map_ = make(which) if isinstance(which, str) else MAPS[which].unfitted()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)  # that so few rows do not help is said, and right
        return map_.fit(z, y, weights)


def rows(k, n=90):
    rng = np.random.default_rng(k)
    z = rng.normal(size=(n, k)) * 2
    return z, (z / 2 + rng.gumbel(size=z.shape)).argmax(1), rng


def assert_distributions(p):
    assert np.isfinite(p).all()
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)


@every_map
def test_a_weight_of_two_is_a_row_twice_and_zero_is_none(which, k):
    z, y, rng = rows(k)
    times = rng.integers(0, 3, len(y))
    weighted = fitted(which, z, y, times.astype(np.float64)).predict_proba(z)
    repeated = fitted(which, np.repeat(z, times, axis=0), np.repeat(y, times)).predict_proba(z)
    np.testing.assert_allclose(weighted, repeated, atol=1e-6)


@every_map
@pytest.mark.parametrize("positives", [0, 1])
def test_a_class_with_no_positive_or_one(which, k, positives):
    z, y, _ = rows(k)
    others = np.flatnonzero(y == k - 1)[positives:]
    y[others] = np.arange(len(others)) % (k - 1)
    p = fitted(which, z, y).predict_proba(z)
    assert_distributions(p)
    assert p[:, -1].mean() < 1 / k


@every_map
def test_equal_scores_are_answered_alike(which, k):
    y = np.sort(np.arange(60) % k)
    p = fitted(which, np.full((60, k), 1.5), y).predict_proba(np.full((3, k), 1.5))
    assert_distributions(p)
    np.testing.assert_array_equal(p, p[[0, 0, 0]])
    np.testing.assert_allclose(p[0], 1 / k, atol=0.02)


@pytest.mark.parametrize("name", PRESETS)
def test_a_class_never_seen_is_not_impossible(name):
    z, y, _ = rows(4)
    z = np.hstack([z, z[:, :1] - 1]).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        p = make(name, classes=range(5)).fit(z, y).predict_proba(z)
    assert (p > 0).all()
