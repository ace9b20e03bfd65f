"""Rows so few, so equal or so sure that a figure has a plain answer of its own."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr, ndtri

import calibrant
from calibrant import metrics
from calibrant.arrays import weighted_quantiles
from calibrant.cells.pairs import Pairs
from calibrant.metrics.estimators import cumulative, smoothers
from calibrant.metrics.estimators.curves import count_ticks
from calibrant.metrics.inference import means, planning, testing
from calibrant.metrics.inference.cumulative_test import maximum_pvalue, null_walks, range_pvalue
from calibrant.metrics.inference.group_test import groups_differ
from calibrant.metrics.inference.intervals import Interval
from calibrant.metrics.inference.resampling import Sampling
from calibrant.metrics.inference.uncertainty import crossfit_interval
from calibrant.metrics.measuring import Measuring
from calibrant.metrics.scores.gain import Gain
from calibrant.metrics.views.blocks import summarised
from calibrant.metrics.views.forecasts import read


def drawn(n, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.beta(1.5, 2, n)
    return (rng.random(n) < p).astype(int), p


def test_the_spread_of_a_walk_adds_clusters_up_first():
    y, p = drawn(60)
    clusters, w = np.arange(60) // 4, np.linspace(1, 2, 60)
    sums = [(w * (y - p))[clusters == g].sum() for g in range(15)]
    found = cumulative.deviation(Pairs(p, y.astype(float), w, clusters=clusters))
    assert found == pytest.approx(np.sqrt(np.square(sums).sum()) / w.sum())


@pytest.mark.parametrize(
    ("most", "scale", "ticks"),
    [
        (0.5, "linear", [0.5]),
        (1, "log", [1.0]),
        (9.9, "log", [1.0]),
        (10, "log", [1.0, 10.0]),
        (4200, "log", [1.0, 1000.0]),
        (4200, "sqrt", [400.0, 4000.0]),
        (4200, "linear", [2000.0, 4000.0]),
        (1, "linear", [0.5, 1.0]),
        (30, "sqrt", [3.0, 30.0]),
    ],
)
def test_ticks_of_counts_are_round(most, scale, ticks):
    assert count_ticks(most, scale) == ticks


@pytest.mark.parametrize("x", [0.3, 0.9, 1.4, 1.6, 2.9, 3.2])
def test_the_largest_modulus_of_brownian_motion_has_one_law(x):
    """Both series of Feller's, on either side of where they meet: 1 - Σ (-1)^k [Φ((2k+1)x) - Φ((2k-1)x)]."""
    k = np.arange(-200, 201)
    inside = ((-1.0) ** k * (ndtr((2 * k + 1) * x) - ndtr((2 * k - 1) * x))).sum()
    assert maximum_pvalue(x) == pytest.approx(1 - inside, abs=1e-9)


@pytest.mark.parametrize("law", [range_pvalue, maximum_pvalue])
def test_a_walk_that_does_not_stray_is_no_evidence(law):
    assert law(0.0) == law(-1.0) == 1.0
    assert law(1e-3) == pytest.approx(1.0)
    assert law(0.05) <= 1.0


@pytest.mark.parametrize("draws", [None, 4.0])
def test_drawn_walks_have_the_moments_of_true_scores(draws):
    """Sums of w(y - s): mean 0, variance Σ w² s(1 - s), of cells that stand for several rows each a part of that."""
    _, p = drawn(40)
    w = np.linspace(0.5, 2.5, 40)
    rows = None if draws is None else np.full(40, draws)
    pairs = Pairs(p, p.copy(), w, draws=rows)
    blocks = list(null_walks(pairs, 4000, np.random.default_rng(1)))
    ends = np.concatenate(blocks)[:, -1]
    assert len(ends) == 4000
    variance = (w**2 * p * (1 - p)).sum() / w.sum() ** 2 / (draws or 1.0)
    assert ends.mean() == pytest.approx(0.0, abs=4 * np.sqrt(variance / 4000))
    assert ends.var() == pytest.approx(variance, rel=0.1)


def test_one_group_does_not_differ():
    y, p = drawn(50)
    found = groups_differ(Pairs(p, y.astype(float)), np.zeros(50, dtype=np.int64), 1)
    assert (found.statistic, found.pvalue, found.n) == (0.0, 1.0, 50)
    sure = groups_differ(Pairs(y.astype(float), y.astype(float)), np.arange(50) % 2, 2)
    assert (sure.statistic, sure.pvalue, sure.n) == (0.0, 1.0, 0)


