"""Names of columns decide: reordered where they match, refused where they do not, by position where there are none."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import overconfident

from calibrant import MultiLabel, PlattScaling, compare, load, make, measure, scan
from calibrant.arrays import softmax
from calibrant.errors import InvalidInput
from calibrant.files import read
from calibrant.metrics import accuracy, nll, state
from calibrant.metrics.measuring import Measuring
from calibrant.monitoring import Monitor, OnlineRecalibrator
from calibrant.validation import as_labels
from calibrant.validation.columns import column_order, order_of, without_affixes

pandas = pytest.importorskip("pandas")
Z, Y = overconfident(300, 3)
Z = Z + np.array([0.0, 2.0, -1.0])
NAMES = ["ant", "bee", "cat"]
WORDS = np.array(NAMES)[Y]


def _frame(names: list[str]) -> Any:
    return pandas.DataFrame(Z, columns=names)


def _order(columns: Any, known: Any) -> list[int] | None:
    found = order_of(columns, known)
    return None if found is None else found.tolist()


def test_order_of_names() -> None:
    assert _order(["c", "a", "b"], ["a", "b", "c"]) == [1, 2, 0]
    assert _order(["p_b", "p_a"], ["a", "b"]) == [1, 0]
    assert _order(["b", "a"], ["a_prob", "b_prob"]) == [1, 0]
    assert _order(["a", "aa"], ["aa", "a"]) == [1, 0]
    assert _order(["p_1", "p_0"], np.array([0, 1])) == [1, 0]
    assert order_of(["bat", "bar"], ["cat", "car"]) is None
    assert order_of(["a", "b"], ["a", "b", "c"]) is None
    assert order_of(["a", "a"], ["a", "b"]) is None


def test_affixes_are_common_to_all_columns() -> None:
    assert without_affixes(["x.cat.y", "x.dog.y"], ["dog"]) == ["cat", "dog"]
    assert without_affixes(["p_cat", "q_dog"], ["dog"]) is None
    assert without_affixes(["p_cat", "p_dog"], []) is None


def test_who_decides() -> None:
    assert column_order([0, 1, 2], NAMES, None) is None
    assert column_order(["x", "y", "z"], None, NAMES) is None
    assert np.array_equal(np.asarray(column_order(["cat", "ant", "bee"], None, NAMES)), [1, 2, 0])
    with pytest.raises(InvalidInput, match=r"seen: fox; cat missing; allowed: ant, bee, cat"):
        column_order(["ant", "bee", "fox"], None, NAMES)
    with pytest.raises(InvalidInput, match="feature names should match"):
        column_order(["x", "y", "z"], NAMES, [0, 1, 2])


@pytest.mark.parametrize("method", ["vector", "ts", "hoki"])
def test_a_frame_in_another_order_gets_the_same_answer(method: str) -> None:
    fitted = make(method).fit(_frame(["p_ant", "p_bee", "p_cat"]), WORDS)
    assert fitted.classes_.tolist() == NAMES
    turned = _frame(["p_ant", "p_bee", "p_cat"])[["p_cat", "p_ant", "p_bee"]]
    np.testing.assert_array_equal(fitted.predict_proba(turned), fitted.predict_proba(Z))
    np.testing.assert_array_equal(fitted.predict(turned), fitted.predict(Z))
    bare = turned.rename(columns=lambda name: name[2:])
    np.testing.assert_array_equal(fitted.predict_proba(bare), fitted.predict_proba(Z))
    with pytest.raises(InvalidInput, match="fox"):
        fitted.predict_proba(bare.rename(columns={"cat": "fox"}))


def test_a_map_fitted_on_an_array_knows_its_classes() -> None:
    fitted = make("vector").fit(Z, WORDS)
    turned = _frame(NAMES)[["cat", "ant", "bee"]]
    np.testing.assert_array_equal(fitted.predict_proba(turned), fitted.predict_proba(Z))
    with pytest.raises(InvalidInput, match="fox"):
        fitted.predict_proba(turned.rename(columns={"cat": "fox"}))
    other = _frame(["s1", "s2", "s3"])  # says nothing of classes, and nothing was said in fit
    np.testing.assert_array_equal(fitted.predict_proba(other), fitted.predict_proba(Z))


def test_columns_too_many_or_too_few_are_named_before_any_number_is_read() -> None:
    frame = pandas.DataFrame(softmax(Z), columns=NAMES)
    fitted = make("ts", inputs="probabilities").fit(frame, WORDS)
    for other in (0.5, "a patient's name"):
        with pytest.raises(InvalidInput, match=r"names should match.*seen: fox; allowed: ant, bee, cat"):
            fitted.predict_proba(frame.assign(fox=other))
    with pytest.raises(InvalidInput, match=r"names should match.*seen: ant, bee; cat missing"):
        fitted.predict(frame[["ant", "bee"]])
    with pytest.raises(InvalidInput, match="X has 4 features"):
        fitted.predict_proba(frame.assign(fox=0.5).to_numpy())


def test_a_column_alone_that_names_no_class_is_the_score_of_the_event() -> None:
    p = softmax(Z[:, :2])
    fitted = make("platt", inputs="probabilities").fit(pandas.DataFrame(p, columns=["well", "sick"]), Y.clip(max=1))
    alone = pandas.DataFrame({"risk": p[:, 1]})
    np.testing.assert_allclose(fitted.predict_proba(alone), fitted.predict_proba(p), rtol=1e-9)


def test_numbers_are_names_too() -> None:
    frame = pandas.DataFrame(Z, columns=[7, 3, 5])
    fitted = make("vector").fit(frame, np.array([7, 3, 5])[Y])
    np.testing.assert_array_equal(fitted.predict_proba(frame[[3, 5, 7]]), fitted.predict_proba(Z))
    unlabelled = make("vector").fit(frame, WORDS)
    np.testing.assert_array_equal(unlabelled.predict_proba(frame[[3, 5, 7]]), unlabelled.predict_proba(Z))
    numbered = pandas.DataFrame(Z)  # 0, 1, 2, as pandas numbers what has no names
    np.testing.assert_array_equal(fitted.predict_proba(numbered), fitted.predict_proba(Z))


@pytest.mark.parametrize("names", [("p_-1", "p_1"), ("-1", "1"), ("score(-1)", "score(1)"), ("p_-1", "prob_of_1")])
def test_numbers_below_zero_and_in_words_of_their_own_are_names(names: tuple[str, str]) -> None:
    for columns, places in ((names, [0, 1]), (names[::-1], [1, 0])):
        labels, known = as_labels([-1, 1], 2, 2, columns=columns)
        assert (labels.tolist(), known[labels].tolist()) == (places, [-1, 1])


def test_labels_are_found_among_prefixed_columns() -> None:
    labels, known = as_labels(["sick", "well"], 2, 2, columns=("p_well", "p_sick"))
    assert (labels.tolist(), known.tolist()) == ([1, 0], ["well", "sick"])
    labels, known = as_labels([0, 1, 2], 3, 3, columns=("logit_2", "logit_0", "logit_1"))
    assert (labels.tolist(), known.tolist()) == ([1, 2, 0], [2, 0, 1])
    labels, known = as_labels([1, 2], 3, 2, columns=("x1", "x2", "x3"))  # may be counted from 0 or from 1: positions
    assert (labels.tolist(), known.tolist()) == ([1, 2], [0, 1, 2])
    turned = _frame(["p_ant", "p_bee", "p_cat"])[["p_cat", "p_ant", "p_bee"]]
    p = np.exp(turned)
    p = p.div(p.sum(axis=1), axis=0)
    assert nll(WORDS, p) == nll(Y, p[["p_ant", "p_bee", "p_cat"]].to_numpy())


def test_classes_that_contradict_the_columns_are_refused() -> None:
    with pytest.raises(InvalidInput, match="another order"):
        make("ts", classes=["cat", "ant", "bee"]).fit(_frame(NAMES), WORDS)
    make("ts", classes=NAMES).fit(_frame(["p_ant", "p_bee", "p_cat"]), WORDS)
    make("ts", classes=["cat", "ant", "bee"]).fit(pandas.DataFrame(Z[:, [2, 0, 1]]), WORDS)


def test_batches_of_a_scan_have_the_same_columns() -> None:
    frame = _frame(NAMES)
    good = make("vector").fit(scan(lambda: [(frame[:100], WORDS[:100]), (frame[100:], WORDS[100:])]))
    assert good.feature_names_in_.tolist() == NAMES
    with pytest.raises(InvalidInput, match="differ in the names"):
        make("vector").fit(scan(lambda: [(frame[:100], WORDS[:100]), (frame[NAMES[::-1]][100:], WORDS[100:])]))


@pytest.mark.parametrize("labels", [WORDS, Y], ids=["names", "numbers"])
def test_a_test_set_in_another_order_is_judged_alike(labels: Any) -> None:
    frame = _frame(["p_ant", "p_bee", "p_cat"])
    judged = [frame, frame[["p_cat", "p_ant", "p_bee"]], Z]
    found = [compare(frame, labels, methods=["vector"], test=(scores, labels)) for scores in judged]
    assert len({result["vector"].metrics["nll"].value for result in found}) == 1
    with pytest.raises(InvalidInput, match="p_fox"):
        compare(frame, labels, methods=["vector"], test=(frame.rename(columns={"p_ant": "p_fox"}), labels))


def test_names_survive_saving(tmp_path: Path) -> None:
    fitted = make("vector").fit(_frame(NAMES), WORDS)
    fitted.save(tmp_path / "m.calibrant")
    again = load(tmp_path / "m.calibrant")
    turned = _frame(NAMES)[["cat", "ant", "bee"]]
    np.testing.assert_array_equal(again.predict_proba(turned), fitted.predict_proba(Z))


@pytest.mark.parametrize("columns", [["P.Well", "P.Sick"], ["p_well", "p_sick"], ["Well", "Sick"], ["WELL", "SICK"]])
def test_case_and_what_stands_between_words_do_not_hide_a_class(columns: list[str]) -> None:
    p = softmax(Z[:, :2])
    labels = np.array(["well", "sick"])[Y.clip(max=1)]
    frame = pandas.DataFrame(p, columns=columns)
    assert make("ts", inputs="probabilities").fit(frame, labels).classes_.tolist() == ["well", "sick"]
    assert nll(labels, frame) == nll(Y.clip(max=1), p)
    fitted = make("vector", inputs="probabilities", classes=["sick", "well"]).fit(p[:, ::-1], labels)
    np.testing.assert_array_equal(fitted.predict_proba(frame), fitted.predict_proba(p[:, ::-1]))


def test_columns_may_have_words_of_their_own() -> None:
    p = softmax(Z[:, :2])
    labels = np.array(["well", "sick"])[Y.clip(max=1)]
    frame = pandas.DataFrame(p, columns=["well_prob", "prob_of_sick"])
    assert make("ts", inputs="probabilities").fit(frame, labels).classes_.tolist() == ["well", "sick"]
    for given, columns in ((WORDS, ("cat_prob", "P(ant)", "score_bee")), (Y, ("2_prob", "P(0)", "score_1"))):
        assert as_labels(given, 3, len(Y), columns=columns)[1].tolist() == [np.unique(given)[i] for i in (2, 0, 1)]
    with pytest.raises(InvalidInput, match="name some labels, but not all"):
        as_labels([True, False], 2, 2, columns=("p_True", "y_hat_False_v2"))


def test_names_that_are_one_without_case_are_told_apart_as_they_stand() -> None:
    assert _order(["p_A", "p_a"], ["a", "A"]) == [1, 0]
    assert _order(["P_A", "P_a"], ["b", "B"]) is None
    assert _order(["+", "-"], ["-", "+"]) == [1, 0]
    assert _order(["x", "y"], ["-", "+"]) is None


def test_truth_values_are_names_too() -> None:
    p = softmax(Z[:, :2])
    labels = Y.clip(max=1) == 1
    for columns in (["p_True", "p_False"], ["true", "false"]):
        frame = pandas.DataFrame(p[:, ::-1], columns=columns)
        assert make("ts", inputs="probabilities").fit(frame, labels).classes_.tolist() == [True, False]
        assert nll(labels, frame) == nll(labels, p)


@pytest.mark.filterwarnings("ignore::calibrant.errors.CalibrationWarning")
@pytest.mark.parametrize("names", [("p_", "y_"), ("", ""), ("said.", "seen.")])
def test_outcomes_of_several_events_go_by_the_names_of_their_columns(names: tuple[str, str]) -> None:
    p = softmax(Z)
    y = (np.random.default_rng(1).random(p.shape) < p).astype(int)
    said = pandas.DataFrame(p, columns=[names[0] + c for c in ("cough", "cold", "fever")])
    seen = pandas.DataFrame(y, columns=[names[1] + c for c in ("cough", "cold", "fever")])
    turned, swapped = seen.iloc[:, [2, 0, 1]], said.iloc[:, [1, 2, 0]]
    wanted = measure(y, p, profile="multilabel").figures["brier"].estimate
    assert measure(turned, said, profile="multilabel").figures["brier"].estimate == wanted
    fitted = MultiLabel(PlattScaling(), inputs="probabilities").fit(said, turned)
    known = MultiLabel(PlattScaling(), inputs="probabilities").fit(p, y)
    np.testing.assert_array_equal(fitted.predict_proba(swapped), known.predict_proba(p))
    np.testing.assert_array_equal(known.predict_proba(said), known.predict_proba(p))
    with pytest.raises(InvalidInput, match="fox"):
        fitted.predict_proba(said.rename(columns={names[0] + "cold": "fox"}))


def test_online_recalibration_refuses_columns_of_the_other_event() -> None:
    p = softmax(Z[:, :2])
    labels = np.array(["well", "sick"])[Y.clip(max=1)]
    for frame in (pandas.DataFrame(p, columns=["p_well", "p_sick"]), pandas.DataFrame({"p_sick": p[:, 1]})):
        with pytest.raises(InvalidInput, match=r"the first's; seen:.*p_sick; allowed: that of 'well'"):
            OnlineRecalibrator().step(labels, frame)
        online = OnlineRecalibrator()
        with pytest.raises(InvalidInput, match="the first's"):
            online.learn(labels, online.ask(frame))
        OnlineRecalibrator().step(Y.clip(max=1), frame)


def test_a_number_that_pandas_says_is_missing_is_told_by_its_row() -> None:
    frame = pandas.DataFrame(Z, columns=NAMES).astype("Float64")
    frame.iloc[7, 1] = pandas.NA
    with pytest.raises(InvalidInput, match="NaN; seen: first in row 7"):
        make("ts").fit(frame, WORDS)


@pytest.mark.parametrize("columns", [["p_True", "p_False"], ["true", "false"], ["p_1", "p_0"]])
@pytest.mark.parametrize("kind", [bool, int])
def test_columns_name_truth_values(columns: list[str], kind: type) -> None:
    risk = np.random.default_rng(0).random(400)
    y = (np.random.default_rng(1).random(400) < risk).astype(kind)
    frame = pandas.DataFrame(np.stack([risk, 1 - risk], axis=1), columns=columns)
    fitted = make("vector", inputs="probabilities").fit(frame, y)
    assert fitted.classes_.tolist() == [1, 0]
    expected = make("vector", inputs="probabilities").fit(frame[columns[::-1]].to_numpy(), y)
    np.testing.assert_allclose(fitted.predict_proba(frame)[:, 0], expected.predict_proba(risk)[:, 1], atol=1e-9)
    streamed = make("vector", inputs="probabilities").fit(
        scan(lambda: [frame[i::2].assign(label=y[i::2]) for i in range(2)], scores=columns)
    )
    np.testing.assert_allclose(streamed.predict_proba(frame), fitted.predict_proba(frame), atol=1e-9)


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet", "rows.jsonl"])
def test_columns_of_files_name_truth_values(name: str, tmp_path: Path) -> None:
    risk = np.random.default_rng(0).random(200)
    sick = np.random.default_rng(1).random(200) < risk
    frame = pandas.DataFrame({"p_True": risk, "p_False": 1 - risk, "label": sick})
    path = tmp_path / name
    if name.endswith("csv"):
        frame.to_csv(path, index=False)
    elif name.endswith("parquet"):
        frame.to_parquet(path)
    else:
        frame.to_json(path, orient="records", lines=True)
    assert read(path).classes.tolist() == [1, 0]
    assert make("ts", inputs="probabilities").fit(scan(path)).classes_.tolist() == [1, 0]


@pytest.mark.parametrize("columns", [["p_healthy", "p_sick"], ["well risk", "risk of illness"]])
def test_columns_that_name_a_label_at_another_place_are_refused(columns: list[str]) -> None:
    with pytest.raises(InvalidInput, match="name some labels, but not all"):
        make("ts").fit(pandas.DataFrame(Z[:, :2], columns=columns), np.array(["well", "sick"])[Y.clip(max=1)])
    z = pandas.DataFrame(Z[:, :2], columns=["first", "second"])
    fitted = make("ts").fit(z, np.array(["sick", "well"])[Y.clip(max=1)])
    assert fitted.classes_.tolist() == ["sick", "well"]  # such names say nothing


def test_what_has_seen_classes_takes_frames_in_any_order() -> None:
    p = softmax(Z)
    frame = pandas.DataFrame(p, columns=["p_ant", "p_bee", "p_cat"])
    turned = frame[["p_cat", "p_ant", "p_bee"]]
    known, mixed = (Measuring(resamples=19) for _ in range(2))
    for measuring, second in ((known, frame), (mixed, turned)):
        measuring.update(WORDS[:150], frame[:150]).update(WORDS[150:], second[150:])
    assert mixed.finalise().figures["brier"].estimate == known.finalise().figures["brier"].estimate
    states = [state("nll").update(WORDS[:150], frame[:150]).update(WORDS[150:], s[150:]) for s in (frame, turned)]
    assert states[0].finalise() == states[1].finalise()
    monitors = [Monitor().update(WORDS[:150], frame[:150]).update(WORDS[150:], s[150:]) for s in (frame, turned)]
    assert monitors[0].log_e == monitors[1].log_e
    one = Measuring(resamples=19).update(WORDS == "ant", pandas.DataFrame({"p_true": p[:, 0]}))
    assert one.update(WORDS == "ant", pandas.DataFrame({"p_true": p[:, 0]})).finalise().n == 600


def test_a_label_that_torch_leaves_out_is_no_class() -> None:
    labels = np.where(Y == 1, -100, Y)
    with pytest.raises(InvalidInput, match="-100, which torch leaves out"):
        nll(labels, softmax(Z))
    assert as_labels(labels, 3, len(labels), [0, -100, 2])[1].tolist() == [0, -100, 2]
    assert as_labels(labels - 1, 3, len(labels))[1].tolist() == [-101, -1, 1]


def test_raw_scores_that_break_ties_go_by_name() -> None:
    frame = _frame(["p_ant", "p_bee", "p_cat"])
    tied = pandas.DataFrame(np.full(Z.shape, 1 / 3), columns=frame.columns)
    wanted = accuracy(WORDS, tied, raw_scores=frame)
    assert accuracy(WORDS, tied, raw_scores=frame[["p_cat", "p_ant", "p_bee"]]) == wanted
    assert accuracy(WORDS, tied.to_numpy(), raw_scores=frame[["p_cat", "p_ant", "p_bee"]]) == wanted
    assert accuracy(Y, tied.to_numpy(), raw_scores=Z) == wanted


@pytest.mark.filterwarnings("ignore::calibrant.errors.CalibrationWarning")
def test_the_scores_of_the_classifier_beside_embeddings_go_by_name() -> None:
    frame = _frame(["p_ant", "p_bee", "p_cat"])
    rows = np.random.default_rng(0).normal(size=(len(Y), 3))
    turned = frame[["p_cat", "p_ant", "p_bee"]]
    one, two = (make("kcal").fit(rows, WORDS, classifier_scores=scores) for scores in (frame, turned))
    assert one.fit_report_.held_out_before == two.fit_report_.held_out_before
    np.testing.assert_array_equal(
        one.predict_proba(rows, classifier_scores=turned), one.predict_proba(rows, classifier_scores=Z)
    )


def test_two_columns_of_one_name_are_refused() -> None:
    twice = _frame(["p_ant", "p_bee", "p_bee"])
    fitted = make("ts").fit(Z, WORDS)
    for refused in (lambda: make("ts").fit(twice, WORDS), lambda: fitted.predict_proba(twice)):
        with pytest.raises(InvalidInput, match="two columns of one name; seen: 'p_bee'"):
            refused()


def test_an_arrow_table_is_a_frame() -> None:
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({name: Z[:, i] for i, name in enumerate(NAMES)})
    fitted = make("ts").fit(table, WORDS)
    assert fitted.feature_names_in_.tolist() == NAMES
    np.testing.assert_array_equal(fitted.predict_proba(table.select(NAMES[::-1])), fitted.predict_proba(Z))
