"""Bin-wise temperature scaling against its closed forms and its promises."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp

from calibrant import BinwiseTemperatureScaling, TemperatureScaling, scan
from calibrant.maps.scaling import binwise
from calibrant.maps.scaling.binwise import _between_variance, _edges, equal_weight_edges, top_log_odds
from calibrant.passes import Block, in_memory, in_stream


def two_regimes(n=4000, k=5, seed=0):
    """Rows of low confidence are under-confident (T = 0.5), rows of high confidence over-confident (T = 3)."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k)) * rng.choice([0.7, 4.0], size=(n, 1))
    true = np.where(top_log_odds(z)[:, None] < 1.0, z / 0.5, z / 3.0)
    return z, (true + rng.gumbel(size=z.shape)).argmax(axis=1)


def test_one_bin_is_temperature_scaling(problem):
    z, y = problem
    one = BinwiseTemperatureScaling(bins=1).fit(z, y)
    assert_allclose(one.temperatures_, [TemperatureScaling().fit(z, y).temperature_], rtol=1e-9)
    assert len(one.edges_) == 0


def test_finds_both_regimes_and_beats_one_temperature():
    z, y = two_regimes()
    unseen, labels = two_regimes(seed=1)
    bts, ts = BinwiseTemperatureScaling().fit(z, y), TemperatureScaling().fit(z, y)
    assert_allclose(bts.temperatures_[-3:], 3.0, rtol=0.35)
    assert bts.spread_ > 0.1
    rows = np.arange(len(labels))
    gain = np.log(bts.predict_proba(unseen)[rows, labels]) - np.log(ts.predict_proba(unseen)[rows, labels])
    assert gain.mean() > 3 * gain.std() / np.sqrt(len(gain))


def test_bins_that_agree_share_one_temperature(problem):
    z, y = problem
    bts = BinwiseTemperatureScaling().fit(z, y)
    shared = TemperatureScaling().fit(z, y).temperature_
    assert np.abs(np.log(bts.temperatures_ / shared)).max() < 0.25


def test_a_bin_minimises_its_own_penalised_loss():
    z, y = two_regimes()
    bts = BinwiseTemperatureScaling(bins=4).fit(z, y)
    centre = np.log(TemperatureScaling().fit(z, y).temperature_)
    bins = np.searchsorted(bts.edges_, top_log_odds(z), side="right")
    for b, fitted in enumerate(bts.temperatures_):
        rows, labels = z[bins == b], y[bins == b]

        def objective(log_t, rows=rows, labels=labels):
            scaled = rows / np.exp(log_t)
            loss = (logsumexp(scaled, axis=1) - scaled[np.arange(len(labels)), labels]).sum()
            return loss + (log_t - centre) ** 2 / (2 * bts.spread_**2)

        best = objective(np.log(fitted))
        assert best <= min(objective(np.log(fitted) + step) for step in (-0.01, 0.01)) + 1e-9


def test_weight_two_is_the_row_twice_and_zero_is_absent():
    z, y = two_regimes(800)
    weights = np.random.default_rng(3).integers(0, 3, len(y))
    a = BinwiseTemperatureScaling(bins=6).fit(z, y, sample_weight=weights)
    b = BinwiseTemperatureScaling(bins=6).fit(np.repeat(z, weights, axis=0), np.repeat(y, weights))
    assert_allclose(a.edges_, b.edges_, rtol=1e-12)
    assert_allclose(a.temperatures_, b.temperatures_, rtol=1e-5)


def test_row_order_shift_and_log_probabilities_do_not_matter():
    z, y = two_regimes(800)
    a = BinwiseTemperatureScaling(bins=6).fit(z, y)
    order = np.random.default_rng(1).permutation(len(y))
    b = BinwiseTemperatureScaling(bins=6).fit(z[order], y[order])
    shifts = np.random.default_rng(2).normal(size=(len(y), 1)) * 50
    c = BinwiseTemperatureScaling(bins=6).fit(z + shifts, y)
    p = np.exp(z - logsumexp(z, axis=1, keepdims=True))
    d = BinwiseTemperatureScaling(bins=6, inputs="probabilities").fit(p, y)
    for other in (b, c, d):
        assert_allclose(other.temperatures_, a.temperatures_, rtol=1e-5)
        assert_allclose(other.edges_, a.edges_, rtol=1e-7, atol=1e-7)


