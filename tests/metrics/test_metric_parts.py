"""Parts of estimators by themselves, against what they are by definition."""

import time
from dataclasses import replace

import numpy as np
import pytest
from scipy.fft import idct
from scipy.stats import norm

import calibrant
from calibrant import metrics
from calibrant.arrays import weighted_quantiles
from calibrant.cells.pairs import Pairs
from calibrant.cells.summed import SummedCells, binned_classes, summed_classes
from calibrant.errors import InvalidInput
from calibrant.metrics.decisions.net_benefit import curve_of_decisions, net_benefit_influence
from calibrant.metrics.estimators.cox import calibration_in_the_large
from calibrant.metrics.estimators.crossfit import crossfit_of
from calibrant.metrics.estimators.curves import smooth_curve
from calibrant.metrics.estimators.debiased import _folded_mean
from calibrant.metrics.estimators.integrated import summed_up
from calibrant.metrics.estimators.kde import _in_logit_space
from calibrant.metrics.estimators.smooth import _spectrum
from calibrant.metrics.estimators.smoothers import SMOOTHERS, _by_score, _restricted_basis
from calibrant.metrics.inference import class_test, risk
from calibrant.metrics.inference.bounds import largest_gap_interval
from calibrant.metrics.inference.class_test import class_wise_pvalue
from calibrant.metrics.inference.clustered import clustered_score, clusters_of
from calibrant.metrics.inference.cumulative_test import drawn_outcomes, maximum_pvalue, range_pvalue
from calibrant.metrics.inference.group_test import group_findings, groups_differ
from calibrant.metrics.inference.intervals import Interval, frequency_interval
from calibrant.metrics.inference.means import mean_interval
from calibrant.metrics.inference.resampling import _counts, _drawn, drawn_classes, resamples_of, statistic_of
from calibrant.metrics.inference.shape import _fit, _grouped, _likelihood, _log_odds
from calibrant.metrics.inference.testing import _replicates
from calibrant.metrics.labelled import _count_slope
from calibrant.metrics.scores.ranking import auroc_influence
from calibrant.metrics.views.blocks import CellForecasts
from calibrant.metrics.views.forecasts import read
from calibrant.metrics.views.labels import MultiLabel
from calibrant.metrics.views.thresholds import above, threshold_values


def test_quantiles_of_weighted_gaps_are_those_of_repeated_rows(rng):
    gaps, counts = rng.random(40), rng.integers(1, 5, 40)
    repeated = np.repeat(gaps, counts)
    found = summed_up(gaps, counts / counts.sum())
    wanted = [repeated.mean(), *np.quantile(repeated, [0.5, 0.9]), gaps.max()]
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_weighted_quantiles_are_those_of_repeated_rows(rng):
    x, counts = np.sort(rng.normal(size=30)), rng.integers(1, 4, 30)
    at = np.array([0.05, 0.35, 0.65, 0.95])
    np.testing.assert_allclose(weighted_quantiles(x, counts * 1.0, at), np.quantile(np.repeat(x, counts), at))


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


def test_groups_of_equal_mass_and_their_likelihood():
    pairs = Pairs(np.arange(1, 9) / 10, np.tile([0.0, 1.0], 4))
    groups = _grouped(pairs, 4)
    assert groups.weights.tolist() == [2, 2, 2, 2]
    np.testing.assert_allclose(groups.scores, [0.15, 0.35, 0.55, 0.75])
    x = _log_odds(groups)
    wanted = sum(np.log(p) + np.log(1 - p) for p in (0.15, 0.35, 0.55, 0.75))
    assert _likelihood(groups, x, (0.0, 1.0)) == pytest.approx(wanted)
    assert _likelihood(replace(groups, scale=0.5), x, (0.0, 1.0)) == pytest.approx(wanted / 2)


@pytest.mark.parametrize("weights", [None, np.tile([0.5, 1.25], 60)])
def test_outcomes_drawn_under_calibration_have_the_scores_mean(rng, weights):
    pairs = Pairs(np.repeat(rng.random(40), 3), np.zeros(120), weights)
    drawn = np.concatenate(list(drawn_outcomes(pairs, 4000, rng)))
    assert drawn.shape == (4000, 40)
    np.testing.assert_allclose(drawn.mean(axis=0), pairs.cells.weights * pairs.cells.scores, atol=0.15)


