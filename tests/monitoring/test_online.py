"""Online recalibration: the oracle's trace, regret, calibeating against an adversary, late labels."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from calibrant import CalibrantError
from calibrant.errors import FileProblem, InvalidInput
from calibrant.monitoring import Monitor, OnlineRecalibrator, Pending
from calibrant.monitoring.saving import digest_of


@pytest.fixture(scope="module")
def soccer(shared_data):
    data = np.load(shared_data / "oracle-2" / "monitor_soccer.npz")
    return data, json.loads((shared_data / "oracle-2" / "extra_own.json").read_text())


def log_loss(y, q):
    return float(-np.where(y == 1, np.log(q), np.log1p(-q)).mean())


@pytest.mark.parametrize("name", ["p_stable", "p_drift"])
def test_the_trace_is_the_oracles(soccer, name):
    data, oracle = soccer
    y, p, wanted = data["y"], data[name], oracle[f"ops_{name}"]
    online, done, answers = OnlineRecalibrator(), 0, []
    for rows, theta in sorted((int(k), v) for k, v in wanted["theta_after"].items()):
        answers.append(online.step(y[done:rows], p[done:rows]))
        np.testing.assert_allclose(online.theta, theta, rtol=1e-9)
        done = rows
    q = np.concatenate(answers)
    assert log_loss(y, q) == pytest.approx(wanted["logloss_ops"], abs=1e-12)
    assert log_loss(y[3000:], q[3000:]) == pytest.approx(wanted["logloss_ops_after_3000"], abs=1e-12)
    tops = OnlineRecalibrator("tops").step(y, p)
    assert ((tops - y) ** 2).mean() == pytest.approx(wanted["brier_tops_width_.1"], abs=1e-12)


def stream(seed, n=600, power=1.0):
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 3, n)
    return (rng.random(n) < p**power).astype(int), p


@settings(max_examples=15)
@given(st.integers(0, 1000), st.sampled_from([0.3, 1.0, 3.0]), st.sampled_from(["platt", "beta"]))
def test_the_regret_bound_holds_against_the_best_in_hindsight(seed, power, features):
    y, p = stream(seed, 200, power)
    online = OnlineRecalibrator(features=features)
    q, u = online.step(y, p), online._features(p)
    for distance in (0.5, 2.0):
        limit = {"type": "ineq", "fun": lambda theta, d=distance: d**2 - ((theta - online.start) ** 2).sum()}
        best = minimize(
            lambda theta: (np.logaddexp(0, u @ theta) - y * (u @ theta)).sum(), online.start, constraints=limit
        )
        assert len(y) * log_loss(y, q) - best.fun <= online.regret_bound(distance) + 1e-6


@settings(max_examples=15)
@given(st.integers(0, 1000), st.sampled_from([0.3, 1.0, 3.0]))
def test_hedging_is_never_worse_than_the_best_by_more_than_log_three(seed, power):
    y, p = stream(seed, 200, power)
    online = OnlineRecalibrator("hedged")
    online.step(y, p)
    sums = online._sums
    assert sums.answered <= min(sums.raw, sums.base, sums.tops) + np.log(3) + 1e-9


def test_hops_is_calibrated_against_an_adversary():
    """Outcomes are chosen to contradict the mean so far: the answers' own bins stay calibrated all the same."""
    online, rng, record = OnlineRecalibrator("hops"), np.random.default_rng(0), np.zeros((10, 2))
    for _ in range(3000):
        p = rng.choice([0.3, 0.5, 0.7], 1)
        y = int(online._tally.tops(online.ask(p).base)[0] < 0.5)
        q = online.step([y], p)[0]
        record[min(int(q * 10), 9)] += y, 1
    seen = record[:, 1] > 0
    gap = np.abs(record[seen, 0] / record[seen, 1] - (np.arange(10)[seen] + 0.5) / 10)
    assert record[seen, 1] @ gap / 3000 < 0.08  # half a bin's width, and chance


def test_proof_that_p_is_wrong_is_an_e_process():
    alarms = [OnlineRecalibrator() for _ in range(60)]
    for seed, online in enumerate(alarms):
        online.step(*stream(seed, 300))
    assert sum(online.refit for online in alarms) <= 8  # 3 expected at most
    wrong = OnlineRecalibrator()
    wrong.step(*stream(1, 600, 3.0))
    assert wrong.refit
    assert "Refit" in wrong.advice()
    assert "Go on" in OnlineRecalibrator().advice()


