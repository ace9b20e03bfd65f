"""Wrong calls of the compiled core end in an exception, not in the end of the process; `fuzz.kernels` has more."""

import numpy as np
import pytest

from calibrant import _core
from calibrant.errors import InvalidInput
from calibrant.threads import get_threads, set_threads


@pytest.fixture
def scores():
    return np.random.default_rng(0).normal(size=(50, 3))


@pytest.mark.parametrize("threads", [0, -1, 1025, 2**29, 2**31 - 1, -(2**31)])
def test_a_senseless_number_of_threads_is_refused(scores, threads):
    with pytest.raises(ValueError, match="threads must be between"):
        _core.log_odds(scores, threads, np.empty_like(scores))


def test_a_senseless_number_of_threads_is_refused_before_it_reaches_the_core():
    before = get_threads()
    with pytest.raises(InvalidInput, match="threads"):
        set_threads(2**29)
    assert get_threads() == before


@pytest.mark.parametrize("columns", [0])
@pytest.mark.parametrize("kernel", ["row_tops", "scan", "lowest", "linear_centres", "largest_surprise", "top_log_odds"])
def test_rows_without_columns_are_refused(kernel, columns):
    empty = np.empty((4, columns))
    more = {
        "row_tops": (1e-3, False),
        "scan": (1e-3,),
        "linear_centres": (1.0, -9.0),
        "largest_surprise": (None, 1.0),
    }.get(kernel, ())
    with pytest.raises(TypeError):
        getattr(_core, kernel)(empty, *more, 1)


@pytest.mark.parametrize("label", [3, 7, -1, 2**62])
def test_labels_outside_the_columns_are_refused(scores, label):
    labels = np.zeros(50, np.int64)
    labels[17] = label
    with pytest.raises(ValueError, match="outside the columns"):
        _core.temperature_rows(scores, labels, 1.0, 2)


@pytest.mark.parametrize("k", [1, 2, 17, 64, 65, 129])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_nan_stay_inside_their_memory(k, dtype):
    z = np.full((40, k), np.nan, dtype)
    out = np.empty_like(z)
    _core.log_odds(z, 1, out)
    _core.top_log_odds(z, 1)
    assert not np.isfinite(out).all()


def test_a_sweep_of_values_that_fall_is_refused():
    falling = np.linspace(1, 0, 30)
    with pytest.raises(ValueError, match="rise"):
        _core.sweep(falling, np.cumsum(np.ones((3, 31)), axis=1), True, 1)


@pytest.mark.parametrize("cells", [0, 2])
def test_other_cells_than_scores_can_have_are_refused(cells):
    first, shift, none = np.zeros(2, np.int32), np.full(2, 31, np.int32), np.zeros(1, np.int64)
    called, sums = (np.zeros((1, 1)), none, None, none, 1, 1, first, shift, 1), np.zeros((1, 2))
    _core.cell_sums(*called, sums)
    assert sums.tolist() == [[1.0, 1.0]]
    with pytest.raises(ValueError, match="no score has it"):
        _core.cell_sums(*called, np.zeros((cells, 2)))


def test_values_are_found_among_knots_that_span_more_than_a_number_can_hold():
    knots = np.array([-1.7e308, -1.0, 0.0, 1.0, 1.7e308])
    x = np.linspace(-2.0, 2.0, 400).reshape(-1, 1)
    out = np.empty_like(x)
    values = np.linspace(0, 1, 5)
    _core.isotonic_apply(x, np.zeros(1, np.int64), np.array([0, 5]), knots, values, True, 0.0, 1, out)
    wanted = values[np.searchsorted(knots, x[:, 0], side="right") - 1]
    np.testing.assert_array_equal(out[:, 0], wanted)


def test_values_are_found_among_knots_that_are_nearly_one():
    knots = np.array([0.0, 5e-324, 1e-323])
    x = np.array([[-1.0], [0.0], [5e-324], [1e-323], [1.0]] * 4)
    out = np.empty_like(x)
    values = np.array([0.0, 0.5, 1.0])
    _core.isotonic_apply(x, np.zeros(1, np.int64), np.array([0, 3]), knots, values, True, 0.0, 1, out)
    np.testing.assert_array_equal(out[:5, 0], [0.0, 0.0, 0.5, 1.0, 1.0])


