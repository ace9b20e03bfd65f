"""Accuracy and top-k accuracy: the kernel against a rank in NumPy, and what is refused."""

import numpy as np
import pytest

from calibrant import _core, set_threads
from calibrant.errors import InvalidInput
from calibrant.metrics import accuracy, top_k_accuracy


def label_ranks(p, y):
    own = p[np.arange(len(y)), y][:, None]
    return ((p > own) | ((p == own) & (np.arange(p.shape[1]) < y[:, None]))).sum(axis=1)


def tied_rows(rng, n, k, dtype):
    """Probabilities of few levels, so that most rows have ties."""
    p = rng.integers(0, 4, (n, k)).astype(dtype)
    p[:, -1] += p.sum(axis=1) == 0
    return p / p.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [2, 3, 31, 32, 33, 64, 129, 1000, 2100])
def test_hits_are_ranks_below_k(rng, dtype, k):
    smooth, tied = rng.dirichlet(np.ones(k), 70).astype(dtype), tied_rows(rng, 70, k, dtype)
    for p in (smooth, tied):
        y = rng.integers(0, k, len(p))
        y[::3] = p.argmax(axis=1)[::3]
        for most in (1, 2, 5, k):
            hits, wrong = _core.label_hits(p, y, most, 1e-3, False, 2)
            assert wrong == -1
            np.testing.assert_array_equal(hits, label_ranks(p, y) < most)


def test_threads_do_not_matter(rng):
    p = tied_rows(rng, 4000, 100, np.float32)
    y = rng.integers(0, 100, 4000)
    found = []
    for threads in (1, 2, 3):
        set_threads(threads)
        found.append((accuracy(y, p), top_k_accuracy(y, p, k=7)))
    set_threads(None)
    assert found[0] == found[1] == found[2] == ((label_ranks(p, y) < 1).mean(), (label_ranks(p, y) < 7).mean())


@pytest.mark.parametrize("k", [5, 40])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -0.1, 1.5])
def test_bad_rows_are_refused_by_their_number(rng, bad, k):
    p, y = rng.dirichlet(np.ones(k), 3000), rng.integers(0, k, 3000)
    p[[1200, 2900], [k - 1, 0]] = bad
    for marginals in (False, True):
        with pytest.raises(InvalidInput, match="row 1200"):
            accuracy(y, p, marginals=marginals)
    p[[1200, 2900]] = 0.3
    with pytest.raises(InvalidInput, match=r"not a distribution.*row 1200"):
        top_k_accuracy(y, p, k=2)
    assert top_k_accuracy(y, p, k=2, marginals=True) == (label_ranks(p, y) < 2).mean()


def test_labels_outside_the_columns_are_refused(rng):
    p = rng.dirichlet(np.ones(40), 10)
    for y in (np.full(10, 40), np.full(10, -1)):
        with pytest.raises(InvalidInput, match="y_true"):
            accuracy(y, p)
    with pytest.raises(ValueError, match="outside the columns"):
        _core.label_hits(p, np.full(10, 40), 1, 1e-3, False, 1)


def test_raw_scores_must_be_usable(rng):
    p, y = rng.dirichlet(np.ones(3), 10), rng.integers(0, 3, 10)
    raw = np.log(p)
    raw[4, 1] = np.nan
    with pytest.raises(InvalidInput, match=r"raw_scores contains NaN.*row 4"):
        accuracy(y, p, raw_scores=raw)
    with pytest.raises(InvalidInput, match="raw_scores need a column"):
        accuracy(y > 0, p[:, 0], raw_scores=raw[:, 0])


def test_weights_and_names(rng):
    p, w = rng.dirichlet(np.ones(3), 50), rng.random(50)
    y = rng.integers(0, 3, 50)
    names = np.array(["ant", "bee", "cat"])
    expected = np.average(p.argmax(axis=1) == y, weights=w)
    assert accuracy(names[y], p, sample_weight=w) == pytest.approx(expected)
    assert accuracy(y, p, sample_weight=w) == pytest.approx(expected)