@cache
def fitted(k):
    rng = np.random.default_rng(0)
    train = rng.normal(size=(200, k)) * 3
    return BinwiseTemperatureScaling(bins=4).fit(train, (train / 3 + rng.gumbel(size=train.shape)).argmax(axis=1))


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([(1, 2), (3, 2), (4, 7), (2, 1000)]).flatmap(
        lambda shape: hnp.arrays(
            np.float32,
            shape,
            elements=st.sampled_from([-1e4, -3.5, -1.0, 0.0, 0.5, 0.5, 2.0, 1e4]),
        )
    ),
    st.booleans(),
)
def test_worst_rows_keep_their_ranking(scores, wide):
    z = scores.astype(np.float64) if wide else scores
    p = fitted(z.shape[1])._map(z)
    assert p.dtype == z.dtype
    assert np.isfinite(p).all()
    assert_allclose(p.sum(axis=1), 1, atol=1e-5)
    ranked = np.take_along_axis(p, np.argsort(z, axis=1, kind="stable"), axis=1)
    assert (np.diff(ranked, axis=1) >= 0).all()
    assert_array_equal(p.argmax(axis=1), z.argmax(axis=1))


def test_impossible_classes_stay_impossible(problem):
    z, y = problem
    bts = BinwiseTemperatureScaling(bins=3, saturated="exact").fit(z, y)
    row = np.array([[0.0, -np.inf, -np.inf, -np.inf, -np.inf], [1.0, 0.0, -np.inf, 2.0, 0.0]])
    p = bts.predict_proba(row)
    assert_array_equal(p[0], [1, 0, 0, 0, 0])
    assert p[1, 2] == 0
    assert_allclose(p.sum(axis=1), 1)


def test_top_log_odds_does_not_saturate():
    z = np.array([[2000.0, 0.0, 0.0], [1.0, 1.0, 0.0], [3.0, -np.inf, -np.inf]])
    assert_allclose(top_log_odds(z), [2000 - np.log(2), 1 - np.log(np.e + 1), np.inf])


def test_edges_cut_equal_weight_and_never_part_ties():
    position = np.repeat([0.0, 1.0, 2.0, 3.0], [40, 40, 40, 40])
    assert_allclose(equal_weight_edges(position, np.ones(160), 4), [0.5, 1.5, 2.5])
    assert_allclose(equal_weight_edges(np.zeros(100), np.ones(100), 4), [])
    assert_allclose(equal_weight_edges(position, np.ones(160), 1000), [0.5, 1.5, 2.5])


def test_few_rows_get_few_bins(problem):
    z, y = problem
    assert len(BinwiseTemperatureScaling(bins=50).fit(z[:45], y[:45]).temperatures_) <= 2


@pytest.mark.parametrize("name", ["cifar10_resnet110", "cifar10_extreme_logits"])
def test_real_outputs_keep_their_ranking(shared_data, name):
    stored = np.load(shared_data / f"{name}.npz")
    suffix = "_val" if "logits_val" in stored else ""
    z, y = stored[f"logits{suffix}"], stored[f"labels{suffix}"]
    p = BinwiseTemperatureScaling().fit(z, y).predict_proba(z)
    ranked = np.take_along_axis(p, np.argsort(z, axis=1, kind="stable"), axis=1)
    assert (np.diff(ranked, axis=1) >= 0).all()


