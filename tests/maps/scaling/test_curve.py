"""The curve kernels against NumPy twins, and the fit of a curve against its own conditions."""

import pickle
import warnings
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import log_softmax, softmax

from calibrant import _core, make
from calibrant.arrays import keep_top
from calibrant.maps.scaling._curve import Curves, Family, _log_determinants, curve_sums
from calibrant.maps.scaling._curve_search import fit_curve
from calibrant.passes import Block, in_memory, in_stream

KNOTS = np.array([0.0, 0.5, 1.5, 4.0])
STATIONS = np.array([-1.0, 0.5, 3.0])
VALUES = np.array([[0.0, -0.7, -1.2, -4.4], [0.3, 0.1, -2.0, -3.0], [0.0, -1.0, -1.5, -9.0]])


def twin_places(z, beta, stations):
    """Where each row lies between the stations, from 0 to their number less one."""
    p = softmax(beta * z.astype(float), axis=1).max(axis=1)
    return np.interp(np.log(p) - np.log1p(-p), stations, np.arange(len(stations)))


def twin_features(z, beta, knots, stations):
    """(n, K, stations · knots): how much each value at a knot adds to each score."""
    t = -log_softmax(beta * z.astype(float), axis=1)
    segment = np.clip(np.searchsorted(knots, t, side="right") - 1, 0, len(knots) - 2)
    a = (t - knots[segment]) / np.diff(knots)[segment]
    hats = (1 - a)[..., None] * np.eye(len(knots))[segment] + a[..., None] * np.eye(len(knots))[segment + 1]
    places = twin_places(z, beta, stations)
    rows = np.stack([np.interp(places, np.arange(len(stations)), e) for e in np.eye(len(stations))], axis=-1)
    return (rows[:, None, :, None] * hats[:, :, None, :]).reshape(*z.shape, -1)


def twin_sums(z, y, w, knots, stations, values, beta):
    features = twin_features(z, beta, knots, stations)
    f = features @ values.ravel()
    p = softmax(f, axis=1)
    rows = np.arange(len(y))
    mean = np.einsum("nk,nkp->np", p, features)
    loss = -(w * log_softmax(f, axis=1)[rows, y]).sum()
    gradient = w @ (mean - features[rows, y])
    second = np.einsum("n,nk,nkp,nkq->pq", w, p, features, features)
    return loss, gradient, second - np.einsum("n,np,nq->pq", w, mean, mean)


def rows(n, k, dtype, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(n, k)) * 3).astype(dtype), rng.integers(0, k, n), rng.random(n) * 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("stations", [1, 2, 3])
@pytest.mark.parametrize("k", [2, 9])
def test_sums_equal_the_twin(dtype, stations, k):
    z, y, w = rows(70, k, dtype)
    got = _core.curve_sums(z, y, w, KNOTS, STATIONS[:stations], VALUES[:stations], 0.8, 2)
    size = stations * len(KNOTS)
    loss, gradient, hessian = twin_sums(z, y, w, KNOTS, STATIONS[:stations], VALUES[:stations], 0.8)
    assert_allclose(got[0], loss, rtol=1e-10)
    assert_allclose(got[1 : 1 + size], gradient, rtol=1e-9, atol=1e-10)
    assert_allclose(np.triu(got[1 + size :].reshape(size, size)), np.triu(hessian), rtol=1e-8, atol=1e-10)


def test_gradient_by_finite_differences():
    z, y, w = rows(40, 5, np.float64)

    def total(values):
        return _core.curve_sums(z, y, w, KNOTS, STATIONS, values, 1.0, 1)[0]

    gradient = _core.curve_sums(z, y, w, KNOTS, STATIONS, VALUES, 1.0, 1)[1 : 1 + VALUES.size]
    for index, step in enumerate(np.eye(VALUES.size) * 1e-6):
        around = [total(VALUES + sign * step.reshape(VALUES.shape)) for sign in (1, -1)]
        assert_allclose(gradient[index], (around[0] - around[1]) / 2e-6, rtol=1e-5, atol=1e-6)