def test_every_class_comes_once_where_there_are_many(rng):
    p = rng.dirichlet(np.ones(70), 90)
    found = list(read(rng.integers(0, 70, 90), p, None).each_class())
    assert len(found) == 70
    np.testing.assert_allclose([pairs.scores[5] for pairs in found], p[5])


@pytest.mark.parametrize("clusters", [None, np.arange(300)])
def test_the_class_wise_test_notices_what_is_wrong_and_nothing_else(rng, clusters):
    p = rng.dirichlet(np.ones(3), 300)
    drawn = (p.cumsum(axis=1) > rng.random((300, 1))).argmax(axis=1)
    good = read(drawn, p, None).clustered(clusters)
    bad = read(rng.integers(0, 3, 300), p, None).clustered(clusters)
    assert class_wise_pvalue(good, 99, np.random.default_rng(0)) > 0.05
    assert class_wise_pvalue(bad, 99, np.random.default_rng(0)) == 0.01


def test_the_least_p_value_of_a_test_is_known(rng):
    p = rng.random(100)
    assert metrics.calibration_test(1 - p.round(), p, method="two_bin", resamples=99).floor == pytest.approx(0.01)


def test_two_rows_are_enough_for_the_unbiased_kernel_error():
    p = np.array([[0.2, 0.8], [0.6, 0.4]])
    assert np.isfinite(metrics.skce([1, 0], p, bandwidth=1.0))
    assert np.isfinite(metrics.skce([1, 0], p, sample_weight=[0.3, 0.4], bandwidth=1.0))
    with pytest.raises(InvalidInput, match="two rows"):
        metrics.skce([1], p[:1], bandwidth=1.0)


def test_classes_without_rows_above_the_threshold_are_left_out():
    forecasts = read([0, 1, 1], [[0.5, 0.4, 0.1], [0.2, 0.7, 0.1], [0.6, 0.3, 0.1]], None)
    assert [kept.n for _, kept in above(forecasts, 0.15)] == [3, 3]


def test_the_error_of_a_cross_fitted_square_is_that_of_its_influence(rng):
    """Against the spread of the estimate over samples."""
    found, errors = [], []
    for _ in range(60):
        p = rng.random(400)
        fit = crossfit_of(Pairs(p, (rng.random(400) < p**2) * 1.0), norm=2)
        found.append(fit.mean)
        errors.append(fit.mean_error)
    assert np.median(errors) == pytest.approx(np.std(found), rel=0.35)


def test_net_benefit_is_hits_less_the_price_of_false_alarms(rng):
    """Vickers and Elkin 2006: TP/n - FP/n · t/(1 - t), here with weights."""
    p, w = rng.random(80), rng.integers(1, 4, 80) * 1.0
    y = (rng.random(80) < 0.4).astype(int)
    for t in (0.2, 0.5, 0.7):
        acted = p >= t
        hits, alarms = (w * acted * y).sum() / w.sum(), (w * acted * (1 - y)).sum() / w.sum()
        assert metrics.net_benefit(y, p, t, sample_weight=w) == pytest.approx(hits - alarms * t / (1 - t))
        curve = curve_of_decisions(Pairs(p, y * 1.0, w), [t])
        rate = (w * y).sum() / w.sum()
        assert curve.treat_all[0] == pytest.approx(rate - (1 - rate) * t / (1 - t))


def test_the_interval_of_the_largest_gap_holds_for_all_bins_at_once():
    """Ten bins of twenty rows, each right: the widest interval is Clopper and Pearson's at 1 - 0.05/10."""
    p = np.repeat((np.arange(10) + 0.5) / 10, 20)
    y = np.concatenate([np.r_[np.ones(k), np.zeros(20 - k)] for k in range(1, 21, 2)])
    found = largest_gap_interval(Pairs(p, y), 0.0, 0.95, edges="equal_width", bins=10)
    low, high = frequency_interval(np.arange(1.0, 21, 2), np.full(10, 20.0), confidence=0.995, method="clopper_pearson")
    said = (np.arange(10) + 0.5) / 10
    assert found.high == pytest.approx(np.maximum(said - low, high - said).max())
    assert found.low == 0


