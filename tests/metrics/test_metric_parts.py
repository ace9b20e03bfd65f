"""Parts of estimators by themselves, against what they are by definition."""

import numpy as np
import pytest

import calibrant
from calibrant import metrics
from calibrant.cells.pairs import Pairs
from calibrant.metrics.estimators.debiased import _folded_mean
from calibrant.metrics.estimators.integrated import summed_up
from calibrant.metrics.estimators.kde import _in_logit_space
from calibrant.metrics.estimators.smoothers import _restricted_basis, _weighted_quantiles
from calibrant.metrics.views.forecasts import read
from calibrant.metrics.views.thresholds import threshold_values


def test_quantiles_of_weighted_gaps_are_those_of_repeated_rows(rng):
    gaps, counts = rng.random(40), rng.integers(1, 5, 40)
    repeated = np.repeat(gaps, counts)
    found = summed_up(gaps, counts / counts.sum())
    wanted = [repeated.mean(), *np.quantile(repeated, [0.5, 0.9]), gaps.max()]
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_weighted_quantiles_are_those_of_repeated_rows(rng):
    x, counts = np.sort(rng.normal(size=30)), rng.integers(1, 4, 30)
    at = np.array([0.05, 0.35, 0.65, 0.95])
    np.testing.assert_allclose(_weighted_quantiles(x, counts * 1.0, at), np.quantile(np.repeat(x, counts), at))


def test_a_restricted_spline_is_a_line_outside_its_knots():
    knots = np.array([-1.0, 0.0, 0.7, 2.0])
    beyond, inside = _restricted_basis(np.linspace(2.5, 9, 8), knots), _restricted_basis(np.linspace(-1, 2, 8), knots)
    np.testing.assert_allclose(np.diff(beyond, n=2, axis=0), 0, atol=1e-9)
    assert np.abs(np.diff(inside, n=2, axis=0)).max() > 1e-3
    assert not _restricted_basis(np.linspace(-5, -1, 8), knots)[:, 2:].any()


def test_the_mean_of_a_folded_normal(rng):
    draws = np.abs(0.3 + 0.2 * rng.normal(size=400_000)).mean()
    assert _folded_mean(np.array([0.3]), np.array([0.2]))[0] == pytest.approx(draws, abs=2e-3)
    assert _folded_mean(np.array([-0.3, 0.0]), np.zeros(2)).tolist() == [0.3, 0.0]


def test_the_smoothed_mass_is_that_of_the_rows(rng):
    p = np.r_[0.0, 0.0, 1.0, rng.random(200)]
    cells = Pairs(p, (rng.random(203) < p) * 1.0, rng.integers(1, 3, 203) * 1.0).cells
    share, _ = _in_logit_space(cells, 0.3)
    assert share.sum() == pytest.approx(cells.weights.sum(), rel=1e-6)


@pytest.mark.parametrize("smoother", ["lowess", "loess"])
def test_a_smoother_among_ties_is_their_frequency(smoother):
    """Nine rows in ten have one score: the nearest rows of any span are these."""
    p = np.r_[np.full(90, 0.4), np.linspace(0.1, 0.9, 10)]
    y = np.r_[np.tile([1, 0, 0], 30), np.tile([0, 1], 5)]
    assert np.isfinite(metrics.ici(y, p, smoother=smoother))


def test_priors_as_thresholds_count_weights():
    forecasts = read([0, 1, 1], [[0.5, 0.5], [0.2, 0.8], [0.6, 0.4]], [2.0, 1.0, 1.0])
    np.testing.assert_allclose(threshold_values(forecasts, "prior"), [0.5, 0.5])


def test_every_label_has_a_curve(rng):
    p = rng.random((200, 3))
    y = (rng.random((200, 3)) < p).astype(float)
    assert len(calibrant.measure(y, p, profile="multilabel", resamples=99).class_curves) == 3
