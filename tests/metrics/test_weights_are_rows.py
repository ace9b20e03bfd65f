"""Whole weights are rows that are there as often: where a weight enters a figure by a way of its own."""

import json

import numpy as np
import pytest
from scipy.special import ndtr

import calibrant
from calibrant import metrics
from calibrant.cells.edges import mass_bounds
from calibrant.cells.pairs import Pairs, rows_of
from calibrant.cells.summed import CELLS, SummedCells
from calibrant.errors import FileProblem
from calibrant.metrics.inference.cumulative_test import range_pvalue
from calibrant.metrics.inference.planning import calibration_error_bound
from calibrant.metrics.inference.resampling import Sampling, _counts
from calibrant.metrics.inference.risk import ratio_law

RNG = np.random.default_rng(0)
N = 240
P = RNG.dirichlet(np.ones(3), N)
Y = np.where(RNG.random(N) < 0.6, P.argmax(axis=1), RNG.integers(0, 3, N))
W = RNG.integers(1, 5, N)
ROWS = np.repeat(np.arange(N), W)


def test_thresholds_by_the_prior_are_those_of_the_weighted_rows():
    skewed = np.where(Y == 0, 5, 1)
    rows = np.repeat(np.arange(N), skewed)
    found = metrics.cwece(Y, P, threshold="prior", sample_weight=skewed)
    assert found == pytest.approx(metrics.cwece(Y[rows], P[rows], threshold="prior"), rel=1e-9)


def test_gaps_of_groups_are_weighted():
    q, y, groups = P[:, 0], (Y == 0).astype(int), np.where(np.arange(N) % 2, "odd", "even")
    weights = np.where(y == 1, 3, 1)  # so that a gap without weights is another one
    rows = np.repeat(np.arange(N), weights)
    found = calibrant.measure(y, q, groups=groups, sample_weight=weights, resamples=19).group_findings
    wanted = calibrant.measure(y[rows], q[rows], groups=groups[rows], resamples=19).group_findings
    for one, other in zip(found.rows, wanted.rows, strict=True):
        assert one.gap == pytest.approx(other.gap, rel=1e-9)
        own = groups == one.name
        assert one.gap == pytest.approx(np.average(y[own] - q[own], weights=weights[own]))


def test_groups_that_do_not_differ_are_said_not_to():
    q = RNG.beta(2, 4, 3000)
    y = (RNG.random(3000) < q).astype(int)
    found = calibrant.measure(y, q, groups=np.arange(3000) % 3, resamples=19).group_findings
    assert found.test.pvalue > 0.05
    assert found.verdict.startswith("No evidence that groups differ")
    wrong = np.where(np.arange(3000) % 3 == 0, np.minimum(q * 1.8, 0.99), q)
    assert calibrant.measure(y, wrong, groups=np.arange(3000) % 3, resamples=19).group_findings.verdict.startswith(
        "Groups"
    )


def test_resamples_draw_rows_and_keep_their_weights():
    pairs = Pairs(P[:, 0], (Y == 0).astype(float), W + 0.5)
    for drawn in _counts(pairs, pairs.order, 5, np.random.default_rng(1)):
        times = drawn / (W + 0.5)
        np.testing.assert_allclose(times, times.round(), atol=1e-12)
        assert times.sum() == pytest.approx(N)


def test_means_over_labels_are_by_how_often_each_happens():
    """The weighted mean of the labels' Brier scores, and not the plain one."""
    q = np.column_stack([RNG.beta(1, 9, 400), RNG.beta(5, 5, 400)])
    y = (RNG.random((400, 2)) < q).astype(int)
    found = calibrant.measure(y, q, profile="multilabel", resamples=19).labels
    losses, shares = ((q - y) ** 2).mean(axis=0), y.mean(axis=0)
    assert found.weighted["brier"].estimate == pytest.approx(np.average(losses, weights=shares))
    assert found.macro["brier"].estimate == pytest.approx(losses.mean())


def test_intervals_over_labels_are_as_wide_as_few_weighty_rows_make_them():
    """Twenty rows of four hundred have nearly all of the weight: as much is known as from these twenty."""
    q = np.column_stack([RNG.beta(2, 4, 400), RNG.beta(5, 5, 400)])
    y = (RNG.random((400, 2)) < q).astype(int)
    weights = np.where(np.arange(400) < 20, 1.0, 1e-3)
    wide, narrow = (
        calibrant.measure(y, q, profile="multilabel", sample_weight=w).labels.macro["brier"] for w in (weights, None)
    )
    assert wide.high - wide.low > 2.5 * (narrow.high - narrow.low)