def test_the_linear_kernel_error_leaves_an_odd_row_out(rng):
    p = rng.dirichlet(np.ones(3), 7)
    y = rng.integers(0, 3, 7)
    six = metrics.skce(y[:6], p[:6], estimator="linear", bandwidth=0.5)
    assert metrics.skce(y, p, estimator="linear", bandwidth=0.5) == pytest.approx(six)


def test_many_cells_are_joined_at_their_mean_score(rng):
    pairs = Pairs(rng.random(5000), (rng.random(5000) < 0.5) * 1.0)
    joined = _by_score(pairs.cells, 100)
    assert len(joined.scores) == 100
    assert joined.weights.tolist() == [50.0] * 100
    assert joined.weights @ joined.scores == pytest.approx(pairs.scores.sum())


@pytest.mark.parametrize(("name", "knots"), [("rcs", 4), ("rcs3", 3), ("rcs5", 5)])
def test_restricted_splines_have_the_knots_of_their_names(rng, name, knots):
    p = rng.uniform(0.05, 0.95, 300)
    fitted = SMOOTHERS[name](Pairs(p, (rng.random(300) < p) * 1.0))
    assert len(fitted.knots) == knots


def test_the_last_class_is_seen_where_sixty_five_come_in_two_blocks(rng):
    p = rng.dirichlet(np.ones(65), 20)
    assert len(list(read(rng.integers(0, 65, 20), p, None).each_class())) == 65


def test_squared_errors_are_squares_in_a_state_too(rng):
    p = rng.random(60)
    y = (rng.random(60) < p).astype(int)
    plain = metrics.state("ece", norm=2).update(y, p).finalise()
    assert metrics.state("ece", norm=2, squared=True).update(y, p).finalise() == pytest.approx(plain**2)


def test_labels_are_weighed_by_their_events(rng):
    p = rng.random((300, 2)) * np.array([1.0, 0.2])
    y = (rng.random((300, 2)) < p).astype(float)
    found = calibrant.measure(y, p, profile="multilabel", resamples=99).labels
    rates, briers = y.mean(axis=0), ((p - y) ** 2).mean(axis=0)
    told = found.to_dict()
    assert briers.mean() == pytest.approx(told["macro"]["brier"]["estimate"])
    assert np.average(briers, weights=rates) == pytest.approx(told["weighted"]["brier"]["estimate"])


def test_a_plain_error_is_resampled_in_norm_one(rng):
    p = rng.random(200)
    pairs = Pairs(p, (rng.random(200) < p) * 1.0)
    chosen = statistic_of({"estimator": "binned", "norm": None, "view": "event"})
    assert chosen is not None
    replicates = _replicates(pairs.cells, pairs.cells.outcomes[None])
    assert chosen(replicates)[0] == pytest.approx(metrics.ece(pairs.outcomes.astype(int), p))


def test_weights_worth_fewer_rows_shrink_a_shape_as_fewer_rows_do(rng):
    p = rng.random(200)
    groups = _grouped(Pairs(p, (rng.random(200) < p**2) * 1.0), 20)
    fewer = replace(groups, weights=groups.weights * 0.1, outcomes=groups.outcomes * 0.1)
    for slope in (False, True):
        found = _fit(replace(groups, scale=0.1), _log_odds(groups), slope=slope)
        np.testing.assert_allclose(found, _fit(fewer, _log_odds(groups), slope=slope), rtol=1e-7)


def test_a_smooth_curve_counts_its_rows_in_fiftieths(rng):
    p, y, w = rng.random(300), rng.integers(0, 2, 300) * 1.0, rng.integers(1, 4, 300) * 1.0
    curve = smooth_curve(Pairs(p, y, w))
    for counted, part in ((curve.yes, y), (curve.no, 1 - y)):
        np.testing.assert_allclose(counted, np.bincount((p * 50).astype(int), w * part, 50))


