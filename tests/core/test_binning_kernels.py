"""The binning kernels against what they must compute, in plain NumPy."""

import numpy as np
import pytest
from scipy.special import expit

from calibrant import _core
from calibrant.arrays import log_odds


def problem(dtype, n=400, k=7, seed=0):
    rng = np.random.default_rng(seed)
    z = (rng.normal(size=(n, k)) * 4).astype(dtype)
    return z, rng.integers(0, k, n), rng.integers(0, 3, n).astype(np.float64)


def keys(scores):
    bits = (scores.astype(np.float32) + np.float32(0)).view(np.int32).astype(np.int64)
    return np.where(bits < 0, bits ^ 0x7FFFFFFF, bits) + (1 << 31)


GROUPS = [[0] * 7, [0, -1, 0, 0, -1, -1, 0], [0, 1, 2, 3, 4, 5, 6], [1, 0, -1, 1, 2, 0, 0]]


def pairs(z, y, w, groups):
    """Scores, outcomes, weights and groups of the classes that count, one row a pair."""
    used = np.flatnonzero(np.array(groups) >= 0)
    scores, outcomes = log_odds(z)[:, used], y[:, None] == used
    owners = np.tile(np.array(groups)[used], len(y))
    return scores.ravel(), outcomes.ravel(), np.repeat(w, len(used)), owners


def cell_sums(*given):
    """The sums of so many cells: the kernel adds to what is there."""
    *words, cells, threads = given
    found = np.zeros((cells, 2))
    _core.cell_sums(*words, threads, found)
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("bits", [16, 11])
def test_coarse_cells_count_the_upper_bits(dtype, groups, bits):
    z, y, w = problem(dtype)
    scores, outcomes, weights, owners = pairs(z, y, w, groups)
    count = max(groups) + 1
    place = (owners << bits) + (keys(scores) >> (32 - bits))
    expected = [np.bincount(place, part, minlength=count << bits) for part in (weights, weights * outcomes)]
    found = cell_sums(z, y, w, np.array(groups), count, bits, None, None, count << bits, 2)
    np.testing.assert_array_equal(found, np.stack(expected, axis=1))
    _core.cell_sums(z, y, w, np.array(groups), count, bits, None, None, 2, found)
    np.testing.assert_allclose(found, 2 * np.stack(expected, axis=1), rtol=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("groups", GROUPS)
def test_fine_cells_split_coarse_ones(dtype, groups):
    z, y, w = problem(dtype)
    scores, _, weights, owners = pairs(z, y, w, groups)
    count, bits = max(groups) + 1, 12
    shift = np.full(count << bits, 17, dtype=np.int32)
    first = (np.arange(count << bits) * 8).astype(np.int32)
    found = cell_sums(z, y, w, np.array(groups), count, bits, first, shift, 8 * count << bits, 1)
    key = keys(scores)
    place = ((owners << bits) + (key >> 20)) * 8 + ((key & 0xFFFFF) >> 17)
    np.testing.assert_array_equal(found[:, 0], np.bincount(place, weights, minlength=8 * count << bits))


def test_cells_outside_are_refused():
    z, y, w = problem(np.float64)
    groups, shift = np.zeros(7, dtype=np.int64), np.full(1 << 9, 22, dtype=np.int32)
    first = np.arange(1 << 9, dtype=np.int32) * 2
    cell_sums(z, y, w, groups, 1, 9, first, shift, 1 << 10, 1)
    with pytest.raises(ValueError, match="outside"):
        cell_sums(z, y, w, groups, 1, 9, first, shift, (1 << 10) - 1, 1)
    with pytest.raises(ValueError, match="groups"):
        cell_sums(z, y, w, groups + 1, 1, 9, first, shift, 1 << 10, 1)
    with pytest.raises(ValueError, match="two sums"):
        _core.cell_sums(z, y, w, groups, 1, 9, first, shift, 1, np.zeros((1 << 10, 3)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("edges", [[], [0.0], np.linspace(-9, 3, 14), np.linspace(-12, 9, 77)])
def test_bin_sums(dtype, groups, edges):
    z, y, w = problem(dtype)
    count = max(groups) + 1
    edges = np.asarray(edges, dtype=np.float64) + np.arange(count)[:, None] / 3
    values = np.random.default_rng(1).random(z.shape).astype(dtype)
    scores, outcomes, weights, owners = pairs(z, y, w, groups)
    bins = edges.shape[1] + 1
    place = sum((scores.astype(np.float64) >= edge for edge in edges[owners].T), np.zeros(len(scores), dtype=int))
    lent = values[:, np.array(groups) >= 0].ravel()
    columns = [weights, weights * outcomes, weights * expit(scores), weights * lent]
    expected = [np.bincount(owners * bins + place, c, minlength=count * bins).reshape(count, bins) for c in columns]
    found = _core.bin_sums(z, y, w, np.array(groups), values, edges, 2)
    np.testing.assert_allclose(found, np.stack(expected, axis=2), rtol=3e-6 if dtype == np.float32 else 1e-12)
    assert not _core.bin_sums(z, y, w, np.array(groups), None, edges, 1)[:, :, 3].any()


def test_loss_of_cells():
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.normal(size=1000) * 9, [0.0, 1e4, -1e4, 700.0, -700.0]])
    weights = rng.random(len(scores)) * 5
    outcomes = weights * (rng.random(len(scores)) < 0.3)
    expected = weights @ np.logaddexp(0, scores) - outcomes @ scores
    np.testing.assert_allclose(_core.cell_loss(scores, weights, outcomes), expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [0, 1, 14, 32, 33, 63, 64, 500])
def test_look_up_is_a_half_open_search(dtype, count):
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.normal(size=9000), [np.inf, -np.inf, 0.0, -0.0]]).astype(dtype)
    edges = np.sort(rng.choice(scores[:9000], count, replace=False).astype(np.float64))
    table = rng.random(count + 1)
    out = np.empty_like(scores)
    _core.bin_look_up(scores, edges, table, 2, out)
    place = np.searchsorted(edges, scores.astype(np.float64), side="right")
    np.testing.assert_array_equal(out, table.astype(dtype)[place])