def test_labels_may_come_late_and_in_pieces():
    y, p = stream(2)
    now, late = OnlineRecalibrator("tops"), OnlineRecalibrator("tops")
    now.step(y, p)
    asked = [late.ask(p[i : i + 100]) for i in range(0, 600, 100)]
    for k in (1, 0, 2, 4, 3, 5):
        late.learn(y[100 * k : 100 * k + 100], asked[k])
    assert late.rows == 600
    np.testing.assert_allclose(late.theta, now.theta, atol=0.35)
    one = OnlineRecalibrator()
    one.learn(y[:1], one.ask(p[:1]))
    two = OnlineRecalibrator()
    two.step(y[:1], p[:1])
    np.testing.assert_array_equal(one.theta, two.theta)


def test_rows_of_weight_zero_teach_nothing():
    y, p = stream(3, 50)
    online = OnlineRecalibrator()
    online.step(y, p, sample_weight=np.r_[1.0, np.zeros(49)])
    other = OnlineRecalibrator()
    other.step(y[:1], p[:1])
    np.testing.assert_array_equal(online.theta, other.theta)


def test_the_projection_keeps_theta_in_its_ball():
    online = OnlineRecalibrator(radius=1.2, ridge=0.1)
    online.step(*stream(4, 300, 0.1))
    assert np.linalg.norm(online.theta) <= 1.2 + 1e-9


@pytest.mark.parametrize("answer", ["ops", "tops", "hops", "hedged"])
def test_resuming_gives_the_same_bits(answer, tmp_path):
    y, p = stream(5)
    online = OnlineRecalibrator(answer)
    online.step(y[:300], p[:300])
    online.save(tmp_path / "s.json")
    again = OnlineRecalibrator.load(tmp_path / "s.json")
    np.testing.assert_array_equal(again.step(y[300:], p[300:]), online.step(y[300:], p[300:]))
    assert again.to_dict() == online.to_dict()


def test_forged_and_foreign_states_are_refused():
    online = OnlineRecalibrator()
    online.step(*stream(6, 30))
    forgeries = [
        lambda d: d["theta"].append(1.0),
        lambda d: d.update(theta=[1e9, 0.0]),
        lambda d: d.update(theta=[1e300, 0.0]),
        lambda d: d["sums"].update(gradient=[1e300, 0.0]),
        lambda d: d.update(curve=[[0.0, 0.0], [0.0, 0.0]]),
        lambda d: d["settings"].update(answer="x"),
        lambda d: d["sums"].update(rows=-1),
        lambda d: d["sums"].update(raw="much"),
        lambda d: d["came"][0].__setitem__(0, 1e9),
    ]
    for forge in forgeries:
        document = json.loads(json.dumps(online.to_dict()))
        forge(document)
        with pytest.raises(CalibrantError):
            OnlineRecalibrator.from_dict(document)
        document["digest"] = digest_of({k: v for k, v in document.items() if k not in ("kind", "format", "digest")})
        with pytest.raises(CalibrantError):
            OnlineRecalibrator.from_dict(document)
    for other in ([], {}, Monitor().to_dict()):
        with pytest.raises(CalibrantError):
            OnlineRecalibrator.from_dict(other)


@pytest.mark.parametrize("how", [{"answer": "x"}, {"features": "x"}, {"rate": 0}, {"clip": 0.6}, {"alpha": True}])
def test_settings_that_mean_nothing_are_refused(how):
    with pytest.raises(CalibrantError, match=next(iter(how))):
        OnlineRecalibrator(**how)


def test_classes_are_refused_and_extreme_probabilities_are_not():
    with pytest.raises(CalibrantError, match="one event"):
        OnlineRecalibrator().step([0], [[0.2, 0.3, 0.5]])
    online = OnlineRecalibrator()
    assert np.isfinite(online.step([1, 0, 1], [0.0, 1.0, 0.5])).all()
    assert np.isfinite(online.log_e)


def test_pending_feeds_whole_batches_in_order():
    y, p = stream(7, 60)
    direct, fed, pending, ids = Monitor(), Monitor(), Pending(), np.arange(60)
    groups = np.array(["a", "b"] * 30)
    for k in range(3):
        rows = slice(20 * k, 20 * k + 20)
        direct.update(y[rows], p[rows], groups=groups[rows], label=str(k))
        pending.predicted(ids[rows], p[rows], groups=groups[rows], label=str(k))
    deal = np.random.default_rng(0).permutation(60)
    fed_so_far = 0
    for i in deal:
        pending.labelled([i], [y[i]])
        fed_so_far += pending.feed(fed)
    assert fed_so_far == 3
    assert pending.waiting == 0
    assert fed.to_dict() == direct.to_dict()


