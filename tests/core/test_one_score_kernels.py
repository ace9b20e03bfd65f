"""The kernels of rows with one score, and of regressions on cells, against plain NumPy."""

import numpy as np
import pytest
from scipy.special import expit
from tests.core.test_binning_kernels import keys

from calibrant import _core
from calibrant.passes import Block
from calibrant.passes.folds import row_keys

FOLDS = 5


def rows(dtype, n=3000):
    rng = np.random.default_rng(4)
    odds = (rng.normal(size=n) * 3).astype(dtype)
    odds[:400] = np.round(odds[:400])  # zeros of either sign and ties
    odds[400:403] = -0.0, 1e-38, -1e-30
    return odds, rng.integers(0, 2, n)


def glanced(odds, labels):
    cell_keys, counts = np.zeros(len(odds), np.int32), np.zeros((1 << 20, 2), np.int32)
    there = np.zeros(1 << 16, np.uint8)
    _core.score_cells(odds, labels, cell_keys, counts, there)
    return cell_keys, counts, there


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_are_counted_by_label_and_upper_bits(dtype):
    odds, labels = rows(dtype)
    cell_keys, counts, there = glanced(odds, labels)
    key = keys(odds)
    np.testing.assert_array_equal(cell_keys.astype(np.int64) + (1 << 31), key)
    expected = np.bincount(2 * (key >> 12) + labels, minlength=1 << 21).reshape(-1, 2)
    np.testing.assert_array_equal(counts, expected)
    np.testing.assert_array_equal(np.flatnonzero(there), np.unique(key >> 16))
    _core.score_cells(odds, labels, cell_keys, counts, there)
    np.testing.assert_array_equal(counts, 2 * expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("folds", [2, FOLDS])
def test_folds_are_those_of_the_keys_of_rows(dtype, folds):
    odds, labels = rows(dtype)
    _, counts, there = glanced(odds, labels)
    coarse, held, most = _core.split_glances(counts, there, folds)
    key = keys(odds)
    expected = [np.bincount(key >> 16, w, minlength=1 << 16) for w in (np.ones(len(odds)), labels)]
    np.testing.assert_array_equal(coarse, np.stack(expected, axis=1))
    own = row_keys(Block(np.stack([np.zeros_like(odds), odds], axis=1), labels, None, 2))
    assert most == np.unique(own, return_counts=True)[1].max()
    bit = 2 * ((key >> 12) & 15) + labels
    np.testing.assert_array_equal((held[key >> 16].astype(np.int64) >> bit) & 1, own % np.uint64(folds) == 0)


def test_fine_cells_are_counted_by_fold_and_label():
    odds, labels = rows(np.float64)
    cell_keys, counts, there = glanced(odds, labels)
    _, held, _ = _core.split_glances(counts, there, FOLDS)
    key = keys(odds)
    shift = np.full(1 << 16, 16, np.int32)
    shift[key[0] >> 16] = 9
    sizes = np.left_shift(1, 16 - shift)
    first = (np.cumsum(sizes) - sizes).astype(np.int32)
    found = np.ones((sizes.sum(), 4), np.int32)
    _core.fold_cells(cell_keys, labels, first, shift, held, found)
    own = row_keys(Block(np.stack([np.zeros_like(odds), odds], axis=1), labels, None, 2))
    place = first[key >> 16] + ((key & 0xFFFF) >> shift[key >> 16])
    inside = own % np.uint64(FOLDS) == 0
    expected = np.bincount(4 * place + 2 * inside + labels, minlength=4 * sizes.sum()).reshape(-1, 4)
    np.testing.assert_array_equal(found, 1 + expected)


@pytest.mark.parametrize("shift_of", [-(2**31), -1, 32, 2**31 - 1])
def test_a_shift_that_no_key_has_is_refused(shift_of):
    odds, labels = rows(np.float64)
    cell_keys, counts, there = glanced(odds, labels)
    _, held, _ = _core.split_glances(counts, there, FOLDS)
    shift = np.full(1 << 16, 16, np.int32)
    first = np.arange(1 << 16, dtype=np.int32)
    shift[7] = shift_of
    with pytest.raises(ValueError, match="outside"):
        _core.fold_cells(cell_keys, labels, first, shift, held, np.zeros((1 << 16, 4), np.int32))


@pytest.mark.parametrize("count", [0, 1, 511, 513, 4000])
@pytest.mark.parametrize("size", [1, 3, 12])
def test_sums_of_a_regression_on_cells(count, size):
    rng = np.random.default_rng(count)
    features, theta = rng.normal(size=(size, count)) * 2, rng.normal(size=size)
    weights = rng.integers(1, 5, count).astype(np.float64)
    outcomes = weights * rng.random(count)
    eta = theta @ features
    p = expit(eta)
    loss = weights @ np.logaddexp(0, eta) - outcomes @ eta
    hessian = (features * (weights * p * expit(-eta))) @ features.T
    expected = np.concatenate([[loss], features @ (weights * p - outcomes), hessian.ravel()])
    found = _core.cell_regression(features, weights, outcomes, theta)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * max(count, 1))


def test_a_regression_far_out_is_finite():
    features = np.array([[800.0, -800.0, 1e6, -1e6]])
    found = _core.cell_regression(features, np.ones(4), np.array([1.0, 0.0, 0.0, 1.0]), np.ones(1))
    np.testing.assert_array_equal(found, [2e6, 2e6, 0.0])
