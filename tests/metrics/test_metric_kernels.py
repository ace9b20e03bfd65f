"""The compiled kernels against NumPy."""

import numpy as np
import pytest

from calibrant import _core, set_threads
from calibrant.cells.edges import bin_index, equal_width
from calibrant.metrics import cwece, ece


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 2, 7, 130, 600])
def test_row_tops(rng, dtype, k):
    p = rng.dirichlet(np.ones(k), 40).astype(dtype)
    p[3, : k // 2] = p[3, -1]
    top, column, squares, wrong = _core.row_tops(p, 10.0, False, 2)
    assert wrong == -1
    assert (column == p.argmax(axis=1)).all()
    assert (top == p.max(axis=1)).all()
    np.testing.assert_allclose(squares, (p.astype(float) ** 2).sum(axis=1), rtol=1e-5)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -0.1, 1.5])
def test_row_tops_finds_the_first_bad_row(rng, bad):
    p = rng.dirichlet(np.ones(9), 20_000)
    p[[15_000, 19_000], 4] = bad
    for marginals in (False, True):
        assert _core.row_tops(p, 1e-3, marginals, 2)[3] == 15_000
    p[[15_000, 19_000]] = 0.2
    assert _core.row_tops(p, 1e-3, False, 2)[3] == 15_000
    assert _core.row_tops(p, 1e-3, True, 2)[3] == -1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "edges", [equal_width(1), equal_width(15), equal_width(100), np.array([0, 0.01, 0.3, 1.0, 1.0])]
)
def test_class_bins(rng, dtype, edges):
    p = np.round(rng.dirichlet(np.full(70, 0.05), 1000), 2).astype(dtype)
    y, w = rng.integers(0, 70, 1000), rng.random(1000)
    floors = rng.random(70) * 0.02
    sums = _core.class_bins(p, y, w, edges, floors, 2)
    for k in (0, 5, 69):
        kept = p[:, k] > floors[k]
        place, weight = bin_index(p[kept, k].astype(float), edges), w[kept]
        for row, values in zip(sums[:, k], (np.ones(kept.sum()), p[kept, k], y[kept] == k), strict=True):
            np.testing.assert_allclose(row, np.bincount(place, weight * values, len(edges) - 1), atol=1e-10)


def test_threads_do_not_change_a_bit(rng):
    p = rng.dirichlet(np.full(50, 0.1), 20_000).astype(np.float32)
    y, w = rng.integers(0, 50, 20_000), rng.random(20_000)
    try:
        answers = []
        for threads in (1, 2, 5):
            set_threads(threads)
            answers.append((cwece(y, p, sample_weight=w), ece(y, p, sample_weight=w)))
    finally:
        set_threads(None)
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.parametrize("weight", [-1.3e120, -1.0, 0.0])
def test_a_sweep_over_a_weight_below_zero_has_as_many_bins_as_scores_at_most(weight):
    """Found by a sanitizer: such a weight was turned into a whole number that it has not."""
    prefix = np.array([[3 * weight, 2 * weight, weight], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    bins, _ = _core.sweep(np.array([0.2, 0.8]), prefix, False, 1)
    assert 1 <= bins <= 2
