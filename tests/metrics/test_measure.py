import json
from dataclasses import replace

import numpy as np
import pytest

import calibrant
from calibrant.errors import InvalidInput
from calibrant.metrics import ece, ece_crossfit, measuring, reliability_curve
from calibrant.simulation import Power, Scenario, Uniform, scenarios


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    z = 1.5 * rng.normal(size=(900, 4))
    p = np.exp(2 * z) / np.exp(2 * z).sum(axis=1, keepdims=True)
    y = (z - np.log(-np.log(rng.random(z.shape)))).argmax(axis=1)
    return calibrant.measure(y, p, resamples=100), y, p


def test_it_holds_what_the_metrics_say(found):
    m, y, p = found
    assert m.n == 900
    assert m.n_classes == 4
    assert m.metrics["ece"].estimate == pytest.approx(ece(y, p))
    assert m.metrics["ece_crossfit"].estimate == pytest.approx(ece_crossfit(y, p))
    assert m.accuracy.estimate == pytest.approx((p.argmax(axis=1) == y).mean())
    assert next(iter(m.metrics)) == "ece_crossfit"
    assert len(m.class_curves) == 4


def test_it_reads_well(found):
    text = repr(found[0])
    assert "Miscalibrated" in text
    assert "over-confident" in text
    assert "ece_sweep" in text
    assert "95 %" in text


def test_it_serialises(found):
    m = found[0]
    stored = json.loads(m.to_json())
    assert stored == m.to_dict()
    assert stored["format"] == 2
    assert stored["shape"] == "too_high"
    assert stored["metrics"]["ece_crossfit"]["norm"] == 2
    assert stored["metrics"]["ece"]["norm"] == 1
    assert stored["test"]["pvalue"] == m.test.pvalue
    assert len(stored["curve"]["binned"]["score"]) == len(m.curve.binned.score)


def test_infinite_losses_serialise():
    m = calibrant.measure([0, 1, 1, 0], [[1.0, 0.0]] * 4, resamples=19)
    found = json.loads(m.to_json())["metrics"]["nll"]
    assert (found["estimate"], found["low"], found["high"]) == ("inf", None, None)
    assert "probability 0" in found["note"]
    shown = repr(m)
    assert "∞   no interval" in shown
    assert "nan" not in shown
    assert "inf" not in shown
    assert str(m.metrics["nll"]) == "∞ no interval"


def test_calibrated_probabilities_are_let_be():
    y, p = Scenario(Uniform(), Power()).sample(1000, random_state=4)
    m = calibrant.measure(y, p, resamples=99)
    assert m.verdict.startswith("No evidence of miscalibration")
    assert m.shape == "none"
    assert m.curve.view == "event"
    assert m.class_curves == ()


def test_directions_in_words():
    y, p = scenarios["resnet110_c10"].sample(2000, random_state=0)
    assert "too high" in calibrant.measure(y, p, resamples=99).verdict
    assert "too low" in calibrant.measure(1 - y, 1 - p, resamples=99).verdict
    flat = np.repeat([0.3, 0.7], 1000)
    wrong = (np.random.default_rng(0).random(2000) < 1 - flat).astype(int)
    assert "upside down" in calibrant.measure(wrong, flat, resamples=99).verdict


def test_an_event_is_an_event(rng):
    risk = rng.beta(1, 30, 1500)
    found = calibrant.measure((rng.random(1500) < risk / 2).astype(int), risk, resamples=99)
    assert found.is_event
    assert "accuracy" not in repr(found)
    assert "accuracy" not in found.to_json()
    assert "event_rate" in repr(found)
    assert found.to_dict()["event_rate"]["estimate"] == found.event_rate.estimate
    with pytest.raises(AttributeError, match="event_rate"):
        _ = found.accuracy
    assert "cwece" not in found.metrics


def test_classes_have_no_event_rate(found):
    with pytest.raises(AttributeError, match="accuracy"):
        _ = found[0].event_rate
    assert found[0].accuracy is found[0].rate


def test_the_norm_of_every_error_is_shown(found):
    shown = {
        line.split()[0]: line.split() for line in repr(found[0]).splitlines() if line.startswith("  ") and line.split()
    }
    for name, norm in {"ece_crossfit": "2", "ece_debiased": "2", "ece": "1", "smece": "1", "mce": "max"}.items():
        assert shown[name][1] == norm


def test_the_resampling_floor_is_a_bound(found):
    assert "p ≤ 0.0099" in found[0].verdict
    assert "p ≤ 0.0099" in repr(found[0])
    y, p = Scenario(Uniform(), Power()).sample(300, random_state=1)
    assert " = " in calibrant.measure(y, p, resamples=99).test.p


def test_the_same_seed_gives_the_same_bytes(found):
    _, y, p = found
    assert calibrant.measure(y, p, resamples=30).to_json() == calibrant.measure(y, p, resamples=30).to_json()


def test_many_classes_keep_the_worst_curves(rng):
    p = rng.dirichlet(np.ones(30), 200)
    m = calibrant.measure(rng.integers(0, 30, 200), p, resamples=19)
    assert len(m.class_curves) == 20