def test_moments_do_not_cancel_where_all_probability_is_far_out():
    """A curve that rises sends the row to its class at t = 1e12; the near knots must have nothing of it."""
    z, y = np.array([[0.0, -1e12]]), np.array([1])
    rising = np.array([[0.0, 1.0, 2.0, 3.0]])
    sums = _core.curve_sums(z, y, None, KNOTS, STATIONS[:1], rising, 1.0, 1)
    hessian = sums[5:].reshape(4, 4)
    assert_allclose(hessian[:2], 0, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_apply_equals_the_twin_at_any_thread_count(dtype):
    z, _, _ = rows(200, 6, dtype)
    answers = []
    for threads in (1, 3):
        out = np.empty_like(z)
        _core.curve_apply(z, KNOTS, STATIONS, VALUES, 1.3, threads, out)
        answers.append(out)
    assert_array_equal(*answers)
    expected = softmax(twin_features(z, 1.3, KNOTS, STATIONS) @ VALUES.ravel(), axis=1)
    assert_allclose(answers[0], expected, rtol=1e-6 if dtype == np.float32 else 1e-11)


def test_impossible_classes_get_nothing_even_where_the_curve_rises():
    rising = np.array([[0.0, 1.0, 2.0, 3.0]])
    out = np.empty((1, 3))
    _core.curve_apply(np.array([[0.0, -np.inf, 1.0]]), KNOTS, STATIONS[:1], rising, 1.0, 1, out)
    assert out[0, 1] == 0
    assert_allclose(out.sum(), 1)


def test_sums_are_the_same_bits_for_any_thread_count():
    z, y, w = rows(3333, 7, np.float32)
    one, three = (_core.curve_sums(z, y, w, KNOTS, STATIONS, VALUES, 1.0, threads) for threads in (1, 3))
    assert_array_equal(one, three)


def test_the_largest_surprise_is_that_of_rows_with_a_weight():
    z, _, _ = rows(50, 4, np.float64)
    z[7, 2] = -100.0
    w = np.ones(50)
    assert_allclose(_core.largest_surprise(z, w, 0.5, 2), -log_softmax(0.5 * z, axis=1).min())
    w[7] = 0.0
    rest = np.delete(z, 7, axis=0)
    assert_allclose(_core.largest_surprise(z, w, 0.5, 2), -log_softmax(0.5 * rest, axis=1).min())


def test_values_that_do_not_fit_the_knots_are_refused():
    z, y, _ = rows(4, 3, np.float64)
    with pytest.raises(ValueError, match="knots"):
        _core.curve_sums(z, y, None, KNOTS[:3], STATIONS, VALUES, 1.0, 1)
    with pytest.raises(ValueError, match="station"):
        _core.curve_sums(z, y, None, KNOTS, STATIONS[:2], VALUES, 1.0, 1)


def family(strength=1.0, low=-np.inf):
    """One curve for all rows, by its three slopes, a priori near one."""
    basis = -np.tril(np.ones((4, 3)), -1) * np.diff(KNOTS)
    return Family(np.zeros((1, 4)), basis, np.ones(3), strength * np.eye(3), np.ones(3), low)


def data_of(z, y, w=None):
    return in_memory(Block(np.ascontiguousarray(z), y, w, z.shape[1]))


def curves_of(data):
    return Curves(data, KNOTS, STATIONS[:1], 1.0)


@pytest.mark.parametrize("low", [-np.inf, 0.4])
@pytest.mark.parametrize("n", [300, 9000])  # the second is enough for a pilot
def test_the_optimum_meets_its_conditions_with_and_without_bounds(n, low):
    curves = curves_of(data_of(*rows(n, 4, np.float64)))
    found = fit_curve(curves, partial(family, low=low), ((1.0,),), (0,))
    theta = found.optimum.theta
    slope = family().penalised(theta, curves.at(found.values)).gradient[0]
    assert found.converged
    free = theta > low
    assert_allclose(slope[free], 0, atol=1e-4)
    assert (slope[~free] > 0).all()
    assert low == -np.inf or not free.all()  # labels were drawn at random: slopes want to vanish


def test_what_the_quadratic_says_of_other_priors_is_close_to_fitting_under_them():
    rng = np.random.default_rng(2)
    z = rng.normal(size=(500, 4)) * 3
    y = (z / 2 + rng.gumbel(size=z.shape)).argmax(axis=1)
    curves = curves_of(data_of(z, y))
    fitted = [fit_curve(curves, family, ((strength,),), (0,)).optimum for strength in (1.0, 3.0, 10.0)]
    guessed = curves.at(family().values(fitted[1].theta)).under([family(s) for s in (1.0, 3.0, 10.0)])
    for exact, guess in zip(fitted, guessed, strict=True):
        assert_allclose(guess.evidence, exact.evidence, atol=0.02)
        assert_allclose(guess.theta, exact.theta, atol=0.01)
        assert_allclose(guess.effective_parameters, exact.effective_parameters, rtol=0.05)


def test_the_evidence_is_highest_at_the_choice():
    rng = np.random.default_rng(2)
    z = rng.normal(size=(500, 4)) * 3
    y = (z / 2 + rng.gumbel(size=z.shape)).argmax(axis=1)
    curves, grid = curves_of(data_of(z, y)), (0.1, 1.0, 10.0, 100.0, 1000.0)
    found = fit_curve(curves, family, (grid,), (0,))
    evidence = [fit_curve(curves, family, ((strength,),), (0,)).optimum.evidence for strength in grid]
    assert found.chosen == (grid[int(np.argmax(evidence))],)
    assert_allclose(found.optimum.evidence, max(evidence), rtol=1e-6)


def test_effective_parameters_run_from_none_to_all():
    curves = curves_of(data_of(*rows(300, 4, np.float64)))
    counts = [
        fit_curve(curves, family, ((strength,),), (0,)).optimum.effective_parameters for strength in (1e-9, 1.0, 1e9)
    ]
    assert_allclose(counts[0], 3.0, atol=1e-4)
    assert 0 < counts[1] < 3
    assert 0 < counts[2] < 1e-4


@pytest.mark.parametrize("cut", [(), (3,), (0, 1, 50, 120, 299)])
def test_a_pass_over_blocks_gives_the_sums_of_all_rows(cut):
    z, y, w = rows(300, 4, np.float64)
    edges = [0, *cut, *cut[-1:], 300]  # an empty block too
    parts = [Block(z[a:b], y[a:b], w[a:b], 4) for a, b in pairwise(edges)]
    values = family().values(np.array([0.5, 1.0, 2.0]))
    local = curves_of(in_stream(lambda: iter(parts), 4, 4, z.dtype)).at(values)
    whole = curves_of(data_of(z, y, w)).at(values)
    assert_allclose(local.loss, whole.loss, rtol=1e-13)
    assert_allclose(local.gradient, whole.gradient, rtol=1e-10, atol=1e-10)
    assert_allclose(local.hessian, whole.hessian, rtol=1e-10, atol=1e-10)


def test_a_pass_holds_no_rows():
    one_pass = partial(curve_sums, knots=KNOTS, stations=STATIONS, values=VALUES, beta=1.0)
    assert len(pickle.dumps(one_pass)) < 2000


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_keep_top_parts_only_what_rounding_tied(dtype):
    above = np.nextafter(dtype(1), dtype(2))
    z = np.array([[1.0, above, 0.0], [2.0, 2.0, 1.0], [0.0, 1.0, 1.0], [0.0, 1.0, 2.0]], dtype=dtype)
    p = np.array([[0.4, 0.4, 0.2], [0.4, 0.4, 0.2], [0.2, 0.4, 0.4], [0.4, 0.4, 0.4]], dtype=dtype)
    kept = keep_top(p.copy(), z)
    assert_array_equal(kept.argmax(axis=1), z.argmax(axis=1))
    assert_array_equal(kept[1:3], p[1:3])
    raised = np.nextafter(p[0, 1], dtype(2))
    assert_array_equal(kept[[0, 3]], np.array([[p[0, 0], raised, p[0, 2]], [p[3, 0], p[3, 1], raised]]))


@pytest.mark.parametrize("name", ["iop", "gp"])
def test_scores_that_say_nothing_are_left_alone_without_a_word_of_harm(name):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        report = make(name).fit(np.zeros((2, 2)), [0, 1]).fit_report_
    assert report.held_out_error > 0
    assert not report.harms
    assert not any("worse" in str(warning.message) for warning in told)


def test_a_diagonal_that_rounding_made_negative_has_a_unit():
    """Of logits of 1e29 with weights from 1e-12 to 1e12 a sum that cancels was -2e8."""
    matrix = np.array([[-2e8, 1e-4, -225.0], [1e-4, 1.0, 1e-22], [-225.0, 1e-22, 1.0]])
    with np.errstate(all="raise"):
        assert np.isfinite(_log_determinants(matrix[None])).all()
