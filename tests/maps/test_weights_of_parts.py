"""Parts of maps give a weight what as many rows would have."""

import numpy as np
import pytest

from calibrant.maps.class_means import class_means
from calibrant.maps.prototypes import compression_loss, herd, quotas


@pytest.fixture
def rows(rng):
    y = np.arange(24) % 3
    return np.round(rng.normal(size=(24, 2)) + y[:, None], 2), y, rng.integers(1, 4, 24) * 1.0


def test_means_are_of_weighted_rows(rows):
    x, y, w = rows
    means, seen, totals = class_means(x, y, w, 4)
    assert seen.tolist() == [0, 1, 2]
    for c in range(3):
        np.testing.assert_allclose(means[c], np.average(x[y == c], axis=0, weights=w[y == c]))
        assert totals[c] == w[y == c].sum()


def test_losses_of_what_was_left_out_are_weighted(rows):
    """Of one dropped row they are its loss; of two the mean by their weights."""
    x, y, _ = rows
    kept, shares = np.arange(22), np.ones(22)

    def loss(kept, weights):
        return np.array(compression_loss(x, y, weights, kept, shares[: len(kept)], 0.8, 3))

    weights = np.ones(24)
    both = loss(kept, weights)
    heavy = np.where(np.arange(24) == 23, 3.0, 1.0)
    after = [loss(kept, np.where(np.arange(24) == i, 1e-9, 1.0))[1] for i in (23, 22)]  # as good as one row alone
    assert both[1] == pytest.approx(np.mean(after), rel=1e-6)
    assert loss(kept, heavy)[1] == pytest.approx((after[0] + 3 * after[1]) / 4, rel=1e-6)


def test_what_is_kept_takes_the_weight_of_the_rows_near_it(rows):
    x, y, w = rows
    kept, shares = herd(x, y, w, 0.8, 9)
    counts = np.bincount(y, minlength=3)
    assert np.bincount(y[kept], minlength=3).tolist() == quotas(np.bincount(y, w), counts, 9).tolist()
    assert len(set(kept.tolist())) == len(kept) == 9
    for c in range(3):
        assert shares[y[kept] == c].sum() == pytest.approx(w[y == c].sum())
