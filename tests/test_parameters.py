"""Declared constraints: one table makes the check, the message and the bad values."""

import numpy as np
import pytest

from calibrant import TemperatureScaling
from calibrant.errors import InvalidInput
from calibrant.parameters import (
    AMOUNT,
    SCALE,
    AnyOf,
    Instance,
    Integer,
    Number,
    OneOf,
    check_parameters,
    count_from,
)

CONSTRAINTS = [
    (OneOf("nll", None), ["nll", None]),
    (OneOf(True, False), [True, False]),
    (Number(), [0, -1.5, np.float32(2)]),
    (Number(0, 1), [0, 1, 0.5, np.float64(0.1)]),
    (Number(0, open_low=True), [1e-300, 5]),
    (AMOUNT, [0, 1e30]),
    (SCALE, [1e-30, 1e30]),
    (count_from(2), [2, 10**6]),
    (Integer(), [0, 3, np.int64(4)]),
    (Integer(low=2), [2, 100]),
    (Instance((str,), "a name"), ["x"]),
    (AnyOf(OneOf("auto"), Number(0)), ["auto", 0, 2.5]),
    (AnyOf(Integer(1), Number(0, 1)), [3, 0.5]),
]


@pytest.mark.parametrize(("constraint", "good"), CONSTRAINTS, ids=lambda v: repr(v)[:40])
def test_good_values_pass_and_bad_ones_do_not(constraint, good):
    assert all(constraint.accepts(value) for value in good)
    assert constraint.bad
    assert not any(constraint.accepts(value) for value in constraint.bad)
    assert constraint.allowed


def test_look_alikes_are_refused():
    assert not OneOf(True, False).accepts(1)
    assert not OneOf(1).accepts(True)
    assert not Number().accepts("1")
    assert not Number().accepts(np.inf)
    assert not Integer().accepts(1.0)


def test_the_message_names_owner_parameter_value_and_choices():
    with pytest.raises(
        InvalidInput, match=r"TemperatureScaling: loss is not valid; seen: 3; allowed: 'nll' or 'brier'"
    ):
        check_parameters(TemperatureScaling(loss=3), {"loss": OneOf("nll", "brier")})
