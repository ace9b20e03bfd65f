"""The compiled sums against their plain NumPy twins."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from calibrant import _core

GROUPS = 5


def places(n):
    return np.arange(n) % GROUPS


def twin_sums(z, y, w, betas, loss):
    """By group: the loss of softmax(βz), and its derivatives from the definition of p, p', p''."""
    z = z.astype(np.float64)
    beta = betas[places(len(y))][:, None]
    p = softmax(beta * z, axis=1)
    mean = (p * z).sum(1, keepdims=True)
    variance = (p * z * z).sum(1, keepdims=True) - mean**2
    p1, p2 = p * (z - mean), p * ((z - mean) ** 2 - variance)
    hot = np.eye(z.shape[1])[y]
    rows = np.arange(len(y))
    if loss == 0:
        per_row = np.stack([-np.log(p[rows, y]), -p1[rows, y] / p[rows, y], variance[:, 0]], axis=1)
    else:
        r = p - hot
        per_row = np.stack([(r**2).sum(1), 2 * (r * p1).sum(1), 2 * (p1**2 + r * p2).sum(1)], axis=1)
    weights = np.ones(len(y)) if w is None else w
    return np.stack([(per_row * weights[:, None])[f::GROUPS].sum(0) for f in range(GROUPS)])


def problem(n, k, seed, dtype=np.float64):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(n, k)) * 3 + rng.normal()).astype(dtype), rng.integers(k, size=n), rng.random(n)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 40), st.integers(2, 700), st.integers(0, 10**6), st.floats(0.01, 5.0), st.sampled_from([0, 1]))
def test_sums_equal_their_twin(n, k, seed, beta, loss):
    z, y, w = problem(n, k, seed)
    betas = beta * np.linspace(0.5, 1.5, GROUPS)
    np.testing.assert_allclose(
        _core.temperature_sums(z, y, w, places(n), betas, loss, 2),
        twin_sums(z, y, w, betas, loss),
        rtol=1e-8,
        atol=1e-8,
    )
    alone = _core.temperature_sums(z, y, w, None, betas[:1], loss, 2)
    together = _core.temperature_sums(z, y, w, places(n), np.full(GROUPS, betas[0]), loss, 2)
    np.testing.assert_allclose(alone[0], together.sum(axis=0), rtol=1e-8, atol=1e-8)


LENGTHS = [2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 511, 513, 1023, 1024, 1030, 2050]


