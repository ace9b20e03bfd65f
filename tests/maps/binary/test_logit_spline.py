"""The logit spline: its basis against SciPy's natural spline, its limits, its evidence, worst cases."""

import warnings

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.interpolate import CubicSpline
from scipy.special import expit, logit

from calibrant import CalibrationWarning, LogitSpline, PlattScaling
from calibrant.maps.binary._natural_spline import NaturalSpline


def fit(map_, *data, **keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return map_.fit(*data, **keywords)


def two(odds):
    return np.stack([np.zeros_like(odds), odds], axis=1)


def drawn(n, truth, seed=0):
    rng = np.random.default_rng(seed)
    odds = rng.normal(size=n) * 2
    return odds, (rng.random(n) < expit(truth(odds))).astype(int)


def test_basis_spans_the_natural_splines():
    knots = np.array([-2.0, -1.5, 0.0, 0.3, 2.0])
    values = np.array([0.0, 1.0, 0.5, 2.0, 3.0])
    known = CubicSpline(knots, values, bc_type="natural")
    spline = NaturalSpline(knots)
    theta = np.linalg.solve(spline(knots), values)
    grid = np.linspace(-2, 2, 101)
    np.testing.assert_allclose(spline(grid) @ theta, known(grid), atol=1e-10)
    inside = np.linspace(-2, 2, 400_001)
    bend = known(inside, 2)
    assert theta @ spline.penalty @ theta == pytest.approx(trapezoid(bend**2, inside), rel=1e-6)
    outside = np.array([-3.0, 4.0])
    straight = [known(-2.0) - known(-2.0, 1), known(2.0) + 2 * known(2.0, 1)]
    np.testing.assert_allclose(spline(outside) @ theta, straight, atol=1e-10)
    pieces = spline.polynomials(theta)
    place = np.clip(np.searchsorted(knots, grid, side="right") - 1, 0, 3)
    t = grid - knots[place]
    np.testing.assert_allclose((pieces[place] * t[:, None] ** np.arange(4)).sum(axis=1), known(grid), atol=1e-10)


def test_much_smoothing_is_platt_scaling():
    odds, y = drawn(1000, lambda x: x + 0.5 * np.sin(2 * x))
    straight = fit(LogitSpline(strength=1e9), two(odds), y)
    platt = fit(PlattScaling(), two(odds), y)
    np.testing.assert_allclose(straight.predict_proba(two(odds)), platt.predict_proba(two(odds)), atol=1e-4)


def test_evidence_follows_the_truth():
    odds, y = drawn(20_000, lambda x: x + 1.2 * np.sin(2 * x))
    wavy = fit(LogitSpline(), two(odds), y)
    line = fit(LogitSpline(), *(lambda o, t: (two(o), t))(*drawn(20_000, lambda x: 0.5 * x + 1)))
    assert line.strength_ > 1e3 * wavy.strength_
    grid = np.linspace(-4, 4, 33)
    answers = wavy.predict_proba(two(grid))[:, 1]
    rising = np.maximum.accumulate(expit(grid + 1.2 * np.sin(2 * grid)))
    assert np.abs(answers - rising).mean() < 0.06  # the truth falls in places, where the answer may not
    free = fit(LogitSpline(knots=16, monotone=False), two(odds), y).predict_proba(two(grid))[:, 1]
    assert np.abs(free - expit(grid + 1.2 * np.sin(2 * grid))).mean() < 0.03


def test_identity_is_left_alone():
    odds, y = drawn(20_000, lambda x: x)
    answers = fit(LogitSpline(), two(odds), y).predict_proba(two(odds))[:, 1]
    assert np.abs(answers - expit(odds)).mean() < 0.006


@pytest.mark.parametrize("seed", range(4))
def test_never_falls(seed):
    odds, y = drawn(200, lambda x: np.sin(3 * x), seed)
    p = fit(LogitSpline(), two(odds), y).predict_proba(two(np.linspace(-700, 700, 20_001)))[:, 1]
    assert (np.diff(p) >= -1e-15).all()


def test_weights_are_copies():
    odds, y = drawn(300, lambda x: x)
    w = np.random.default_rng(1).integers(0, 3, 300)
    weighted = fit(LogitSpline(), two(odds), y, sample_weight=w)
    copied = fit(LogitSpline(), two(np.repeat(odds, w)), np.repeat(y, w))
    np.testing.assert_allclose(weighted.predict_proba(two(odds)), copied.predict_proba(two(odds)), atol=1e-8)


def test_worst_cases():
    odds = np.linspace(-3, 3, 40)
    for y in (np.zeros(40, int), np.ones(40, int), (odds > 0).astype(int), (odds < 0).astype(int)):
        q = fit(LogitSpline(), two(odds), y).predict_proba(two(odds))[:, 1]
        assert ((q > 0) & (q < 1)).all()
    steps = fit(LogitSpline(), two(np.repeat([-1.0, 1.0], 20)), (np.arange(40) % 4 == 0).astype(int))
    assert np.isfinite(logit(steps.predict_proba(two(odds))[:, 1])).all()


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
@pytest.mark.parametrize("seed", [15, 16, 27])
def test_hostile_weights_end_in_a_map_after_a_bounded_number_of_rounds(seed):
    """Weights over 24 decades leave curvature that rounding has eaten: Newton would go on for hundreds of rounds."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(40, 2)) * 10.0 ** rng.uniform(-3, 3)
    y, w = rng.integers(0, 2, 40), 10.0 ** rng.uniform(-12, 12, 40)
    fitted = LogitSpline().fit(z, y, sample_weight=w)
    assert fitted.fit_report_.iterations <= 160  # one search for the strength and one for the curve
    assert np.isfinite(fitted.predict_proba(z)).all()