@pytest.mark.parametrize("n", [700, 9000])
def test_blocks_and_order_do_not_matter(n):
    z, y = two_regimes(n)
    whole = BinwiseTemperatureScaling().fit(z, y)
    order = np.random.default_rng(5).permutation(n)
    edges = [0, 0, 1, n // 7, n // 3, n]

    def batches():
        for a, b in pairwise(edges):
            yield z[order[a:b]], y[order[a:b]]

    streamed = BinwiseTemperatureScaling().fit(scan(batches))
    assert_allclose(streamed.predict_proba(z[:500]), whole.predict_proba(z[:500]), atol=1e-7)
    mine, other = whole.fit_report_, streamed.fit_report_
    assert_allclose(other.held_out_after, mine.held_out_after, rtol=1e-9)
    assert_allclose(other.held_out_error, mine.held_out_error, rtol=1e-6)
    assert other.iterations == mine.iterations


def test_temperatures_are_counted():
    assert BinwiseTemperatureScaling(bins=4).fit(*two_regimes(400)).n_parameters_ == 4


@pytest.mark.filterwarnings("error::RuntimeWarning", "ignore::calibrant.CalibrationWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-30, 1e5, 1e30])
def test_logits_of_any_size_end_in_a_finite_map_that_does_no_harm(dtype, scale):
    z, y = two_regimes(400)
    for scores in (z * scale, -z * scale):
        bts = BinwiseTemperatureScaling().fit(scores.astype(dtype), y)
        assert np.isfinite(bts.predict_proba(scores.astype(dtype))).all()
        assert np.isfinite(bts.temperatures_).all()
        assert bts.fit_report_.loss_after <= bts.fit_report_.loss_before * (1 + 1e-6)


def test_held_out_loss_is_close_to_refitting():
    z, y = two_regimes(1500)
    report = BinwiseTemperatureScaling().fit(z, y).fit_report_
    fold = np.random.default_rng(0).permutation(len(y)) % 5
    refitted = np.empty(len(y))
    for f in range(5):
        p = BinwiseTemperatureScaling().fit(z[fold != f], y[fold != f]).predict_proba(z[fold == f])
        refitted[fold == f] = -np.log(p[np.arange(len(p)), y[fold == f]])
    assert_allclose(report.held_out_after, refitted.mean(), rtol=5e-3)
    assert report.loss_after < report.held_out_after < report.held_out_before


def test_the_variance_between_bins_is_what_their_errors_leave():
    """Bins as sure as one another: their spread, less the error of each."""
    free, curvature = np.array([-0.8, 0.5, 0.9, -0.3]), 25.0
    sums = np.stack([np.zeros(4), -free * curvature, np.full(4, curvature)], axis=1)
    assert _between_variance(np.zeros(4), sums) == pytest.approx((free**2).mean() - 1 / curvature, rel=1e-4)
    sums[:, 1] = -0.1 * curvature
    assert _between_variance(np.zeros(4), sums) == 0.0


def test_rows_in_a_stream_have_the_edges_of_rows_in_memory():
    z, y = two_regimes(3000)
    block = Block(z, y, None, 5)
    pieces = [block.take(slice(a, a + 1000)) for a in (0, 1000, 2000)]
    edges = _edges(in_stream(lambda: iter(pieces), 5, 5, z.dtype), 6)
    assert_allclose(edges, _edges(in_memory(block), 6), atol=2e-2)
    assert len(edges) == 5


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
@pytest.mark.parametrize("most", [1, 2, 50])
def test_as_many_rounds_are_made_as_are_allowed(monkeypatch, most):
    """One round is one estimate of the spread and one search under it: temperatures have moved, and are not settled."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(3000, 3)) * 3
    sure = np.where(np.abs(z).max(axis=1) > 3, 3.0, 0.7)[:, None]
    y = (z / sure + rng.gumbel(size=z.shape)).argmax(axis=1)
    monkeypatch.setattr(binwise, "_MOST", most)
    fitted = BinwiseTemperatureScaling(bins=6).fit(z, y)
    assert np.ptp(fitted.temperatures_) > 0.3
    assert fitted.spread_ > 0.1
    assert fitted.fit_report_.converged == (most == 50)