@pytest.mark.parametrize("k", LENGTHS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_any_length_have_no_remainder(k, dtype):
    """Short rows lie side by side and long ones end in a window: every length near a border, for 19 rows."""
    z, y, w = problem(19, k, k, dtype)
    z[::3, 0] = -np.inf
    y[y == 0] = k - 1
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if dtype == np.float32 else {"rtol": 1e-10, "atol": 1e-10}
    p, b = softmax(0.7 * z.astype(np.float64), axis=1), softmax(z.astype(np.float64), axis=1)
    nll, brier = (_core.temperature_sums(z, y, w, None, np.array([0.7]), loss, 1)[0] for loss in (0, 1))
    label = p[np.arange(19), y]
    np.testing.assert_allclose(nll[0], -(w @ np.log(label)), **tolerance)
    np.testing.assert_allclose(brier[0], w @ ((p**2).sum(1) - 2 * label + 1), **tolerance)
    assert np.isfinite([nll, brier]).all()
    np.testing.assert_allclose(_core.temperature_rows(z, y, 0.7, 1)[:, 0], label, **tolerance)
    sums = _core.ensemble_sums(z, y, w, 0.7, 1)
    np.testing.assert_allclose(sums[[2, 7]], [w @ (p * b).sum(1), w @ (b * b).sum(1)], **tolerance)
    out = np.empty_like(z)
    _core.ensemble_apply(z, 0.7, 0.5, 0.4, 0.0, 1, out)
    np.testing.assert_allclose(out, 0.5 * p + 0.4 * b, **tolerance)
    assert (out[::3, 0] == 0).all()


@pytest.mark.parametrize("k", [2, 10, 63, 64, 100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_has_the_same_bits_alone_as_among_others(k, dtype):
    z, y, _ = problem(37, k, 5, dtype)
    together, alone = np.empty_like(z), np.empty_like(z)
    _core.ensemble_apply(z, 0.7, 0.5, 0.4, 0.1, 1, together)
    for i in range(len(z)):
        _core.ensemble_apply(z[i : i + 1], 0.7, 0.5, 0.4, 0.1, 1, alone[i : i + 1])
    assert (alone == together).all()
    rows = [_core.temperature_rows(z[i : i + 1], y[i : i + 1], 0.7, 1) for i in range(len(z))]
    assert (np.concatenate(rows) == _core.temperature_rows(z, y, 0.7, 1)).all()


@pytest.mark.parametrize("loss", [0, 1])
def test_a_beta_that_no_float_holds_gives_no_number(loss):
    z, y, w = problem(20, 10, 4, np.float32)
    assert np.isnan(_core.temperature_sums(z, y, w, None, np.array([1e40]), loss, 1)).all()


@pytest.mark.parametrize("loss", [0, 1])
def test_float32_agrees_with_float64(loss):
    z, y, w = problem(500, 100, 1, np.float32)
    single = _core.temperature_sums(z, y, w, None, np.array([0.7]), loss, 1)
    double = _core.temperature_sums(z.astype(np.float64), y, w, None, np.array([0.7]), loss, 1)
    np.testing.assert_allclose(single, double, rtol=2e-5, atol=1e-4)


@pytest.mark.parametrize("loss", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_number_of_threads_gives_the_same_bits(loss, dtype):
    z, y, w = problem(3000, 60, 2, dtype)
    one = _core.temperature_sums(z, y, w, None, np.array([1.3]), loss, 1)
    for threads in (2, 3, 7):
        assert (_core.temperature_sums(z, y, w, None, np.array([1.3]), loss, threads) == one).all()


@pytest.mark.parametrize("loss", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_of_any_scale_have_the_derivatives_of_those_of_scale_one(loss, dtype):
    z, y, w = problem(200, 10, 3, dtype)
    near = _core.temperature_sums(z, y, w, None, np.array([0.7]), loss, 1)[0]
    far = _core.temperature_sums(z * dtype(1e30), y, w, None, np.array([0.7e-30]), loss, 1)[0]
    np.testing.assert_allclose(far * [1, 1e-30, 1e-60], near, rtol=1e-4)
    rows = _core.temperature_rows(z * dtype(1e30), y, 0.7e-30, 1)
    np.testing.assert_allclose(rows, _core.temperature_rows(z, y, 0.7, 1), rtol=1e-3, atol=1e-5)
    sums = _core.ensemble_sums(z * dtype(1e30), y, w, 0.7e-30, 1)
    assert np.isfinite(sums).all()


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 30), st.integers(2, 40), st.integers(0, 10**6), st.floats(0.05, 4.0))
def test_ensemble_sums_equal_their_twin(n, k, seed, beta):
    z, y, w = problem(n, k, seed)
    rows = np.arange(n)
    a, b = softmax(beta * z, axis=1), softmax(z, axis=1)
    mean = (a * z).sum(1, keepdims=True)
    variance = (a * z * z).sum(1, keepdims=True) - mean**2
    a1, a2 = a * (z - mean), a * ((z - mean) ** 2 - variance)
    a1, a2 = beta * a1, beta * a1 + beta**2 * a2  # in log β
    expected = [(a * a).sum(1), (a * a1).sum(1), (a * b).sum(1), (a1 * b).sum(1), a[rows, y], a1[rows, y], b[rows, y]]
    expected += [(b * b).sum(1), (a1 * a1 + a * a2).sum(1), (a2 * b).sum(1), a2[rows, y]]
    np.testing.assert_allclose(_core.ensemble_sums(z, y, w, beta, 2), np.stack(expected) @ w, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(
        _core.temperature_rows(z, y, beta, 2),
        np.stack([a[rows, y], a1[rows, y], a2[rows, y]], 1),
        rtol=1e-8,
        atol=1e-12,
    )


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 200), st.integers(1, 5), st.integers(0, 10**6))
def test_mixture_sums_equal_their_twin(n, parts, seed):
    rng = np.random.default_rng(seed)
    columns, weights, w = rng.random((n, parts)) + 0.01, rng.random(n), rng.dirichlet(np.ones(parts))
    mixed = columns @ w
    ratio = columns / mixed[:, None]
    expected = np.concatenate(
        [[-(weights @ np.log(mixed))], -(weights @ ratio), ((ratio * weights[:, None]).T @ ratio).ravel()]
    )
    np.testing.assert_allclose(_core.mixture_sums(columns, weights, w, 2), expected, rtol=1e-10, atol=1e-12)


def test_mixture_sums_of_tiny_and_impossible_rows():
    columns, w = np.array([[1e-310, 0.5], [0.25, 0.5], [0.0, 0.7]]), np.array([1.0, 0.0])
    tiny = _core.mixture_sums(columns[:2], None, w, 1)
    assert tiny[0] == pytest.approx(-np.log(1e-310) - np.log(0.25))
    np.testing.assert_allclose(
        _core.mixture_sums(columns[1:], np.array([2.0, 0.0]), w, 1)[:3], [-2 * np.log(0.25), -2, -4]
    )
    assert _core.mixture_sums(columns[1:], None, w, 1)[0] == np.inf


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exponential_is_accurate_and_monotone(dtype):
    x = np.append(-np.geomspace(1e-7, 70, 200_001).astype(dtype)[::-1], dtype(0))
    out = np.empty((1, len(x)), dtype)
    _core.ensemble_apply(x[None], 1.0, 1.0, 0.0, 0.0, 1, out)
    np.testing.assert_allclose(out[0] / out[0, -1], np.exp(x.astype(np.float64)), rtol=4 * np.finfo(dtype).eps)
    assert (np.diff(out[0]) >= 0).all()


def test_minus_infinity_is_exactly_zero_and_wrong_shapes_are_refused():
    z = np.array([[0.0, -np.inf, 1.0]])
    out = np.empty_like(z)
    _core.ensemble_apply(z, 2.0, 1.0, 0.0, 0.0, 1, out)
    assert out[0, 1] == 0
    assert abs(out.sum() - 1) < 1e-15
    with pytest.raises(ValueError, match="shape"):
        _core.ensemble_apply(z, 1.0, 1.0, 0.0, 0.0, 1, np.empty((2, 3)))
    with pytest.raises(ValueError, match="label"):
        _core.temperature_sums(z, np.array([3]), None, None, np.ones(1), 0, 1)
