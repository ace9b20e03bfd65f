"""Comparisons: honest figures, a stated choice, failures as rows, the same answer every time."""

import json
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest
from tests.conftest import overconfident

import calibrant
from calibrant import AutoCalibrator, TemperatureScaling, compare, load, registry
from calibrant.calibrator import Calibrator
from calibrant.errors import InvalidInput
from calibrant.metrics import calibration_gain, ece_kde, nll
from calibrant.selection.problem import make_problem
from calibrant.selection.splits import Split, folds, group_folds, subsample


def dealt(z: Any, y: Any, count: int, seed: int, inputs: str = "logits") -> list[Split]:
    """Return the folds of a comparison: dealt in the order that the rows' content settles."""
    given = make_problem(z, y, inputs, None)
    order = given.content_order()
    splits = folds(y[order], count, np.random.default_rng([seed, 0]), given.take(order).units())
    return [Split(order[split.fit], order[split.judge]) for split in splits]


def test_copies_of_a_row_are_in_one_fold() -> None:
    z, y = overconfident(150, 2)
    names = ["ts", "irova"]
    once, thrice = compare(z, y, methods=names), compare(np.repeat(z, 3, axis=0), np.repeat(y, 3), methods=names)
    assert once.best_ == thrice.best_ == "ts"  # irova, judged on copies of rows that it had learnt, was better
    for name in names:
        known = [found[name].metrics["nll"].value for found in (once, thrice)]
        assert known[1] == pytest.approx(known[0], rel=0.05)


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
def test_rows_of_the_same_scores_are_in_one_fold_whatever_their_labels() -> None:
    gaps = []
    for seed in range(8):  # rounded scores: two or three rows of most, of either label
        rng = np.random.default_rng(seed)
        z, other = (np.stack([np.zeros(n), np.round(rng.normal(size=n) * 2, 1)], axis=1) for n in (300, 20000))
        y, labels = ((s / 1.5 + rng.gumbel(size=s.shape)).argmax(axis=1) for s in (z, other))
        found = compare(z, y, methods=["irova"])
        losses = [nll(labels, registry.make(name).fit(z, y).predict_proba(other)) for name in ("irova", "identity")]
        gaps.append(found["irova"].against_identity["nll"].value - (losses[0] - losses[1]))
    assert abs(np.mean(gaps)) < 0.018  # .035 where labels part rows of the same scores


def test_values_that_scores_take_are_dealt_row_by_row() -> None:
    y = np.arange(400) % 2
    z = np.stack([np.zeros(400), np.repeat([-1.0, 0.0, 1.0, 2.0], 100)], axis=1)
    units = make_problem(z, y, "logits", None).units()
    np.testing.assert_array_equal(units, np.arange(400))
    assert {len(split.judge) for split in dealt(z, y, 5, 0)} == {80}
    few = compare(np.repeat(z[::100], 3, axis=0), np.repeat([0, 1, 1, 0], 3), methods=["ts"], cv=3)  # four contents
    assert np.isfinite(few["ts"].metrics["nll"].value)


def test_the_map_that_made_the_data_is_chosen() -> None:
    z, y = overconfident(1500, 5)
    found = compare(z, y, methods=["ts", "ets", "platt", "uniform"])
    assert found.best_ == "ts"
    assert found["ts"].against_identity["nll"].value < 0
    assert found["uniform"].metrics["nll"].value == pytest.approx(np.log(5))
    assert "ts" in found.reason
    assert found.refit_.temperature_ == pytest.approx(2.5, rel=0.1)


def test_maps_with_settings_of_their_own_take_part_as_copies(tmp_path: Path) -> None:
    z, y = overconfident(400, 4)
    mine = TemperatureScaling(loss="brier")
    found = compare(z, y, methods=[mine, "ts"])
    name = "TemperatureScaling(loss='brier')"
    assert {row.name for row in found.rows} == {"identity", "ts", name}
    alone = compare(z, y, methods=mine)
    assert alone[name].metrics["nll"] == found[name].metrics["nll"] != found["ts"].metrics["nll"]
    assert alone.best_ == name
    again = TemperatureScaling(loss="brier").fit(z, y)
    np.testing.assert_array_equal(alone.refit_.predict_proba(z), again.predict_proba(z))
    assert not hasattr(mine, "classes_")
    chosen = AutoCalibrator([mine]).fit(z, y)
    np.testing.assert_array_equal(chosen.predict_proba(z), alone.refit_.predict_proba(z))
    chosen.save(tmp_path / "map.json")
    np.testing.assert_array_equal(load(tmp_path / "map.json").predict_proba(z), chosen.predict_proba(z))


