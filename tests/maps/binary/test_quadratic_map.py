"""Quadratic scaling: the reference answers, never falling, Platt scaling as its limit."""

import json
import warnings

import numpy as np
import pytest
from scipy.special import expit, logit

from calibrant import CalibrationWarning, LogitSpline, PlattScaling, QuadraticScaling


def fit(map_, *data, **keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return map_.fit(*data, **keywords)


def bent(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    odds = rng.normal(size=n) * 2
    return odds, (rng.random(n) < expit(0.3 + 0.6 * odds - 0.15 * odds**2)).astype(int)


def two(odds):
    return np.stack([np.zeros_like(odds), odds], axis=1)


@pytest.mark.parametrize("name", ["imdb", "cat", "soccer", "extreme"])
@pytest.mark.parametrize("strength", [0.0, 1.0])
def test_reference_coefficients(shared_data, name, strength):
    folder = shared_data / "oracle-2"
    known = json.loads((folder / "extra_own.json").read_text())["monotone_quadratic_own"][f"{name}|lam={strength}"]
    rows = np.load(folder / f"bin_{name}.npz")
    found = fit(
        QuadraticScaling(strength, smooth_targets=False, inputs="probabilities"), rows["p_fit"], rows["y_fit"]
    ).coefficients_
    # zeros of "extreme" count as less than anything seen, so beyond the clip either way
    np.testing.assert_allclose(found, [known["b"], known["a"], known["c"]], atol=2e-5 if strength == 0 else 1e-4)


def test_strong_penalty_is_platt_scaling():
    odds, y = bent()
    much = fit(QuadraticScaling(1e9), two(odds), y)
    np.testing.assert_allclose(
        much.predict_proba(two(odds)), fit(PlattScaling(), two(odds), y).predict_proba(two(odds)), atol=1e-5
    )


def test_bend_lowers_the_loss():
    odds, y = bent()
    quadratic, platt = fit(QuadraticScaling(), two(odds), y), fit(PlattScaling(), two(odds), y)
    assert quadratic.fit_report_.loss_after < platt.fit_report_.loss_after - 0.002


@pytest.mark.parametrize("seed", range(5))
def test_never_falls_however_far(seed):
    odds, y = bent(300, seed)
    p = fit(QuadraticScaling(), two(odds), y).predict_proba(two(np.linspace(-700, 700, 20_001)))[:, 1]
    assert (np.diff(p) >= 0).all()
    free = fit(QuadraticScaling(0.0, monotone=False), two(odds), y).predict_proba(two(np.linspace(-9, 9, 999)))[:, 1]
    assert (np.diff(free) < 0).any()


def test_zero_is_answered_in_order():
    rng = np.random.default_rng(0)
    p = rng.random(400)
    map_ = fit(QuadraticScaling(inputs="probabilities"), p, (rng.random(400) < p**2).astype(int))
    grid = np.r_[0.0, 10.0 ** -np.arange(300, 0, -1), 0.5, 1 - 10.0 ** -np.arange(1.0, 16), 1.0]
    answers = map_.predict_proba(grid)[:, 1]
    assert (np.diff(answers) >= 0).all()
    assert np.isfinite(answers).all()


def test_worst_cases():
    odds = np.linspace(-3, 3, 40)
    for y in (np.zeros(40, int), np.ones(40, int), (odds > 0).astype(int), (odds < 0).astype(int)):
        q = fit(QuadraticScaling(), two(odds), y).predict_proba(two(odds))[:, 1]
        assert ((q > 0) & (q < 1)).all()
        assert abs(q.mean() - y.mean()) < 0.1
    flat = fit(QuadraticScaling(), two(np.full(40, 2.0)), np.arange(40) % 4 == 0)
    assert flat.predict_proba(two(np.full(1, 2.0)))[0, 1] == pytest.approx(0.25, abs=0.02)


def test_weights_are_copies():
    odds, y = bent(300)
    w = np.random.default_rng(1).integers(0, 3, 300)
    weighted = fit(QuadraticScaling(), two(odds), y, sample_weight=w)
    copied = fit(QuadraticScaling(), two(np.repeat(odds, w)), np.repeat(y, w))
    np.testing.assert_allclose(weighted.coefficients_, copied.coefficients_, rtol=1e-6, atol=1e-7)


def test_coefficients_are_the_curve_between_the_tails():
    odds, y = bent()
    map_ = fit(QuadraticScaling(), two(odds), y)
    inside = np.linspace(*np.quantile(odds, [0.02, 0.98]), 50)
    b, a, c = map_.coefficients_
    np.testing.assert_allclose(
        logit(map_.predict_proba(two(inside))[:, 1]), b + a * inside + c * inside**2, rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("map_", [QuadraticScaling(), LogitSpline()])
@pytest.mark.parametrize("weight", [1.0, 1000.0])
def test_a_curve_reaches_as_far_as_rows_can_tell(map_, weight):
    """At least to 1/(2nK), n being the weight of the rows where that is more; further where the rows are."""
    z = np.linspace(-1, 1, 50)
    y = (np.arange(50) % 3 == 0).astype(int)
    fitted = fit(map_, z, y, sample_weight=np.full(50, weight))
    assert fitted.knots_[-1] == pytest.approx(np.log(2 * 2 * 50 * weight))
    assert fitted.knots_[0] == pytest.approx(-np.log(2 * 2 * 50 * weight))
    far = fit(map_, 30 * z, y)
    assert (far.knots_[0], far.knots_[-1]) == pytest.approx((-30, 30))
