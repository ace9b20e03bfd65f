"""The outlook along shared directions says what whole metrics say."""

import numpy as np
import pytest

from calibrant.maps.scaling._curvature import Shared
from calibrant.maps.scaling._outlook import _PlainOutlook, outlook
from calibrant.maps.scaling._prior import Prior, parts_of
from calibrant.maps.scaling.matrix import penalty_shape


@pytest.mark.parametrize("rank", [43, 20])
@pytest.mark.parametrize("regularisation", ["l2", "odir", "with confidence"])
def test_shared_outlook_equals_the_plain_one(rng, rank, regularisation):
    k, sure = 41, regularisation == "with confidence"
    side = k + 1 + sure
    directions = np.linalg.qr(rng.normal(size=(side, min(rank, side))))[0]
    root = rng.normal(size=(k, 2 + sure, 2 + sure))
    near = Shared(directions, rng.exponential(size=(k, directions.shape[1])) * 50, root @ root.transpose(0, 2, 1))
    prior = Prior(parts_of(k, side * k), np.ones(side * k) if sure else penalty_shape(regularisation, k))
    theta, gradient = rng.normal(size=(2, side * k))
    for precisions in (np.array([3.0, 20.0, 0.5, 7.0]), np.array([0.1, 1e5, 40.0, 2.0])):
        precisions = precisions[: 3 + sure]
        found = outlook(near, theta, gradient, prior).under(precisions)
        expected = _PlainOutlook(near, theta, gradient, prior).under(precisions)
        np.testing.assert_allclose(found, expected, rtol=1e-9)