def test_calibrated_scores_are_left_alone() -> None:
    z, y = overconfident(1500, 5, scale=1.0)
    found = compare(z, y, methods=["ts", "platt"])
    assert found.best_ == "identity"
    assert "leave them alone" in found.reason


def test_figures_are_those_of_rows_not_fitted_on() -> None:
    z, y = overconfident(300, 4)
    split = dealt(z, y, 3, seed=7)
    expected = np.zeros(300)
    for part in split:
        fitted = calibrant.make("ts").fit(z[part.fit], y[part.fit])
        expected[part.judge] = -np.log(fitted.predict_proba(z[part.judge])[np.arange(len(part.judge)), y[part.judge]])
    found = compare(z, y, methods=["ts"], cv=3, random_state=7)
    assert found["ts"].metrics["nll"].value == pytest.approx(expected.mean(), rel=1e-9)
    assert found["ts"].metrics["nll"].error == pytest.approx(expected.std() / np.sqrt(300), rel=1e-9)


@pytest.mark.parametrize("grouped", [False, True])
def test_a_comparison_does_not_depend_on_the_order_of_the_rows(grouped: bool) -> None:
    """Folds were dealt and rows resampled by place: on 270 rows of 8 classes another order chose another map."""
    z, y = overconfident(240, 3)
    weights, groups = 1.0 + np.arange(240) % 3, np.arange(240) // 4
    order = np.random.default_rng(1).permutation(240)
    one, two = (
        compare(z[r], y[r], methods=["ts"], sizes=[50], sample_weight=weights[r], groups=groups[r] if grouped else None)
        for r in (np.arange(240), order)
    )
    for name in ("identity", "ts"):
        for figure, estimate in one[name].metrics.items():
            other = two[name].metrics[figure]
            assert (other.value, other.error) == pytest.approx((estimate.value, estimate.error), rel=1e-6), figure
        said = one.answers(name).probabilities[order]
        np.testing.assert_allclose(two.answers(name).probabilities, said, atol=1e-9)
    np.testing.assert_array_equal(one.answers("ts").labels, y)
    values = [found.curves[-1].estimates[0].value for found in (one, two)]
    assert values[0] == pytest.approx(values[1], rel=1e-6)


def test_a_test_set_is_judged_after_one_fit() -> None:
    z, y = overconfident(800, 4)
    found = compare(z[:400], y[:400], methods=["ts"], test=(z[400:], y[400:]))
    p = calibrant.make("ts").fit(z[:400], y[:400]).predict_proba(z[400:])
    assert found["ts"].metrics["nll"].value == pytest.approx(nll(y[400:], p))
    assert found.settings["judged_rows"] == 400


def test_the_same_seed_and_any_number_of_jobs_give_the_same_figures() -> None:
    z, y = overconfident(300, 4)
    runs = [compare(z, y, methods=["ts", "platt"], repeats=2, n_jobs=jobs).to_dict() for jobs in (1, 3, None)]
    for run in runs:
        for row in run["rows"]:
            row.pop("fit_seconds")
            row.pop("predict_seconds")
    assert runs[0] == runs[1] == runs[2]
    other = compare(z, y, methods=["ts"], random_state=1)
    assert other["ts"].metrics["nll"].value != runs[0]["rows"][0]["metrics"]["nll"]["value"]


def test_weights_count_rows() -> None:
    z, y = overconfident(200, 3)
    w = np.ones(200)
    w[::4] = 0
    weighted = compare(z, y, methods=["ts"], sample_weight=w)
    without = compare(z[w > 0], y[w > 0], methods=["ts"])
    assert weighted["ts"].metrics["nll"].value == pytest.approx(without["ts"].metrics["nll"].value)


class _Broken(Calibrator):
    _traits = calibrant.Identity._traits

    def __init__(self, *, inputs: str = "logits", classes: Any = None) -> None:
        self.inputs = inputs
        self.classes = classes

    def _fit_rows(self, sample: Any) -> Any:
        raise ZeroDivisionError("on purpose")


