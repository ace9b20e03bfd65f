"""Public functions called with what is no answer to their question: a CalibrantError, and no exception of others."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import calibrant
from calibrant import metrics
from calibrant.errors import CalibrantError
from calibrant.monitoring import Monitor, OnlineRecalibrator, Pending

RNG = np.random.default_rng(0)
Z = RNG.normal(size=(40, 3))
Y = np.where(RNG.random(40) < 0.6, Z.argmax(axis=1), RNG.integers(0, 3, 40))
P = RNG.beta(2, 4, 40)
E = (RNG.random(40) < P).astype(int)
STRANGE = {
    "array": np.ones(40),
    "no rows": np.array([]),
    "frame": pd.DataFrame({"a": range(40)}),
    "list": [[1.0]],
    "dict": {},
    "beyond floats": 10**400,
    "type": float,
}


class Odd:
    """Says that it is an array, and is none."""

    def __array__(self, *_: object, **__: object) -> None:
        raise RuntimeError("no")

    def __str__(self) -> str:
        return "odd"


def calls(odd):
    """Each with one argument that is neither a word nor a number it knows."""
    online = OnlineRecalibrator()
    waiting = Pending()
    waiting.predicted([1], [0.5])
    waiting.labelled([1], [1])
    fitted = calibrant.make("identity").fit(Z, Y)
    return {
        "make": lambda: calibrant.make(odd),
        "metric of compare": lambda: calibrant.compare(Z, Y, methods=["ts"], cv=2, metric=odd),
        "methods of compare": lambda: calibrant.compare(Z, Y, methods=odd, cv=2),
        "preserve of compare": lambda: calibrant.compare(Z, Y, methods=["ts"], cv=2, preserve=odd),
        "repeats of compare": lambda: calibrant.compare(Z, Y, methods=["ts"], cv=2, repeats=odd),
        "inputs of compare": lambda: calibrant.compare(Z, Y, methods=["ts"], cv=2, inputs=odd),
        "saturated of compare": lambda: calibrant.compare(Z, Y, methods=["ts"], cv=2, saturated=odd),
        "also of compare": lambda: calibrant.compare(Z, Y, methods=["ts"], cv=2, also=odd),
        "preserve_accuracy of compare": lambda: calibrant.compare(Z, Y, methods=["ts"], cv=2, preserve_accuracy=odd),
        "sizes of compare": lambda: calibrant.compare(Z, Y, methods=["ts"], cv=2, sizes=odd),
        "n_jobs of compare": lambda: calibrant.compare(Z, Y, methods=["ts"], cv=2, n_jobs=odd),
        "profile of measure": lambda: calibrant.measure(E, P, profile=odd),
        "confidence of measure": lambda: calibrant.measure(E, P, confidence=odd),
        "norm": lambda: metrics.ece(E, P, norm=odd),
        "view": lambda: metrics.ece(E, P, view=odd),
        "state": lambda: metrics.state(odd),
        "question": lambda: Monitor(question=odd),
        "alpha": lambda: Monitor(alpha=odd),
        "answer": lambda: OnlineRecalibrator(answer=odd),
        "distance": lambda: online.regret_bound(odd),
        "close": lambda: waiting.feed(Monitor(), close=odd),
        "monitor": lambda: waiting.feed(odd),
        "label of a batch": lambda: Pending().predicted([1], [0.5], label=odd),
        "path of a report": lambda: calibrant.report(fitted, odd),
        "context of a report": lambda: calibrant.report(fitted, "never.html", odd),
        "path of an export": lambda: calibrant.export(fitted, odd),
        "dtype of an export": lambda: calibrant.export(fitted, "never.json", dtype=odd),
        "one score of an export": lambda: calibrant.export(fitted, "never.json", one_score=odd),
        "columns of SQL": lambda: fitted.to_sql(odd, table="t"),
        "dialect of SQL": lambda: fitted.to_sql(["a", "b", "c"], odd, table="t"),
        "place of a map": lambda: calibrant.load(odd),
        "place of a file": lambda: calibrant.files.read(odd),
        "scores of a file": lambda: calibrant.files.read("here.csv", scores=odd),
        "kind of a file": lambda: calibrant.files.read("here.csv", kind=odd),
        "target of an export": lambda: calibrant.export(fitted, "never.json", to=odd),
    }


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
@pytest.mark.parametrize("strange", STRANGE)
@pytest.mark.parametrize("name", calls(None))
def test_strange_arguments_are_refused_in_words(strange, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here.csv").write_text("logit_a,logit_b,label\n1,2,a\n2,1,b\n")
    if name in ("methods of compare", "sizes of compare") and strange in ("dict", "no rows"):
        pytest.skip("no names: the scores as they are, alone; no sizes: no curve")
    with pytest.raises(CalibrantError):
        calls(STRANGE[strange])[name]()


@pytest.mark.parametrize(
    "source",
    [
        Odd(),
        pd.Series([pd.NA] * 40),
        pd.Series(list("ab") * 20, dtype="category"),
        [(Z, 10**400)],
        [(10**400, Y)],
        [(Z, np.array(5))],
        [(Z, np.array([None] * 40))],
        [pd.Series([pd.NA] * 40)],
    ],
    ids=str,
)
def test_sources_that_are_none_are_refused(source):
    with pytest.raises(CalibrantError):
        calibrant.make("ts").fit(calibrant.scan(source))


def test_labels_beside_an_array_are_rows():
    with pytest.raises(CalibrantError, match="inconsistent"):
        calibrant.scan(Z, label=3)


def test_groups_that_have_no_order_or_no_text_are_refused():
    with pytest.raises(CalibrantError, match="order"):
        calibrant.ByGroup(calibrant.make("platt")).fit(Z, Y, groups=np.array([{}] * 40))
    with pytest.raises(CalibrantError, match="text"):
        calibrant.Multicalibrated(calibrant.make("platt")).fit(Z[:, 1] - Z[:, 0], E, groups=np.array([b"\xff"] * 40))


def test_classes_that_are_one_object_are_refused():
    with pytest.raises(CalibrantError, match="classes"):
        metrics.ece(E, P, classes=10**400)


def test_one_column_that_sql_keeps_is_a_name():
    fitted = calibrant.make("identity").fit(Z, Y)
    one, listed = (fitted.to_sql(["a", "b", "c"], table="t", keep=keep) for keep in ("id", ["id"]))
    assert one == listed
    with pytest.raises(CalibrantError, match="keep"):
        fitted.to_sql(["a", "b", "c"], table="t", keep=3)


@pytest.mark.parametrize(
    "odd",
    [
        {"memory": np.inf},
        {"memory": 10**400},
        {"memory": "9" * 400 + "TB"},
        {"sample": True},
        {"part": np.zeros(3)},
        {"percent": pd.NA},
        {"scores": 3.0},
    ],
    ids=str,
)
def test_settings_of_scans_are_of_their_types(odd):
    with pytest.raises(CalibrantError, match=next(iter(odd))):
        calibrant.scan(Z, label=Y, **odd)


def test_a_scan_whose_rows_have_no_weight_is_refused():
    with pytest.raises(CalibrantError, match="zero everywhere"):
        calibrant.make("ts").fit(calibrant.scan(Z, label=Y, weight=np.zeros(40)))


@pytest.mark.parametrize("odd", [Odd(), [1j], "", 10**400, [np.inf, np.inf, -np.inf]], ids=str)
def test_edges_and_outcomes_of_information_are_numbers(odd):
    for asked in ({"edges": odd}, {"y_true": odd}):
        with pytest.raises(CalibrantError):
            metrics.mutual_information(**{"y_true": E, "scores": P, "edges": [0.3], **asked})


@pytest.mark.parametrize("odd", [None, 10**400, np.zeros(3), 1e-30, "x"], ids=str)
def test_errors_and_powers_that_are_planned_for_are_numbers(odd):
    for asked in ({"tce": odd}, {"tce": 0.1, "power": odd}):
        with pytest.raises(CalibrantError):
            metrics.required_samples(**asked)


def test_groups_of_lists_are_refused_by_a_fitted_map():
    fitted = calibrant.ByGroup(calibrant.make("ts")).fit(Z, Y, groups=np.arange(40) % 3)
    lists = np.empty(40, dtype=object)
    lists[:] = [[1]] * 40
    with pytest.raises(CalibrantError, match="groups"):
        fitted.predict_proba(Z, groups=lists)


@pytest.mark.parametrize("jobs", [-1, 1, 3, None])
def test_jobs_are_a_number_of_threads_or_all(jobs):
    found = calibrant.compare(Z, Y, methods=["ts"], cv=2, n_jobs=jobs)
    assert found.best_ == calibrant.compare(Z, Y, methods=["ts"], cv=2).best_
    with pytest.raises(CalibrantError, match="n_jobs"):
        calibrant.compare(Z, Y, methods=["ts"], cv=2, n_jobs=0)


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000])
def test_names_that_no_file_can_have_are_refused(path):
    for asked in (calibrant.load, calibrant.files.read, calibrant.scan):
        with pytest.raises(CalibrantError, match=r"cannot read|ending|no path"):
            asked(path)


@pytest.mark.parametrize("path", ["x" * 5000, "\ud800"])
def test_names_that_no_file_can_have_are_not_written(path):
    with pytest.raises(CalibrantError, match="cannot write"):
        calibrant.make("identity").fit(Z, Y).save(path)


@pytest.mark.parametrize("path", ["a\0b", b"a", 3])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(CalibrantError, match="path"):
        calibrant.make("identity").fit(Z, Y).save(path)


def test_labels_of_a_model_are_refused_in_words():
    from sklearn.linear_model import LogisticRegression

    with pytest.raises(CalibrantError, match="y cannot be read"):
        calibrant.CalibratedModel(LogisticRegression()).fit(Z, 3)


@pytest.mark.parametrize("kind", ["M8[s]", "m8[s]", [("a", "f8")]], ids=str)
def test_dates_durations_and_records_are_no_numbers(kind):
    with pytest.raises(CalibrantError, match="must hold numbers"):
        calibrant.make("ts").fit(Z, Y).predict_proba(np.zeros((4, 3), dtype=kind))
    with pytest.raises(CalibrantError, match="must hold numbers"):
        calibrant.make("ts").fit(Z, Y, sample_weight=np.ones(40, dtype="i8").view("M8[s]"))


@pytest.mark.parametrize("operator", [calibrant.ByGroup, calibrant.Multicalibrated])
def test_groups_are_read_as_any_array_is(operator):
    torch = pytest.importorskip("torch")
    names = np.arange(40) % 3
    fitted = operator(calibrant.make("ts")).fit(Z, Y, 1.0, groups=names)
    given = torch.tensor(names.astype(float), requires_grad=True)
    other = operator(calibrant.make("ts")).fit(Z, Y, groups=given)
    np.testing.assert_array_equal(other.predict_proba(Z, groups=given), fitted.predict_proba(Z, groups=names))
    with pytest.raises(CalibrantError, match="groups"):
        operator(calibrant.make("ts")).fit(Z, Y, groups=[[1, 2], [3]] * 20)


def test_truth_values_that_are_not_known_name_no_group():
    with pytest.raises(CalibrantError, match="without a name"):
        calibrant.ByGroup(calibrant.make("ts")).fit(Z, Y, groups=pd.Series([True, None] * 20, dtype="boolean"))


@pytest.mark.parametrize(
    "edges", [["a"], [[1], [1, 2]], [1j], np.array(object())], ids=["text", "ragged", "complex", "object"]
)
def test_edges_that_are_no_numbers_are_refused(edges):
    with pytest.raises(CalibrantError, match="edges"):
        calibrant.Binning(edges).fit(P, E)


@pytest.mark.parametrize("classes", [[[1], [1, 2]], ["a", "b"], ["a", "a", "b"]], ids=str)
def test_classes_of_many_labels_name_each_column_once(classes):
    with pytest.raises(CalibrantError, match="classes"):
        calibrant.MultiLabel(calibrant.PlattScaling(), classes=classes).fit(Z, np.eye(3)[Y])


def test_scores_of_many_labels_are_no_larger_than_those_of_one():
    with pytest.raises(CalibrantError, match="too large"):
        calibrant.MultiLabel(calibrant.PlattScaling()).fit(Z * 1e300, np.eye(3)[Y])


NUMERIC = [
    (kind, name)
    for kind in (
        calibrant.BayesianBinning,
        calibrant.Binning,
        calibrant.BinwiseTemperatureScaling,
        calibrant.GaussianProcessCalibration,
        calibrant.Hoki,
        calibrant.Isotonic,
        calibrant.LogitSpline,
        calibrant.OrderPreservingScaling,
        calibrant.PlattScaling,
        calibrant.QuadraticScaling,
        calibrant.SplineCalibration,
        calibrant.VectorScaling,
        calibrant.VennAbers,
    )
    for name, check in kind._constraints.items()
    if check.accepts(3)
]


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
@pytest.mark.parametrize("value", [10**400, 2**63, 1e308, 5e-324, 1e30, 1e-30, Fraction(1, 3), Fraction(7, 1)], ids=str)
@pytest.mark.parametrize(("kind", "name"), NUMERIC)
def test_numbers_of_any_size_are_refused_or_fitted_with(kind, name, value):
    scores, y = (
        (Z, Y) if kind.__module__.startswith("calibrant.maps.scaling") or kind is calibrant.Hoki else (Z[:, 0], E)
    )
    try:
        p = kind(**{name: value}).fit(scores, y).predict_proba(scores)
    except CalibrantError:
        return
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("weight", [1e-130, 1e-200, 5e-324])
def test_a_row_that_weighs_next_to_nothing_weighs_nothing(weight):
    weights = np.where(np.arange(40) == 7, weight, 1.0)
    scores = np.where(np.arange(40) == 7, 0.99, P * 0.9)
    found, without = (
        calibrant.measure(E, scores, sample_weight=w, resamples=19) for w in (weights, np.where(weights < 1, 0.0, 1.0))
    )
    assert str(found) == str(without)


def test_frequencies_of_next_to_no_trials_are_anything():
    low, high = metrics.frequency_interval([1e-200, 1.0], [1e-200, 2.0])
    np.testing.assert_allclose([low[0], high[0]], [0, 1])
    with pytest.raises(CalibrantError, match="counts"):
        metrics.frequency_interval([1.0], [np.nan])