def test_a_detectable_gap_is_seen_in_four_samples_of_five():
    """A constant score of 0.2 on n rows: the mean has a deviation of 0.4/√n, and two groups share five per cent."""
    pairs = Pairs(np.full(800, 0.2), np.tile([1.0, 0.0, 0.0, 0.0, 0.0], 160))
    found = group_findings(pairs, np.repeat([0, 1], 400), ["a", "b"], 0.95, 19, np.random.default_rng(0))
    drawn = np.random.default_rng(1).normal(found.rows[0].detectable, 0.4 / 20, 100_000)
    assert np.mean(np.abs(drawn) > norm.ppf(1 - 0.05 / 4) * 0.4 / 20) == pytest.approx(0.8, abs=0.005)


def test_groups_of_light_rows_are_judged_by_their_number():
    pairs = Pairs(np.full(80, 0.5), np.tile([1.0, 0.0], 40), np.full(80, 1e-3))
    found = group_findings(pairs, np.repeat([0, 1], [76, 4]), ["many", "few"], 0.95, 19, np.random.default_rng(0))
    assert [row.small for row in found.rows] == [False, True]


def test_the_order_of_the_groups_changes_no_test_of_them(rng):
    """One group is too small for a slope of its own, wherever it stands."""
    p, place = rng.random(600), np.repeat([0, 1, 2], [290, 290, 20])
    pairs = Pairs(p, (rng.random(600) < p ** (1 + place / 2)) * 1.0)
    found = groups_differ(pairs, place, 3)
    for other in ([1, 2, 0], [2, 0, 1], [2, 1, 0]):
        assert groups_differ(pairs, np.array(other)[place], 3).statistic == pytest.approx(found.statistic)


def test_the_influence_on_an_area_is_delongs(rng):
    p, y = rng.integers(0, 12, 90) / 12, rng.integers(0, 2, 90) * 1.0
    yes, no = p[y == 1], p[y == 0]
    wins = (yes[:, None] > no) + 0.5 * (yes[:, None] == no)
    area, own = auroc_influence(Pairs(p, y))
    assert area == pytest.approx(wins.mean())
    np.testing.assert_allclose(own[y == 1], (wins.mean(axis=1) - area) / y.mean(), atol=1e-12)
    np.testing.assert_allclose(own[y == 0], (wins.mean(axis=0) - area) / (1 - y.mean()), atol=1e-12)


def test_the_shift_in_the_large_has_a_closed_form_at_one_score():
    pairs = Pairs(np.full(10, 0.2), np.array([1.0] * 4 + [0.0] * 6))
    assert calibration_in_the_large(pairs) == pytest.approx(np.log(0.4 / 0.6) - np.log(0.2 / 0.8))
    assert calibration_in_the_large(Pairs(np.full(3, 0.2), np.ones(3))) == np.inf
    assert calibration_in_the_large(Pairs(np.full(3, 0.2), np.zeros(3))) == -np.inf


def test_the_slope_of_label_counts_is_that_of_repeated_rows(rng):
    p, counts = rng.random((60, 4)), rng.integers(1, 4, 60)
    y = (rng.random((60, 4)) < p) * 1.0
    repeated = np.repeat(p, counts, axis=0).sum(axis=1), np.repeat(y, counts, axis=0).sum(axis=1)
    names = tuple("abcd")
    found = _count_slope(MultiLabel(p, y, counts * 1.0, None, names), 0.95)
    assert found.estimate == pytest.approx(np.polyfit(*repeated, 1)[0])
    rows = MultiLabel(np.repeat(p, counts, axis=0), np.repeat(y, counts, axis=0), None, None, names)
    assert (found.low, found.high) == pytest.approx(
        (_count_slope(rows, 0.95).low, _count_slope(rows, 0.95).high), rel=1e-6
    )


def test_a_cross_fitted_error_is_uncertain_about_its_mean_only():
    """A score of 0 where everything happens: every row says the same."""
    fit = crossfit_of(Pairs(np.zeros(200), np.ones(200)), norm=1)
    assert (fit.mean, fit.mean_error) == pytest.approx((1.0, 0.0), abs=1e-6)


@pytest.mark.parametrize(("pvalue", "paths"), [(maximum_pvalue, 4), (range_pvalue, 8)])
def test_both_series_of_brownian_motion_meet_and_end_in_one_term(pvalue, paths):
    """Far out, leaving through one side is all there is: 4 Φ(-x) for the modulus, 8 Φ(-x) for the range."""
    assert pvalue(3.0) == pytest.approx(pvalue(np.nextafter(3.0, 4.0)), abs=1e-9)
    assert pvalue(6.0) == pytest.approx(paths * norm.sf(6.0), rel=1e-6)