def test_a_map_that_fails_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._BY_NAME, "broken", registry.Entry("broken", _Broken, "", ""))
    z, y = overconfident(200, 3)
    found = compare(z, y, methods=["broken", "ts"])
    assert found["broken"].error == "ZeroDivisionError: on purpose"
    assert found.best_ == "ts"
    assert "broken" in found.table()
    assert json.loads(found.to_json())["rows"][-1]["name"] == "broken"


def test_accuracy_can_be_a_constraint() -> None:
    z, y = overconfident(400, 4)
    z = z + np.array([4.0, 0, 0, 0])  # a bias that only maps which change labels can mend
    free, bound = (compare(z, y, methods=["ts", "platt"], preserve_accuracy=keep) for keep in (False, True))
    assert free.best_ == "platt"
    assert bound.best_ != "platt"
    assert not bound["platt"].eligible


def test_learning_curve_falls_with_rows() -> None:
    z, y = overconfident(600, 4)
    found = compare(z, y, methods=["platt"], sizes=(20, 400))
    curve = next(c for c in found.curves if c.name == "platt")
    assert curve.sizes == (20, 400)
    assert curve.estimates[0].value > curve.estimates[1].value


def test_probabilities_names_and_frames() -> None:
    z, y = overconfident(300, 3)
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    words = np.array(["no", "maybe", "yes"])
    found = compare(p, words[y], methods=["ts"], inputs="probabilities", classes=words)
    assert set(found.refit_.predict(p)) <= set(words)
    frame = found.to_dataframe()
    assert list(frame.index) == [row.name for row in found.rows]
    assert frame.loc["ts", "nll"] == found["ts"].metrics["nll"].value


def test_infinite_losses_never_win() -> None:
    p = np.array([[1.0, 0.0], [0.0, 1.0]] * 40)
    y = np.array([0, 1] * 39 + [1, 0])
    masked = {"inputs": "probabilities", "saturated": "exact", "cv": 4}
    near = p + np.random.default_rng(0).normal(size=p.shape)
    found = compare(p, y, methods=["ts", "kcal"], embeddings=near, **masked)
    assert found["identity"].metrics["nll"].value == np.inf
    assert found.best_ == "kcal"
    assert "infinite; with kcal it is" in found.reason
    assert "inf " not in found.reason
    reference, pairs = found.differences("nll")
    assert (reference, [(row.name, gap.value) for row, gap in pairs]) == ("kcal", [("kcal", 0.0)])
    json.loads(found.to_json())
    lost = compare(p, y, methods=["ts", "ets"], **masked)
    assert "Every map compared" in lost.reason
    assert lost.refit_.saturated == "exact"
    assert np.isfinite(compare(p, y, methods=["ts"], inputs="probabilities", cv=4)["identity"].metrics["nll"].value)


def _grouped(n: int, groups: int) -> tuple[Any, Any, Any]:
    """Rows that come in copies of themselves: only ``groups`` of them are independent."""
    z, y = overconfident(groups, 4)
    rows = np.random.default_rng(0).integers(0, groups, n)
    return z[rows], y[rows], rows


def test_groups_stay_in_one_fold_of_about_equal_size_and_classes(rng: np.random.Generator) -> None:
    labels = rng.choice(3, size=3000, p=[0.7, 0.25, 0.05])
    groups = rng.geometric(0.02, size=3000)
    groups = np.unique(groups, return_inverse=True)[1]
    fold = np.empty(3000, dtype=int)
    for number, split in enumerate(group_folds(labels, groups, 5, rng)):
        fold[split.judge] = number
        assert set(groups[split.fit]).isdisjoint(groups[split.judge])
        assert len(split.fit) + len(split.judge) == 3000
        assert 550 < len(split.judge) < 650
        assert np.abs(np.bincount(labels[split.judge], minlength=3) / np.bincount(labels) - 0.2).max() < 0.1
    assert set(fold) == set(range(5))


def test_few_large_groups_leave_no_fold_empty(rng: np.random.Generator) -> None:
    groups = np.array([0] * 90 + [1, 2, 3])
    splits = group_folds(np.arange(93) % 2, groups, 4, rng)
    assert sorted(len(split.judge) for split in splits) == [1, 1, 1, 90]


def test_copies_of_a_row_count_as_one() -> None:
    z, y, rows = _grouped(900, 100)
    naive, grouped = compare(z, y, methods=["ts"]), compare(z, y, methods=["ts"], groups=rows)
    assert grouped.settings["groups"] == len(set(rows))
    for name in ("nll", "accuracy", "ece"):
        assert grouped["ts"].metrics[name].error > 2 * naive["ts"].metrics[name].error
    words = compare(z, y, methods=["ts"], groups=np.array([f"g{r}" for r in rows], dtype=object))
    assert words["ts"].metrics["nll"].value == pytest.approx(grouped["ts"].metrics["nll"].value, rel=0.05)


