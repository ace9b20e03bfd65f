"""The curve kernels against NumPy twins, and the solver against its own conditions."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import log_softmax, softmax

from calibrant import _core, make
from calibrant.arrays import keep_top
from calibrant.maps.scaling._curve import Curves, minimise, polish
from calibrant.passes import Block

KNOTS = np.array([0.0, 0.5, 1.5, 4.0])
VALUES = np.array([[0.0, -0.7, -1.2, -4.4], [0.3, 0.1, -2.0, -3.0], [0.0, -1.0, -1.5, -9.0]])


def twin_features(z, places, beta, knots, stations):
    """(n, K, stations · knots): how much each value at a knot adds to each score."""
    t = -log_softmax(beta * z.astype(float), axis=1)
    segment = np.clip(np.searchsorted(knots, t, side="right") - 1, 0, len(knots) - 2)
    a = (t - knots[segment]) / np.diff(knots)[segment]
    hats = (1 - a)[..., None] * np.eye(len(knots))[segment] + a[..., None] * np.eye(len(knots))[segment + 1]
    rows = np.stack([np.interp(places, np.arange(stations), e) for e in np.eye(stations)], axis=-1)
    return (rows[:, None, :, None] * hats[:, :, None, :]).reshape(*z.shape, -1)


def twin_sums(z, y, w, places, knots, values, beta):
    features = twin_features(z, places, beta, knots, len(values))
    f = features @ values.ravel()
    p = softmax(f, axis=1)
    rows = np.arange(len(y))
    mean = np.einsum("nk,nkp->np", p, features)
    out = []
    for fold in range(5):
        i = rows % 5 == fold
        loss = -(w[i] * log_softmax(f[i], axis=1)[np.arange(i.sum()), y[i]]).sum()
        gradient = w[i] @ (mean[i] - features[rows[i], y[i]])
        second = np.einsum("n,nk,nkp,nkq->pq", w[i], p[i], features[i], features[i])
        out.append((loss, gradient, second - np.einsum("n,np,nq->pq", w[i], mean[i], mean[i])))
    return out


def rows(n, k, dtype, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(n, k)) * 3).astype(dtype), rng.integers(0, k, n), rng.random(n) * 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("stations", [1, 2, 3])
@pytest.mark.parametrize("k", [2, 9])
def test_sums_equal_the_twin(dtype, stations, k):
    z, y, w = rows(70, k, dtype)
    places = np.random.default_rng(1).random(70) * (stations - 1)
    got = _core.curve_sums(z, y, w, places, KNOTS, VALUES[:stations], 0.8, 2)
    size = stations * len(KNOTS)
    for fold, (loss, gradient, hessian) in enumerate(twin_sums(z, y, w, places, KNOTS, VALUES[:stations], 0.8)):
        assert_allclose(got[fold, 0], loss, rtol=1e-10)
        assert_allclose(got[fold, 1 : 1 + size], gradient, rtol=1e-9, atol=1e-11)
        upper = np.triu(got[fold, 1 + size :].reshape(size, size))
        assert_allclose(upper, np.triu(hessian), rtol=1e-8, atol=1e-10)


def test_gradient_by_finite_differences():
    z, y, w = rows(40, 5, np.float64)
    places = np.linspace(0, 2, 40)

    def total(values):
        return _core.curve_sums(z, y, w, places, KNOTS, values, 1.0, 1)[:, 0].sum()

    gradient = _core.curve_sums(z, y, w, places, KNOTS, VALUES, 1.0, 1)[:, 1 : 1 + VALUES.size].sum(axis=0)
    for index, step in enumerate(np.eye(VALUES.size) * 1e-6):
        around = [total(VALUES + sign * step.reshape(VALUES.shape)) for sign in (1, -1)]
        assert_allclose(gradient[index], (around[0] - around[1]) / 2e-6, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_apply_equals_the_twin_at_any_thread_count(dtype):
    z, _, _ = rows(200, 6, dtype)
    places = np.linspace(0, 2, 200)
    answers = []
    for threads in (1, 3):
        out = np.empty_like(z)
        _core.curve_apply(z, places, KNOTS, VALUES, 1.3, threads, out)
        answers.append(out)
    assert_array_equal(*answers)
    expected = softmax(twin_features(z, places, 1.3, KNOTS, 3) @ VALUES.ravel(), axis=1)
    assert_allclose(answers[0], expected, rtol=1e-6 if dtype == np.float32 else 1e-11)


def test_impossible_classes_get_nothing_even_where_the_curve_rises():
    rising = np.array([[0.0, 1.0, 2.0, 3.0]])
    out = np.empty((1, 3))
    _core.curve_apply(np.array([[0.0, -np.inf, 1.0]]), np.zeros(1), KNOTS, rising, 1.0, 1, out)
    assert out[0, 1] == 0
    assert_allclose(out.sum(), 1)


def test_sums_are_the_same_bits_for_any_thread_count():
    z, y, w = rows(333, 7, np.float32)
    places = np.zeros(333)
    one, three = (_core.curve_sums(z, y, w, places, KNOTS, VALUES[:1], 1.0, threads) for threads in (1, 3))
    assert_array_equal(one, three)


def test_places_outside_the_stations_are_refused():
    z, y, _ = rows(4, 3, np.float64)
    with pytest.raises(ValueError, match="place"):
        _core.curve_sums(z, y, None, np.full(4, 2.5), KNOTS, VALUES, 1.0, 1)


def test_the_optimum_meets_its_conditions_with_and_without_bounds():
    z, y, w = rows(300, 4, np.float64)
    basis = -np.tril(np.ones((4, 3)), -1) * np.diff(KNOTS)
    curves = Curves(Block(z, y, w, 4), np.zeros(300), KNOTS, 1.0, np.zeros((1, 4)), basis)
    one, precision = np.ones(3), np.eye(3)
    for low in (-np.inf, 0.4):
        found = polish(minimise(curves, one, one, precision, low))
        slope = found.gradients.sum(axis=0) + precision @ (found.theta - one)
        assert found.converged
        free = found.theta > low
        assert_allclose(slope[free], 0, atol=1e-4)
        assert (slope[~free] > 0).all()
    assert (found.theta == 0.4).any()  # labels were drawn at random: slopes want to vanish


def test_held_out_loss_is_close_to_refitting():
    rng = np.random.default_rng(2)
    z = rng.normal(size=(500, 4)) * 3
    y = (z / 2 + rng.gumbel(size=z.shape)).argmax(axis=1)
    basis = -np.tril(np.ones((4, 3)), -1) * np.diff(KNOTS)

    def family(keep):
        sample = Block(np.ascontiguousarray(z[keep]), y[keep], None, 4)
        return Curves(sample, np.zeros(len(keep)), KNOTS, 1.0, np.zeros((1, 4)), basis)

    whole = polish(minimise(family(np.arange(500)), np.ones(3), np.ones(3), np.eye(3)))
    refitted = 0.0
    for fold in range(5):
        rest, held = (np.flatnonzero((np.arange(500) % 5 == fold) == side) for side in (False, True))
        theta = polish(minimise(family(rest), np.ones(3), np.ones(3), np.eye(3))).theta
        refitted += family(held).at(theta)[0].sum()
    assert_allclose(whole.held_out_loss(), refitted, rtol=1e-3)
    assert whole.held_out_loss() > whole.loss
    assert 0 < whole.effective_parameters < 3


def test_keep_top_parts_only_what_rounding_tied():
    z = np.array([[1.0, 1.0 + 1e-12, 0.0], [2.0, 2.0, 1.0], [0.0, 1.0, 1.0]])
    p = np.array([[0.4, 0.4, 0.2], [0.4, 0.4, 0.2], [0.2, 0.4, 0.4]], dtype=np.float32)
    kept = keep_top(p.copy(), z)
    assert_array_equal(kept.argmax(axis=1), z.argmax(axis=1))
    assert_array_equal(kept[1:], p[1:])
    assert kept[0, 1] - kept[0, 0] < 1e-7


@pytest.mark.parametrize("name", ["iop", "gp"])
def test_scores_that_say_nothing_are_left_alone_without_a_word_of_harm(name):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        report = make(name).fit(np.zeros((2, 2)), [0, 1]).fit_report_
    assert report.held_out_error > 0
    assert not report.harms
    assert not any("worse" in str(warning.message) for warning in told)
