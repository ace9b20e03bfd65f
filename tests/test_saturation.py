"""Probabilities of exactly zero and one have one reading."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from calibrant import make, scan
from calibrant.registry import names
from calibrant.validation.saturation import count_zeros, read_zeros, rows_without_zeros, zero_level

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
MAPS = [name for name in names() if not name.startswith("kcal")]


def votes(n=400, k=4, trees=20, seed=0):
    """What a forest of few trees says: shares of votes, many exactly zero, some of which were the label after all."""
    generator = np.random.default_rng(seed)
    truth = generator.dirichlet(np.full(k, 0.3), n)
    labels = np.array([generator.choice(k, p=row) for row in truth])
    sharper = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    shares = np.array([generator.multinomial(trees, row) for row in sharper])
    return shares / trees, labels


def test_zeros_that_come_true_are_read_by_how_often_they_do():
    z = np.log(np.array([[1.0, 1e-300, 1e-300], [1.0, 1e-300, 1e-300]]))
    z[:, 1:] = -np.inf
    counts = count_zeros(np.tile(z, (50, 1)), np.tile([0, 1], 50), None)
    np.testing.assert_array_equal(counts, [100, 200, 50, 100])
    assert np.exp(zero_level(counts, 3)) == pytest.approx((50 + 200 / 600) / 201)
    assert zero_level(counts * [7, 7, 7, 1], 3) == zero_level(counts * 7, 3)  # a weight of seven is the row seven times
    assert zero_level(counts * [0.01, 0.01, 0.01, 1], 3) == pytest.approx(zero_level(counts, 3))


def test_zeros_that_never_come_true_are_about_one_over_all_scores():
    assert np.exp(zero_level(rows_without_zeros(None, 1000), 10)) == pytest.approx(1 / 20_000)
    never = np.array([1000.0, 4000.0, 0.0, 1000.0])
    assert np.exp(zero_level(never, 10)) == pytest.approx(1 / 20_000, rel=1e-3)
    always = np.array([10.0, 10.0, 10.0, 10.0])
    assert np.exp(zero_level(always, 4)) == 0.25


@settings(max_examples=100, deadline=None)
@given(
    hnp.arrays(np.float64, (5, 4), elements=st.one_of(st.just(-np.inf), st.floats(-800, 800))), st.floats(-40.0, -1.0)
)
def test_a_reading_is_finite_keeps_the_order_and_leaves_the_rest(z, level):
    z[:, 0] = np.where(np.isneginf(z).all(axis=1), 0.0, z[:, 0])
    read = read_zeros(z, level)
    assert np.isfinite(read).all()
    order = np.argsort(z, axis=1, kind="stable")
    assert (np.diff(np.take_along_axis(read, order, 1), axis=1) >= 0).all()
    np.testing.assert_array_equal(read[np.isfinite(z)], z[np.isfinite(z)])


@pytest.mark.parametrize("name", MAPS)
def test_no_default_has_an_infinite_loss(name):
    p, y = votes()
    other, truth = votes(seed=1)
    assert (p == 0).any()
    assert (other[np.arange(len(truth)), truth] == 0).any()
    fitted = make(name, inputs="probabilities").fit(p, y)
    losses = -np.log(fitted.predict_proba(other)[np.arange(len(truth)), truth])
    assert np.isfinite(losses).all()
    report = fitted.fit_report_
    assert np.isfinite([report.loss_before, report.loss_after, report.held_out_after]).all()


@pytest.mark.parametrize("name", ["ts", "ets", "vector", "iop", "platt", "beta", "sms"])
def test_the_report_judges_what_is_answered(name):
    p, y = votes(2000)
    other, truth = votes(20_000, seed=1)
    fitted = make(name, inputs="probabilities").fit(p, y)
    real = -np.log(fitted.predict_proba(other)[np.arange(len(truth)), truth]).mean()
    assert fitted.fit_report_.held_out_after == pytest.approx(real, abs=0.06)  # two errors of 2,000 rows
    again = -np.log(fitted.predict_proba(p)[np.arange(len(y)), y]).mean()
    assert fitted.fit_report_.loss_after == pytest.approx(again, abs=1e-6)


@pytest.mark.parametrize("name", ["ts", "ets", "vector", "iop", "platt", "beta", "gp", "matrix"])
def test_confidences_of_one_do_not_stay_certain(name):
    generator = np.random.default_rng(0)
    said = generator.choice(np.linspace(0, 1, 11), 400)
    right = (generator.random(400) < 0.35 + 0.4 * said).astype(int)
    fitted = make(name, inputs="probabilities").fit(said, right)
    assert 0.5 < fitted.predict_proba(np.array([1.0]))[0, 1] < 0.95


@pytest.mark.parametrize("name", ["ts", "vector", "iop", "platt", "irova", "ts > irm"])
def test_masked_classes_stay_impossible_on_demand(name):
    generator = np.random.default_rng(0)
    z = generator.normal(size=(300, 5)) * 2
    z[:, 4] = -np.inf
    y = (z[:, :4] / 2 + generator.gumbel(size=(300, 4))).argmax(axis=1)
    fitted = make(name, classes=range(5), saturated="exact").fit(z, y)
    p = fitted.predict_proba(z)
    np.testing.assert_array_equal(p[:, 4], 0)
    np.testing.assert_allclose(p.sum(axis=1), 1)


def test_finite_logits_are_left_as_they_are():
    generator = np.random.default_rng(0)
    z = generator.normal(size=(300, 4)) * 200
    y = z.argmax(axis=1)
    y[:30] = generator.integers(0, 4, 30)
    fitted = make("ts").fit(z, y)
    scaled = np.exp((z - z.max(axis=1, keepdims=True)) / fitted.temperature_)
    np.testing.assert_allclose(fitted.predict_proba(z), scaled / scaled.sum(axis=1, keepdims=True), rtol=1e-12)


@pytest.mark.parametrize("name", ["ts", "ets", "platt", "beta", "iop", "gp", "vector", "quadratic", "sms", "blend"])
def test_of_two_classes_a_one_is_never_answered_less_than_what_is_below_it(name):
    """Confidences in words: the 1.0 is wrong more often than 0.05, but no less often right than the 0.95."""
    generator = np.random.default_rng(0)
    stated = generator.choice([0, 0.1, 0.5, 0.7, 0.8, 0.9, 0.95, 1], 600, p=[0.01, 0.04, 0.05, 0.1, 0.2, 0.3, 0.2, 0.1])
    right = generator.random(600) < 0.3 + 0.45 * stated
    asked = np.unique(stated)
    fitted = make(name, inputs="probabilities").fit(stated, right)
    assert (np.diff(fitted.predict_proba(asked)[:, 1]) > -1e-9).all()


def test_a_scan_of_two_classes_reads_zeros_as_memory_does():
    generator = np.random.default_rng(1)
    stated = generator.choice([0, 0.1, 0.5, 0.9, 0.95, 1], 600)
    right = generator.random(600) < 0.3 + 0.45 * stated
    memory = make("platt", inputs="probabilities").fit(stated, right)
    both = np.stack([1 - stated, stated], axis=1)
    streamed = make("platt", inputs="probabilities").fit(scan(lambda: [(both[i::3], right[i::3]) for i in range(3)]))
    assert streamed.zero_ == memory.zero_


def test_a_score_of_no_weight_does_not_say_what_a_zero_is_read_as():
    """Of two classes a zero is less than every other score: 1e-80 lowered them, whatever its row weighed."""
    p, labels = np.array([0, 0.1, 0.4, 0.6, 0.9, 1, 1e-80] * 20), np.array([0, 1, 0, 1, 1, 1, 0] * 20)
    pairs, weights = np.stack([1 - p, p], axis=1), (p != 1e-80).astype(float)
    rows = np.flatnonzero(weights)
    absent = make("platt", inputs="probabilities").fit(pairs[rows], labels[rows])
    weightless = make("platt", inputs="probabilities").fit(pairs, labels, weights)
    streamed = make("platt", inputs="probabilities").fit(scan(lambda: [(pairs, labels, weights)]))
    assert absent.zero_ == weightless.zero_ == streamed.zero_


@pytest.mark.parametrize("name", ["identity", "ts", "vector", "beta", "irova", "imax", "spline"])
def test_a_vote_of_weight_two_is_the_vote_twice(name):
    p, labels = votes()
    weights = 1.0 + (np.arange(len(labels)) % 3 == 0)
    twice = np.repeat(np.arange(len(labels)), weights.astype(int))
    weighted = make(name, inputs="probabilities").fit(p, labels, weights).predict_proba(p)
    np.testing.assert_allclose(
        weighted, make(name, inputs="probabilities").fit(p[twice], labels[twice]).predict_proba(p), atol=1e-5
    )