def test_hard_cases_have_a_measurement():
    for y, p in (([1], [0.3]), ([0, 0], [0.0, 0.0]), ([1, 1, 0], [1.0, 1.0, 1.0]), ([1, 0], [[0.5, 0.5], [0.5, 0.5]])):
        assert calibrant.measure(y, p, resamples=19).to_json()
    weighted = calibrant.measure([0, 1, 1], [0.2, 0.5, 0.9], sample_weight=[0.5, 0.0, 2.5], resamples=19)
    assert np.isfinite(weighted.metrics["brier"].estimate)
    with pytest.raises(InvalidInput, match="resamples"):
        calibrant.measure([0, 1], [0.2, 0.9], resamples=5)


def test_curves_are_consistent(found):
    m, y, p = found
    curve = reliability_curve(y, p, view=2, bins=10, method="clopper_pearson")
    assert curve.view == "2"
    assert curve.binned.weight.sum() == pytest.approx(900)
    assert curve.isotonic.weight.sum() == pytest.approx(900)
    assert curve.counts.sum() == pytest.approx(900)
    assert (np.diff(curve.isotonic.level) > 0).all()
    assert ((curve.binned.low <= curve.binned.frequency) & (curve.binned.frequency <= curve.binned.high)).all()
    gap = np.abs(m.curve.binned.score - m.curve.binned.frequency)
    assert m.curve.binned.weight @ gap / 900 == pytest.approx(m.metrics["ece"].estimate)


def test_the_printed_table_says_why_an_estimate_lies_outside_its_interval(found):
    m = found[0]
    beside = replace(m.metrics["cwece"], low=0.0, high=0.001, wide=True).explained()
    shown = repr(replace(m, metrics={**m.metrics, "cwece": beside}))
    assert shown.count("* chance alone") == 1
    assert "tested that the top label's probabilities are true" in shown
    assert "errors that begin at 0 and of mce hold more often than 95 %" in shown
    sure = {name: replace(told, low=told.estimate / 2, wide=False) for name, told in m.metrics.items()}
    assert "hold more often" not in repr(replace(m, metrics=sure))
    assert json.loads(json.dumps(replace(m, metrics={"cwece": beside}).to_dict()))["metrics"]["cwece"]["note"]


def test_estimates_of_many_classes_lie_in_their_intervals(rng):
    scores = rng.dirichlet(np.full(50, 0.1), size=400)
    labels = (scores.cumsum(axis=1) < rng.uniform(size=(400, 1))).sum(axis=1).clip(max=49)
    found = calibrant.measure(labels, scores, resamples=200)
    assert not any(interval.outside for interval in found.metrics.values())
    assert found.metrics["cwece"].low == 0


@pytest.mark.parametrize("profile", ["default", "risk"])
def test_measure_reads_and_sorts_the_rows_once(monkeypatch, profile):
    """Every figure, interval, test and curve of a view shares one order and one check of the input."""
    rng = np.random.default_rng(0)
    p = rng.beta(1, 2, 700)
    y = (rng.random(700) < p).astype(int)
    found = {"sorted": 0, "read": 0}

    def counting(what, function, wanted):
        def counted(*given, **options):
            found[what] += wanted(given[0])
            return function(*given, **options)

        return counted

    def is_scores(values):
        return isinstance(values, np.ndarray) and values.shape == p.shape and bool((sort(values) == ordered).all())

    sort, ordered = np.sort, np.sort(p)
    for name in ("argsort", "sort", "unique"):
        monkeypatch.setattr(np, name, counting("sorted", getattr(np, name), is_scores))
    monkeypatch.setattr(measuring, "read", counting("read", measuring.read, lambda _: True))
    calibrant.measure(y, p, profile=profile, resamples=50)
    assert found == {"sorted": 1, "read": 1}


def test_arrays_are_probabilities():
    with pytest.raises(InvalidInput, match="arrays to measure are probabilities; seen: inputs='logits'"):
        calibrant.measure([0, 1], [0.2, 0.9], inputs="logits")


@pytest.mark.parametrize("bad", [0.5, -1, "one", None, True])
def test_a_seed_that_is_none_is_refused_wherever_one_is_asked_for(bad):
    y, p = np.array([0, 1] * 20), np.linspace(0.1, 0.9, 40)
    calls = (
        lambda: calibrant.measure(y, p, random_state=bad),
        lambda: calibrant.metrics.Measuring(random_state=bad),
        lambda: calibrant.metrics.calibration_test(y, p, random_state=bad),
        lambda: calibrant.metrics.bootstrap("ece", y, p, random_state=bad),
        lambda: calibrant.metrics.ece_crossfit(y, p, random_state=bad),
        lambda: calibrant.metrics.required_samples(0.1, random_state=bad),
        lambda: calibrant.compare(
            np.column_stack([1 - p, p]), y, methods=["ts"], inputs="probabilities", random_state=bad
        ),
    )
    for call in calls:
        with pytest.raises(InvalidInput, match="random_state"):
            call()