def test_one_row_a_group_is_no_group() -> None:
    z, y = overconfident(300, 3)
    order = make_problem(z, y, "logits", None).content_order()  # so that groups are numbered as rows are
    z, y = z[order], y[order]
    alone, plain = compare(z, y, methods=["ts"], groups=np.arange(300)), compare(z, y, methods=["ts"])
    for name, estimate in plain["identity"].metrics.items():
        assert alone["identity"].metrics[name].value == pytest.approx(estimate.value)
        assert alone["identity"].metrics[name].error == pytest.approx(estimate.error)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"methods": ["no-such"]}, "no map has this name"),
        ({"metric": "ece"}, "metric"),
        ({"cv": 1}, "cv"),
        ({"cv": 400}, "too few"),
        ({"repeats": 0}, "repeats"),
        ({"sizes": [1]}, "sizes"),
        ({"sizes": [5, 5000]}, "sizes must be numbers of rows that there are to fit on; seen: 5000; allowed: 2 to"),
        ({"test": 5}, "test"),
        ({"embeddings": np.zeros((3, 2))}, "embeddings"),
        ({"groups": np.zeros(3)}, "groups"),
        ({"groups": np.arange(100) % 3}, "3 groups"),
        ({"groups": np.full(100, np.nan)}, "groups contains NaN"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], words: str) -> None:
    z, y = overconfident(100, 3)
    with pytest.raises(InvalidInput, match=words):
        compare(z, y, **{"methods": ["ts"], **options})


def test_parameters_are_those_of_the_fitted_maps() -> None:
    z, y = overconfident(300, 4)
    found = compare(z, y, methods=["ts", "hoki", "kcal-logits"], cv=3)
    assert found["identity"].parameters == 0
    assert found["ts"].parameters == 1
    for name in ("hoki", "kcal-logits"):
        counts = []
        for split in dealt(z, y, 3, seed=0):
            fitted = calibrant.make(name)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fitted.set_params(random_state=0).fit(z[split.fit], y[split.fit])
            counts.append(fitted.n_parameters_)
        assert found[name].parameters == pytest.approx(np.mean(counts))


class _Shrunk(calibrant.Identity):
    """Learns four numbers, of which the rows determine one and a half."""

    def _fit(self, data: Any) -> Any:
        report = super()._fit(data)
        report.details["effective_parameters"] = 1.5
        return report

    def _count_parameters(self) -> float:
        return 4.0


def test_the_effective_number_counts_where_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._BY_NAME, "shrunk", registry.Entry("shrunk", _Shrunk, "", ""))
    z, y = overconfident(100, 3)
    found = compare(z, y, methods=["shrunk"])["shrunk"]
    assert (found.parameters, found.learnt) == (1.5, 4.0)
    assert AutoCalibrator(["shrunk"]).fit(z, y).n_parameters_ in (0.0, 4.0)


def test_zeros_are_judged_as_predict_proba_reads_them() -> None:
    z, y = overconfident(400, 4)
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p[p < 1e-4] = 0.0
    p /= p.sum(axis=1, keepdims=True)
    assert (p[np.arange(400), y] == 0).any()
    for saturated in ("small", "exact"):
        for name in ("identity", "ts", "ets"):
            expected = np.zeros(400)
            for part in dealt(p, y, 3, seed=0, inputs="probabilities"):
                fitted = calibrant.make(name, inputs="probabilities", saturated=saturated)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    answer = fitted.fit(p[part.fit], y[part.fit]).predict_proba(p[part.judge])
                with np.errstate(divide="ignore"):
                    expected[part.judge] = -np.log(answer[np.arange(len(part.judge)), y[part.judge]])
            found = compare(p, y, methods=[name], inputs="probabilities", saturated=saturated, cv=3)
            assert found[name].metrics["nll"].value == pytest.approx(expected.mean(), rel=1e-9)
            assert np.isfinite(expected).all() or saturated == "exact"


