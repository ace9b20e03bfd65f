"""Centred isotonic regression: the paper's rules by hand, the reference knots, ties, weights."""

import warnings

import numpy as np
import pytest
from scipy.special import expit, logit

from calibrant import CalibrationWarning, CentredIsotonic


def fit(map_, *data, **keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return map_.fit(*data, **keywords)


def test_by_hand():
    """Steps 0 (.1, .2), 1/2 (.4, .6), 1 (.8, .9): the middle one shrinks to .5, the outer ones keep their ends."""
    p, y = np.array([0.1, 0.2, 0.4, 0.6, 0.8, 0.9]), np.array([0, 0, 1, 0, 1, 1])
    exact = fit(CentredIsotonic(smoothing=0, inputs="probabilities"), p, y)
    np.testing.assert_allclose(expit(exact.knots_), [0.1, 0.15, 0.2, 0.5, 0.8, 0.85, 0.9], atol=1e-12)
    np.testing.assert_allclose(exact.values_, [0, 0, 0, 0.5, 1, 1, 1])
    answers = exact.predict_proba(np.array([0.05, 0.35, 0.5, 0.65, 0.95]))[:, 1]
    np.testing.assert_allclose(answers, [0, 0.25, 0.5, 0.75, 1], atol=1e-12)
    smooth = fit(CentredIsotonic(inputs="probabilities"), p, y)
    np.testing.assert_allclose(expit(smooth.knots_), [0.1, 0.15, 0.5, 0.85, 0.9], atol=1e-12)
    np.testing.assert_allclose(smooth.values_, [1 / 6, 1 / 6, 0.5, 5 / 6, 5 / 6])


@pytest.mark.parametrize("name", ["imdb", "cat", "soccer", "ties"])
def test_reference_knots(shared_data, name):
    folder = shared_data / "oracle-2"
    x, height = np.load(folder / "bin_maps_outputs.npz")[f"{name}_cir_knots"].T
    rows = np.load(folder / f"bin_{name}.npz")
    found = fit(CentredIsotonic(smoothing=0, inputs="probabilities"), rows["p_fit"], rows["y_fit"])
    answers = found.predict_proba(x)[:, 1]
    np.testing.assert_allclose(answers, height, atol=1e-9)
    own = expit(found.knots_)
    inner = (found.values_ > 0) & (found.values_ < 1)
    known = x[(height > 0) & (height < 1)]
    np.testing.assert_allclose(own[inner], known, atol=1e-12)


def test_rises_strictly_between_the_outer_centres():
    rng = np.random.default_rng(0)
    p = rng.random(500)
    map_ = fit(CentredIsotonic(inputs="probabilities"), p, (rng.random(500) < p).astype(int))
    inner = expit(map_.knots_)[(map_.values_ > map_.values_[0]) & (map_.values_ < map_.values_[-1])]
    grid = np.linspace(inner[0], inner[-1], 500)
    assert (np.diff(map_.predict_proba(grid)[:, 1]) > 0).all()


def test_one_step_and_weights():
    p = np.array([0.2, 0.3, 0.7, 0.9])
    falling = fit(CentredIsotonic(inputs="probabilities"), p, np.array([1, 1, 0, 0]))
    np.testing.assert_allclose(falling.predict_proba(np.array([0.0, 0.5, 1.0]))[:, 1], 0.5)
    weighed = fit(CentredIsotonic(inputs="probabilities"), p, np.array([0, 1, 0, 1]), sample_weight=[1, 3, 1, 1])
    copied = fit(CentredIsotonic(inputs="probabilities"), np.repeat(p, [1, 3, 1, 1]), np.array([0, 1, 1, 1, 0, 1]))
    np.testing.assert_allclose(weighed.values_, copied.values_)
    np.testing.assert_allclose(weighed.knots_, copied.knots_, atol=1e-12)
    assert logit((3 * 0.3 + 0.7) / 4) == pytest.approx(weighed.knots_[1])
