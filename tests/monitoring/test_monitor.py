"""The monitor: false alarms, drifts, merging, groups, classes, what cannot happen."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import CalibrantError, CalibrationWarning
from calibrant.errors import InvalidInput
from calibrant.monitoring import Monitor


def drifting(seed, batches, size=100, from_batch=0, factor=1.0):
    """Yield outcomes and probabilities whose odds are multiplied by a factor from some batch on."""
    rng = np.random.default_rng(seed)
    for k in range(batches):
        p = rng.beta(2, 5, size)
        odds = factor if k >= from_batch else 1.0
        yield (rng.random(size) < odds * p / (odds * p + 1 - p)).astype(int), p


def watched(batches, **settings_):
    monitor = Monitor(**settings_)
    for y, p in batches:
        monitor.update(y, p)
    return monitor


@pytest.mark.parametrize("how", [{}, {"method": "closed"}, {"question": "changed"}, {"restarts": False}])
def test_false_alarms_are_rare(how):
    alarms = sum(watched(drifting(seed, 40), **how).alarm for seed in range(60))
    assert alarms <= 8  # 3 expected at most; the chance of 9 is below 0.3 %


@pytest.mark.parametrize("how", [{}, {"promise": "run_length", "alpha": 0.001}, {"question": "changed"}])
def test_a_drift_is_seen_and_dated(how):
    monitor = watched(drifting(1, 80, 150, 40, 0.5), **how)
    assert monitor.alarm
    assert 40 < monitor.alarmed.batch <= 60
    assert abs(monitor.alarmed.onset - 41) <= 4


def test_a_slope_that_leaves_the_level_alone_is_seen():
    rng, monitor = np.random.default_rng(0), Monitor()
    for _ in range(40):
        x = rng.choice([-1, 1], 100) * rng.normal(2, 0.3, 100)
        monitor.update(rng.random(100) < 1 / (1 + np.exp(-0.5 * x)), 1 / (1 + np.exp(-x)))
    found = monitor.findings()
    assert found.alarm
    assert found.all_rows.shape == "slope"
    assert found.all_rows.size == -0.4
    assert found.action == "refit"


def test_the_soccer_stream_with_a_drift(shared_data):
    data = np.load(shared_data / "oracle-2" / "monitor_soccer.npz")
    monitor = Monitor()
    for k in range(60):
        rows = slice(100 * k, 100 * k + 100)
        monitor.update(data["y"][rows], data["p_drift"][rows])
    assert 31 <= monitor.alarmed.batch <= 40  # the drift begins with batch 31; without restarts it is 50
    assert monitor.alarmed.onset in range(28, 34)
    assert monitor.findings().action == "shift"


@settings(max_examples=30)
@given(st.integers(0, 8), st.integers(0, 8), st.booleans(), st.integers(0, 1000))
def test_merging_in_order_is_one_pass(a, b, grouped, seed):
    rng = np.random.default_rng(seed)
    one, two, whole = Monitor(), Monitor(), Monitor()
    for k in range(a + b):
        p = rng.beta(1, 4, 30)
        y = (rng.random(30) < p**1.3).astype(int)
        groups = rng.choice(["x", "y", f"z{k // 5}"], 30) if grouped else None
        (one if k < a else two).update(y, p, groups=groups, label=f"b{k}")
        whole.update(y, p, groups=groups, label=f"b{k}")
    got, wanted = (one + two).findings(), whole.findings()
    assert got.log_e == pytest.approx(wanted.log_e, abs=1e-9)
    assert (got.onset, got.onset_label, got.rows) == (wanted.onset, wanted.onset_label, wanted.rows)
    assert [s.name for s in got.streams[:1]] == [s.name for s in wanted.streams[:1]]
    assert {s.name: (s.share, round(s.log_e, 9)) for s in got.streams} == {
        s.name: (s.share, round(s.log_e, 9)) for s in wanted.streams
    }


def test_shards_of_a_batch_are_the_batch_and_order_within_it_does_not_matter():
    (y, p), rng = next(drifting(0, 1, 90)), np.random.default_rng(0)
    groups, weights = np.array(["a", "b", "c"] * 30), rng.random(90)
    whole = Monitor().update(y, p, groups=groups, sample_weight=weights)
    worker, parts = Monitor(), [slice(0, 40), slice(40, 89), slice(89, 90)]
    shards = [worker.batch(y[s], p[s], groups=groups[s], sample_weight=weights[s]) for s in parts]
    merged = Monitor().update(shards[2] + shards[0] + shards[1])
    deal = rng.permutation(90)
    dealt = Monitor().update(y[deal], p[deal], groups=groups[deal], sample_weight=weights[deal])
    for other in (merged, dealt):
        assert other.log_e == pytest.approx(whole.log_e, abs=1e-12)
        assert other.findings().rows == 90
    assert worker.batches == 0


def test_one_bad_group_is_blamed_and_the_others_are_not():
    rng, monitor = np.random.default_rng(2), Monitor()
    for _ in range(40):
        p, groups = rng.beta(2, 4, 200), rng.choice(list("abcdefgh"), 200)
        truth = np.where(groups == "c", p / (p + 3 * (1 - p)), p)
        monitor.update(rng.random(200) < truth, p, groups=groups)
    found = monitor.findings()
    assert [one.name for one in found.streams[1:] if one.blamed] == ["group c"]
    assert found.alarmed.stream == "group c"
    assert found.action == "by group"
    assert sum(one.share for one in found.streams) <= 1
    late = monitor.update([1, 0], [0.5, 0.2], groups=["c", "new"]).findings()
    assert {one.name for one in late.streams} == {one.name for one in found.streams} | {"group new"}


@pytest.mark.parametrize("labels", [None, ["ant", "bee", "cat"]])
def test_classes_are_watched_one_by_one(labels):
    rng, monitor = np.random.default_rng(4), Monitor(classes=labels)
    for _ in range(30):
        p = rng.dirichlet([1, 1, 1], 150)
        truth = p * [1, 1, 2.2]
        truth /= truth.sum(axis=1, keepdims=True)
        y = (truth.cumsum(axis=1) < rng.random((150, 1))).sum(axis=1)
        monitor.update(y if labels is None else np.array(labels)[y], p)
    found = monitor.findings()
    name = "class 2" if labels is None else "class cat"
    assert found.alarm
    assert found.streams[1].name == name
    assert found.streams[1].gap > 0
    assert len(found.streams) == 4


def test_two_columns_are_the_event_of_the_second():
    y, p = next(drifting(3, 1))
    assert Monitor().update(y, np.c_[1 - p, p]).log_e == pytest.approx(Monitor().update(y, p).log_e, abs=1e-12)


def test_an_impossible_event_is_an_alarm_and_is_said():
    monitor = Monitor().update([0, 0, 1], [0.0, 0.5, 0.5])
    assert not monitor.alarm
    monitor.update([1, 0], [0.0, 0.5], label="Tuesday")
    found = monitor.findings()
    assert found.alarm
    assert np.isinf(found.log_e)
    assert found.action == "look"
    assert "Tuesday" in found.verdict
    assert "probability 0" in found.verdict
    assert found.all_rows.impossible == 1
    again = Monitor.from_dict(json.loads(json.dumps(monitor.to_dict())))
    told = again.findings()
    assert (told.verdict, told.alarmed, told.log_e) == (found.verdict, found.alarmed, found.log_e)
    assert told.all_rows.offset_low == pytest.approx(found.all_rows.offset_low, rel=0.01)
    assert not Monitor(clip=1e-3).update([1, 0], [0.0, 0.5]).alarm


def test_empty_batches_let_time_go_on():
    monitor = Monitor().update([], [], label="Sunday")
    y, p = next(drifting(3, 1))
    monitor.update(y, p).update([], [])
    assert monitor.batches == 3
    assert monitor.findings().rows == 100


def test_alarms_stay_and_a_restart_forgets_them():
    monitor = watched(drifting(1, 30, 200, 0, 0.4))
    assert monitor.alarm
    for y, p in drifting(7, 60, 200):
        monitor.update(y, p)
    assert monitor.alarm
    again = monitor.restarted()
    assert again.settings == monitor.settings
    assert not again.alarm
    assert again.batches == 0


def test_labels_of_batches_are_kept_where_a_change_may_have_begun():
    monitor = Monitor()
    for k, (y, p) in enumerate(drifting(1, 300, 40, 150, 0.4)):
        monitor.update(y, p, label=f"day {k}")
    found = monitor.findings()
    assert found.alarmed.onset_label == f"day {found.alarmed.onset - 1}"
    points = monitor.history()
    assert len(points) <= 60
    assert sum(one.batches for one in points) == 300
    assert points[-1].mean == pytest.approx(found.all_rows.gap, abs=1e-6)
    assert points[-1].low == pytest.approx(found.all_rows.low, abs=1e-6)
    assert found.rows_since >= (300 - found.onset) * 40


def test_the_state_stays_small_however_long_it_watches():
    monitor = watched(drifting(0, 400, 20))
    assert len(json.dumps(monitor.to_dict())) < 12_000


def test_weights_above_the_unit_are_said():
    y, p = next(drifting(3, 1))
    with pytest.warns(CalibrationWarning, match="weight_unit"):
        Monitor().update(y, p, sample_weight=np.full(100, 3.0))
    scaled = Monitor(weight_unit=3.0).update(y, p, sample_weight=np.full(100, 3.0))
    assert scaled.log_e == pytest.approx(Monitor().update(y, p).log_e)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"alpha": 0}, "alpha"),
        ({"alpha": "0.1"}, "alpha"),
        ({"question": "ok"}, "question"),
        ({"promise": "ok"}, "promise"),
        ({"clip": 0.5}, "clip"),
        ({"offsets": [0.0]}, "offsets"),
        ({"offsets": (), "slopes": ()}, "both empty"),
        ({"centres": [0.0, 1e308]}, "centres .* to ±1000"),
        ({"method": "closed", "promise": "run_length"}, "closed"),
        ({"weight_unit": 0}, "weight_unit"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_settings_that_mean_nothing_are_refused(arguments, words):
    with pytest.raises(CalibrantError, match=words):
        Monitor(**arguments)


def test_batches_that_do_not_fit_are_refused():
    y, p = next(drifting(3, 1))
    monitor = Monitor().update(y, p)
    for arguments, words in [
        ((y, p, {"groups": np.zeros(100)}), "groups"),
        ((y, np.c_[p, (1 - p) / 2, (1 - p) / 2], {}), "classes"),
        ((p, y, {}), "swapped"),
        ((y[:5], p, {}), "inconsistent"),
        ((y, p + 1, {}), "probability"),
        ((np.where(y == 1, np.nan, 0), p, {}), "NaN"),
    ]:
        with pytest.raises(CalibrantError, match=words):
            monitor.update(*arguments[:2], **arguments[2])
    assert monitor.batches == 1
    with pytest.raises(CalibrantError, match="settings"):
        monitor + Monitor(alpha=0.01)
    with pytest.raises(CalibrantError, match="order"):
        Monitor(question="changed") + Monitor(question="changed")


def test_a_batch_without_events_may_come_as_truth_values():
    p = np.full(30, 0.02)
    truth, numbers = Monitor(), Monitor()
    for outcomes in (np.zeros(30, bool), np.arange(30) == 3):
        truth.update(outcomes, p)
        numbers.update(outcomes.astype(int), p)
    assert truth.findings().verdict == numbers.findings().verdict


@pytest.mark.parametrize("name", ["offsets", "slopes", "centres", "classes", "restarts", "each_class"])
@pytest.mark.parametrize("stranger", [object(), 3, 1j, "x", [[1], [1, 2]], [object()], np.array("x"), np.zeros((2, 2))])
def test_strangers_among_the_settings_are_refused(name, stranger):
    with pytest.raises(InvalidInput):
        Monitor(**{name: stranger})


def test_a_batch_may_be_named_by_a_date():
    import datetime

    day = datetime.date(2026, 1, 2)
    told = Monitor().update([0, 1], [0.2, 0.9], label=day).to_dict()  # pyright: ignore[reportArgumentType]
    assert [1, "2026-01-02"] in told["labels"]