def test_an_interval_that_is_not_there_covers_everything():
    nothing = Interval(0.5, None, None, 0.95, np.nan, 0.0, "none")
    assert not nothing.outside
    assert nothing.covers(-7.0)
    assert nothing.brackets == "no interval"
    some = Interval(0.5, 0.6, 0.7, 0.95, 0.1, 0.0, "wald")
    assert some.outside
    assert some.covers(0.6)
    assert some.covers(0.7)
    assert not some.covers(0.71)
    assert Interval(0.6, 0.6, 0.7, 0.95, 0.1, 0.0, "wald").outside is False
    moved = some.moved(0.8, "else")
    assert (moved.low, moved.high) == (pytest.approx(0.9), pytest.approx(1.0))
    squared = Interval(0.5, 0.4, 0.7, 0.95, 0.1, 0.0, "wald").squared()
    assert (squared.estimate, squared.low, squared.high) == (0.25, pytest.approx(0.16), pytest.approx(0.49))
    assert squared.standard_error == pytest.approx(0.1)


def test_rows_that_came_in_blocks_are_drawn_anew():
    """As many resamples as asked for; sums of events and of others are Poisson around what was seen."""
    y, p = drawn(3000)
    forecasts = summarised(read(y, p), {})
    found = list(Sampling(99, np.random.default_rng(0), slow=60).forecasts(forecasts))
    assert len(found) == 60
    rates = np.array([part.top.outcomes @ part.top.weight_array / part.top.total for part in found])
    assert rates.mean() == pytest.approx(y.mean(), abs=0.005)
    assert rates.std() == pytest.approx(np.sqrt(y.mean() * (1 - y.mean()) / 3000), rel=0.3)
    rows = np.array([part.top.total for part in found])
    assert rows.mean() == pytest.approx(3000, abs=30)
    assert rows.std() == pytest.approx(np.sqrt(3000), rel=0.3)


@pytest.mark.parametrize("blocks", [False, True])
def test_the_other_side_of_an_event(blocks):
    y, p = drawn(120)
    given = read(y, p)
    forecasts = summarised(given, {}) if blocks else given
    no, yes = forecasts.one_class(0), forecasts.one_class(1)
    np.testing.assert_allclose(np.sort(no.scores), np.sort(1 - p))
    np.testing.assert_allclose(np.sort(yes.scores), np.sort(p))
    assert no.outcomes @ no.weight_array == pytest.approx(120 - y.sum())
    assert yes.outcomes @ yes.weight_array == pytest.approx(y.sum())
    residual = no.weight_array * (no.outcomes - no.scores)
    assert residual.sum() == pytest.approx((p - y).sum())


def test_one_cluster_has_no_spread():
    y, p = drawn(80)
    found = calibrant.measure(y, p, clusters=np.zeros(80), profile="risk", resamples=19)
    for name in ("calibration_slope", "calibration_in_the_large"):
        one = found.metrics[name]
        assert (one.low, one.high, one.bias) == (None, None, 0.0), name
        assert np.isnan(one.standard_error)
        assert "one cluster" in one.note


def test_scores_that_add_up_to_nothing_have_no_ratio():
    found = calibrant.measure([0, 1, 0, 1] * 10, np.zeros(40), profile="risk", resamples=19).metrics
    assert found["observed_expected"].low is None
    assert found["observed_expected"].bias == 0.0
    assert "nothing" in found["observed_expected"].note


def test_sure_scores_have_no_line_to_test():
    y = np.array([0, 1] * 20)
    found = metrics.calibration_test(y, y.astype(float), method="cox")
    assert (found.statistic, found.pvalue, found.n) == (0.0, 1.0, 40)


def test_the_kernel_test_looks_at_some_of_many_rows(monkeypatch):
    monkeypatch.setattr(testing, "MOST_KERNEL_ROWS", 50)
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 51)
    y = (rng.random((51, 1)) < p.cumsum(axis=1)).argmax(axis=1)
    found = metrics.calibration_test(y, p, method="skce", resamples=39)
    assert found.n == 50
    assert "on 50 of the rows" in found.tested
    assert 0 < found.pvalue <= 1
    assert metrics.calibration_test(y[:50], p[:50], method="skce", resamples=39).tested.endswith("are true")


def test_no_groups_leave_every_error_possible():
    found = crossfit_interval([], 0.9)
    assert (found.estimate, found.low, found.high, found.bias, found.confidence) == (0.0, 0.0, 1.0, 0.0, 0.9)


def test_labels_of_one_outcome_have_no_mean():
    p = np.random.default_rng(0).random((30, 2))
    found = calibrant.measure(np.zeros((30, 2)), p, profile="multilabel", resamples=19).labels
    for one in (*found.macro.values(), *found.weighted.values()):
        assert np.isnan(one.estimate)
        assert (one.low, one.bias, one.note) == (None, 0.0, "no label has both outcomes")
    flat = calibrant.measure((p < 0.5).astype(float), np.full((30, 2), 0.5), profile="multilabel", resamples=19).labels
    assert np.isnan(flat.count_slope.estimate)
    assert flat.count_slope.bias == 0.0


