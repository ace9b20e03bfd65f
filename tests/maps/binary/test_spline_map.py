"""Spline calibration: recovers a smooth truth, leaves calibrated scores alone, worst cases."""

import warnings

import numpy as np
import pytest
from scipy.special import expit

from calibrant import CalibrationWarning, OneVsRest, SplineCalibration


def fit(map_, *data, **keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return map_.fit(*data, **keywords)


def drawn(n, truth, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return p, (rng.random(n) < truth(p)).astype(int)


@pytest.mark.parametrize("along", ["deviation", "rank"])
@pytest.mark.parametrize("truth", [lambda p: p, lambda p: p**2, lambda p: 0.2 + 0.6 * p])
def test_recovers_a_smooth_truth(along, truth):
    p, y = drawn(20_000, truth)
    map_ = fit(SplineCalibration(along=along, inputs="probabilities"), p, y)
    grid = np.linspace(0.02, 0.98, 49)
    # the default trusts a score near 0 or 1 to be nearly right, which 0.2 + 0.6 p is not
    bound = 0.03 if along == "deviation" and truth(0.0) > 0 else 0.015
    assert np.abs(map_.predict_proba(grid)[:, 1] - truth(grid)).mean() < bound


def test_rank_form_is_the_derivative_of_the_spline():
    """The mean answer is the base rate: the curve ends where the outcomes do."""
    p, y = drawn(5000, lambda p: p**2)
    q = fit(SplineCalibration(along="rank", inputs="probabilities"), p, y).predict_proba(p)[:, 1]
    assert q.mean() == pytest.approx(y.mean(), abs=0.01)


@pytest.mark.parametrize("along", ["deviation", "rank"])
def test_scores_that_many_rows_share_get_their_frequencies(along):
    """What three neighbours say of a rare event: the slope in the middle of 900 rows of one score was anything."""
    rows, positives = np.array([900, 60, 40]), np.array([18, 24, 36])
    scores = np.repeat([0.0, 1 / 3, 1.0], rows)
    y = np.concatenate([np.arange(n) < hits for n, hits in zip(rows, positives, strict=True)]).astype(int)
    map_ = fit(SplineCalibration(along=along, inputs="probabilities"), scores, y)
    answers = map_.predict_proba(np.array([0.0, 1 / 3, 1.0]))[:, 1]
    np.testing.assert_allclose(answers, positives / rows, atol=1e-6)


@pytest.mark.parametrize("along", ["deviation", "rank"])
def test_worst_cases(along):
    rng = np.random.default_rng(1)
    y = np.array([0] * 20 + [1] * 19 + [2])
    for z in (np.zeros((40, 4)), np.eye(4)[y] * 30.0, rng.normal(size=(40, 4)), rng.choice([-1e4, 1e4], (40, 4))):
        lifted = fit(OneVsRest(SplineCalibration(along=along)), z, y)
        for scores in (z, z.astype(np.float32), np.array([[0, -np.inf, -np.inf, -np.inf], [1e4, -1e4, 0, 1]])):
            p = lifted.predict_proba(scores)
            assert (p >= 0).all()
            np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-6)
        m = lifted.predict_marginals(z)
        assert (m > 0).all()
        assert (m < 1).all()


def test_weights_are_copies(rng):
    odds = rng.normal(size=300) * 2
    z, y = np.stack([np.zeros(300), odds], axis=1), (rng.random(300) < expit(odds / 2)).astype(int)
    w = rng.integers(0, 3, 300)
    weighted = fit(SplineCalibration(), z, y, sample_weight=w)
    copied = fit(SplineCalibration(), np.repeat(z, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(weighted.predict_proba(z), copied.predict_proba(z), atol=1e-9)