def test_a_partition_of_weights_that_are_no_numbers_stays_within_its_cells():
    """Where no start is better than another, the way back ends at the first cell."""
    for weights in (np.full(6, np.nan), np.full(6, np.inf), np.zeros(6)):
        bounds = _core.best_partition(weights, weights, 4)
        assert len(bounds) == 3
        assert ((bounds >= 0) & (bounds < 6)).all()


def test_shapes_are_checked_one_by_one():
    for weights, positives, bins in (
        (np.ones(3), np.ones(4), 2),
        (np.ones(0), np.ones(0), 2),
        (np.ones(3), np.ones(3), 0),
    ):
        with pytest.raises(ValueError, match="do not fit"):
            _core.best_partition(weights, positives, bins)
    with pytest.raises(ValueError, match="do not fit"):
        _core.best_quadratic(np.eye(3), np.ones(3), np.ones(4))
    with pytest.raises(ValueError, match="do not fit"):
        _core.best_quadratic(np.ones((3, 4)), np.ones(3), np.ones(3))
    cells, starts = np.linspace(-1, 1, 6), np.array([0, 6])
    for weights, outcomes in ((np.ones(5), np.ones(6)), (np.ones(6), np.ones(5))):
        with pytest.raises(ValueError, match="do not fit"):
            _core.imax(cells, weights, outcomes, starts, 3, False, np.ones((1, 3)), 1)
    for starts in ([0, 3, 2], [-1, 1, 3]):
        with pytest.raises(ValueError, match=r"rise|outside"):
            _core.add_class_kernels(
                np.zeros((2, 3)),
                np.zeros(3),
                None,
                np.array(starts),
                0,
                None,
                1.0,
                1,
                np.zeros((2, 1)),
                np.zeros((2, 2)),
            )


def test_the_log_odds_of_the_top_class_count_every_other(rng):
    z = rng.normal(size=(200, 5))
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    top = p.max(axis=1)
    np.testing.assert_allclose(_core.top_log_odds(z, 1), np.log(top / (1 - top)), rtol=1e-10, atol=2.0**-37)


@pytest.mark.parametrize("edges", [1, 5, 11, 23])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_binned_answers_of_many_classes_are_looked_up_in_their_tables(rng, edges, kind):
    z = rng.normal(size=(40, 19)).astype(kind)
    borders = np.sort(rng.uniform(-6, 2, size=(19, edges)), axis=1)
    table = rng.random((19, edges + 1))
    p = np.exp(z.astype(float)) / np.exp(z.astype(float)).sum(axis=1, keepdims=True)
    odds = np.log(p / (1 - p))
    wanted = np.stack([table[c][np.searchsorted(borders[c], odds[:, c], side="right")] for c in range(19)], axis=1)
    out = np.empty_like(z)
    _core.bin_lift(z, borders, table, False, 1, out)
    np.testing.assert_allclose(out, wanted, rtol=1e-6)


@pytest.mark.parametrize("edges", [[0.0, 1.0], [0.0, 0.5, 1.0], [0.0, 0.3, 1.0]])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 1.0, 7.0, -3.0])
def test_a_score_that_is_none_falls_into_one_of_the_bins(edges, value):
    """Infinity in bins of equal width was once counted behind the last, in memory of others."""
    bins = len(edges) - 1
    low = 0 if not value > 0 else bins - 1
    pairs = _core.pair_bins(np.full(8, value), np.ones(8), None, np.array(edges))
    assert pairs[0, low] == 8
    labels = np.full(8, 2)
    sums = _core.class_bins(np.full((8, 3), value), labels, None, np.array(edges), np.full(3, -np.inf), 1)
    assert sums[2, 2, low] == (8 if value > -np.inf else 0)
    assert sums[0].sum() == (24 if value > -np.inf else 0)
