"""What a smaller set of points loses, and densities of few points, in loops."""

import numpy as np
import pytest

from calibrant.maps.density import Support, class_probabilities, leave_one_out, mean_loss, relative_kernels, spread_of
from calibrant.maps.prototypes import compression_loss


def points(seed, n=12):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)), np.r_[0, 1, 2, rng.integers(0, 3, n - 3)], rng.choice([0.5, 1.0, 3.0], n)


def answer(x, labels, w, at, h, skip=None):
    """Return kernel shares by class, with 1e-10 of the frequencies in every answer."""
    prior = np.bincount(labels, w, 3) / w.sum()
    kernels = w * np.exp(-((x - at) ** 2).sum(axis=1) / (2 * h * h))
    if skip is not None:
        kernels[skip] = 0.0
    share = np.bincount(labels, kernels, 3) / kernels.sum()
    return (1 - 1e-10) * share + 1e-10 * prior


@pytest.mark.parametrize("h", [0.5, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_dropped_rows_lose_what_kept_ones_do_not_tell(seed, h):
    x, labels, w = points(seed)
    kept, shares = np.array([0, 1, 2, 5, 8]), np.array([4.0, 2.5, 6.0, 1.0, 0.5])
    dropped = np.setdiff1d(np.arange(12), kept)
    exact = [-np.log(answer(x, labels, w, x[i], h, i)[labels[i]]) for i in dropped]
    after = [-np.log(answer(x[kept], labels[kept], shares, x[i], h)[labels[i]]) for i in dropped]
    wanted = [np.average(np.minimum(one, -np.log(1e-10)), weights=w[dropped]) for one in (exact, after)]
    assert compression_loss(x, labels, w, kept, shares, h, 3) == pytest.approx(wanted, rel=1e-6)


def test_a_loss_is_capped_where_no_kept_point_is_of_the_class():
    x, labels, w = points(4)
    kept = np.flatnonzero(labels != 2)
    _, after = compression_loss(x, labels, w, kept, w[kept], 1.0, 3)
    assert after == pytest.approx(-np.log(1e-10))


@pytest.mark.parametrize("weighed", [False, True])
def test_rows_are_predicted_from_the_others(weighed):
    x, labels, w = points(1, 20)
    own = w if weighed else np.ones(20)
    support = Support.of(x, labels, w if weighed else None, 3)
    for h in (0.4, 1.5):
        found = class_probabilities(support, x[:5] + 0.1, h)
        np.testing.assert_allclose(found, [answer(x, labels, own, at, h) for at in x[:5] + 0.1], rtol=1e-6)
        wanted = [min(-np.log(answer(x, labels, own, x[i], h, i)[labels[i]]), -np.log(1e-10)) for i in range(20)]
        trial = leave_one_out(support, np.zeros(20))
        assert mean_loss([trial], h) == pytest.approx(np.average(wanted, weights=own), rel=1e-6)
    few = leave_one_out(support, np.arange(20.0), among=np.array([3, 4, 7]))
    assert sorted(few.before.tolist()) == [3.0, 4.0, 7.0]


def test_the_spread_of_points_is_averaged_over_dimensions():
    x, _, w = points(2)
    mean = np.average(x, axis=0, weights=w)
    assert spread_of(x, w) == pytest.approx(np.sqrt(np.average((x - mean) ** 2, axis=0, weights=w).mean()))
    assert spread_of(x) == pytest.approx(np.sqrt(x.var(axis=0).mean()))
    assert spread_of(np.ones((4, 2))) == 1.0


def test_relative_kernels_are_kernels_up_to_a_factor():
    squared = np.array([0.5, 2.0, 9.0])
    found = relative_kernels(squared, 1.5, 10.0)
    np.testing.assert_allclose(found, np.exp(-(squared - 0.5) / 4.5), rtol=1e-9)
    far = relative_kernels(squared * 1e6, 1.0, 4.0)  # kernels are nothing: every row has its share of the frequencies
    np.testing.assert_allclose(far, far[0], rtol=1e-9)
    assert relative_kernels(np.array([np.inf, np.inf]), 1.0, 4.0).tolist() == [1.0, 1.0]