def test_scores_at_the_ends_are_smoothed_as_a_mass_of_one_sign():
    for score, sign in ((0.0, 1.0), (1.0, -1.0)):
        mass = sign * idct(_spectrum(Pairs(np.full(2, score), np.full(2, 1 - score))), norm="ortho")
        assert mass.min() > -1e-9
        assert mass.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("clusters", [None, np.array([0, 1, 2])])
def test_a_resample_draws_rows_with_their_weights(clusters):
    weights = np.array([1.0, 10.0, 100.0])
    pairs = Pairs(np.full(3, 0.5), np.ones(3), weights, clusters=clusters)
    for drawn in _counts(pairs, pairs.order, 20, np.random.default_rng(0)):
        assert (drawn / weights).sum() == 3
        assert not (drawn / weights % 1).any()


def test_cells_are_drawn_anew_as_many_rows_as_they_hold():
    """Weights of 4 a row: a cell of weight 400 is 100 rows, whose number varies by 10."""
    part = SummedCells(np.array([[0.5], [400.0], [200.0], [1600.0]]), counts=False)
    other = SummedCells(np.array([[0.1, 0.9], [3.0, 1.0], [0.0, 1.0], [3.0, 1.0]]))
    rng, given = np.random.default_rng(0), CellForecasts(4, (other, part, other), {}, np.arange(2), False)
    drawn = np.array([_drawn(given, rng).cells[1].table[1:3, 0] for _ in range(2000)])
    assert not (drawn % 4).any()
    np.testing.assert_allclose(drawn.mean(axis=0), [400.0, 200.0], rtol=0.01)
    np.testing.assert_allclose(drawn.std(axis=0), [40.0, 4 * np.sqrt(50)], rtol=0.06)


@pytest.mark.parametrize("bins", [15, 3])
def test_classes_are_drawn_together_as_one_by_one(rng, bins):
    """Sums by bin have the mean of what was seen and, of rows of weight w, the variance Σw²."""
    p = rng.dirichlet(np.full(3, 0.7), 3000)
    labels, weights = rng.integers(0, 3, 3000), rng.choice([1.0, 3.0], 3000)
    cells, edges = summed_classes(p, labels, weights, bins), np.arange(bins + 1) / bins
    given = CellForecasts(3000, (cells[0], *cells), {}, np.arange(3), False)
    seen, drawn = binned_classes(cells, edges), np.array(list(drawn_classes(given, edges, 1500, rng)))
    np.testing.assert_allclose(drawn.mean(axis=0), seen[:3], rtol=0.02, atol=0.02 * seen[0].mean())
    one_by_one = np.array([binned_classes(_drawn(given, rng).cells[1:], edges)[:3] for _ in range(1500)])
    full = seen[0] > 30
    np.testing.assert_allclose(drawn[:, 0].var(axis=0)[full], seen[3][full], rtol=0.25)
    np.testing.assert_allclose(drawn.std(axis=0)[:, full], one_by_one.std(axis=0)[:, full], rtol=0.12)


def test_many_resamples_of_many_rows_are_still_counted_in_whole_rows():
    """Together they are more rows than one sample may have, each by itself is not."""
    cells = SummedCells(np.array([[0.2, 0.8], [2e6, 2e6], [4e5, 1.6e6], [2e6, 2e6]]))
    found = list(resamples_of(cells.pairs, 50, np.random.default_rng(0)))
    assert all(many.mass.dtype == np.int64 for many in found)


def test_an_interval_is_moved_by_what_the_estimate_is():
    moved = Interval(0.2, 0.1, 0.4, 0.95, 0.05, 0.0, "x").moved(1.2, "y")
    assert (moved.low, moved.high, moved.estimate) == pytest.approx((1.1, 1.4, 1.2))


