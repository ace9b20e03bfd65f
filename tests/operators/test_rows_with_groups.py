"""The contract of `ByGroup` and `MultiLabel`, whose fits need more of a row than its label."""

import numpy as np
import pytest

import calibrant
from calibrant import ByGroup, Isotonic, Multicalibrated, MultiLabel, PlattScaling, TemperatureScaling, load, make
from calibrant.errors import InvalidInput
from calibrant.testing import check_merging


def problem(k=3, n=300, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k)) * 2
    groups = np.array(list("abcd"))[rng.integers(4, size=n)]
    level = (groups == "a")[:, None] * np.linspace(-2, 2, k)
    y = (z + level + rng.gumbel(size=z.shape) * 1.5).argmax(axis=1)
    return z, y, groups


def by_group(z, y, groups, weights=None, **parameters):
    map_ = ByGroup(TemperatureScaling(), **parameters).fit(z, y, weights, groups=groups)
    return lambda rows, names: map_.predict_proba(rows, groups=names)


def many_labels(z, y, groups, weights=None, **parameters):
    outcomes = np.eye(z.shape[1])[y]
    outcomes[groups == "d", 1] = np.nan
    map_ = MultiLabel(PlattScaling(), **parameters).fit(z, outcomes, weights)
    return lambda rows, names: map_.predict_proba(rows)


KINDS = pytest.mark.parametrize("fitted", [by_group, many_labels])


@KINDS
def test_order_of_rows_plays_no_role(fitted):
    z, y, g = problem()
    order = np.random.default_rng(1).permutation(len(y))
    one, other = fitted(z, y, g), fitted(z[order], y[order], g[order])
    np.testing.assert_allclose(one(z, g), other(z, g), atol=1e-6)


@KINDS
def test_weight_two_is_the_row_twice_and_weight_zero_none(fitted):
    z, y, g = problem()
    weights = np.arange(len(y)) % 3.0
    rows = np.repeat(np.arange(len(y)), weights.astype(int))
    one, other = fitted(z, y, g, weights), fitted(z[rows], y[rows], g[rows])
    np.testing.assert_allclose(one(z, g), other(z, g), atol=1e-4)
    assert np.abs(one(z, g) - fitted(z, y, g)(z, g)).max() > 1e-3


@KINDS
def test_rows_alone_are_answered_as_among_others(fitted):
    z, y, g = problem()
    answer = fitted(z, y, g)
    whole = answer(z, g)
    for some in (slice(0, 1), slice(5, 9), slice(17, None)):
        np.testing.assert_array_equal(answer(z[some], g[some]), whole[some])


@KINDS
def test_both_precisions_agree_and_stay(fitted):
    z, y, g = problem()
    single = fitted(z.astype(np.float32), y, g)(z.astype(np.float32), g)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, fitted(z, y, g)(z, g), atol=1e-3)


@KINDS
def test_probabilities_and_logits_are_the_same_scores(fitted):
    z, y, g = problem(k=2)
    p = np.exp(z - np.logaddexp(*z.T)[:, None]) if fitted is by_group else 1 / (1 + np.exp(-z))
    np.testing.assert_allclose(fitted(p, y, g, inputs="probabilities")(p, g), fitted(z, y, g)(z, g), atol=1e-6)


@KINDS
def test_what_cannot_be_is_refused(fitted):
    z, y, g = problem()
    answer = fitted(z, y, g)
    for bad in (z * np.nan, z[:, :2], z[:, 0]):
        with pytest.raises(InvalidInput):
            answer(bad, g)
    with pytest.raises(InvalidInput):
        fitted(z * np.nan, y, g)


def test_saved_maps_answer_the_same(tmp_path):
    z, y, g = problem()
    maps = [ByGroup(make("platt")).fit(z, y, groups=g), MultiLabel(Isotonic()).fit(z, np.eye(3)[y])]
    for map_, asked in zip(maps, ({"groups": g}, {}), strict=True):
        map_.save(tmp_path / "map.calibrant")
        again = load(tmp_path / "map.calibrant")
        np.testing.assert_array_equal(again.predict_proba(z, **asked), map_.predict_proba(z, **asked))


@pytest.mark.parametrize("map_", [ByGroup(TemperatureScaling()), MultiLabel(PlattScaling())])
def test_blocks_are_refused_with_a_sentence(tmp_path, map_):
    z, y, _ = problem()
    np.savez(tmp_path / "rows.npz", scores=z, labels=y)
    with pytest.raises(InvalidInput, match="all rows in memory"):
        map_.fit(calibrant.scan(tmp_path / "rows.npz", scores="scores", label="labels"))
    with pytest.raises(InvalidInput, match="all rows in memory"):
        check_merging(map_)


@pytest.mark.parametrize("inner", ["ts", "vector", "platt", "irova", "gp"])
@pytest.mark.parametrize("operator", [ByGroup, Multicalibrated])
def test_zeros_that_are_kept_stay_zeros(operator, inner):
    z, y, g = problem()
    masked = np.random.default_rng(2).random(z.shape) < 0.2
    masked[np.arange(len(y)), y] = False
    z[masked] = -np.inf
    p = operator(make(inner), saturated="exact").fit(z, y, groups=g).predict_proba(z, groups=g)
    assert (p[masked] == 0).all()
    assert (p[~masked] > 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
