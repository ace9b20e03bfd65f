"""Parts of operators that few rows reach: what they count, what they export, what they do at their limits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, logit

import calibrant
from calibrant.operators import _label_shift
from calibrant.operators._blend import _grouped
from calibrant.operators._class_groups import prior_groups, too_few
from calibrant.passes import Block, in_memory

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")


def drawn(n, k, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k)) * 1.5
    return 2 * z, (z + rng.gumbel(size=(n, k))).argmax(axis=1)


@pytest.mark.parametrize(
    ("counts", "groups"),
    [
        ([100, 201, 50], [0, 1, 0]),  # the rarest alone is too few; both reach 100, and 201 is more than twice 50
        ([100, 200, 400], [0, 0, 1]),  # exactly twice is not more than twice
        ([99, 500], [0, 0]),
        ([100, 500], [0, 1]),
        ([1000, 100, 40, 45, 210], [2, 0, 0, 0, 1]),
        ([0, 0, 0], [0, 0, 0]),
        ([1.5, 120.0, 99.0, 250.0], [0, 1, 0, 2]),
        ([*[4] * 30, 20], [0] * 31),  # what is left at the end is too few to learn alone
        ([*[4] * 30, 99], [0] * 31),
        ([*[4] * 30, 100], [*[0] * 30, 1]),
    ],
)
def test_classes_of_like_frequency_learn_together(counts, groups):
    found = prior_groups(np.array(counts, dtype=float))
    names = {g: i for i, g in enumerate(dict.fromkeys(found[np.argsort(counts, kind="stable")].tolist()))}
    assert [names[g] for g in found.tolist()] == groups


@pytest.mark.parametrize(("few", "said"), [(4, True), (5, False)])
def test_it_is_said_where_half_of_the_maps_have_fewer_positives_than_folds(few, said):
    labels = np.repeat([0, 1, 2], [few, few, 40])
    data = in_memory(Block(np.zeros((len(labels), 3)), labels, None, 3))
    assert ("half of the classes have 4" in too_few(data, np.arange(3))) == said
    assert too_few(data, np.zeros(3, dtype=np.int64)) == ""  # one map of all
    assert too_few(data, np.array([0, 0, 1])) == ""  # eight rows or more together


def test_parameters_are_those_of_the_parts_and_the_operators_own():
    z, y = drawn(300, 3)
    groups = np.arange(300) % 3
    by_group = calibrant.ByGroup(calibrant.make("ts")).fit(z, y, groups=groups)
    assert by_group._count_parameters() == pytest.approx(1 + by_group.effective_.sum() + 2)
    fair = calibrant.Multicalibrated(calibrant.make("ts"), level=0.9).fit(z, y, groups=groups)
    assert fair._count_parameters() == 1 + len(fair.steps_)
    shifted = calibrant.PriorShift(calibrant.make("ts")).fit(z, y)
    assert shifted._count_parameters() == 1 + 1 + len(shifted.bias_) + 3
    mixed = calibrant.make("ts + vector").fit(z, y)
    assert mixed._count_parameters() == sum(part._count_parameters() for part in mixed.parts_) + 1
    assert calibrant.make("platt").fit(z, y)._count_parameters() == 6


def test_two_classes_have_the_interval_of_the_second():
    z, y = drawn(200, 2)
    fitted = calibrant.make("venn-abers").fit(z, y)
    low, high = fitted.predict_interval(z)
    assert low.shape == high.shape == (200,)
    own = calibrant.VennAbers().fit(z, y).predict_interval(z)
    assert_allclose(low, own[0])
    assert_allclose(high, own[1])
    p = fitted.predict_proba(z)[:, 1]
    assert ((low <= p + 1e-12) & (p <= high + 1e-12)).all()


@pytest.mark.parametrize("normalize", ["sum", "softmax"])
def test_a_lift_is_its_binary_maps_by_hand(normalize):
    """q_k of the log-odds against the rest, then divided by their sum or the softmax of their own log-odds."""
    z, y = drawn(240, 3)
    lift = calibrant.OneVsRest(calibrant.PlattScaling(), normalize=normalize).fit(z, y)
    q = lift.predict_marginals(z)
    total = np.log(np.exp(z).sum(axis=1))
    for k in range(3):
        others = np.log(np.delete(np.exp(z), k, axis=1).sum(axis=1))
        odds = z[:, k] - others
        a, b = np.polyfit(odds, logit(q[:, k]), 1)
        assert_allclose(q[:, k], expit(a * odds + b), rtol=1e-6)
    assert np.isfinite(total).all()
    made = q if normalize == "sum" else q / (1 - q)
    assert_allclose(lift.predict_proba(z), made / made.sum(axis=1, keepdims=True), rtol=1e-7)


@pytest.mark.parametrize("weights", [(0.25, 0.75), (0.6, 0.4)])
def test_a_map_that_is_part_of_two_mixtures_counts_with_both_weights(weights):
    z, y = drawn(200, 3)
    part = calibrant.make("ts").fit(z, y)
    groups = _grouped([(part, weights[0]), (part, weights[1] / 2)])
    terms = [weight for group in groups for _, weight in group.others]
    stacked = [group.stack for group in groups if group.stack is not None]
    assert len(groups) == 1
    if terms:
        assert terms == [pytest.approx(weights[0] + weights[1] / 2)]
    else:
        total = np.zeros((200, 3))
        stacked[0].add_to(total, z)
        assert_allclose(total.sum(axis=1), weights[0] + weights[1] / 2)


def test_frequencies_of_new_rows_have_symmetric_intervals_within_0_and_1():
    z, y = drawn(2000, 3)
    shifted = calibrant.PriorShift(calibrant.make("ts"), pseudo_count=0.0).fit(z, y)
    other, labels = drawn(3000, 3, seed=1)
    kept = (labels > 0) | (np.arange(3000) % 3 == 0)
    shifted.adapt(other[kept])
    low, high = shifted.priors_interval_.T
    assert_allclose((low + high) / 2, shifted.priors_, rtol=1e-9)
    assert (low > 0).all()
    assert (high < 1).all()
    truth = np.bincount(labels[kept], minlength=3) / kept.sum()
    assert ((low < truth + 0.02) & (truth - 0.02 < high)).all()
    half = (high - low) / 2
    assert (half > 1.5 * np.sqrt(truth * (1 - truth) / kept.sum())).all()  # labels are not seen: wider than counts
    assert (half < 4 * 1.96 * np.sqrt(truth * (1 - truth) / kept.sum())).all()


def test_the_centre_of_groups_is_the_weighted_mean_of_the_log_odds():
    z, y = drawn(240, 3)
    groups, w = np.arange(240) % 4, np.linspace(0.5, 3.0, 240)
    fitted = calibrant.ByGroup(calibrant.Identity()).fit(z, y, groups=groups, sample_weight=w)
    logs = z - z.mean(axis=1, keepdims=True)
    assert_allclose(fitted.centre_, np.average(logs, axis=0, weights=w), rtol=1e-9)


@pytest.mark.parametrize("limit", [2, 3, 4])
def test_frequencies_are_found_on_either_side_of_where_newton_takes_over(monkeypatch, limit):
    """Of three classes: by EM alone with as many steps as that takes, or by Newton behind a few steps of EM."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(3, 4.0), 800)  # classes that are hard to tell apart: EM is slow
    source, w = np.array([0.5, 0.3, 0.2]), rng.exponential(size=800)
    monkeypatch.setattr(_label_shift, "_NEWTON", limit)
    found = _label_shift.find_frequencies(p, source, w, 0.5)
    assert found.certificate < 2 * _label_shift._CERTAIN
    ratio, share = p / source, w / w.sum()
    up = share @ (ratio / (ratio @ found.values)[:, None]) + 0.5 * 3 * source / w.sum() / found.values
    assert_allclose(up, up @ found.values, rtol=1e-4)  # the slope is the same for all classes at the maximum