def test_an_edge_between_two_floats_parts_them():
    low = np.float32(1.0)
    high = np.nextafter(low, np.float32(2))
    out = np.empty(2, dtype=np.float32)
    _core.bin_look_up(np.array([low, high]), np.array([0.5 * (float(low) + float(high))]), np.array([0.0, 1.0]), 1, out)
    assert out.tolist() == [0.0, 1.0]


def check_lift(z, edges, table):
    """Look up each class's log-odds in its own table, or all in one, as NumPy does."""
    scores, expected = log_odds(z).astype(np.float64), np.empty_like(z)
    for j in range(z.shape[1]):
        t = j % len(edges)
        expected[:, j] = table[t].astype(z.dtype)[np.searchsorted(edges[t], scores[:, j], side="right")]
    out = np.empty_like(z)
    for threads in (1, 2):
        _core.bin_lift(z, edges, table, False, threads, out)
        np.testing.assert_array_equal(out, expected)
        _core.bin_lift(z, edges, table, True, threads, out)
        np.testing.assert_allclose(out, expected / expected.sum(axis=1, keepdims=True), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("tables", [1, 37])
def test_lift_looks_up_log_odds_and_normalises(dtype, tables):
    rng = np.random.default_rng(0)
    z = (rng.normal(size=(300, 37)) * 3).astype(dtype)
    edges, table = np.sort(rng.normal(size=(tables, 5)) * 4 - 5, axis=1), rng.random((tables, 6))
    edges[0, 2:] = np.inf
    check_lift(z, edges, table)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(
    ("n", "k", "count"), [(1, 2, 0), (40, 3, 1), (90, 8, 7), (70, 1000, 14), (17, 1025, 8), (5, 11, 64)]
)
def test_lift_of_any_size_with_ties_and_impossible_classes(dtype, shared, n, k, count):
    rng = np.random.default_rng(n)
    z = (np.round(rng.normal(size=(n, k)) * 3) / 4).astype(dtype)
    z[rng.random((n, k)) < 0.1] = -np.inf
    z[0] = -np.inf  # one possible class: log-odds of +inf
    z[:, 0] = 0
    scores = log_odds(z).astype(np.float64)
    seen = scores[np.isfinite(scores)] if np.isfinite(scores).any() else np.zeros(1)
    edges = np.sort(rng.choice(np.append(seen, [0.0, -0.0]), (1 if shared else k, count)), axis=1)  # on scores
    table = rng.random((len(edges), count + 1))
    check_lift(z, edges, table)


def test_rows_without_any_answer_get_the_softmax():
    z = np.array([[0.0, 1.0, 2.0]])
    out = np.empty_like(z)
    _core.bin_lift(z, np.empty((1, 0)), np.zeros((1, 1)), True, 1, out)
    np.testing.assert_allclose(out, np.exp(z) / np.exp(z).sum())


def test_threads_change_no_bit():
    z, y, _ = problem(np.float32, n=3000, k=50)
    w = np.random.default_rng(2).random(3000)
    edges, groups = np.linspace(-6, 3, 14)[None], np.zeros(50, dtype=np.int64)
    for call in (
        lambda t: cell_sums(z, y, w, groups, 1, 16, None, None, 1 << 16, t),
        lambda t: _core.bin_sums(z, y, w, groups, None, edges, t),
    ):
        np.testing.assert_array_equal(call(1), call(3))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [2, 3, 63, 64, 65, 200])
