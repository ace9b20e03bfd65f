"""Shares of maps by how likely each is the best on other rows."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from calibrant.fits.likely import LossMoments, likely_best, loss_moments
from calibrant.fits.mixing import Mixing
from calibrant.passes import Block


def test_likely_best_of_two_is_the_mean_over_what_their_difference_may_be():
    rng = np.random.default_rng(0)
    losses = np.stack([rng.gamma(1.0, size=500), np.zeros(500)])
    losses[1] = losses[0] + 0.3 * rng.normal(size=500)
    losses[1] -= (losses[1] - losses[0]).mean()  # equal on these rows: the costs decide
    spread = np.sqrt(((losses[1] - losses[0]) ** 2).sum())
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    behind = 0.5 * spread
    truth = weights @ expit(behind + spread * nodes) / weights.sum()
    shares = likely_best(LossMoments.of(losses.T, np.ones(500)), np.array([0.0, behind]))
    assert abs(shares[0] - truth) < 0.03
    assert abs(truth - 0.69) < 0.02


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 6), st.integers(0, 10**6))
def test_likely_best_counts_a_weight_as_rows_and_likes_what_costs_less(m, seed):
    rng = np.random.default_rng(seed)
    losses, costs, weights = rng.gamma(1.0, size=(40, m)), 5 * rng.random(m), rng.integers(1, 4, 40)
    moments = LossMoments.of(losses, weights.astype(float))
    shares = likely_best(moments, costs)
    assert abs(shares.sum() - 1) < 1e-12
    assert (shares[shares > 0] >= 0.05).all()
    twice = LossMoments.of(np.repeat(losses, weights, axis=0), np.ones(weights.sum()))
    np.testing.assert_allclose(shares, likely_best(twice, costs), rtol=1e-6)
    cuts = [slice(0, 1), slice(1, 1), slice(1, 25), slice(25, 40)]
    blocks = [LossMoments.of(losses[some], weights[some].astype(float)) for some in cuts]
    merged = blocks[2] + (blocks[0] + blocks[1]) + blocks[3]
    np.testing.assert_allclose(shares, likely_best(merged, costs), rtol=1e-6)
    cheaper = costs.copy()
    cheaper[0] = 0.0
    assert likely_best(moments, cheaper)[0] >= shares[0] - 1e-12


def test_the_same_map_counts_once_and_what_is_hopeless_is_dropped():
    losses = np.random.default_rng(0).gamma(1.0, size=50)
    columns = np.stack([losses, losses + 1e-7, losses + 5], axis=1)
    np.testing.assert_allclose(likely_best(LossMoments.of(columns, np.ones(50)), np.zeros(3)), [1, 0, 0])


def test_labels_that_a_map_excludes_cost_it_much_and_break_nothing():
    z = np.zeros((60, 2))
    z[:, 0] = 5.0
    y = np.arange(60) % 2
    block = Block(z, y, None, 2)

    def answers(logits):
        yield 0, np.tile([1.0, 0.0], (len(logits), 1))
        yield 1, np.full((len(logits), 2), 0.5)

    moments = loss_moments(block, Mixing(("answered", "answered"), "nll", answers))
    assert np.isfinite(moments.second).all()
    np.testing.assert_allclose(likely_best(moments, np.zeros(2)), [0, 1])


def test_what_losses_have_in_common_does_not_make_them_uncertain():
    """Losses that differ by a constant differ by it for certain: the covariance is about the mean."""
    losses = np.random.default_rng(0).gamma(1.0, size=400)
    apart = 1.2 / 400
    shares = likely_best(LossMoments.of(np.stack([losses, losses + apart], axis=1), np.ones(400)), np.zeros(2))
    np.testing.assert_allclose(shares[0], expit(1.2), atol=1e-3)
    noise = np.random.default_rng(1).normal(size=400)
    noise -= noise.mean()
    other = losses + apart + 0.05 * noise
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    truth = weights @ expit(1.2 + 0.05 * np.sqrt((noise**2).sum()) * nodes) / weights.sum()
    shares = likely_best(LossMoments.of(np.stack([losses, other], axis=1), np.ones(400)), np.zeros(2))
    np.testing.assert_allclose(shares[0], truth, atol=0.01)


def test_of_more_than_twenty_maps_that_are_equally_good_none_is_dropped_for_its_small_share():
    """Each deserves less than a twentieth: the largest are kept, and nothing is divided by nothing."""
    count = 40
    apart = np.eye(count) - 1 / count
    moments = LossMoments(1.0, np.zeros(count), np.zeros((count, count)), np.abs(apart))
    np.testing.assert_allclose(likely_best(moments, np.zeros(count)), np.full(count, 1 / count), rtol=1e-9)
    costs = np.r_[np.zeros(count - 1), 1e-3]
    np.testing.assert_allclose(likely_best(moments, costs), np.r_[np.full(count - 1, 1 / (count - 1)), 0.0], rtol=1e-9)
