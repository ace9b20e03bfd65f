"""Scores are one where rounding of their size could have made them two, and not beyond."""

import numpy as np
import pytest

from calibrant import _core

ROUNDING = {np.float64: 1e-14, np.float32: 1e-6}


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("x", [-300.0, -2.0, 0.0, 0.25, 7.0, 100.0])
@pytest.mark.parametrize(("times", "merged"), [(0.6, True), (1.6, False)])
def test_scores_merge_by_rounding_of_their_size(kind, x, times, merged):
    apart = times * ROUNDING[kind] * (1 + abs(x))
    given = np.array([x, x + apart]).astype(kind)
    if given[0] == given[1]:
        pytest.skip("no number is as close")
    fresh, bounds = _core.merge_close(given, np.array([0, 2]), 0.0)
    assert fresh.tolist() == [True, not merged]
    assert x - 1.1 * ROUNDING[kind] * (1 + abs(x)) <= bounds[0] < x
    if not merged:
        assert given[0] < bounds[1] <= given[1]


@pytest.mark.parametrize("resolution", [1e-3, 0.05])
@pytest.mark.parametrize("p", [0.1, 0.4, 0.6, 0.93])
def test_scores_merge_by_the_resolution_of_their_probabilities(resolution, p):
    def odds(q):
        return np.log(q / (1 - q))

    near, far = (np.array([odds(p), odds(p + share * resolution)]) for share in (0.9, 1.1))
    assert _core.merge_close(near, np.array([0, 2]), resolution)[0].tolist() == [True, False]
    fresh, bounds = _core.merge_close(far, np.array([0, 2]), resolution)
    assert fresh.tolist() == [True, True]
    np.testing.assert_allclose(bounds, [odds(p - resolution), odds(p + 0.1 * resolution)], rtol=1e-9)