def test_the_log_odds_of_a_label_have_the_bits_that_they_have_among_all(dtype, k):
    z, y, _ = problem(dtype, n=300, k=k)
    z[:40, 0] = 30  # large ones, alone and beside others
    z[20:60, k - 1] = 30
    z[60:70, 1:] = -np.inf
    found = _core.label_log_odds(z, y, 1)
    np.testing.assert_array_equal(found, log_odds(z)[np.arange(300), y])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [4, 70])
def test_negatives_are_counted_between_positives(dtype, k):
    """In gap i of a class lie negatives above its first i bounds, not above the next; rows without weight nowhere."""
    z, y, w = problem(dtype, n=300, k=k)
    groups = np.arange(k)
    groups[1] = -1  # a class that does not count
    groups[groups > 1] -= 1
    odds, count = log_odds(z), k - 1
    own = [np.unique(odds[(y == j) & (w > 0), j]) for j in range(k) if j != 1]
    starts = np.concatenate([[0], np.cumsum([len(bounds) for bounds in own])])
    counts, largest = _core.negatives_between(z, y, w, groups, starts, np.concatenate(own), 1)
    wanted, tops = np.zeros(starts[-1] + count), np.full(starts[-1] + count, -np.inf)
    for j in np.flatnonzero(groups >= 0):
        for i in np.flatnonzero((y != j) & (w > 0)):
            gap = starts[groups[j]] + groups[j] + np.searchsorted(own[groups[j]], odds[i, j], side="right")
            wanted[gap] += w[i]
            tops[gap] = max(tops[gap], odds[i, j])
    np.testing.assert_array_equal(counts, wanted)
    np.testing.assert_array_equal(largest, tops.astype(dtype))


def test_cells_of_more_rows_than_are_turned_at_once():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(45_000, 99)).astype(np.float32)  # more than 2²² scores; every class is a group of its own
    y, w, groups = rng.integers(0, 99, len(z)), (rng.random(len(z)) < 0.99).astype(np.float64), np.arange(99)
    one, two = (cell_sums(z, y, w, groups, 99, 9, None, None, 99 << 9, threads) for threads in (1, 3))
    np.testing.assert_array_equal(one, two)
    last = keys(log_odds(z)[:, 98]) >> 23
    expected = [np.bincount(last, part, minlength=1 << 9) for part in (w, w * (y == 98))]
    np.testing.assert_array_equal(one[98 << 9 :], np.stack(expected, axis=1))
