"""Cells of rows with one score: those of their logits to the last bit, in the same folds; what maps make of them."""

from itertools import pairwise

import numpy as np
import pytest

import calibrant
from calibrant import (
    BetaCalibration,
    Binning,
    CentredIsotonic,
    Isotonic,
    LogitSpline,
    OneVsRest,
    PlattScaling,
    QuadraticScaling,
    SplineCalibration,
    VennAbers,
    calibrator,
)
from calibrant.cells import counted, one_score
from calibrant.cells.counted import CellSums, cells_of_groups
from calibrant.cells.one_score import cells_of_one_score
from calibrant.errors import InvalidInput
from calibrant.fits import judge
from calibrant.fits.judge import Comparison
from calibrant.operators import one_vs_rest
from calibrant.passes import OneScore, in_column, in_memory, survey
from calibrant.scanning import scanned
from calibrant.validation import as_score_column, as_scores
from calibrant.validation import one_score as validated

LOSSES = ("loss_before", "loss_after", "held_out_before", "held_out_after", "held_out_error", "held_out_pvalue")
PARTS = ("scores", "weights", "outcomes", "cuts")
SECOND = np.array([-1, 0])
ROWS = 20_000
MAPS = [
    QuadraticScaling(),
    LogitSpline(),
    CentredIsotonic(),
    SplineCalibration(),
    VennAbers(),
    VennAbers(folds=3),
    Binning(edges="equal_mass"),
    Binning(edges="equal_width"),
    Binning(edges="imax"),
    Isotonic(),
    OneVsRest(QuadraticScaling()),
    OneVsRest(CentredIsotonic(), share="all"),
]


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch):
    """Let some thousand rows be counted, and judged by one fold, as millions are."""
    monkeypatch.setattr(validated, "_MANY", 1000)
    monkeypatch.setattr(counted, "_EXACT", 100)
    monkeypatch.setattr(judge, "_ONE_FOLD", 1000)


def events(inputs="probabilities", dtype=np.float64, n=ROWS, spread=2.0):
    rng = np.random.default_rng(0)
    odds = rng.normal(size=n) * spread
    y = (rng.random(n) < 1 / (1 + np.exp(-0.7 * odds + 0.1 * odds**2))).astype(np.int64)
    return (odds if inputs == "logits" else 1 / (1 + np.exp(-odds))).astype(dtype), y


def columns(scores, y, inputs):
    """The rows as one score each, and as logits."""
    column = as_score_column(scores, inputs)
    assert column is not None
    data = in_column(OneScore(y, column.log_odds), lambda: column.logits, scores.dtype)
    return data, in_memory(data.rows())


