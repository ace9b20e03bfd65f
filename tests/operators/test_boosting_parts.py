"""One round of multicalibration: the cell that deviates most, and where its rows are moved."""

import numpy as np
import pytest

from calibrant.operators._boosting import _largest, move

EDGES = np.array([[0.0, 0.5, 1.0]] * 2)


def given(sure):
    """Forty rows that say 3/4 and never happen, ten that say 1/4, and some that are sure and right."""
    p = np.r_[np.full(40, 0.75), np.full(10, 0.25), np.ones(sure)]
    happened = np.r_[np.zeros(50), np.ones(sure)]
    both = np.column_stack([1 - p, p]), np.column_stack([1 - happened, happened])
    return *both, np.ones(len(p)), np.ones((len(p), 1), dtype=bool)


@pytest.mark.parametrize("sure", [0, 3])
def test_the_cell_that_deviates_most_is_moved_by_a_shrunk_step(sure):
    """Σ(y - p) = -30, Σ p (1 - p) = 7.5 and a prior of one nat; a probability of exactly one lies in the last cell."""
    found = _largest(*given(sure), EDGES, 0.05)
    assert found is not None
    assert (found.k, found.group, found.low, found.high) == (1, 0, 0.5, 1.0)
    assert found.step == pytest.approx(-30 / 8.5)


def test_a_cell_of_too_little_is_left():
    p, wanted, w, members = given(0)
    assert _largest(p, wanted, w * 4.999 / 7.5, members, EDGES, 0.05) is None
    assert _largest(p, wanted, w * 5.001 / 7.5, members, EDGES, 0.05) is not None


def test_rows_from_the_lower_edge_up_to_the_upper_one_are_moved():
    p, wanted, w, members = given(1)
    found = _largest(p, wanted, w, members, EDGES, 0.05)
    assert found is not None
    z = np.log(np.array([[0.5, 0.5], [0.51, 0.49], [0.3, 0.7], [0.2, 0.8]]))
    before = z.copy()
    move(z, found, np.array([True, True, True, False]))
    np.testing.assert_allclose((z - before)[:, 1], [found.step, 0.0, found.step, 0.0])
    assert (z[:, 0] == before[:, 0]).all()
