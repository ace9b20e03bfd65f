"""Bayesian binning into quantiles."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import betaln, expit

import calibrant
from calibrant import BayesianBinning, make
from calibrant.errors import InvalidInput


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
