"""Logarithms and counts of the core, value by value: a sum hides a digit that is lost in a few of them."""

import numpy as np
import pytest

from calibrant import _core


@pytest.mark.parametrize(("kind", "close"), [(np.float32, 4e-7), (np.float64, 2e-15)])
def test_logarithms_are_right_to_their_last_digits(kind, close):
    p = np.concatenate([np.linspace(0.001, 1, 4001), 10.0 ** np.linspace(-30, 0, 3000)]).astype(kind)[:, None].copy()
    out = np.empty_like(p)
    _core.finite_logs(p, None, 1.0, 0.0, False, 104.0, 1, out)
    wanted = np.log(p.astype(np.longdouble))
    assert (np.abs(out - wanted) <= close * np.maximum(np.abs(wanted), 1e-3)).all()


def test_the_loss_of_each_cell_is_right_to_its_last_digits():
    x = np.linspace(-40, 40, 2001)
    found = [_core.cell_loss(x[i : i + 1], np.ones(1), np.zeros(1)) for i in range(len(x))]
    np.testing.assert_allclose(found, np.logaddexp(0, x), rtol=4e-15)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("k", [2, 3, 64, 65, 130, 200])
def test_negatives_are_counted_between_bounds_whatever_the_number_of_classes(k, groups, kind):
    rng = np.random.default_rng(k)
    z = rng.normal(size=(40, k)).astype(kind) * 2
    y, w = rng.integers(0, k, 40), rng.integers(0, 3, 40) * 1.0
    own, count = np.arange(k) % groups, min(groups, k)
    odds = np.empty_like(z)
    _core.log_odds(z, 1, odds)
    positives = odds[np.arange(40), y]
    middle = np.append(positives.min(), np.quantile(odds[odds > positives.min()], [0.5, 0.9])).astype(kind)
    bounds = np.concatenate([middle - kind(g) / 8 for g in range(count)])  # none is above the lowest positive
    counts, largest = _core.negatives_between(z, y, w, own, np.arange(count + 1) * 3, bounds, 2)
    wanted, most = np.zeros((count, 4)), np.full((count, 4), -np.inf)
    for i in range(40):
        for j in range(k):
            if j != y[i]:
                place = np.searchsorted(bounds[3 * own[j] : 3 * own[j] + 3], odds[i, j], side="right")
                wanted[own[j], place] += w[i]
                most[own[j], place] = max(most[own[j], place], odds[i, j] if w[i] else -np.inf)
    np.testing.assert_array_equal(counts.reshape(count, 4), wanted)
    seen = wanted > 0
    np.testing.assert_array_equal(largest.reshape(count, 4)[seen], most[seen])