def test_net_benefit_at_another_prevalence_is_that_of_rows_weighed_to_it(rng):
    p, w = rng.random(500), rng.random(500) + 0.1
    y = (rng.random(500) < p).astype(int)
    rate = np.average(y, weights=w)
    other = w * np.where(y, 0.1 / rate, 0.9 / (1 - rate))
    found = metrics.net_benefit(y, p, 0.3, prevalence=0.1, sample_weight=w)
    assert found == pytest.approx(metrics.net_benefit(y, p, 0.3, sample_weight=other))
    pairs = Pairs(p, y.astype(float), w)
    estimate, own = net_benefit_influence(pairs, threshold=0.3, prevalence=0.1)
    assert estimate == pytest.approx(found)
    assert np.average(own, weights=w) == pytest.approx(0, abs=1e-12)
    nudged = w.copy()
    nudged[7] += 1e-6
    slope = (metrics.net_benefit(y, p, 0.3, prevalence=0.1, sample_weight=nudged) - found) / 1e-6 * w.sum()
    assert slope == pytest.approx(own[7], abs=1e-5)


def test_a_restricted_basis_is_harrells():
    """One bend for each knot but the last two, zero at the first knot, with the second derivative gone at the last."""
    knots = np.array([-2.0, -0.5, 1.0, 2.0])
    basis = _restricted_basis(np.array([-2.0, 2.0, 3.0, 4.0]), knots)
    assert basis.shape == (4, 4)
    np.testing.assert_allclose(basis[0, 2:], 0.0)
    np.testing.assert_allclose(np.diff(basis[1:], n=2, axis=0), 0.0, atol=1e-12)
    by_hand = 4.0**3 - 1.0**3 * (2.0 + 2.0) / 1.0
    assert basis[1, 2] == pytest.approx(by_hand / 16.0)


def test_profiles_of_many_rows_are_those_of_all_rows(rng, monkeypatch):
    p = rng.random(900) * 0.8 + 0.1
    y = (rng.random(900) < p**1.2).astype(int)
    names = ("calibration_slope", "calibration_intercept", "calibration_in_the_large")
    whole = [metrics.bootstrap(name, y, p) for name in names]
    monkeypatch.setattr(risk, "_GROUPED", 300)
    for name, wanted in zip(names, whole, strict=True):
        grouped = metrics.bootstrap(name, y, p)
        assert (grouped.low, grouped.high) == pytest.approx((wanted.low, wanted.high), abs=2e-3)


def test_scores_that_rank_outcomes_backwards_have_no_interval():
    y = np.repeat([1, 0], 20)
    for scores, area in ((np.linspace(0.1, 0.9, 40), 0.0), (np.linspace(0.9, 0.1, 40), 1.0)):
        found = metrics.bootstrap("auroc", y, scores)
        assert (found.estimate, found.low, found.high, found.note) == (area, None, None, "outcomes are separable")


