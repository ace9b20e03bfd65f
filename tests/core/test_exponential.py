"""The exponential of the kernels, seen through the softmax of two classes far apart."""

import numpy as np
import pytest

from calibrant.arrays import softmax


@pytest.mark.parametrize(("dtype", "lowest"), [(np.float32, -87.0), (np.float64, -708.0)])
def test_exponential_is_within_two_units_in_the_last_place(dtype, lowest):
    x = np.linspace(lowest, -40, 200_001).astype(dtype)  # below which adding 1 changes nothing in either precision
    found = softmax(np.stack([np.zeros_like(x), x], axis=1))[:, 1]
    exact = np.exp(x.astype(np.longdouble))
    error = np.abs(found.astype(np.longdouble) - exact) / np.spacing(exact.astype(dtype))
    assert error.max() < 2


@pytest.mark.parametrize(("dtype", "lowest"), [(np.float32, -87.0), (np.float64, -708.0)])
def test_exponential_ends_in_zero_and_never_rises(dtype, lowest):
    x = np.concatenate([np.linspace(lowest - 3, lowest, 30_001), [-1e4, -np.inf]]).astype(dtype)
    found = softmax(np.stack([np.zeros_like(x), x], axis=1))[:, 1]
    assert (found[x < lowest - 1] == 0).all()
    assert (np.diff(found[:-2]) >= 0).all()
    assert found.max() <= 1.01 * np.exp(lowest)