def test_pending_refuses_what_it_does_not_know_and_counts_what_is_lost():
    pending, monitor = Pending(), Monitor()
    pending.predicted(["a", "b"], [0.2, 0.7])
    for call, words in [
        (lambda: pending.predicted(["a"], [0.1]), "waiting already"),
        (lambda: pending.labelled(["z"], [1]), "not waiting"),
        (lambda: pending.predicted(["c"], [0.1, 0.2]), "length"),
    ]:
        with pytest.raises(CalibrantError, match=words):
            call()
    pending.labelled(["a"], [0])
    with pytest.raises(CalibrantError, match="second"):
        pending.labelled(["a"], [1])
    assert pending.feed(monitor, close="drop") == 1
    assert (pending.lost, monitor.findings().rows) == (1, 1)


def test_what_waits_is_saved_and_goes_on(tmp_path):
    pending = Pending()
    pending.predicted(["a", "b"], [0.2, 0.7], groups=["x", "y"], label="Monday")
    pending.predicted(["c", "d"], [0.5, 0.25], groups=["x", "x"], sample_weight=[1.0, 0.5])
    pending.labelled(["b"], [1])
    pending.save(tmp_path / "waiting.json")
    again, monitors = Pending.load(tmp_path / "waiting.json"), (Monitor(), Monitor())
    assert again.waiting == pending.waiting == 3
    for kept, monitor in zip((pending, again), monitors, strict=True):
        kept.labelled(["a", "c", "d"], [0, 1, 0])
        assert kept.feed(monitor) == 2
    assert monitors[0].log_e == monitors[1].log_e
    assert monitors[0].findings() == monitors[1].findings()


def test_a_changed_file_of_what_waits_is_refused(tmp_path):
    path, pending = tmp_path / "waiting.json", Pending()
    pending.predicted(["a"], [0.2])
    pending.save(path)
    path.write_text(path.read_text().replace("0.2", "0.3"))
    with pytest.raises(FileProblem, match="changed"):
        Pending.load(path)
    path.write_text('{"kind": "calibrant monitor"}')
    with pytest.raises(FileProblem, match="no saved Pending"):
        Pending.load(path)
    strange = Pending()
    strange.predicted(["a"], [0.5])
    strange.labelled(["a"], [float("nan")])
    with pytest.raises(InvalidInput, match="cannot be saved"):
        strange.save(path)


@pytest.mark.parametrize(
    "body",
    [
        {"lost": None, "batches": []},
        {"lost": -1, "batches": []},
        {"lost": 0, "batches": None},
        {"lost": 0, "batches": [[1, 2]]},
        {"lost": 0, "batches": [["first", 5, [0.5], None, None, []]]},
        {"lost": 0, "batches": [["first", [["a"]], [0.5], None, None, []]]},
        {"lost": 0, "batches": [["first", ["a"], 0.5, None, None, []]]},
        {"lost": 0, "batches": [["first", ["a"], [0.5], 3, None, []]]},
        {"lost": 0, "batches": [["first", ["a"], [0.5], None, None, [["a"]]]]},
        {"lost": 0, "batches": [["first", ["a"], [0.5], None, None, 7]]},
    ],
)
def test_forged_predictions_are_refused(tmp_path, body):
    """With a true digest: whoever forges a file can write it."""
    told = {"kind": "calibrant pending", "format": 1, "digest": digest_of(body), **body}
    (tmp_path / "forged.json").write_text(json.dumps(told))
    with pytest.raises(CalibrantError):
        Pending.load(tmp_path / "forged.json")


@pytest.mark.parametrize("ids", [5, [["a"], ["b"]], [{}, {}]])
def test_ids_that_name_no_rows_are_refused(ids):
    with pytest.raises(InvalidInput, match="ids"):
        Pending().predicted(ids, [0.2, 0.3])
    with pytest.raises(InvalidInput, match="ids"):
        Pending().labelled(ids, [0, 1])


@pytest.mark.parametrize("name", ["rate", "ridge", "radius", "clip", "width", "alpha"])
def test_settings_too_small_to_reckon_with_are_refused(name):
    for value in (1e-320, 1e-15, 0.0):
        with pytest.raises(CalibrantError, match=name):
            OnlineRecalibrator(**{name: value})
    with pytest.raises(CalibrantError, match="alpha"):
        Monitor(alpha=1e-320)