def test_a_gain_has_a_normal_interval():
    gain = Gain(0.2, 0.05)
    for level in (0.5, 0.95):
        reach = 0.05 * ndtri((1 + level) / 2)
        assert gain.interval(level) == pytest.approx((0.2 - reach, 0.2 + reach))
    assert gain.interval() == gain.interval(0.95)
    assert repr(gain) == "0.2 ± 0.098"


def test_one_row_twice_has_a_canonical_error():
    """The row sees itself once: its own label, of which its probability is .7."""
    found = metrics.canonical_error([1], [[0.3, 0.7]], sample_weight=[2.0])
    assert found == pytest.approx(0.6)
    assert metrics.canonical_error([1], [[0.3, 0.7]], sample_weight=[2.0], norm=2) == pytest.approx(np.sqrt(0.18))


def test_blocks_and_rows_have_the_same_weights():
    y, p = drawn(300)
    w = np.random.default_rng(2).integers(1, 5, 300)
    whole = Measuring(resamples=19).update(y, p, sample_weight=w).finalise()
    again = Measuring(resamples=19).update(np.repeat(y, w), np.repeat(p, w)).finalise()
    for name, one in whole.metrics.items():
        if name != "ece_crossfit":  # whose folds are of rows
            assert one.estimate == pytest.approx(again.metrics[name].estimate, rel=1e-6), name


def test_even_scores_are_middles_of_even_parts():
    """The rule of midpoints has the mean of a line exactly, and the variance 1/12 less 1/(12 n²)."""
    even, n = planning._UNIFORM, len(planning._UNIFORM)
    assert even.mean() == pytest.approx(0.5, abs=1e-15)
    assert even.var() == pytest.approx((1 - 1 / n**2) / 12, rel=1e-9)


@pytest.mark.parametrize("method", ["cox", "spiegelhalter"])
def test_outcomes_are_drawn_up_to_so_many_rows(monkeypatch, method):
    """Of few events, whose law no formula knows: a p-value of draws has a floor, that of a formula has none."""
    y, p = drawn(60)
    p, w = p / 8, np.linspace(0.5, 2.0, 60)
    for most, floor in ((59, 0.0), (60, 1 / 40), (61, 1 / 40)):
        monkeypatch.setattr(testing, "MOST_DRAWN", most)
        found = metrics.calibration_test(y, p, method=method, sample_weight=w, resamples=39)
        assert found.floor == pytest.approx(floor)


@pytest.mark.parametrize(
    ("events", "score", "few"),
    [
        (4, 0.5, True),  # fewer than five seen
        (5, 0.5, False),
        (5, 0.05, True),  # four expected of eighty rows
        (9, 0.05, True),
        (10, 0.05, False),  # ten were seen
        (7, 0.0625, False),  # five expected
        (76, 0.95, True),  # of the other outcome as well
        (76, 0.5, True),
        (75, 0.5, False),
        (71, 0.95, True),
        (70, 0.95, False),
    ],
)
def test_an_outcome_is_too_rare_below_five(events, score, few):
    outcomes = (np.arange(80) < events).astype(float)
    pairs = Pairs(np.full(80, score), outcomes)
    assert means.too_few(pairs) == few
    assert means.rarer(pairs) == pytest.approx(min(events, 80 - events))
    seen = "expect only" in means.few_words(pairs)
    assert seen == (min(events, 80 - events) >= 5)


def test_harrells_basis_is_cubic_within_and_straight_beyond_the_knots():
    knots = np.array([-1.0, 0.0, 0.5, 2.0])
    x = np.linspace(-3, 5, 161)
    basis = smoothers._restricted_basis(x, knots)
    assert basis.shape == (161, 4)
    assert_allclose(basis[:, 0], 1.0)
    assert_allclose(basis[:, 1], x)
    scale = 9.0  # the square of the knots' range
    for column, first in ((2, -1.0), (3, 0.0)):
        found = basis[:, column]
        assert_allclose(found[x <= first], 0.0)
        inside = (x > first) & (x <= 0.5)
        assert_allclose(found[inside], (x[inside] - first) ** 3 / scale)
        assert_allclose(np.diff(found[x >= 2.0], 2), 0.0, atol=1e-10)
        assert_allclose(found[x >= 2.0][0], ((2 - first) ** 3 - 1.5**3 * (2 - first) / 1.5) / scale)


def test_weighted_quantiles_are_those_of_repeated_rows():
    x, w, at = (
        np.array([0.1, 0.2, 0.5, 0.9]),
        np.array([3.0, 1.0, 4.0, 2.0]),
        np.array([0.0, 0.05, 0.3, 0.5, 0.95, 1.0]),
    )
    assert_allclose(weighted_quantiles(x, w, at), np.quantile(np.repeat(x, w.astype(int)), at))


def test_where_both_outcomes_are_as_frequent_the_event_is_the_rarer():
    pairs = Pairs(np.full(16, 0.05), (np.arange(16) < 8).astype(float))
    assert means.too_few(pairs)
    assert not means.too_few(Pairs(np.full(16, 0.95), pairs.outcomes))
