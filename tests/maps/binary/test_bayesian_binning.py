"""Bayesian binning into quantiles."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import betaln, expit

import calibrant
from calibrant import BayesianBinning, make
from calibrant.cells.fine import cells_of_scores
from calibrant.errors import InvalidInput
from calibrant.maps.binary import bayesian_binning


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", calibrant.CalibrationWarning)
        yield


@pytest.fixture
def binary(rng):
    x = rng.normal(size=1500) * 3
    return x, (rng.random(1500) < expit(0.5 * x)).astype(int)


def model(x, y, bins, strength=2.0):
    """One model by the paper's formulas, with loops: edges half-way between rows, posterior means, log evidence."""
    order = np.argsort(x)
    groups = [order[np.arange(len(x)) * bins // len(x) == b] for b in range(bins)]
    cuts = [0.5 * (x[a].max() + x[b].min()) for a, b in pairwise(groups)]
    stops = np.r_[0, expit(cuts), 1]
    answers, evidence = [], 0.0
    for b, rows in enumerate(groups):
        middle = (stops[b] + stops[b + 1]) / 2
        alpha, beta = strength / bins * middle, strength / bins * (1 - middle)
        positive = y[rows].sum()
        answers.append((positive + alpha) / (len(rows) + strength / bins))
        evidence += betaln(positive + alpha, len(rows) - positive + beta) - betaln(alpha, beta)
    return np.array(cuts), np.array(answers), evidence


def test_the_average_is_that_of_the_paper(binary):
    x, y = binary
    fitted = BayesianBinning().fit(x, y)
    models = [model(x, y, b) for b in fitted.bins_]
    evidence = np.array([m[2] for m in models])
    weights = np.exp(evidence - evidence.max()) / np.exp(evidence - evidence.max()).sum()
    np.testing.assert_allclose(fitted.weights_, weights, atol=1e-9)
    points = np.linspace(-8, 8, 101)
    expected = sum(w * m[1][np.searchsorted(m[0], points, side="right")] for w, m in zip(weights, models, strict=True))
    np.testing.assert_allclose(fitted.predict_proba(points)[:, 1], expected, atol=2e-3)


@pytest.mark.parametrize("scores", [[0.0, 1.0], [0.3, 0.4, 0.9]])
def test_few_scores_are_told_apart_whatever_their_shares(scores):
    """No two bins of equal mass do that where the lower score has less than half of the rows."""
    rows = np.array([280, 320, 100][: len(scores)])
    y = np.concatenate([np.arange(n) < n * rate for n, rate in zip(rows, (0.25, 0.75, 0.95), strict=False)]).astype(int)
    fitted = BayesianBinning(inputs="probabilities").fit(np.repeat(scores, rows), y)
    rates = np.array([0.25, 0.75, 0.95][: len(scores)])
    np.testing.assert_allclose(fitted.predict_proba(np.array(scores))[:, 1], rates, atol=0.02)
    assert len(fitted.bins_) <= 2 ** (len(scores) - 1)  # each division of the scores is one model


def test_it_improves_overconfident_scores(binary):
    report = BayesianBinning().fit(*binary).fit_report_
    assert report.held_out_after < report.held_out_before


def test_weights_are_repeats(rng):
    x, w = rng.normal(size=200) * 2, rng.integers(1, 4, 200)
    y = (rng.random(200) < expit(x)).astype(int)
    weighted = BayesianBinning().fit(x, y, w)
    repeated = BayesianBinning().fit(np.repeat(x, w), np.repeat(y, w))
    np.testing.assert_allclose(weighted.edges_, repeated.edges_)
    np.testing.assert_allclose(weighted.representatives_, repeated.representatives_)


@pytest.mark.parametrize("case", ["no positives", "one positive", "equal scores", "few rows"])
def test_poor_data(case, rng):
    z, y = rng.normal(size=(60, 4)) * 2, rng.integers(0, 4, 60)
    if case == "no positives":
        y = y % 2
    elif case == "one positive":
        y = np.r_[3, y[1:] % 2]
    elif case == "equal scores":
        z = np.zeros((60, 4))
    else:
        z, y = z[:3], np.arange(3)
    p = make("bbq").fit(z, y).predict_proba(np.vstack([z, [[-np.inf, 0, 1e4, 0]]]))
    assert ((p >= 0) & (p <= 1)).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("bad", [{"strength": 0.0}, {"models": 0}])
def test_bad_parameters_are_named(binary, bad):
    with pytest.raises(InvalidInput, match=next(iter(bad))):
        BayesianBinning(**bad).fit(*binary)


def test_huge_weights_answer_no_more_than_one(rng):
    """Found by a fuzzer: averages of ones were 1 + 2e-16, and the other class had less than nothing."""
    for _ in range(40):
        z = rng.normal(size=12)
        y = (z > 0).astype(int)
        y[:2] = 0, 1
        fitted = BayesianBinning().fit(z, y, sample_weight=rng.choice([1e12, 1e14, 1e16], 12))
        assert fitted.representatives_.max() <= 1
        assert fitted.predict_proba(z).min() >= 0


def test_models_of_few_scores_are_those_of_their_cells():
    """Ties and weights: a cell lies in bin ⌊C·b/n⌋, C the weight below it; empty bins are none."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 25))
        x, w = rng.integers(-6, 7, n) / 2, rng.choice([0.25, 0.5, 1.5] if seed % 2 else [1.0, 2.0, 5.0], n)
        cells = cells_of_scores(x, rng.integers(0, 2, n) * 1.0, w)
        numbers, strength, total = np.array([1, 2, 3, 7]), 0.5 + seed % 3, w.sum()
        ends = np.r_[0.0, expit(cells.cuts), 1.0]
        divided = {}  # numbers of bins that divide the cells alike are one model
        for bins in numbers:
            place = [int(sum(cells.weights[:i]) * bins / total) for i in range(cells.count)]
            parts = [np.flatnonzero(np.array(place) == b) for b in sorted(set(place))]
            divided[tuple(part[0] for part in parts)] = parts
        models = bayesian_binning._fit_models(cells, numbers, strength)
        for parts, found in zip(divided.values(), models, strict=True):
            assert found.starts.tolist() == [part[0] for part in parts]
            evidence, share = 0.0, strength / len(parts)
            for part, answer in zip(parts, found.answers, strict=True):
                middle = (ends[part[0]] + ends[part[-1] + 1]) / 2
                alpha, beta = share * middle, share * (1 - middle)
                yes, both = cells.outcomes[part].sum(), cells.weights[part].sum()
                assert answer == pytest.approx((yes + alpha) / (both + share))
                evidence += betaln(yes + alpha, both - yes + beta) - betaln(alpha, beta)
            assert found.evidence == pytest.approx(evidence)


def test_numbers_of_bins_spread_about_the_cube_root_of_the_weight():
    """From a tenth of it to ten times it, five rows a bin, and no more than a thousand or than there are cells."""
    spread = bayesian_binning._SPREAD
    for count, weight in ((400, 1.0), (2000, 4.0), (30, 100.0), (3, 1.0), (30, 1e6), (1500, 1e6)):
        cells = cells_of_scores(np.arange(count) / 7, np.zeros(count), np.full(count, weight))
        total = count * weight
        high = max(1, min(spread * np.cbrt(total), total / 5, max(count, 1000)))
        low = min(max(1, np.cbrt(total) / spread), high)
        found = bayesian_binning._numbers(cells, 12)
        assert found.tolist() == sorted({round(x) for x in np.geomspace(low, high, 12).tolist()})