def test_comparisons_at_once_leave_the_threads_alone() -> None:
    """Neither sees the limits of the other, nor does the process, and the figures are those of one alone."""
    z, y = overconfident(300, 4)
    before, barrier = calibrant.get_threads(), Barrier(2)
    calibrant.set_threads(6)
    try:
        alone = compare(z, y, methods=["ts", "vector"])
        seen: list[int] = []

        def run(jobs: int) -> Any:
            def look(done: int, total: int) -> None:
                seen.append(calibrant.get_threads())

            barrier.wait(10)
            found = compare(z, y, methods=["ts", "vector"], n_jobs=jobs, progress=look)
            return found, calibrant.get_threads()

        with ThreadPoolExecutor(2) as pool:
            results = list(pool.map(run, (3, 6)))
        assert set(seen) == {2, 1}
        for found, after in results:
            assert after == 6
            for row in found.rows:
                assert row.metrics == alone[row.name].metrics
        assert calibrant.get_threads() == 6
    finally:
        calibrant.set_threads(before)


def test_subsamples_are_stratified() -> None:
    labels = np.repeat([0, 1], [90, 10])
    rows = subsample(np.arange(100), labels, 20, np.random.default_rng(0))
    assert len(np.unique(rows)) == 20
    assert (labels[rows] == 1).sum() == 2


def test_all_maps_run_on_a_small_problem() -> None:
    z, y = overconfident(150, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = compare(z, y, methods="all", cv=2)
    assert {row.name for row in found.rows} >= {"identity", "ts", "ets"}
    assert [row.name for row in found.rows if row.error] == []


def test_an_event_is_judged_as_one(rng: np.random.Generator) -> None:
    risk = rng.beta(1, 20, 600)
    y = (rng.random(600) < risk / 2).astype(int)
    found = compare(risk, y, methods=["platt", "isotonic"], inputs="probabilities", cv=3)
    assert found.settings["event"] is True
    assert list(found["identity"].metrics) == ["nll", "brier", "ece", "ece_sweep"]
    measured = calibrant.measure(y, risk, resamples=19)
    for name in ("nll", "brier", "ece", "ece_sweep"):
        assert found["identity"].metrics[name].value == pytest.approx(measured.metrics[name].estimate, rel=1e-6)
    assert "accuracy" not in found.reason
    assert "label" not in found.reason
    both = compare(np.c_[1 - risk, risk], y, methods=["platt"], inputs="probabilities", cv=3)
    assert both.settings["event"] is False
    assert "accuracy" in both["identity"].metrics


@pytest.mark.parametrize("classes", [2, 4])
def test_gain_and_further_errors_on_request(classes: int, rng: np.random.Generator) -> None:
    z, y = overconfident(600, classes)
    scores = z[:, 1] - z[:, 0] if classes == 2 else z
    found = compare(scores, y, methods=["ts", "irova"], also=("gain", "ece_kde"), random_state=3)
    assert found.settings["also"] == ["gain", "ece_kde"]
    said = {name: found.answers(name).probabilities.astype(float) for name in ("identity", "ts")}
    if classes == 2:
        said = {name: p[:, 1] for name, p in said.items()}
    gain = calibration_gain(y, said["identity"], said["ts"])
    assert found["ts"].metrics["gain"].value == pytest.approx(float(gain), rel=1e-5)
    assert found["ts"].metrics["gain"].error == pytest.approx(gain.standard_error, rel=0.01)
    assert found["identity"].metrics["gain"].value == 0
    assert found["ts"].metrics["ece_kde"].value == pytest.approx(ece_kde(y, said["ts"]), rel=1e-5)
    assert found["ts"].metrics["ece_kde"].error > 0
    assert found.best_ == compare(scores, y, methods=["ts", "irova"], random_state=3).best_


def test_unknown_further_figures_are_named() -> None:
    z, y = overconfident(100, 3)
    with pytest.raises(InvalidInput, match=r"unknown figure.*'nll'.*gain, ece_crossfit"):
        compare(z, y, methods=["ts"], also="nll")


def test_rows_to_judge_on_have_weights(rng: np.random.Generator) -> None:
    z, y = rng.normal(size=(300, 3)), rng.integers(0, 3, 300)
    weights = rng.integers(0, 3, 300).astype(float)
    many = np.repeat(np.arange(300), weights.astype(int))
    found = [
        compare(z, y, methods=["ts"], test=test)["ts"].metrics["nll"].value
        for test in ((z, y, None, None, weights), (z[many], y[many]), (z, y))
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-12)
    assert found[0] != pytest.approx(found[2], rel=1e-6)