def test_bins_of_equal_mass_begin_at_a_group_once():
    """The third group has half of the weight: three bins would begin behind it."""
    weights = np.array([2, 1, 5, 2])
    below = np.cumsum(weights) - weights
    assert mass_bounds(below, 10, 5).tolist() == [1, 3]
    assert mass_bounds(below.astype(float), 10.0, 5).tolist() == [1, 3]


@pytest.mark.parametrize("bins", [0, -1, 10**7, 2.5, "many"])
def test_cells_of_a_senseless_number_of_bins_are_refused(bins):
    told = {"grid": [CELLS, 15], "scores": [0.5], "weights": [2.0], "happened": [1.0]}
    assert SummedCells.from_dict(told).bins == 15
    with pytest.raises(FileProblem):
        SummedCells.from_dict(told | {"grid": [CELLS, bins]})


@pytest.mark.parametrize("x", [0.7, 0.9, 1.5, 2.9, 3.1, 4.0])
def test_the_range_of_brownian_motion_has_one_law(x):
    """Feller's other series, 8 Σ (-1)^(k-1) k Φ(-kx), on either side of where the two meet."""
    k = np.arange(1, 400)
    wanted = 8 * ((-1.0) ** (k - 1) * k * ndtr(-k * x)).sum()
    assert range_pvalue(x) == pytest.approx(wanted, abs=1e-9)
    assert range_pvalue(x) < 1


def test_the_bound_of_a_calibration_error_holds_in_nineteen_of_twenty_by_default():
    assert calibration_error_bound(0.02, 1000, 10) == calibration_error_bound(0.02, 1000, 10, delta=0.05)
    formula = 0.02 + 10 * np.sqrt(2 / 1000 * (2 * np.log(2) - np.log(0.05)))
    assert calibration_error_bound(0.02, 1000, 10) == pytest.approx(formula)


@pytest.mark.parametrize("digits", [2, 9])  # few distinct scores, and more than a state keeps as they are
def test_whole_weights_of_a_state_count_rows(digits):
    """A row of weight 4 counted as one row in states: their intervals were twice as wide."""
    rng = np.random.default_rng(4)
    p = np.round(rng.beta(2, 5, 400), digits)
    y, w = (rng.random(400) < p).astype(int), rng.integers(0, 6, 400)
    rows, half = np.repeat(np.arange(400), w), np.arange(400) < 200
    settings = {"profile": "risk", "resamples": 19}
    parts = [metrics.Measuring(**settings).update(y[of], p[of], sample_weight=w[of]) for of in (half, ~half)]
    told = json.loads(json.dumps((parts[0] + parts[1]).to_dict()))
    found = metrics.Measuring.from_dict(told).finalise().metrics
    wanted = metrics.Measuring(**settings).update(y[rows], p[rows]).finalise().metrics
    for name in ("calibration_slope", "ece_crossfit", "auroc", "observed_expected", "ici"):
        one, other = ([part.estimate, part.low, part.high] for part in (found[name], wanted[name]))
        assert one == pytest.approx(other, abs=1e-4), name
    mixed = parts[0] + metrics.Measuring(**settings).update(y[~half], p[~half], sample_weight=w[~half] + 0.5)
    kept = metrics.Measuring.from_dict(json.loads(json.dumps(mixed.to_dict())))
    assert kept.summary.rows == pytest.approx(rows_of(400, np.where(half, w, w + 0.5)), rel=1e-6)


@pytest.mark.parametrize("events", [0, 1, 3, 30])
def test_observed_over_expected_of_weights_is_that_of_repeated_rows(events):
    rng = np.random.default_rng(events)
    s, y, w = rng.random(60), (np.arange(60) < events).astype(float), rng.integers(1, 4, 60)
    rows = np.repeat(np.arange(60), w)
    weighed, repeated = (
        ratio_law(pairs, 0.9, Sampling(9, rng)) for pairs in (Pairs(s, y, w.astype(float)), Pairs(s[rows], y[rows]))
    )
    assert (weighed.estimate, weighed.low, weighed.high) == pytest.approx(
        (repeated.estimate, repeated.low, repeated.high), rel=1e-9
    )


@pytest.mark.parametrize(("far", "near", "wide"), [(9, 1, True), (1, 9, False)])
def test_an_interval_is_wide_where_most_of_the_weight_is_on_sure_scores(far, near, wide):
    s, y = np.repeat([0.02, 0.5], 40), np.tile([1.0, 0.0], 40)
    found = ratio_law(Pairs(s, y, np.repeat([float(far), float(near)], 40)), 0.9, Sampling(9, RNG))
    rows = np.repeat(np.arange(80), np.repeat([far, near], 40))
    assert found.wide is ratio_law(Pairs(s[rows], y[rows]), 0.9, Sampling(9, RNG)).wide is wide
