"""Errors say what was wrong, what was seen, what is allowed, and what to do."""

import pickle

import pytest

from calibrant import CalibrantError, CalibrationWarning
from calibrant.errors import FileProblem, InvalidInput, InvalidType, MissingExtra


def test_the_message_has_all_parts_that_were_given():
    error = InvalidInput("x is odd", seen="3", allowed="even numbers", hint="add one")
    assert str(error) == "x is odd; seen: 3; allowed: even numbers; hint: add one"
    assert (error.what, error.seen, error.allowed, error.hint) == ("x is odd", "3", "even numbers", "add one")
    assert str(InvalidInput("x is odd")) == "x is odd"


@pytest.mark.parametrize("kind", [InvalidInput, InvalidType, FileProblem, MissingExtra])
def test_every_error_is_a_value_error_of_ours(kind):
    assert issubclass(kind, CalibrantError)
    assert issubclass(kind, ValueError)
    copy = pickle.loads(pickle.dumps(kind("x is odd")))
    assert type(copy) is kind
    assert str(copy) == "x is odd"


def test_the_warning_can_be_filtered_on_its_own():
    assert issubclass(CalibrationWarning, UserWarning)
