"""Platt scaling and beta calibration: the kernel's twin, optimality, constraints, worst cases."""

import json
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit
from sklearn.linear_model import LogisticRegression

from calibrant import BetaCalibration, CalibrationWarning, OneVsRest, PlattScaling, _core
from calibrant.arrays import log_odds
from calibrant.metrics import nll


def fit(map_, *data, **keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return map_.fit(*data, **keywords)


def two_classes(n=400, slope=0.5, shift=-0.7, seed=0):
    rng = np.random.default_rng(seed)
    odds = rng.normal(size=n) * 3
    y = (rng.random(n) < expit(slope * odds + shift)).astype(int)
    return np.stack([np.zeros(n), odds], axis=1), y


def objective(c, x, y, weights=1.0):
    u, v = log_expit(x), -log_expit(-x)
    m = c[0] * u + c[1] * v + c[2]
    return (weights * (np.logaddexp(0, m) - y * m)).sum()


def features(x, two_slopes):
    columns = [log_expit(x), -log_expit(-x)] if two_slopes else [x]
    return np.stack([*columns, np.ones_like(x)], axis=-1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("groups", [[0, 0, 0], [0, 1, 2], [-1, 0, 0], [1, -1, 0]])
@pytest.mark.parametrize("two_slopes", [True, False])
def test_sums_equal_their_twin(rng, dtype, groups, two_slopes):
    z, y, w = (rng.normal(size=(50, 3)) * 4).astype(dtype), rng.integers(0, 3, 50), rng.random(50)
    count = max(groups) + 1
    c, targets = rng.normal(size=(count, 3)), np.sort(rng.random((count, 2)), axis=1)
    out = _core.logistic_sums(z, y, w, np.array(groups), c, targets, two_slopes, 2)
    x = log_odds(z.astype(np.float64))
    size = 3 if two_slopes else 2
    expected = np.zeros((count, 1 + size + size * (size + 1) // 2))
    for j, g in enumerate(groups):
        if g < 0:
            continue
        f = features(x[:, j], two_slopes)
        m, t = f @ (c[g] if two_slopes else c[g, [0, 2]]), targets[g][(y == j).astype(int)]
        q = expit(m)
        hessian = (f * (w * q * (1 - q))[:, None]).T @ f
        loss = (w * (np.logaddexp(0, m) - t * m)).sum()
        expected[g] += np.concatenate([[loss], f.T @ (w * (q - t)), hessian[np.triu_indices(size)]])
    exact = 2e-6 if dtype == np.float32 else 1e-9  # log-odds of a sum are computed in the precision of the scores
    np.testing.assert_allclose(out, expected, rtol=exact, atol=exact)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("tables", [1, 5])
@pytest.mark.parametrize("two_slopes", [True, False])
def test_answers_equal_their_twin(rng, dtype, tables, two_slopes):
    z = (rng.normal(size=(2000, 5)) * 9).astype(dtype)
    z[0, 1], z[1, 1:] = -np.inf, -np.inf
    c = rng.random((tables, 3)) * [1.5, 1.5, -2]
    if not two_slopes:
        c[:, 1] = c[:, 0]
    odds = log_odds(z)
    x = np.clip(odds.astype(np.float64), -1e30, 1e30)
    expected = expit((features(x, True) * c).sum(axis=-1))
    exact = {"rtol": 1e-4 if dtype == np.float32 else 1e-10, "atol": 1e-30}
    out = np.empty_like(z)
    _core.logistic_apply(odds, c, 2, out)
    np.testing.assert_allclose(out, expected, **exact)
    _core.logistic_lift(z, c, False, 2, out)
    np.testing.assert_allclose(out, expected, **exact)
    _core.logistic_lift(z, c, True, 2, out)
    np.testing.assert_allclose(out, expected / expected.sum(axis=1, keepdims=True), **exact)


def test_platt_equals_logistic_regression():
    z, y = two_classes()
    map_ = fit(PlattScaling(smooth_targets=False), z, y)
    known = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(z[:, 1:], y)
    a, b, c = map_.coefficients_
    assert a == b == pytest.approx(known.coef_[0, 0], rel=1e-4)
    assert c == pytest.approx(known.intercept_[0], rel=1e-4)


def test_beta_finds_the_constrained_optimum():
    rng = np.random.default_rng(3)
    for seed, (slope, shift) in enumerate([(0.5, 0.3), (-0.4, 0.1), (1.5, -2.0)]):
        z, y = two_classes(300, slope, shift, seed)
        w = rng.random(300) + 0.5
        map_ = fit(BetaCalibration(smooth_targets=False), z, y, sample_weight=w)
        bounds = [(0, None), (0, None), (None, None)]
        known = minimize(
            objective, [1.0, 1.0, 0.0], (z[:, 1], y, w), bounds=bounds, options={"ftol": 1e-15, "gtol": 1e-9}
        )
        assert objective(map_.coefficients_, z[:, 1], y, w) <= known.fun + 1e-7
        assert (map_.coefficients_[:2] >= 0).all()


def test_forms_of_beta():
    z, y = two_classes()
    losses = {}
    for form in ("abm", "ab", "am", "a"):
        c = fit(BetaCalibration(form, smooth_targets=False), z, y).coefficients_
        losses[form] = objective(c, z[:, 1], y)
        if form in ("am", "a"):
            assert c[0] == c[1]
        if form in ("ab", "a"):  # ½ stays ½
            assert -c[0] * np.log(2) + c[1] * np.log(2) + c[2] == pytest.approx(0, abs=1e-12)
    assert losses["abm"] <= min(losses["ab"], losses["am"]) + 1e-9
    assert losses["a"] >= max(losses["ab"], losses["am"]) - 1e-9


@pytest.mark.parametrize("form", ["abm", "am", "ab"])
@pytest.mark.parametrize("case", ["unif_n200", "unif_n1000"])
def test_agrees_with_betacal(shared_data, form, case):
    known = json.loads((shared_data / "oracle" / "other_libraries.json").read_text())["betacal"]
    a, b, m = known[f"binary_{case}_{form}"]
    data = np.load(shared_data / "oracle" / f"binary_{case}.npz")
    scores, outcomes = (data[name] for name in data.files[:2])
    map_ = fit(BetaCalibration(form, smooth_targets=False, inputs="probabilities"), scores, outcomes)
    theirs = [a, b, b * np.log(1 - m) - a * np.log(m)]
    x = np.log(scores) - np.log1p(-scores)
    assert objective(map_.coefficients_, x, outcomes) <= objective(theirs, x, outcomes) + 1e-6
    np.testing.assert_allclose(map_.coefficients_, theirs, rtol=0.01, atol=0.01)


@pytest.mark.parametrize("map_", [PlattScaling(), BetaCalibration(), PlattScaling(False), BetaCalibration("am", False)])
@pytest.mark.parametrize("share", ["none", "all"])
def test_worst_cases(map_, share):
    """Separable classes, no positives, one positive, equal scores, infinities."""
    rng = np.random.default_rng(1)
    y = np.array([0] * 20 + [1] * 19 + [2])
    for z in (np.zeros((40, 4)), np.eye(4)[y] * 30.0, rng.normal(size=(40, 4)), rng.choice([-1e4, 1e4], (40, 4))):
        lifted = fit(OneVsRest(map_, share=share), z, y)
        for scores in (z, z.astype(np.float32), np.array([[0, -np.inf, -np.inf, -np.inf], [1e4, -1e4, 0, 1]])):
            p = lifted.predict_proba(scores)
            assert p.dtype == scores.dtype
            assert (p >= 0).all()
            np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("count", [1, 0.25, True])
def test_smoothed_targets_are_what_they_say(count):
    """Outcomes 1 and 0 become (n₊ + s)/(n₊ + 2s) and s/(n₋ + 2s): the optimum by SciPy; Platt's own is s = 1."""
    z, y = two_classes(60, 3.0, 0.5, 4)
    s, positives = float(count), y.sum()
    high, low = (positives + s) / (positives + 2 * s), s / (len(y) - positives + 2 * s)
    found = fit(PlattScaling(count), z, y).coefficients_[1:]
    target = np.where(y == 1, high, low)

    def loss(c):
        margin = c[0] * (z[:, 1] - z[:, 0]) + c[1]
        return (np.logaddexp(0, margin) - target * margin).sum()

    assert loss(found) <= minimize(loss, [1.0, 0.0]).fun + 1e-6


@pytest.mark.parametrize("kind", [PlattScaling, BetaCalibration])
@pytest.mark.parametrize("smooth", [0.25, True, 0.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_losses_told_are_those_of_the_labels(kind, smooth, weighted):
    scores, y = two_classes()
    weights = np.random.default_rng(1).exponential(size=len(y)) if weighted else None
    for lift in (lambda m: m, OneVsRest):
        found = fit(lift(kind(smooth_targets=smooth)), scores, y, sample_weight=weights)
        told = found.fit_report_.loss_before, found.fit_report_.loss_after
        said = expit(scores[:, 1]), found.predict_proba(scores)[:, 1]
        assert np.allclose(told, [nll(y, p, sample_weight=weights) for p in said], rtol=1e-9)


def test_smoothed_targets_do_not_make_sure_scores_look_bad():
    scores, y = two_classes()
    scores[:, 1] = np.where(y == 1, 1, -1) * (9 + np.abs(scores[:, 1]))
    report = fit(PlattScaling(), scores, y).fit_report_
    assert report.loss_before < 1e-4 < report.loss_after  # of smoothed targets: .02 before, and a gain
