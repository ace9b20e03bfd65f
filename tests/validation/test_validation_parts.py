"""Parts of validation by themselves."""

import numpy as np
import pytest

from calibrant.errors import InvalidInput
from calibrant.validation.arrays import _of_sensible_sum
from calibrant.validation.columns import _around
from calibrant.validation.labels import as_groups, as_labels
from calibrant.validation.probabilities import refuse_swapped
from calibrant.validation.saturation import masked_out, smallest_log


def test_weights_of_a_sensible_sum_keep_it():
    np.testing.assert_allclose(_of_sensible_sum(np.array([1.0, 2.0, 1.0])), [1.0, 2.0, 1.0])


def test_what_stands_around_a_word():
    assert list(_around("an", "banana")) == [("b", "ana"), ("ban", "a")]


@pytest.mark.parametrize("swapped", [[[0.2, 0.8], [0.7, 0.3]], [0.25, 0.5]])
def test_probabilities_in_the_place_of_labels_are_recognised(swapped):
    with pytest.raises(InvalidInput, match="swapped"):
        refuse_swapped(swapped, [0, 1])
    refuse_swapped([0, 1], swapped)


def test_labels_below_zero_are_names():
    labels, classes = as_labels(np.array([-1, 1, -1]), 2, 3)
    assert labels.tolist() == [0, 1, 0]
    assert classes.tolist() == [-1, 1]


def test_a_label_outside_the_classes_is_named_with_its_row():
    with pytest.raises(InvalidInput, match=r"outside the classes.*'c' in row 2"):
        as_labels(np.array(["a", "b", "c"]), 2, 3, classes=["a", "b"])


@pytest.mark.parametrize("columns", [2, 3])
def test_a_zero_is_read_below_every_probability_that_is_none(columns):
    logits = np.zeros((2, columns))
    logits[0, 0], logits[1, 1] = -5.0, -np.inf
    smallest = -5.0 - np.log(np.exp(-5.0) + columns - 1)
    assert smallest - 1e-3 < smallest_log(logits) < smallest


def test_labels_too_large_for_an_integer_are_named_too():
    with pytest.raises(InvalidInput, match=r"outside the classes.*in row 1"):
        as_labels(np.array([0, 2**70], dtype=object), 2, 2, classes=[0, 1])


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_row_without_a_group_is_named(missing):
    with pytest.raises(InvalidInput, match="row 1"):
        as_groups(np.array(["a", missing, "b"], dtype=object), 3)
    places, names = as_groups(np.array(["b", 1, "a"], dtype=object), 3)
    assert (places.tolist(), names.tolist()) == ([2, 0, 1], ["1", "a", "b"])


def test_masked_rows_share_what_is_left():
    logits = np.array([[0.0, -np.inf, 0.0, 0.0], [0.0, 1.0, -np.inf, -np.inf]])
    left = masked_out(np.array([[0.1, 0.6, 0.1, 0.2], [0.0, 0.0, 0.5, 0.5]]), logits)
    np.testing.assert_allclose(left, [[0.25, 0.0, 0.25, 0.5], [0.5, 0.5, 0.0, 0.0]])


@pytest.mark.parametrize("outcome", [False, True])
def test_truth_values_are_two_classes_though_one_is_missing(outcome):
    places, classes = as_labels(np.full(5, outcome), 2, 5)
    assert places.tolist() == [int(outcome)] * 5
    assert classes.tolist() == [False, True]
    with pytest.raises(InvalidInput, match="does not fit the 3 columns"):
        as_labels(np.full(5, outcome), 3, 5)
