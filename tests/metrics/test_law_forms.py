"""Intervals of means with an influence, and of cross-fitted errors, written out for few rows."""

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import norm
from scipy.stats import t as student

from calibrant.cells.pairs import Pairs, standard_error
from calibrant.metrics.estimators.crossfit import crossfit_of
from calibrant.metrics.inference.means import mean_interval, share_ends
from calibrant.metrics.inference.resampling import Sampling
from calibrant.metrics.inference.risk import mean_law, ratio_law

SAMPLING = Sampling(19, np.random.default_rng(0))


def pairs_of(n=60, clusters=False, weighed=True, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.1, 0.9, n)
    w = rng.choice([0.5, 1.0, 2.0], n) if weighed else None
    return Pairs(p, (np.arange(n) % 2) * 1.0, w, clusters=np.arange(n) // 3 if clusters else None)


@pytest.mark.parametrize("clusters", [False, True])
@pytest.mark.parametrize("weighed", [False, True])
def test_a_figure_with_an_influence(clusters, weighed):
    """Student's with as many rows as have the rarer outcome; on log-odds where a figure is a share."""
    pairs = pairs_of(clusters=clusters, weighed=weighed)
    values = np.random.default_rng(1).normal(size=60)
    error, count = standard_error(values, pairs)
    rate = np.average(pairs.outcomes, weights=pairs.weights)
    few = len(np.unique(pairs.clusters)) if clusters else min(rate, 1 - rate) * pairs.rows
    reach = student.ppf(0.95, min(count, few) - 1) * error
    for estimate in (0.3, 0.8):
        found = mean_law(lambda pairs, e=estimate: (e, values), logits=True)(pairs, 0.9, SAMPLING)
        ends = expit(logit(estimate) + np.array([-1, 1]) * reach / (estimate * (1 - estimate)))
        assert (found.low, found.high) == pytest.approx(tuple(ends))
        assert (found.estimate, found.standard_error, found.method) == (estimate, pytest.approx(error), "influence")
        plain = mean_law(lambda pairs, e=estimate: (e, values))(pairs, 0.9, SAMPLING)
        if clusters:
            assert (plain.low, plain.high) == pytest.approx((estimate - reach, estimate + reach))
        else:
            own = mean_interval(values, pairs.weights, 0.9)
            moved = estimate - own.estimate
            assert (plain.low, plain.high) == pytest.approx((own.low + moved, own.high + moved))
        assert found.note == plain.note
    for sure in (0.0, 1.0):
        found = mean_law(lambda pairs, e=sure: (e, values), logits=True)(pairs, 0.9, SAMPLING)
        assert (found.low, found.high, found.note) == (None, None, "outcomes are separable")
    missing = mean_law(lambda pairs: (np.nan, values))(pairs, 0.9, SAMPLING)
    assert (missing.low, missing.note) == (None, "only one outcome was seen")


def test_few_rows_of_the_rarer_outcome_are_told_or_have_no_interval():
    rng = np.random.default_rng(2)
    for events, words in ((3, "only 3 of 60 rows have"), (12, "only 12 rows have"), (30, "")):
        y = (np.arange(60) < events) * 1.0
        pairs = Pairs(np.full(60, events / 60), y)
        found = mean_law(lambda pairs: (0.4, rng.normal(size=60)))(pairs, 0.9, SAMPLING)
        assert found.note.startswith(words)
        assert bool(found.note) == bool(words)
        assert (found.low is None) == (events == 3)


def left_out(p, y, w, fold, place):
    """Return the isotonic curve of the other folds at every score, by the greatest of least means."""
    rest = fold != place
    x, found = np.unique(p[rest]), []
    for i in range(len(x)):
        means = [
            min(np.average(y[rest & (p >= a) & (p <= b)], weights=w[rest & (p >= a) & (p <= b)]) for b in x[i:])
            for a in x[: i + 1]
        ]
        found.append(max(means))
    return np.interp(np.unique(p), x, found)


@pytest.mark.parametrize("norm", [1, 2])
def test_a_cross_fitted_error_of_clusters_is_that_of_its_folds(norm):
    """Clusters are dealt whole; a row of no weight above all others changes nothing."""
    rng = np.random.default_rng(4)
    p, y, clusters = rng.integers(1, 9, 24) / 10, rng.integers(0, 2, 24) * 1.0, np.arange(24) // 2
    w = rng.choice([0.5, 1.5], 24)
    fold = np.random.default_rng(7).permutation(12)[clusters] % 3
    found = crossfit_of(Pairs(p, y, w, clusters=clusters), norm=norm, folds=3, random_state=7)
    scores, mean = np.unique(p), 0.0
    for place in range(3):
        gap = (scores - left_out(p, y, w, fold, place))[np.searchsorted(scores, p)]
        direction = np.sign(gap) if norm == 1 else gap
        own = fold == place
        mean += (w * direction * (p - y))[own].sum()
    assert found.mean == pytest.approx(mean / w.sum())
    more = Pairs(np.r_[p, 0.99], np.r_[y, 1.0], np.r_[w, 0.0], clusters=np.r_[clusters, 11])
    assert crossfit_of(more, norm=norm, folds=3, random_state=7).mean == pytest.approx(found.mean)


def test_observed_over_expected_of_few_events_is_exact():
    """Clopper and Pearson's ends of the share, over the weighted mean of the scores; of no event as well."""
    p, w = np.linspace(0.02, 0.3, 40), np.tile([0.5, 2.0], 20)
    for events in (0, 2):
        pairs = Pairs(p, (np.arange(40) < events) * 1.0, w)
        found = ratio_law(pairs, 0.9, SAMPLING)
        said = np.average(p, weights=w)
        assert found.estimate == pytest.approx(np.average(pairs.outcomes, weights=w) / said)
        low, high = share_ends(pairs, 0.9)
        assert (found.low, found.high) == pytest.approx((low / said, high / said))
        assert found.method == "clopper-pearson"
        assert found.wide


@pytest.mark.parametrize("reaches", [0.2, 0.48])
@pytest.mark.parametrize("clusters", [None, np.arange(60) // 3])
def test_observed_over_expected_of_many_events_is_normal_in_its_logarithm(clusters, reaches):
    """Scores that differ much leave outcomes less room than the usual error allows: then it says so."""
    rng = np.random.default_rng(6)
    p, w = rng.uniform(0.5 - reaches, 0.5 + reaches, 60), np.tile([0.5, 2.0], 30)
    pairs = Pairs(p, (rng.random(60) < p) * 1.0, w, clusters=clusters)
    rate, said = np.average(pairs.outcomes, weights=w), np.average(p, weights=w)
    error, reach = np.sqrt((1 - rate) / (rate * pairs.rows)), norm.ppf(0.95)
    if clusters is not None:
        error, count = standard_error((pairs.outcomes - rate / said * p) / rate, pairs)
        reach = student.ppf(0.95, count - 1)
    found = ratio_law(pairs, 0.9, SAMPLING)
    ends = rate / said * np.exp(np.array([-1, 1]) * reach * error)
    assert (found.low, found.high) == pytest.approx(tuple(ends))
    assert found.standard_error == pytest.approx(rate / said * error)
    room = np.average(p * (1 - p), weights=w) < 0.816 * rate * (1 - rate)
    assert room == (reaches == 0.48)
    assert found.wide == (clusters is None and room)
