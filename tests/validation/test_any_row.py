"""What is refused in one row is refused in every row and column, the first and the last among them."""

from itertools import product

import numpy as np
import pytest

from calibrant.errors import InvalidInput
from calibrant.validation import as_labels, as_weights
from calibrant.validation.probabilities import as_probabilities
from calibrant.validation.scores import as_embeddings, as_scores

RNG = np.random.default_rng(0)
PLACES = list(product((0, 1, 6), (0, 1, 2)))


def put(array, place, value):
    array = array.copy()
    array[place] = value
    return array


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_embeddings(value, place, dtype):
    rows = RNG.normal(size=(7, 3)).astype(dtype)
    assert as_embeddings(rows).logits.shape == (7, 3)
    with pytest.raises(InvalidInput, match=f"row {place[0]}"):
        as_embeddings(put(rows, place, value))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_logits(value, place, dtype):
    rows = RNG.normal(size=(7, 3)).astype(dtype)
    with pytest.raises(InvalidInput, match=f"row {place[0]}"):
        as_scores(put(rows, place, value), "logits")
    assert as_scores(put(rows, place, -np.inf), "logits").has_minus_infinity


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -0.2, 1.4])
def test_probabilities(value, place):
    rows = RNG.dirichlet(np.ones(3), 7)
    for read in (lambda p: as_scores(p, "probabilities"), as_probabilities):
        read(rows)
        with pytest.raises(InvalidInput, match=f"row {place[0]}"):
            read(put(rows, place, value))


@pytest.mark.parametrize("row", [0, 1, 6])
@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
def test_weights(value, row):
    with pytest.raises(InvalidInput):
        as_weights(put(np.ones(7), row, value), 7)
    assert as_weights(put(np.ones(7), row, 0.0), 7).sum() == 6


@pytest.mark.parametrize("row", [0, 1, 6])
@pytest.mark.parametrize("value", [3, -1, 2**40])
def test_labels(value, row):
    labels = np.arange(7) % 3
    with pytest.raises(InvalidInput):
        as_labels(put(labels, row, value), 3, 7)