@pytest.mark.parametrize("method", ["sweep", "ecce", "ks", "two_bin", "cox", "spiegelhalter"])
@pytest.mark.parametrize("weights", [None, "fractions", "clusters"])
def test_what_is_drawn_has_a_least_p_value(rng, method, weights):
    """Rows that no score says: every drawn set of outcomes is less extreme, so that p is the floor, one in so many."""
    p = np.full(60, 0.02) + 0.001 * rng.random(60)
    given = {"fractions": {"sample_weight": rng.random(60) + 0.5}, "clusters": {"clusters": np.arange(60) // 2}}
    found = calibrant.metrics.calibration_test(
        np.arange(60) % 2, p, method=method, resamples=39, **given.get(weights, {})
    )
    drawn = found.floor > 0
    assert found.pvalue == (1 / 40 if drawn else pytest.approx(0, abs=1e-6))
    assert found.floor in (0, 1 / 40)
    assert drawn or (weights is None and method in ("ecce", "ks", "cox"))


@pytest.mark.parametrize("rows", [[0.3], [np.inf, 0.1, 0.2]])
def test_a_mean_without_a_spread_has_no_interval_and_no_bias(rows):
    found = mean_interval(np.array(rows), None, 0.9)
    assert (found.low, found.high, found.bias, found.confidence) == (None, None, 0.0, 0.9)
    assert np.isnan(found.standard_error)


def test_the_fifth_event_is_enough(rng):
    y = np.zeros(100, dtype=int)
    y[:5] = 1
    p = np.clip(0.05 + 0.02 * rng.normal(size=100), 0.001, 0.9)
    notes = [calibrant.measure(events, p, resamples=39).metrics["ece"].note for events in (y, np.r_[0, y[1:]])]
    assert "fewer than" not in notes[0]
    assert notes[0] != notes[1]


def test_rows_in_clusters_count_as_few_by_their_variance_over_the_design_effect():
    """Σs(1-s) of 100 rows of ½ is 25, of 1,000 rows 250: above 200 where rows do not go together."""
    for rows, few in ((100, True), (1000, False)):
        y = (np.arange(rows) // 2 % 2).astype(float)
        known = clusters_of(Pairs(np.full(rows, 0.5), y, clusters=np.arange(rows)))
        assert known.few is few
        heavy = clusters_of(Pairs(np.full(rows, 0.5), y, np.full(rows, 7.0), clusters=np.arange(rows)))
        assert heavy.few is few
    together = clusters_of(
        Pairs(np.full(1000, 0.5), (np.arange(1000) // 10 % 2).astype(float), clusters=np.arange(1000) // 10)
    )
    assert together.few


def test_many_clusters_of_common_events_are_not_drawn():
    rng = np.random.default_rng(3)
    n = 10_002
    p = rng.random(n)
    y = (rng.random(n) < p).astype(float)
    common = Pairs(p, y, clusters=np.arange(n))
    ones = np.ones((n, 1))
    assert clustered_score(common, ones, 19, rng)[2] == 0.0
    rare = Pairs(p / 500, (rng.random(n) < p / 500).astype(float), clusters=np.arange(n))
    assert clustered_score(rare, ones, 19, rng)[2] == 1 / 20
    fewer = common.take(np.arange(9_000))
    assert clustered_score(fewer, ones[:9_000], 19, rng)[2] == 1 / 20


def test_many_or_few_clusters_have_the_statistic_of_their_kind(rng):
    """Of many events the sandwich: (Σr)² over Σ(Σ of a cluster)²; of few the model's variance."""
    for rows in (60, 4000):
        p = np.full(rows, 0.5)
        own = np.arange(rows) // 2
        y = (rng.random(rows) < 0.5).astype(float)
        pairs = Pairs(p, y, clusters=own)
        sums = np.bincount(own, y - p)
        share = np.clip(((sums**2).sum() - ((y - p) ** 2).sum()) / (rows * 0.25), 0, 1)
        wanted = sums.sum() ** 2 / ((sums**2).sum() if rows == 4000 else rows * 0.25 * (1 + share))
        assert clustered_score(pairs, np.ones((rows, 1)), 19, rng)[0] == pytest.approx(wanted)


@pytest.mark.parametrize("together", [False, True])
def test_labels_of_a_row_that_stands_for_many_are_counted_as_if_drawn_one_by_one(rng, monkeypatch, together):
    p, clusters = rng.dirichlet(np.ones(3), 20), np.arange(20) // 2
    uniforms = np.where(np.arange(20) < 10, np.repeat(rng.random(10), 2), rng.random(20))
    labels = (p.cumsum(axis=1) > uniforms[:, None]).argmax(axis=1)
    heavy = read(labels, p, np.where(np.arange(20) < 9, 30.0, 90.0)).clustered(clusters if together else None)
    monkeypatch.setattr(class_test, "drawn_pvalue", lambda value, null: np.quantile(null, [0.05, 0.5, 0.95]))
    apart = class_wise_pvalue(heavy, 2000, np.random.default_rng(0))
    monkeypatch.setattr(class_test, "COPIES", 1000)
    counted = class_wise_pvalue(heavy, 2000, np.random.default_rng(0))
    assert (counted != apart).any()
    np.testing.assert_allclose(counted, apart, rtol=0.05)


def test_rows_of_huge_whole_weights_are_measured_in_time(rng):
    """Drawn one by one, the labels of these would take minutes."""
    p = rng.dirichlet(np.ones(3), 40)
    started = time.process_time()
    class_wise_pvalue(read(rng.integers(0, 3, 40), p, np.full(40, 1e6)), 999, rng)
    assert time.process_time() - started < 5
