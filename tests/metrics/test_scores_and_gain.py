"""Decompositions, the calibration gain, accuracy with ties, sharpness."""

import json
import pickle

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, make_scorer
from sklearn.model_selection import cross_val_score

from calibrant.metrics import (
    accuracy,
    brier,
    brier_decomposition,
    calibration_gain,
    compare_forecasts,
    cwece,
    ece,
    nll,
    nll_decomposition,
    sharpness,
    top_k_accuracy,
)


@pytest.fixture
def event(rng):
    p = np.round(rng.random(400), 2)
    return (rng.random(400) < p**2).astype(int), np.clip(p, 0.01, 0.99)


@pytest.mark.parametrize("method", ["isotonic", "binned"])
def test_parts_add_up(event, method):
    y, p = event
    for decompose, score in ((brier_decomposition, brier), (nll_decomposition, nll)):
        parts = decompose(y, p, method=method)
        assert parts.score == pytest.approx(score(y, p))
        assert parts.calibration + parts.uncertainty - parts.resolution == pytest.approx(parts.score)
        assert parts.resolution >= 0
        assert parts.calibration > (0 if method == "isotonic" else -1e-3)


def test_corp_is_isotonic_regression(event):
    y, p = event
    fitted = IsotonicRegression().fit(p, y).predict(p)
    assert brier_decomposition(y, p).refinement == pytest.approx(brier_score_loss(y, fitted))
    assert nll_decomposition(y, p).refinement == pytest.approx(log_loss(y, fitted), abs=1e-6)
    assert brier_decomposition(y, p).uncertainty == pytest.approx(y.mean() * (1 - y.mean()))


def test_multi_class_brier_adds_up_classes(rng):
    p, y, w = rng.dirichlet(np.ones(3), 200), rng.integers(0, 3, 200), rng.integers(0, 3, 200)
    parts = brier_decomposition(y, p, sample_weight=w)
    assert parts.score == pytest.approx(brier(y, p, sample_weight=w))
    rows = np.repeat(np.arange(200), w)
    assert brier_decomposition(y[rows], p[rows]).calibration == pytest.approx(parts.calibration, abs=1e-12)
    top = brier_decomposition(y, p, view="top_label", method="binned")
    assert top.score == pytest.approx(brier(y, p, view="top_label"))


def test_gain_is_the_reduction_of_the_squared_loss(shared_data):
    reference = json.loads((shared_data / "oracle/mixnmatch_k10.json").read_text())
    data = np.load(shared_data / "oracle/multi_k10.npz")
    y, z = data["labels_eval"], data["logits_eval"]
    before, after = (
        np.exp(t * z) / np.exp(t * z).sum(axis=1, keepdims=True) for t in (1, 1 / reference["ts_mse"]["t"])
    )
    assert brier(y, before) == pytest.approx(reference["uncal"]["brier_normalised_sumclass"], abs=1e-9)
    assert nll(y, before) == pytest.approx(reference["uncal"]["nll_normalised"], abs=1e-9)
    gain = calibration_gain(y, before, after)
    assert gain == pytest.approx(brier(y, before) - brier(y, after))
    rows = ((before - np.eye(10)[y]) ** 2).sum(axis=1) - ((after - np.eye(10)[y]) ** 2).sum(axis=1)
    assert gain.standard_error == pytest.approx(rows.std(ddof=1) / np.sqrt(len(y)))
    low, high = gain.interval()
    assert low < gain < high
    again = pickle.loads(pickle.dumps(gain))
    assert (again, again.standard_error) == (gain, gain.standard_error)


def test_paired_comparison(rng):
    p = rng.uniform(0.1, 0.9, 2000)
    y = (rng.random(2000) < p).astype(int)
    worse = compare_forecasts(y, p**2, p, loss="nll")
    assert worse.difference > 0
    assert worse.pvalue < 1e-3
    same = compare_forecasts(y, p, p)
    assert (same.difference, same.pvalue) == (0, 1)
    certain = compare_forecasts([0, 1, 1], [1.0, 0.5, 0.5], [1.0, 0.5, 0.4], loss="nll")
    assert np.isfinite(certain.difference)
    w = rng.integers(0, 3, 2000)
    rows = np.repeat(np.arange(2000), w)
    weighted, repeated = (
        compare_forecasts(y, p**2, p, sample_weight=w),
        compare_forecasts(y[rows], p[rows] ** 2, p[rows]),
    )
    assert weighted.standard_error == pytest.approx(repeated.standard_error)


def test_ties_are_broken_by_raw_scores(rng):
    raw = rng.normal(size=(300, 8))
    y = rng.integers(0, 8, 300)
    p = np.round(np.exp(raw) / np.exp(raw).sum(axis=1, keepdims=True), 1)
    order = np.argsort(-raw, axis=1)
    for k in (1, 3, 5):
        expected = (order[:, :k] == y[:, None]).any(axis=1).mean()
        assert top_k_accuracy(y, p, k=k, raw_scores=raw, marginals=True) == pytest.approx(expected)
    assert top_k_accuracy(y, p, k=8, marginals=True) == 1
    assert accuracy(y, p, marginals=True) == (p.argmax(axis=1) == y).mean()
    assert accuracy([0, 1, 1], [0.2, 0.5, 0.7]) == pytest.approx(2 / 3)


def test_sharpness_is_a_variance(rng):
    p = rng.dirichlet(np.ones(3), 50)
    assert sharpness(p) == pytest.approx(p.max(axis=1).var())
    w = rng.integers(1, 4, 50)
    assert sharpness(p, sample_weight=w) == pytest.approx(np.repeat(p.max(axis=1), w).var())


def test_scikit_learn_takes_them_as_scorers(rng):
    x = rng.normal(size=(120, 2))
    for y in ((x[:, 0] > 0).astype(int), np.digitize(x[:, 0], [-0.5, 0.5]), np.where(x[:, 1] > 0, "yes", "no")):
        for metric in (ece, cwece, nll):
            scorer = make_scorer(metric, response_method="predict_proba", greater_is_better=False)
            assert (cross_val_score(LogisticRegression(), x, y, scoring=scorer, cv=3) < 0).all()


def test_labels_by_name(rng):
    p = rng.dirichlet(np.ones(3), 50)
    y = rng.integers(0, 2, 50)
    named = np.array(["ape", "bee"])[y]
    assert ece(named, p, classes=["ape", "bee", "cow"]) == ece(y, p)
    assert ece(named, p, classes=["ape", "bee", "cow"], view="bee") == ece(y, p, view=1)


def test_an_infinite_score_leaves_the_others_finite():
    parts = nll_decomposition([0, 1, 1, 1], [0.2, 0.0, 0.7, 0.9])
    assert parts.score == parts.calibration == np.inf
    assert parts.refinement == pytest.approx(log_loss([0, 1, 1, 1], [1 / 2, 1 / 2, 1, 1]))
    assert parts.resolution == pytest.approx(parts.uncertainty - parts.refinement)