def assert_same(one, other):
    for name in PARTS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("inputs", ["probabilities", "logits"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cells_and_folds_are_those_of_the_logits(inputs, dtype):
    scores, y = events(inputs, dtype)
    data, rows = columns(scores, y, inputs)
    parts = cells_of_one_score(data, 5)
    (whole,) = cells_of_groups(rows, SECOND)
    assert_same(parts.whole, whole)
    split = counted._split_of(rows, SECOND)
    for found, part in ((parts.rest, rows.without(0, 5)), (parts.held, rows.only(0, 5))):
        (expected,) = split.cells(part.reduce(CellSums(SECOND, split.bits, split)))
        assert_same(found, expected)


def test_order_changes_no_bit():
    scores, y = events()
    mixed = np.random.default_rng(1).permutation(ROWS)
    one, other = (cells_of_one_score(columns(scores[i], y[i], "probabilities")[0], 5) for i in (slice(None), mixed))
    for mine, its in zip(one[:3], other[:3], strict=True):
        assert_same(mine, its)
    np.testing.assert_array_equal(one.squares, other.squares)


def test_crowded_keys_are_left_to_passes_over_logits():
    scores, y = events(spread=1e-3)
    assert cells_of_one_score(columns(scores + 0.4, y, "probabilities")[0], 5) is None


def test_more_rows_than_can_be_counted_are_left_to_passes(monkeypatch):
    monkeypatch.setattr(one_score, "_COUNTED", ROWS)
    assert cells_of_one_score(columns(*events(), "probabilities")[0], 5) is None


@pytest.mark.parametrize("inputs", ["probabilities", "logits"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logits_are_made_as_ever(inputs, dtype):
    scores, _ = events(inputs, dtype)
    column = as_score_column(scores[:, None], inputs)
    logits = as_scores(scores, inputs).logits
    np.testing.assert_array_equal(column.logits, logits)
    odds = np.concatenate([part.copy() for _, part in column.log_odds(777)])
    np.testing.assert_array_equal(odds, logits[:, 1] - logits[:, 0])
    assert column.widest == np.abs(odds).max()
    assert column.log_odds(5).__next__()[1].dtype == dtype


@pytest.mark.parametrize(
    ("inputs", "place", "value"),
    [("probabilities", 17, v) for v in (np.nan, np.inf, 0.0, 1.0, -1e-9, 1.5)]
    + [("logits", 5, v) for v in (np.nan, np.inf, -np.inf, 1e200)],
)
def test_what_needs_a_closer_look_gets_it(inputs, place, value):
    scores, y = events(inputs)
    scores[place] = value
    assert as_score_column(scores, inputs) is None
    if np.isnan(value):
        with pytest.raises(InvalidInput, match=f"row {place}"):
            QuadraticScaling(inputs=inputs).fit(scores, y)


def test_few_scores_several_columns_and_other_numbers_get_it_too():
    scores, _ = events()
    assert as_score_column(scores[:999], "probabilities") is None
    assert as_score_column(np.stack([1 - scores, scores], axis=1), "probabilities") is None
    assert as_score_column(np.round(scores * 9).astype(int), "logits") is None
    assert as_score_column(scores, "logits") is None  # announced as what they are not
    assert as_score_column(np.full(2000, 1e-300), "logits") is None
    assert as_score_column(np.linspace(0.0, 1.0, 2000), "logits") is None
    assert as_score_column(np.linspace(-1e-9, 1.0, 2000), "logits") is not None
    assert as_score_column(np.linspace(0.0, 1.1, 2000), "logits") is not None


def test_rows_say_of_themselves_what_their_logits_say():
    data, rows = columns(*events(), "probabilities")
    for name in ("n", "n_classes", "columns", "size", "dtype", "total_weight", "in_memory"):
        assert getattr(data, name) == getattr(rows, name), name
    np.testing.assert_array_equal(data.class_weights, rows.class_weights)


@pytest.mark.parametrize("inputs", ["probabilities", "logits"])
def test_logits_come_in_parts_of_any_size(inputs):
    scores, _ = events(inputs, n=1001)
    column = as_score_column(scores, inputs)
    whole = column.logits[:, 1] - column.logits[:, 0]
    for step in (1, 7, 500, 1000, 1001, 2000):
        found = [(part, odds.copy()) for part, odds in column.log_odds(step)]
        assert len(found) == -(-1001 // step)
        np.testing.assert_array_equal(np.concatenate([odds for _, odds in found]), whole)
        np.testing.assert_array_equal(np.concatenate([scores[part] for part, _ in found]), scores)


@pytest.mark.parametrize("map_", MAPS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_map_is_what_it_is_on_logits(map_, dtype, monkeypatch):
    """To the last bit, and so is what its fit says."""
    scores, y = events(dtype=dtype)
    map_.set_params(inputs="probabilities")
    fitted = map_.unfitted().fit(scores, y)
    monkeypatch.setattr(calibrator, "as_score_column", lambda *_: None)
    twin = map_.unfitted().fit(scores, y)
    np.testing.assert_array_equal(fitted.predict_proba(scores), twin.predict_proba(scores))
    assert (fitted.zero_, fitted.one_score_, fitted.n_samples_) == (twin.zero_, True, ROWS)
    told, known = fitted.fit_report_, twin.fit_report_
    for name in LOSSES:
        assert getattr(told, name) == pytest.approx(getattr(known, name), rel=1e-12), name


def test_labels_of_any_kind():
    scores, y = events()
    expected = QuadraticScaling(inputs="probabilities").fit(scores, y).coefficients_
    for labels in (y.astype(bool), y.astype(np.uint8), np.array(["no", "yes"])[y]):
        found = QuadraticScaling(inputs="probabilities").fit(scores, labels)
        np.testing.assert_array_equal(found.coefficients_, expected)
    with pytest.raises(InvalidInput, match="distinct labels"):
        QuadraticScaling(inputs="probabilities").fit(scores, y - (np.arange(ROWS) == 3))


def test_weights_of_one_change_nothing_and_of_two_are_rows_twice():
    scores, y = events()
    weights = np.ones(ROWS)
    weights[:50] = 2
    for map_ in (QuadraticScaling(inputs="probabilities"), CentredIsotonic(inputs="probabilities")):
        alone = map_.unfitted().fit(scores, y).predict_proba(scores)
        np.testing.assert_array_equal(map_.unfitted().fit(scores, y, np.ones(ROWS)).predict_proba(scores), alone)
        twice = map_.unfitted().fit(np.append(scores, scores[:50]), np.append(y, y[:50])).predict_proba(scores)
        np.testing.assert_allclose(map_.unfitted().fit(scores, y, weights).predict_proba(scores), twice, rtol=1e-7)


def test_losses_of_counted_rows_are_those_of_rows():
    rng = np.random.default_rng(3)
    before, after, counts = rng.random(50), rng.random(50), rng.integers(1, 9, 50)
    many = Comparison.of(np.repeat(before, counts), np.repeat(after, counts), np.ones(counts.sum()))
    np.testing.assert_allclose(Comparison.of_sums(before, after, counts, counts).sums, many.sums, rtol=1e-12)
    ruined = Comparison.of_sums(before, np.append(after[1:], np.inf), counts, counts)
    assert (ruined.after, ruined.error, ruined.pvalue()) == (np.inf, np.inf, 1.0)
    weights, more = rng.random((2, 50))
    both = Comparison.of(np.tile(before, 2), np.tile(after, 2), np.append(weights, more))
    summed = Comparison.of_sums(before, after, weights + more, weights**2 + more**2)
    np.testing.assert_allclose(summed.sums, both.sums, rtol=1e-12)


def cut(size, *arrays):
    """Batches of so many rows, of which the first is short and the second has none."""
    bounds = [0, 7, 7, *range(7 + size, len(arrays[0]), size), len(arrays[0])]
    return calibrant.scan(lambda: (tuple(a[i:j] for a in arrays) for i, j in pairwise(bounds)))


@pytest.mark.parametrize("map_", [*MAPS, PlattScaling(), BetaCalibration(), OneVsRest(Isotonic())], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_fit_says_the_same_of_arrays_and_of_batches(map_, weighted, monkeypatch):
    """Of many rows one fold judges the fit, by its cells or by the same sample, wherever the rows are."""
    monkeypatch.setattr(scanned, "HELD", 0)
    monkeypatch.setattr(one_vs_rest, "_LARGE", 1000)
    monkeypatch.setattr(survey, "_MOST_JUDGED", 2100)
    scores, y = events()
    w = (np.random.default_rng(2).gamma(2.0, size=ROWS),) if weighted else ()
    mixed = np.random.default_rng(1).permutation(ROWS)
    map_.set_params(inputs="probabilities")
    plain = map_.unfitted().fit(scores, y, *w)
    shuffled = map_.unfitted().fit(scores[mixed], y[mixed], *(part[mixed] for part in w))
    streamed = map_.unfitted().fit(cut(777, scores, y, *w))
    for other in (shuffled, streamed):
        np.testing.assert_allclose(other.predict_proba(scores), plain.predict_proba(scores), atol=1e-9)
        for name in LOSSES:
            told, known = (getattr(one.fit_report_, name) for one in (other, plain))
            assert told == pytest.approx(known, rel=1e-6, abs=1e-12), name


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")  # 300 rows that judge do not prove a gain
@pytest.mark.parametrize("name", ["irova", "isotonic-centred", "platt", "hb-mass-s", "irm"])
def test_a_sample_of_the_same_rows_judges_maps_of_several_classes(name, monkeypatch):
    monkeypatch.setattr(scanned, "HELD", 0)
    monkeypatch.setattr(one_vs_rest, "_LARGE", 1000)
    monkeypatch.setattr(survey, "_LEAST_JUDGED", 300)
    monkeypatch.setattr(survey, "_MOST_JUDGED", 300)
    rng = np.random.default_rng(5)
    z = np.round(rng.normal(size=(6000, 3)) * 2, 1)
    y = (0.6 * z + rng.gumbel(size=z.shape)).argmax(axis=1)
    plain = calibrant.make(name).fit(z, y)
    streamed = calibrant.make(name).fit(cut(500, z, y))
    np.testing.assert_allclose(streamed.predict_proba(z), plain.predict_proba(z), atol=1e-9)
    for figure in LOSSES:
        assert getattr(streamed.fit_report_, figure) == pytest.approx(getattr(plain.fit_report_, figure), rel=1e-6)
