"""Linear maps answered in one sweep, against NumPy and against each map by itself."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from calibrant import _core
from calibrant.arrays import panels_of, products
from calibrant.maps.scaling._linear_stack import LinearStack
from calibrant.maps.scaling._structured_part import StructuredPart
from calibrant.validation.saturation import ZERO_LOG

CLOSE = {np.float32: 1e-6, np.float64: 1e-12}
FORMS = ("own", "centred", "plain", "own", "plain", "centred")


def part_of(rng, form, k, scale=0.02):
    """A part with random weights, as a fit would leave it."""
    part = StructuredPart(form)
    part.weights_ = rng.normal(size={"own": (k,), "centred": (k, k + 1), "plain": (k, k)}[form]) * scale
    part.intercept_ = rng.normal(size=k) * 0.5
    part.confidence_ = np.array([-4.0, 1.7])
    return part


def rows_of(rng, n, k, dtype, shift=0.0):
    return (log_softmax(rng.normal(size=(n, k)) * 3, axis=1) + shift).astype(dtype)


def in_numpy(part, rows):
    """softmax(u + D x + b) in double precision."""
    u = log_softmax(rows.astype(np.float64), axis=1)
    x, means = np.maximum(u, ZERO_LOG), np.maximum(u, ZERO_LOG).mean(axis=1, keepdims=True)
    if part.form == "centred":
        mean, deviation = part.confidence_
        x = np.column_stack([x - means, (means - mean) / deviation])
    return softmax(u + (x * part.weights_ if part.form == "own" else x @ part.weights_.T) + part.intercept_, axis=1)


def one_by_one(parts, shares, rows):
    return sum(share * in_numpy(part, rows) for part, share in zip(parts, shares, strict=True))


def stack_of(parts, shares):
    return LinearStack([part.linear for part in parts], shares)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [2, 3, 10, 16, 31, 33, 64, 129, 300])
@pytest.mark.parametrize("n", [1, 5, 60])
def test_a_sweep_equals_the_parts_one_by_one(rng, k, n, dtype):
    parts = [part_of(rng, form, k) for form in FORMS]
    shares = rng.dirichlet(np.ones(len(parts))).tolist()
    rows = rows_of(rng, n, k, dtype, shift=7.0)
    total = np.full((n, k), 0.25, dtype=dtype)
    stack_of(parts, shares).add_to(total, rows)
    np.testing.assert_allclose(total - 0.25, one_by_one(parts, shares, rows), rtol=0, atol=CLOSE[dtype])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_classes_that_cannot_be_and_those_below_the_floor(rng, dtype):
    parts, shares = [part_of(rng, form, 6) for form in FORMS[:3]], [0.5, 0.2, 0.3]
    rows = rows_of(rng, 4, 6, dtype)
    rows[0, 2], rows[1, 0], rows[2, 1] = -np.inf, -250.0, -1e30
    total = np.zeros((4, 6), dtype=dtype)
    stack_of(parts, shares).add_to(total, rows)
    np.testing.assert_allclose(total, one_by_one(parts, shares, rows), rtol=0, atol=CLOSE[dtype])
    assert total[0, 2] == total[2, 1] == 0
    assert total[1, 0] < 1e-40
    np.testing.assert_allclose(total.sum(axis=1), 1, atol=1e-6)


def test_one_stack_serves_both_precisions_and_any_layout(rng):
    parts, shares = [part_of(rng, form, 5) for form in FORMS[:3]], [0.5, 0.2, 0.3]
    stack, rows = stack_of(parts, shares), rows_of(rng, 6, 5, np.float64)
    for given in (rows, rows.astype(np.float32), np.asfortranarray(rows), rows[::2], rows[:0]):
        total = np.zeros(given.shape, dtype=given.dtype)
        stack.add_to(total, given)
        expected = one_by_one(parts, shares, given) if len(given) else total
        np.testing.assert_allclose(total, expected, rtol=0, atol=CLOSE[given.dtype.type])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 2, 15, 16, 17, 130, 300])
def test_a_row_has_the_same_products_alone_and_among_others(rng, k, dtype):
    for columns in (1, 7, 128, 301):
        x, d = rng.normal(size=(101, columns)).astype(dtype), rng.normal(size=(k, columns)).astype(dtype)
        panels = panels_of(d, x.dtype)
        found = products(x, panels, k)
        scale = np.abs(x.astype(np.float64)) @ np.abs(d.T.astype(np.float64))
        assert (np.abs(found - x.astype(np.float64) @ d.T.astype(np.float64)) <= 70 * np.finfo(dtype).eps * scale).all()
        for rows in (slice(0, 1), slice(5, 6), slice(3, 10), slice(40, 101), slice(100, None)):
            np.testing.assert_array_equal(products(x[rows], panels, k), found[rows])


def test_products_of_nothing(rng):
    empty = np.empty((0, 3))
    assert products(empty, panels_of(np.ones((2, 3)), empty.dtype), 2).shape == (0, 2)
    none = np.empty((4, 0))
    np.testing.assert_array_equal(products(none, panels_of(np.ones((2, 0)), none.dtype), 2), np.zeros((4, 2)))
    with pytest.raises(ValueError, match="do not fit"):
        products(np.ones((4, 3)), panels_of(np.ones((2, 4)), none.dtype), 2)


def test_the_kernel_refuses_tables_that_do_not_fit(rng):
    z, frames = np.zeros((2, 3)), np.array([[1.0, -104.0, 0.0, 0.0, 0.0, 1.0]])
    good = {"frames": frames, "columns": np.array([1]), "weights": np.zeros(3), "intercepts": np.zeros((1, 3))}
    _core.add_linear_mixture(z, **good, threads=1, out=np.zeros((2, 3)))
    for name, bad in (
        ("frames", frames[:, :5].copy()),
        ("columns", np.array([2])),
        ("columns", np.array([3])),
        ("weights", np.zeros(4)),
        ("intercepts", np.zeros((1, 4))),
    ):
        with pytest.raises(ValueError, match=r"fit|columns"):
            _core.add_linear_mixture(z, **{**good, name: bad}, threads=1, out=np.zeros((2, 3)))
