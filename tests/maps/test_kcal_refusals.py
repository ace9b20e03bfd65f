"""KCal as a new user meets it: few values, own projections, what is refused and how."""

import functools

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from calibrant import KCal
from calibrant.errors import InvalidInput
from calibrant.maps.density import Support, leave_one_out
from calibrant.metrics import nll
from calibrant.testing.embeddings import cloud


def binary_features(n, rng):
    """Eight places in all, with probabilities of three classes of their own."""
    law = np.random.default_rng(5).dirichlet(np.ones(3), size=8)
    x = rng.integers(2, size=(n, 3))
    y = (rng.random(n)[:, None] > law[x @ [1, 2, 4]].cumsum(axis=1)).sum(axis=1)
    return x.astype(float), y, law[x @ [1, 2, 4]]


@pytest.mark.parametrize("projection", ["identity", "lda", "pca"])
def test_features_of_few_values_are_answered_by_the_frequencies_at_their_place(projection):
    x, y, _ = binary_features(1500, np.random.default_rng(0))
    other, truth, law = binary_features(3000, np.random.default_rng(1))
    map_ = KCal(projection).fit(x, y)
    assert nll(truth, map_.predict_proba(other)) < nll(truth, law) + 0.02
    assert map_.fit_report_.held_out_after == pytest.approx(nll(truth, law), abs=0.06)


def test_a_row_twice_and_a_row_of_weight_two_are_one_where_values_are_few():
    x, y, _ = binary_features(200, np.random.default_rng(2))
    weights = np.random.default_rng(3).integers(1, 4, size=200)
    once = KCal("identity").fit(x, y, weights)
    often = KCal("identity").fit(np.repeat(x, weights, axis=0), np.repeat(y, weights))
    assert once.bandwidth_ == pytest.approx(often.bandwidth_, rel=1e-9)


def test_leaving_one_of_equal_rows_out_is_what_it_says():
    x, y, _ = binary_features(60, np.random.default_rng(4))
    rows, place, counts = np.unique(np.c_[x, y], axis=0, return_inverse=True, return_counts=True)
    support = Support.of(rows[:, :3].copy(), rows[:, 3].astype(int), counts.astype(float), 3)
    trial = leave_one_out(support, np.zeros(len(rows)))
    kernel = np.exp(-((x[:, None] - x[None]) ** 2).sum(axis=2) / (2 * 0.7**2))
    np.fill_diagonal(kernel, 0.0)
    share = (kernel * (y[:, None] == y)).sum(axis=1) / kernel.sum(axis=1)
    wanted = np.zeros(len(rows))
    wanted[place.ravel()] = -np.log(share)
    np.testing.assert_allclose(trial.losses(0.7), wanted[support.arrival], rtol=1e-7)


def test_rows_that_come_many_times_are_no_answers_to_themselves():
    data = cloud(120, 3, 4)
    once = KCal("identity").fit(data.scores, data.labels)
    often = KCal("identity").fit(np.repeat(data.scores, 5, axis=0), np.repeat(data.labels, 5))
    assert often.bandwidth_ == pytest.approx(once.bandwidth_, rel=1e-6)


class Halves:
    def __call__(self, rows):
        return rows[:, :2]


@pytest.mark.parametrize(
    "projection", [np.tanh, functools.partial(np.multiply, 2.0), Halves(), np.sign, lambda x: x > 0]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_callable_projects(projection, dtype):
    data = cloud(90, 3, 4)
    p = KCal(projection).fit(data.scores.astype(dtype), data.labels).predict_proba(data.other.astype(dtype))
    assert p.dtype == dtype
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-5)


@pytest.mark.parametrize(
    ("projection", "words"),
    [
        (lambda x: x[:, 0], "no point for each row"),
        (lambda x: x[:5], "no point for each row"),
        (lambda x: x[:, :0], "no point for each row"),
        (lambda x: x.astype(str), "no point for each row"),
        (lambda x: x * np.nan, "NaN or infinity"),
    ],
)
def test_what_a_callable_gives_is_checked(projection, words):
    data = cloud(30, 3, 4)
    with pytest.raises(InvalidInput, match=words):
        KCal(projection).fit(data.scores, data.labels)


def test_rows_of_other_dimensions_than_the_projections_are_refused():
    data = cloud(90, 3, 4)
    learnt = KCal("lda").fit_projection(data.scores, data.labels)
    with pytest.raises(InvalidInput, match="4 columns, as in fit_projection"):
        learnt.fit(data.scores[:, :3], data.labels)
    alone = KCal("lda").fit(data.scores, data.labels)
    assert alone.fit(data.scores[:, :3], data.labels).n_features_in_ == 3


@pytest.mark.parametrize("bandwidth", [1e-200, 1e200, np.inf])
def test_bandwidths_whose_square_is_no_number_are_refused(bandwidth):
    data = cloud(30, 3, 4)
    with pytest.raises(InvalidInput, match="bandwidth"):
        KCal("identity", bandwidth=bandwidth).fit(data.scores, data.labels)


def test_forget_and_explain_refuse_what_they_cannot_use():
    data = cloud(30, 3, 4)
    with pytest.raises(NotFittedError):
        KCal().forget(1)
    map_ = KCal("identity").fit(data.scores, data.labels)
    for before in (-1, 2.5, "x", None, True, 30):
        with pytest.raises(InvalidInput, match="before"):
            map_.forget(before)
    for top in (0, -1, 2.5, None):
        with pytest.raises(InvalidInput, match="top"):
            map_.explain(data.other[0], top)
    with pytest.raises(InvalidInput, match="one row"):
        map_.explain(data.other[:2])


@pytest.mark.parametrize("distance", [0.0, 10.0, 60.0, 1e6, 1e90])
def test_an_explanation_sums_to_the_probabilities_however_far(distance):
    data = cloud(30, 3, 4)
    map_ = KCal("identity").fit(data.scores, data.labels, np.linspace(0.5, 2.0, 30))
    row = data.other[0] + distance
    told = map_.explain(row, top=30)
    sums = np.bincount(told["labels"], told["weights"], 3)
    np.testing.assert_allclose(sums, map_.predict_proba(row[None])[0], atol=1e-9)
