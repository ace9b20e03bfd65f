"""The outlook along shared directions says what whole metrics say."""

import numpy as np
import pytest

from calibrant.fits.priors import odir, ridge
from calibrant.fits.problem import PlainOutlook
from calibrant.maps.scaling._shared import Shared


@pytest.mark.parametrize("rank", [43, 20])
@pytest.mark.parametrize("regularisation", ["l2", "odir", "with confidence"])
def test_shared_outlook_equals_the_plain_one(rng, rank, regularisation):
    k, sure = 41, regularisation == "with confidence"
    side = k + 1 + sure
    directions = np.linalg.qr(rng.normal(size=(side, min(rank, side))))[0]
    root = rng.normal(size=(k, 2 + sure, 2 + sure))
    along = rng.exponential(size=(k, directions.shape[1])) * 50
    near = Shared(directions, along, root @ root.transpose(0, 2, 1), 2e-16)
    prior = odir(k) if regularisation == "odir" else ridge(k, side * k)
    theta, gradient = rng.normal(size=(2, side * k))
    for precisions in (np.array([3.0, 20.0, 0.5, 7.0]), np.array([0.1, 1e5, 40.0, 2.0])):
        precisions = precisions[: 3 + sure]
        found = near.outlook(theta, gradient, prior).under(precisions)
        expected = PlainOutlook(near, theta, gradient, prior).under(precisions)
        np.testing.assert_allclose(found, expected, rtol=1e-9)
