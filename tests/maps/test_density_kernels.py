"""The compiled kernel sums beside plain NumPy."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import _core
from calibrant.maps import density
from calibrant.maps.density import Support, class_probabilities


def twin(products, norms, weights, starts, skip, scale):
    """Sums relative to the row's largest exponent, and that exponent."""
    e = (products.astype(np.float64) - norms) * scale
    if skip is not None:
        e[np.arange(len(e))[skip >= 0], skip[skip >= 0]] = -np.inf
    peak = e.max(axis=1)
    terms = np.exp(e - peak[:, None]) * (1.0 if weights is None else weights)
    return np.stack([terms[:, a:b].sum(axis=1) for a, b in itertools.pairwise(starts)], axis=1), peak


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 20), st.integers(2, 90), st.integers(1, 6), st.booleans(), st.booleans(), st.floats(0.01, 30),
    st.sampled_from(["float32", "float64"]), st.integers(0, 10**6), st.integers(1, 40),
)  # fmt: skip
def test_sums_agree_with_numpy_in_any_tiles(rows, m, k, weighted, skipping, scale, dtype, seed, tile):
    rng = np.random.default_rng(seed)
    products, norms = (rng.normal(size=(rows, m)) * 3).astype(dtype), rng.random(m) * 4
    starts = np.sort(np.concatenate([[0, m], rng.integers(0, m + 1, k - 1)])).astype(np.int64)
    weights = rng.random(m) + 0.1 if weighted else None
    skip = rng.integers(-1, m, rows) if skipping else None
    for threads in (1, 2):
        shifts, sums = np.full((rows, 1), -np.inf), np.zeros((rows, k))
        for at in range(0, m, tile):
            part = slice(at, at + tile)
            own = None if weights is None else weights[part]
            block = np.ascontiguousarray(products[:, part])
            _core.add_class_kernels(block, norms[part], own, starts, at, skip, scale, threads, shifts, sums)
        wanted, peak = twin(products, norms, weights, starts, skip, scale)
        got = sums * np.exp(shifts - peak[:, None])
        np.testing.assert_allclose(got, wanted, rtol=2e-3 if dtype == "float32" else 1e-10, atol=1e-6)


def test_tiles_and_threads_do_not_matter_and_far_rows_stay_finite(monkeypatch):
    rng = np.random.default_rng(0)
    points, labels = rng.normal(size=(500, 3)), np.sort(rng.integers(4, size=500))
    support = Support.of(points, labels, None, 4)
    test = np.vstack([rng.normal(size=(40, 3)), np.full((1, 3), 60.0), np.full((1, 3), 1e5)])
    whole = class_probabilities(support, test, 0.05)
    monkeypatch.setattr(density, "_TILE_ROWS", 7)
    monkeypatch.setattr(density, "_TILE_COLUMNS", 11)
    np.testing.assert_allclose(class_probabilities(support, test, 0.05), whole, rtol=1e-9)
    np.testing.assert_allclose(whole[-1], support.prior)
    assert np.isfinite(whole).all()


def test_a_row_with_nothing_left_gets_the_prior():
    support = Support.of(np.zeros((1, 2)), np.array([1]), None, 3)
    np.testing.assert_allclose(class_probabilities(support, np.zeros((1, 2)), 1.0, np.array([0])), [[0, 1, 0]])


@pytest.mark.parametrize("shape", [(3, 4), (2, 5)])
def test_shapes_that_do_not_fit_are_refused(shape):
    with pytest.raises(ValueError, match="do not fit"):
        _core.add_class_kernels(
            np.zeros((2, 4)), np.zeros(4), None, np.array([0, 4]), 0, None, 1.0, 1, np.zeros((2, 1)), np.zeros(shape)
        )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_tile_whose_terms_all_vanish_changes_no_bit(dtype):
    rng = np.random.default_rng(0)
    near, far = rng.normal(size=(5, 30)).astype(dtype), rng.normal(size=(5, 30)).astype(dtype) - 800
    starts, zeros = np.array([0, 20, 40, 60], dtype=np.int64), np.zeros(30)
    shifts, sums = np.full((5, 1), -np.inf), np.zeros((5, 3))
    _core.add_class_kernels(near, zeros, None, starts, 0, None, 1.0, 1, shifts, sums)
    before = shifts.tobytes(), sums.tobytes()
    _core.add_class_kernels(far, zeros, None, starts, 30, None, 1.0, 1, shifts, sums)
    assert (shifts.tobytes(), sums.tobytes()) == before
    raised, whole = np.full((5, 1), -np.inf), np.zeros((5, 3))
    _core.add_class_kernels(far, zeros, None, starts, 30, None, 1.0, 1, raised, whole)
    assert (whole[:, 1:] > 0).all()  # the same terms count where nothing is nearer
    _core.add_class_kernels(near, zeros, None, starts, 0, None, 1.0, 1, raised, whole)
    np.testing.assert_allclose(whole, sums, rtol=1e-6)
