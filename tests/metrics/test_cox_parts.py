"""Cox's line: closed forms at two scores, what is left out, and the jackknife over clusters in loops."""

import numpy as np
import pytest
from scipy.special import expit, logit

from calibrant.cells.pairs import Pairs
from calibrant.metrics.estimators import cox


def two_scores(weight=1.0):
    """Ten rows of 0.2, of which three happen, and twenty of 0.7, of which twelve do."""
    p = np.repeat([0.2, 0.7], [10, 20])
    y = np.r_[np.arange(10) < 3, np.arange(20) < 12] * 1.0
    return Pairs(p, y, np.full(30, weight))


@pytest.mark.parametrize("weight", [1.0, 0.3, 2.5])
def test_a_line_through_two_scores_has_their_frequencies(weight):
    pairs = two_scores(weight)
    slope = (logit(0.6) - logit(0.3)) / (logit(0.7) - logit(0.2))
    assert cox.calibration_slope(pairs) == pytest.approx(slope)
    assert cox.calibration_intercept(pairs) == pytest.approx(logit(0.3) - slope * logit(0.2))
    line = cox.line_of(pairs)
    assert not line.separable
    assert not line.constant
    assert line.weights.sum() == pytest.approx(30)
    shift = cox.calibration_in_the_large(pairs)
    assert 10 * expit(logit(0.2) + shift) + 20 * expit(logit(0.7) + shift) == pytest.approx(15)


def test_certain_scores_have_no_log_odds_and_are_counted():
    pairs = two_scores()
    more = Pairs(np.r_[pairs.scores, 0.0, 1.0, 1.0], np.r_[pairs.outcomes, 0, 1, 1], np.r_[np.ones(30), 2, 1, 3])
    assert cox.outside_of(more) == 6.0
    assert cox.outside_of(pairs) == 0.0
    assert cox.calibration_slope(more) == pytest.approx(cox.calibration_slope(pairs))
    sure = Pairs(np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    assert np.isnan(
        [cox.calibration_slope(sure), cox.calibration_intercept(sure), cox.calibration_in_the_large(sure)]
    ).all()


def test_one_score_has_no_line_and_separable_outcomes_a_loose_one():
    one = Pairs(np.full(6, 0.3), np.array([1.0, 0, 0, 0, 1, 0]))
    assert cox.line_of(one).constant
    assert np.isnan(cox.calibration_slope(one))
    apart = cox.line_of(Pairs(np.array([0.2, 0.3, 0.6, 0.9]), np.array([0.0, 0, 1, 1])))
    assert apart.separable
    assert not apart.constant
    assert 1 < apart.fit.theta[1] < 60
    for outcome in (0.0, 1.0):
        line = cox.line_of(Pairs(np.array([0.2, 0.3]), np.full(2, outcome)))
        assert line.separable
        assert (
            cox.calibration_in_the_large(Pairs(np.array([0.2, 0.3]), np.full(2, outcome))) == (2 * outcome - 1) * np.inf
        )


@pytest.mark.parametrize("slope", [True, False])
@pytest.mark.parametrize("weighed", [False, True])
def test_the_jackknife_leaves_one_cluster_out_after_another(weighed, slope):
    rng = np.random.default_rng(int(weighed))
    n = 60
    p, clusters = rng.uniform(0.1, 0.9, n), rng.integers(0, 7, n) * 3
    p[0] = 1.0
    w = rng.choice([0.0, 0.5, 1.5], n) if weighed else None
    pairs = Pairs(p, (rng.random(n) < p) * 1.0, w, clusters=clusters)
    line = cox.line_of(pairs, slope=slope)
    covariance, freedom = cox.line_covariance(pairs, line)
    own = np.ones(n) if w is None else w * (w.sum() / (w**2).sum())
    keep = (p < 1) & (own > 0)
    x = logit(p[keep])
    design = np.column_stack([np.ones_like(x), x]) if slope else np.ones((len(x), 1))
    mean = expit(design @ line.fit.theta + (0 if slope else x))
    u, v = own[keep] * (pairs.outcomes[keep] - mean), own[keep] * mean * (1 - mean)
    whole = (design.T * v) @ design
    moved, told = [], []
    groups = sorted(set(clusters[keep]))
    for g in groups:
        mine = clusters[keep] == g
        part = (design[mine].T * v[mine]) @ design[mine]
        moved.append(np.linalg.solve(whole - part, design[mine].T @ u[mine]))
        told.append(np.diag(np.linalg.inv(whole) @ part @ np.linalg.inv(whole)))
    moved, told = np.array(moved), np.array(told)
    count = len(groups)
    np.testing.assert_allclose(covariance, (count - 1) / count * moved.T @ moved, rtol=1e-6)
    np.testing.assert_allclose(freedom, np.maximum(told.sum(axis=0) ** 2 / (told**2).sum(axis=0) - 1, 1), rtol=1e-6)


def test_observed_over_expected():
    pairs = two_scores(0.3)
    assert cox.observed_expected(pairs) == pytest.approx(15 / 16)
    assert np.isnan(cox.observed_expected(Pairs(np.zeros(3), np.zeros(3))))
    assert cox.observed_expected(Pairs(np.zeros(3), np.ones(3))) == np.inf
