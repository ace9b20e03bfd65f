"""The one place where user input is checked and becomes arrays."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.exceptions import DataConversionWarning

from calibrant import CalibrationWarning, Identity, TemperatureScaling
from calibrant.arrays import softmax
from calibrant.errors import InvalidInput, InvalidType
from calibrant.validation import as_array, as_labels, as_probabilities, as_scores, as_weights, floored

Z = np.array([[1.0, -2.0, 0.5], [0.0, 3.0, 1.0], [2.0, 2.0, -1.0]])
P = softmax(Z)


def test_contiguous_scores_are_not_copied():
    for dtype in (np.float32, np.float64):
        z = Z.astype(dtype)
        assert as_scores(z, "logits").logits is z


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.int64, bool, object])
def test_other_numbers_become_floats(dtype):
    valid = as_scores(Z.round().astype(dtype) * np.array([1, 2, 3], dtype=dtype), "logits")
    assert valid.logits.dtype == (np.float32 if dtype == np.float16 else np.float64)


def test_a_vector_is_the_score_of_the_second_class():
    s = np.array([-1.0, 0.5, 3.0])
    np.testing.assert_array_equal(as_scores(s, "logits").logits, np.c_[0 * s, s])
    np.testing.assert_array_equal(as_scores(s[:, None], "logits").logits, np.c_[0 * s, s])
    p = np.array([0.0, 0.25, 1.0])
    pair = as_scores(p, "probabilities")
    np.testing.assert_allclose(np.exp(pair.logits), np.c_[1 - p, p])
    assert pair.has_minus_infinity


def test_probabilities_become_their_logarithms():
    valid = as_scores(P, "probabilities")
    np.testing.assert_allclose(np.exp(valid.logits), P)
    assert not valid.has_minus_infinity
    assert as_scores(np.eye(3), "probabilities").has_minus_infinity


def test_rows_rounded_by_a_files_writer_are_distributions():
    as_scores(P * 1.0002, "probabilities")
    with pytest.raises(InvalidInput, match="not a distribution"):
        as_scores(P * 1.01, "probabilities")


def test_one_row_on_the_simplex_may_be_logits():
    as_scores(P[:1], "logits")
    with pytest.raises(InvalidInput, match='pass inputs="probabilities"'):
        as_scores(P, "logits")
    as_scores(np.vstack([P, Z]), "logits")


def test_errors_say_where():
    bad = Z.copy()
    bad[2, 1] = np.nan
    with pytest.raises(InvalidInput, match="scores contains NaN; seen: first in row 2"):
        as_scores(bad, "logits")
    bad[1, 0] = np.inf
    bad[2, 1] = 0
    with pytest.raises(InvalidInput, match=r"\+inf .* first in row 1"):
        as_scores(bad, "logits")
    with pytest.raises(InvalidType, match="must hold numbers"):
        as_scores(np.array([[1.0, {}], [2.0, 3.0]], dtype=object), "logits")


def test_errors_inherit_value_error_and_type_error():
    assert issubclass(InvalidType, ValueError)
    assert issubclass(InvalidType, TypeError)


@given(
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 6), st.integers(2, 5)),
        elements=st.one_of(st.floats(-1e4, 1e4), st.just(-np.inf)),
    )
)
@settings(max_examples=50, deadline=None)
def test_the_floor_keeps_the_order_of_every_row(z):
    z[:, 0] = np.where(np.isneginf(z).all(axis=1), 0.0, z[:, 0])
    f = floored(z)
    assert np.isfinite(f).all()
    order = np.argsort(z, axis=1, kind="stable")
    assert (np.diff(np.take_along_axis(f, order, 1), axis=1) >= 0).all()
    finite = np.isfinite(z)
    np.testing.assert_array_equal(f[finite], z[finite])


def _labels(y, k, **more):
    return as_labels(y, k, len(y), **more)


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        ([0, 2, 1], [0, 1, 2]),
        ([0, 1, 0], [0, 1, 2]),
        ([1, 3, 2], [1, 2, 3]),
        ([-1, 7, 5], [-1, 5, 7]),
        ([0.0, 2.0, 1.0], [0, 1, 2]),
        (["b", "a", "c"], ["a", "b", "c"]),
        (np.array(["b", "a", "c"], dtype=object), ["a", "b", "c"]),
        (np.array([2, 0, 1], dtype=object), [0, 1, 2]),
        (np.array([2, 0, 1], dtype=np.uint8), [0, 1, 2]),
    ],
)
def test_classes_are_found(y, classes):
    labels, known = _labels(y, 3)
    assert labels.dtype == np.int64
    np.testing.assert_array_equal(known, classes)
    np.testing.assert_array_equal(known[labels], np.asarray(y))


def test_booleans_are_answered_as_booleans():
    labels, known = _labels([True, False, True], 2)
    assert known.dtype == bool
    np.testing.assert_array_equal(labels, [1, 0, 1])
    with pytest.raises(InvalidInput, match="does not fit the 3 columns"):
        _labels([True, False, True], 3)


def test_given_classes_come_first_and_may_be_missing():
    labels, known = _labels(["cat", "ant"], 4, classes=["dog", "cat", "bee", "ant"])
    np.testing.assert_array_equal(labels, [1, 3])
    assert known.tolist() == ["dog", "cat", "bee", "ant"]
    labels, _ = _labels([0, 1], 2, classes=[1, 0])
    np.testing.assert_array_equal(labels, [1, 0])


def test_names_of_columns_are_classes():
    columns = ("cat", "ant", "bee")
    labels, known = _labels(["ant", "ant", "cat"], 3, columns=columns)
    np.testing.assert_array_equal(labels, [1, 1, 0])
    assert known.tolist() == list(columns)
    labels, known = _labels([1, 2], 3, columns=(3, 2, 1))
    np.testing.assert_array_equal(labels, [2, 1])
    labels, known = _labels([0, 2, 1], 3, columns=("logit_0", "logit_1", "logit_2"))
    assert known.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("y", "k", "more", "message"),
    [
        ([0, 3], 3, {}, "allowed: integers 0 to 2"),
        (["a", "b"], 3, {}, r"pass classes=\[…\]"),
        ([0.5, 1.0], 2, {}, "Unknown label type"),
        ([0j, 1j], 2, {}, "Complex data not supported in y"),
        ([0, 1], 2, {"classes": [0j, 1j]}, "Complex data not supported in classes"),
        ([0.0, np.inf], 2, {}, "NaN or infinity"),
        (["a", None], 2, {}, "missing labels; seen: None in row 1"),
        (np.array(["a", np.nan], dtype=object), 2, {}, "missing labels"),
        (["a", float("nan")], 2, {}, "missing labels; seen: nan in row 1"),
        (np.array(["2026-01-01", "NaT"], dtype="datetime64[D]"), 2, {}, "missing labels; seen: None in row 1"),
        (["a", 1], 2, {}, "all strings, all numbers"),
        (np.array(["a", 1], dtype=object), 2, {}, "all strings, all numbers"),
        (np.eye(2), 2, {}, "one-hot"),
        (["a", "z"], 2, {"classes": ["a", "b"]}, "outside the classes; seen: .*'z'.* in row 1"),
        (["a", "b"], 2, {"classes": ["a", "a"]}, "classes must name each column"),
        (["a", "b"], 2, {"classes": [["a", "b"]]}, "classes must name each column"),
    ],
)
def test_labels_that_do_not_fit_are_refused(y, k, more, message):
    with pytest.raises(InvalidInput, match=message):
        as_labels(y, k, 2, **more)


def test_a_column_of_labels_is_taken_with_a_warning():
    with pytest.warns(DataConversionWarning, match="column-vector"):
        labels, _ = _labels(np.array([[0], [1], [1]]), 2)
    np.testing.assert_array_equal(labels, [0, 1, 1])


def test_pandas_and_polars_are_welcome():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    z = np.random.default_rng(0).normal(size=(60, 3)) * 3
    y = np.array(["cat", "ant", "bee"])[np.where(np.arange(60) % 3 > 0, z.argmax(axis=1), np.arange(60) % 2)]
    wanted = TemperatureScaling(classes=["cat", "ant", "bee"]).fit(z, y)
    frame = pandas.DataFrame(z, columns=["cat", "ant", "bee"], index=np.arange(60)[::-1])
    series = pandas.Series(y, index=np.arange(60)[::-1])
    for labels in (series, series.astype("category"), series.astype("string"), pandas.Categorical(y)):
        map_ = TemperatureScaling().fit(frame, labels)
        assert map_.classes_.tolist() == ["cat", "ant", "bee"]
        assert map_.temperature_ == wanted.temperature_
    assert map_.feature_names_in_.tolist() == ["cat", "ant", "bee"]
    np.testing.assert_array_equal(map_.predict(frame[["ant", "bee", "cat"]]), map_.predict(frame))
    with pytest.raises(ValueError, match="feature names should match"):
        map_.predict(frame.rename(columns={"ant": "fox"}))
    table = polars.DataFrame({"cat": z[:, 0], "ant": z[:, 1], "bee": z[:, 2]})
    for labels in (polars.Series(y), polars.Series(y).cast(polars.Categorical)):
        assert TemperatureScaling().fit(table, labels).temperature_ == wanted.temperature_
    assert TemperatureScaling().fit(frame.astype("float32"), series).predict_proba(z.astype("f4")).dtype == np.float32
    weights = pandas.Series(np.full(60, 2.0))
    assert TemperatureScaling().fit(frame, series, weights).temperature_ == pytest.approx(wanted.temperature_)


@pytest.mark.parametrize("labels", [["ant", "bee", "bee"], [True, False, False]])
def test_arrow_arrays_of_words_and_truth_values_are_labels(labels):
    arrow = pytest.importorskip("pyarrow")
    places, classes = as_labels(arrow.array(labels), 2, 3)
    wanted_places, wanted = as_labels(labels, 2, 3)
    np.testing.assert_array_equal(places, wanted_places)
    np.testing.assert_array_equal(classes, wanted)
    with pytest.raises(InvalidInput, match="missing labels; seen: None in row 0"):
        as_labels(arrow.array([None, *labels[1:]]), 2, 3)


def test_frames_with_missing_values_are_refused():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, None, 2.0], "b": [0.0, 1.0, 3.0]})
    with pytest.raises(InvalidInput, match="scores contains NaN; seen: first in row 1"):
        as_scores(frame, "logits")
    with pytest.raises(InvalidInput, match="missing labels"):
        as_labels(pandas.Series(["a", None, "b"], dtype="string"), 2, 3)
    with pytest.raises(InvalidInput, match="y contains NaN"):
        as_labels(pandas.Series([1, None, 0], dtype="Int64"), 2, 3)


def test_sparse_matrices_are_refused():
    from scipy.sparse import csr_matrix

    with pytest.raises(InvalidInput, match="sparse"):
        as_array(csr_matrix(np.eye(3)), "scores")


def test_weights():
    assert as_weights(None, 3) is None
    assert as_weights([1, 1, 1], 3) is None
    np.testing.assert_array_equal(as_weights([0, 2, 1], 3), [0.0, 2.0, 1.0])
    np.testing.assert_array_equal(as_weights(2, 3), [2.0, 2.0, 2.0])


def test_one_row_is_fitted_and_told():
    with pytest.warns(CalibrationWarning, match="one row says little"):
        Identity().fit(Z[:1], [0])
    with pytest.warns(CalibrationWarning, match="one row says little"):
        Identity().fit(Z, [0, 0, 0], sample_weight=[0, 1, 0])


def test_one_class_is_refused_by_name():
    with pytest.raises(InvalidInput, match="every label with a positive weight is 'b'"):
        Identity(classes=["a", "b", "c"]).fit(Z, ["b", "b", "b"])


def test_wrong_columns_at_predict():
    map_ = Identity().fit(Z, [0, 1, 2])
    with pytest.raises(InvalidInput, match=r"X has 1 features, but Identity is expecting 3 .* Reshape your data"):
        map_.predict(Z[:, 0])
    with pytest.raises(InvalidInput, match="X has 2 features, but Identity is expecting 3"):
        map_.predict_proba(Z[:, :2])


def test_the_door_is_quick():
    """Validation and scikit-learn's machinery take well under a millisecond on 1,000 × 10."""
    from time import perf_counter

    z = np.random.default_rng(0).normal(size=(1000, 10))
    y = np.arange(1000) % 10

    def seconds():
        start = perf_counter()
        valid = as_scores(z, "logits")
        as_labels(y, 10, 1000)
        as_weights(None, 1000)
        floored(valid.logits)
        return perf_counter() - start

    assert min(seconds() for _ in range(50)) < 1e-3


def test_percentages_are_recognised_also_where_they_are_small_or_of_classes() -> None:
    few = np.linspace(0.1, 8, 50)
    with pytest.raises(InvalidInput, match="percentages must be divided by 100"):
        as_scores(few, "probabilities")
    with pytest.raises(InvalidInput, match=r"log-odds$"):
        as_scores(few - 4, "probabilities")
    with pytest.raises(InvalidInput, match="divide percentages by 100"):
        as_probabilities(np.array([[50.0, 49.0], [20.0, 80.0]]))
