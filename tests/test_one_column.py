"""One column of scores is the score of the class that its name says; where it says none, of the second."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibrant import ByGroup, compare, load, make, measure, metrics, scan
from calibrant.errors import InvalidInput
from calibrant.monitoring import Monitor
from calibrant.passes.batch import Batch
from calibrant.scanning.passing import answer
from calibrant.validation.event import class_named

pandas = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore::calibrant.errors.CalibrationWarning")  # little is to be gained here
RNG = np.random.default_rng(0)
P = RNG.beta(1, 3, 400) * 0.9 + 0.02
Y = np.where(RNG.random(400) < P, "sick", "well")
SICK, WELL = pandas.DataFrame({"p_sick": P}), pandas.DataFrame({"p_well": 1 - P})
BOTH = pandas.DataFrame({"p_well": 1 - P, "p_sick": P})


@pytest.mark.parametrize(
    "name",
    [
        "p_sick",
        "P(sick)",
        "p_Sick",
        "prob.sick",
        ".pred_sick",
        "sick",
        "SICK",
        "sick_prob",
        "P(y=sick)",
        "risk of sick",
    ],
)
def test_a_name_names_a_class_with_words_for_scores_around_it(name: str) -> None:
    assert class_named([name], ["sick", "well"]) == 0
    assert class_named([name], ["well", "sick"]) == 1


@pytest.mark.parametrize("name", ["risk", "p_not_sick", "sickness", "p_sick_well", "ward_sick", 0, "0", ""])
def test_other_names_name_no_class(name: Any) -> None:
    assert class_named([name], ["sick", "well"]) is None
    assert class_named([name], [0, 1]) is None


def test_classes_that_are_alike_are_told_apart() -> None:
    assert [class_named([f"p_{c}"], ["disease", "no disease"]) for c in ("disease", "no_disease")] == [0, 1]
    assert [class_named([f"p_{c}"], ["<=50K", ">50K"]) for c in ("<=50K", ">50K")] == [0, 1]
    assert [class_named([f"p_{c}"], ["A", "a"]) for c in ("A", "a")] == [0, 1]
    assert [class_named([f"p_{c}"], [-1, 1]) for c in (-1, 1)] == [0, 1]
    assert [class_named([f"p{c}"], [1, 10]) for c in (1, 10)] == [0, 1]
    assert [class_named([c], [False, True]) for c in ("p_false", "p_True")] == [0, 1]
    assert class_named(["p_sick", "p_well"], ["sick", "well"]) is None
    assert class_named(None, ["sick", "well"]) is None


@pytest.mark.parametrize("method", ["platt", "isotonic", "ts", "vector", "hoki"])
def test_a_map_reads_one_column_by_its_name(method: str, tmp_path: Path) -> None:
    fitted = make(method, inputs="probabilities").fit(SICK, Y)
    assert fitted.classes_.tolist() == ["well", "sick"]
    wanted = fitted.predict_proba(BOTH)
    for scores in (SICK, WELL, P, pandas.DataFrame({"risk": P}), BOTH[["p_sick", "p_well"]]):
        np.testing.assert_allclose(fitted.predict_proba(scores), wanted, rtol=1e-9)
        np.testing.assert_array_equal(fitted.predict(scores), fitted.predict(BOTH))
    fitted.save(tmp_path / "m.calibrant")
    np.testing.assert_allclose(load(tmp_path / "m.calibrant").predict_proba(WELL), wanted, rtol=1e-9)
    given = make(method, inputs="probabilities", classes=["sick", "well"]).fit(SICK, Y)
    assert given.classes_.tolist() == ["sick", "well"]
    if method != "hoki":  # whose noise is drawn by column
        np.testing.assert_allclose(given.predict_proba(P), given.predict_proba(pandas.DataFrame({"p_well": P})))
        np.testing.assert_allclose(given.predict_proba(SICK)[:, ::-1], wanted, rtol=1e-6, atol=1e-9)


def test_logits_change_their_sign() -> None:
    z = np.log(P / (1 - P))
    z[0] = -np.inf
    fitted = make("vector").fit(pandas.DataFrame({"logit_sick": z[1:]}), Y[1:])
    np.testing.assert_array_equal(
        fitted.predict_proba(pandas.DataFrame({"logit_well": -z[1:]})), fitted.predict_proba(z[1:])
    )
    never = fitted.predict_proba(pandas.DataFrame({"logit_well": z[:1]}))
    assert never[0, 0] < 0.1 < never[0, 1]


def test_many_scores_and_wrappers_and_scans_go_by_the_name_too() -> None:
    many, labels = np.tile(P, 1300), np.tile(Y, 1300)
    fitted = make("platt", inputs="probabilities").fit(pandas.DataFrame({"p_sick": many}), labels)
    assert fitted.predict_proba(pandas.DataFrame({"p_sick": [0.9]}))[0].argmax() == fitted.classes_.tolist().index(
        "sick"
    )
    given = make("platt", inputs="probabilities", classes=["sick", "well"])
    given.fit(pandas.DataFrame({"p_sick": many}), labels)
    np.testing.assert_allclose(given.predict_proba(SICK)[:, 0], fitted.predict_proba(SICK)[:, 1], rtol=1e-6)
    grouped = ByGroup(make("platt"), inputs="probabilities").fit(SICK, Y, groups=np.arange(400) % 2)
    assert grouped.classes_.tolist() == ["well", "sick"]
    auto = make("auto", inputs="probabilities").fit(SICK, Y)
    np.testing.assert_allclose(auto.predict_proba(WELL), auto.predict_proba(BOTH), rtol=1e-9)
    rows = scan(lambda: [(SICK[:200], Y[:200]), (WELL[200:], Y[200:])])
    by_batch = make("platt", inputs="probabilities").fit(rows)
    wanted = make("platt", inputs="probabilities").fit(SICK, Y).predict_proba(SICK)
    np.testing.assert_allclose(by_batch.predict_proba(WELL), wanted, rtol=1e-9)
    assert measure(rows, inputs="probabilities").figures["event_rate"].estimate == pytest.approx((Y == "sick").mean())
    mapped = measure(scan(lambda: [(P, Y)]).mapped(by_batch)).figures["brier"].estimate
    assert mapped == pytest.approx(metrics.brier(Y == "sick", wanted[:, 1]), abs=1e-9)
    np.testing.assert_allclose(answer(Batch(WELL), (by_batch,)).scores, wanted[:, 0])


METRICS: list[Callable[..., float]] = [metrics.nll, metrics.brier, metrics.accuracy, metrics.ece, metrics.ece_sweep]


@pytest.mark.parametrize("metric", METRICS)
def test_metrics_read_one_column_by_its_name(metric: Callable[..., float]) -> None:
    wanted = metric((Y == "sick").astype(int), P)
    assert metric(Y, SICK) == pytest.approx(wanted, rel=1e-9)
    assert metric(Y, SICK, classes=["well", "sick"]) == pytest.approx(wanted, rel=1e-9)
    assert metric(Y == "sick", SICK.set_axis(["p_true"], axis=1)) == pytest.approx(wanted, rel=1e-9)
    turned = metric((Y == "well").astype(int), 1 - P)
    for labels, scores in ((Y, WELL), (Y != "sick", WELL)):
        assert metric(labels, scores) == pytest.approx(turned, rel=1e-9)
    assert metric(Y, SICK, classes=["sick", "well"]) == pytest.approx(turned, rel=1e-9)
    assert metric(Y != "sick", SICK.set_axis(["p_False"], axis=1)) == pytest.approx(wanted, rel=1e-9)
    assert metric((Y != "sick").astype(int), SICK.set_axis(["p_0"], axis=1)) == pytest.approx(wanted, rel=1e-9)


def test_measuring_comparing_and_watching_are_of_the_event_that_is_named() -> None:
    assert measure(Y, SICK).figures["event_rate"].estimate == pytest.approx((Y == "sick").mean())
    assert measure(Y, WELL).figures["event_rate"].estimate == pytest.approx((Y == "well").mean())
    found = [compare(SICK, Y, inputs="probabilities", methods=["platt"], test=(s, Y)) for s in (SICK, WELL, P)]
    assert len({round(result["platt"].metrics["nll"].value, 9) for result in found}) == 1
    monitor = Monitor()
    monitor.update(Y[:200], SICK[:200])
    monitor.update(Y[200:], WELL[200:])
    assert monitor.classes is not None
    assert monitor.classes.tolist() == ["well", "sick"]
    assert not monitor.findings().alarm


def test_a_series_that_contradicts_is_refused_as_arithmetic_keeps_its_name() -> None:
    fitted = make("platt", inputs="probabilities").fit(P, Y == "sick")
    np.testing.assert_array_equal(fitted.predict_proba(pandas.Series(P, name="p_true")), fitted.predict_proba(P))
    fitted = make("platt", inputs="probabilities").fit(1 - P, Y)
    for read in (
        lambda: fitted.predict_proba(1 - SICK["p_sick"]),
        lambda: make("platt", inputs="probabilities").fit(SICK["p_sick"], Y),
        lambda: measure(Y, SICK["p_sick"]),
        lambda: metrics.brier(Y, SICK["p_sick"]),
        lambda: Monitor().update(Y, SICK["p_sick"]),
    ):
        with pytest.raises(InvalidInput, match=r"named like the score of 'sick'.*df\[\['p_sick'\]\].*to_numpy"):
            read()
    assert metrics.brier(Y, WELL["p_well"]) == metrics.brier(Y, 1 - P)
