"""Order-preserving scaling: what it promises, to the last bit, and what it gains."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal

from calibrant import CalibrationWarning, OrderPreservingScaling, TemperatureScaling, scan


def bent(n=3000, k=6, seed=0):
    """Labels follow a bent version of the scores: sharp near the top, flat in the tail."""
    rng = np.random.default_rng(seed)
    true = rng.normal(size=(n, k)) * 2
    down = true.max(axis=1, keepdims=True) - true
    return -np.where(down < 2, 2 * down, 4 + 6 * (down - 2)), (true + rng.gumbel(size=true.shape)).argmax(axis=1)


def assert_ranking_kept(p, z):
    order = np.argsort(z, axis=1, kind="stable")
    ranked, raw = np.take_along_axis(p, order, axis=1), np.take_along_axis(z, order, axis=1)
    gaps = np.diff(ranked, axis=1)
    assert (gaps >= 0).all()
    assert (gaps[np.diff(raw, axis=1) == 0] == 0).all()  # equal in, equal out
    assert_array_equal(p.argmax(axis=1), z.argmax(axis=1))


@pytest.fixture(scope="module")
def fitted():
    z, y = bent(800)
    return {form: OrderPreservingScaling(form=form).fit(z, y) for form in ("order-invariant", "diagonal")}


@pytest.mark.parametrize("form", ["order-invariant", "diagonal"])
def test_rigid_slopes_are_temperature_scaling(problem, form):
    z, y = problem
    iop = OrderPreservingScaling(form=form, smoothness=1e10).fit(z, y)
    assert_allclose(iop.slopes_, 1.0, rtol=1e-4)
    assert_allclose(iop.predict_proba(z), TemperatureScaling().fit(z, y).predict_proba(z), atol=1e-4)


def test_slopes_of_one_are_temperature_scaling_exactly(problem):
    z, y = problem
    iop = OrderPreservingScaling().fit(z, y)
    iop.values_ = np.tile(-np.array([0.0, 0.1, 0.3, 0.7, 1.5, 3.0, 6.0, 12.0, 24.0]), (4, 1))
    assert_allclose(iop.predict_proba(z), TemperatureScaling().fit(z, y).predict_proba(z), rtol=1e-9)


@pytest.mark.parametrize("form", ["order-invariant", "diagonal"])
def test_learns_a_bend_that_no_temperature_can(form):
    z, y = bent()
    unseen, labels = bent(seed=1)
    at = np.arange(len(labels)), labels
    iop, ts = OrderPreservingScaling(form=form).fit(z, y), TemperatureScaling().fit(z, y)
    gain = np.log(iop.predict_proba(unseen)[at]) - np.log(ts.predict_proba(unseen)[at])
    assert gain.mean() > 3 * gain.std() / np.sqrt(len(gain))
    report = iop.fit_report_
    assert report.loss_after < report.held_out_after < report.held_out_before


def test_is_no_worse_than_temperature_scaling_on_its_own_rows(problem):
    z, y = problem
    ts, iop = TemperatureScaling().fit(z, y).fit_report_, OrderPreservingScaling().fit(z, y).fit_report_
    assert iop.loss_after <= ts.loss_after + 1e-9
    assert_allclose(iop.loss_before, ts.loss_before)


def test_weight_two_is_the_row_twice_and_zero_is_absent():
    z, y = bent(500)
    weights = np.random.default_rng(3).integers(0, 3, len(y))
    a = OrderPreservingScaling().fit(z, y, sample_weight=weights)
    b = OrderPreservingScaling().fit(np.repeat(z, weights, axis=0), np.repeat(y, weights))
    assert a.smoothness_ == b.smoothness_
    assert_allclose(a.slopes_, b.slopes_, atol=1e-4)


def test_row_order_and_shift_do_not_matter():
    z, y = bent(500)
    rng = np.random.default_rng(1)
    order = rng.permutation(len(y))
    a = OrderPreservingScaling().fit(z, y)
    b = OrderPreservingScaling().fit(z[order], y[order])
    c = OrderPreservingScaling().fit(z + rng.normal(size=(len(y), 1)) * 30, y)
    for other in (b, c):
        assert_allclose(other.slopes_, a.slopes_, atol=1e-4)


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_the_scale_of_the_logits_does_not_matter(scale):
    z, y = bent(500)
    a, b = OrderPreservingScaling().fit(z, y), OrderPreservingScaling().fit(scale * z, y)
    assert_allclose(b.predict_proba(scale * z), a.predict_proba(z), atol=1e-4)


VALUES = st.one_of(
    st.sampled_from([-1e4, -30.0, -1.0, 0.0, 0.5, *np.float32([0.50000006, 0.5000001]).tolist(), 2.0, 1e4]),
    st.floats(-20, 20, width=32),
    st.floats(-1e4, 1e4, width=32),
)


@settings(max_examples=60, deadline=None)
@given(
    scores=st.sampled_from([(1, 2), (3, 2), (4, 7), (2, 40), (1, 1000)]).flatmap(
        lambda shape: hnp.arrays(np.float32, shape, elements=VALUES)
    ),
    wide=st.booleans(),
    form=st.sampled_from(["order-invariant", "diagonal"]),
)
def test_worst_rows_keep_their_ranking(fitted, scores, wide, form):
    z = scores.astype(np.float64) if wide else scores
    p = fitted[form]._map(z)
    assert p.dtype == z.dtype
    assert np.isfinite(p).all()
    assert (p >= 0).all()
    assert_allclose(p.sum(axis=1), 1, atol=1e-5)
    assert_ranking_kept(p, z)


def test_neighbouring_floats_keep_their_ranking_across_every_knot(fitted):
    for form, start in [(f, s) for f in fitted for s in (0.0, -0.1, -0.3, -1.5, -6.0, -24.0, -80.0)]:
        z = np.zeros((1, 400), dtype=np.float32)
        z[0, 0] = 8.0
        value = np.float32(8.0 + start * fitted[form].temperature_)
        for j in range(1, 400):
            z[0, j] = value = np.nextafter(value, np.float32(-1e5))
        assert_ranking_kept(fitted[form]._map(z), z)
        assert_ranking_kept(fitted[form]._map(z[:, ::-1].copy()), z[:, ::-1])


def test_impossible_classes_stay_impossible():
    row = np.array([[0.0, *[-np.inf] * 5], [1.0, 0.0, -np.inf, 2.0, 0.0, -np.inf]])
    p = OrderPreservingScaling(saturated="exact").fit(*bent(800)).predict_proba(row)
    assert_array_equal(p[0], [1, 0, 0, 0, 0, 0])
    assert_array_equal(p[1, [2, 5]], 0)
    assert_allclose(p.sum(axis=1), 1)


def test_one_row_and_constant_rows():
    with pytest.warns(CalibrationWarning):
        one = OrderPreservingScaling().fit([[1.0, 2.0, 0.0]], [0], sample_weight=None)
    assert_allclose(one.predict_proba([[1.0, 1.0, 1.0], [3.0, 2.0, 1.0]])[0], 1 / 3)


@pytest.mark.parametrize("name", ["cifar10_resnet110", "cifar10_extreme_logits", "cifar100_resnet50"])
def test_real_outputs_keep_their_ranking_and_lose_log_loss(shared_data, name):
    stored = np.load(shared_data / f"{name}.npz")
    if "logits_val" in stored:
        z, y, unseen, labels = (stored[key] for key in ("logits_val", "labels_val", "logits_test", "labels_test"))
    else:
        z, y, unseen, labels = (
            stored["logits"][::2],
            stored["labels"][::2],
            stored["logits"][1::2],
            stored["labels"][1::2],
        )
    iop, ts = OrderPreservingScaling().fit(z, y), TemperatureScaling().fit(z, y)
    p = iop.predict_proba(unseen)
    assert_ranking_kept(p, unseen)
    at = np.arange(len(labels)), labels
    tiny = np.float32(1e-38)
    assert -np.log(p[at] + tiny).mean() < 0.95 * -np.log(ts.predict_proba(unseen)[at] + tiny).mean()


def test_takes_a_temperature_that_is_known():
    z, y = bent(600)
    free = OrderPreservingScaling().fit(z, y)
    told = OrderPreservingScaling(temperature=free.temperature_).fit(z, y)
    assert_allclose(told.predict_proba(z), free.predict_proba(z), rtol=1e-9)
    other = OrderPreservingScaling(temperature=1.0).fit(z, y)
    assert other.temperature_ == 1.0
    assert_allclose(other.fit_report_.loss_after, free.fit_report_.loss_after, rtol=0.02)


@pytest.mark.parametrize("n", [700, 9000])
def test_blocks_and_order_do_not_matter(n):
    z, y = bent(n)
    whole = OrderPreservingScaling().fit(z, y)
    order = np.random.default_rng(5).permutation(n)
    edges = [0, 0, 1, n // 7, n // 3, n]

    def batches():
        for a, b in pairwise(edges):
            yield z[order[a:b]], y[order[a:b]]

    streamed = OrderPreservingScaling().fit(scan(batches))
    assert_allclose(streamed.predict_proba(z[:500]), whole.predict_proba(z[:500]), atol=1e-7)
    mine, other = whole.fit_report_, streamed.fit_report_
    assert_allclose(other.held_out_after, mine.held_out_after, rtol=1e-9)
    assert_allclose(other.held_out_error, mine.held_out_error, rtol=1e-6)
    assert other.iterations == mine.iterations


def test_many_rows_take_few_passes():
    report = OrderPreservingScaling().fit(*bent(40_000)).fit_report_
    assert report.converged
    assert report.iterations <= 8


def test_slopes_and_a_temperature_of_its_own_are_counted():
    z, y = bent(300)
    assert OrderPreservingScaling().fit(z, y).n_parameters_ == 33
    assert OrderPreservingScaling(form="diagonal", temperature=2.0).fit(z, y).n_parameters_ == 8


def test_held_out_loss_is_close_to_refitting():
    z, y = bent(1500)
    report = OrderPreservingScaling().fit(z, y).fit_report_
    fold = np.random.default_rng(0).permutation(len(y)) % 5
    refitted = np.empty(len(y))
    for f in range(5):
        p = OrderPreservingScaling().fit(z[fold != f], y[fold != f]).predict_proba(z[fold == f])
        refitted[fold == f] = -np.log(p[np.arange(len(p)), y[fold == f]])
    assert_allclose(report.held_out_after, refitted.mean(), rtol=3e-3)
    assert 0 < report.held_out_error < 0.1


@pytest.mark.filterwarnings("ignore:no value of scores is larger")  # 1e-30 is nothing to float32
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logits_of_any_size_end_in_a_finite_map(dtype):
    z, y = bent(200)
    for scale in (1e-30, 1e30):
        iop = OrderPreservingScaling().fit((z * scale).astype(dtype), y)
        assert np.isfinite(iop.predict_proba((z * scale).astype(dtype))).all()
        assert iop.fit_report_.loss_after <= iop.fit_report_.loss_before * (1 + 1e-6)


@pytest.mark.parametrize("form", ["order-invariant", "diagonal"])
def test_the_smoothness_is_chosen_between_a_tenth_and_ten_thousand(form, problem):
    """A straight line wants stiff slopes, a bend softer ones."""
    straight = OrderPreservingScaling(form=form).fit(*problem).smoothness_
    bend = OrderPreservingScaling(form=form).fit(*bent()).smoothness_
    assert 1e2 <= straight[0] <= 1e4
    assert 0.1 * (1 - 1e-12) <= bend[0] < straight[0]


def test_the_evidence_smooths_where_nothing_bends_and_lets_bend_where_something_does():
    rng = np.random.default_rng(5)
    true = rng.normal(size=(3000, 5)) * 1.5
    straight = OrderPreservingScaling().fit(2 * true, (true + rng.gumbel(size=true.shape)).argmax(axis=1))
    bends = OrderPreservingScaling().fit(*bent())
    assert min(straight.smoothness_) >= 1000
    assert 0 < min(bends.smoothness_) <= 10
    assert_allclose(straight.slopes_, 1.0, atol=0.15)
