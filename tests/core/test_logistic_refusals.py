"""Sums of logistic regressions are refused where groups, coefficients and targets do not fit one another."""

import numpy as np
import pytest

from calibrant import _core

Z, Y = np.random.default_rng(0).normal(size=(6, 3)), np.arange(6) % 3


@pytest.mark.parametrize(
    ("groups", "coefficients", "targets"),
    [
        ((0, 1, 1), (2, 3), (2, 3)),
        ((0, 1, 1), (2, 3), (2, 1)),
        ((0, 1, 1), (2, 3), (1, 2)),
        ((0, 1, 1), (2, 2), (2, 2)),
        ((0, 1), (2, 3), (2, 2)),
        ((0, 1, 2), (2, 3), (2, 2)),
        ((0, 0, 0), (0, 3), (0, 2)),
    ],
)
def test_shapes_that_do_not_fit_are_refused(groups, coefficients, targets):
    good = (np.array([0, 1, 1]), np.zeros((2, 3)), np.full((2, 2), 0.5))
    _core.logistic_sums(Z, Y, None, *good, False, 1)
    with pytest.raises(ValueError, match="do not fit"):
        _core.logistic_sums(Z, Y, None, np.array(groups), np.zeros(coefficients), np.full(targets, 0.5), False, 1)
