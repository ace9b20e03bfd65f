"""KCal where rows a class are few, beside the classifier it replaces, and as rows arrive."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import calibrant
from calibrant import KCal
from calibrant.errors import CalibrationWarning, InvalidInput
from calibrant.maps.class_means import class_means
from calibrant.maps.projection import _lda, _pca
from calibrant.metrics import nll
from calibrant.passes import Block

K, D = 40, 60


def _rows(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Normal classes in many dimensions, and the exact logits of their probabilities."""
    means = np.random.default_rng(99).normal(size=(K, D)) * 0.45
    rng = np.random.default_rng(seed)
    y = np.arange(n) % K
    x = means[y] + rng.normal(size=(n, D))
    logits = x @ means.T - 0.5 * (means**2).sum(axis=1)
    return x, y, logits


@pytest.fixture(scope="module")
def few() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return _rows(15 * K)


def test_one_kernel_a_class_serves_where_rows_are_few(few):
    x, y, _ = few
    new, labels, _ = _rows(4000, seed=1)
    fitted = KCal("lda").fit(x, y)
    assert fitted.support_ == "class means"
    assert fitted.fit_report_.details["support"] == "class means"
    rows = KCal("lda", bandwidth=fitted.bandwidth_).fit(x, y)  # a bandwidth that is given leaves the rows as they are
    assert rows.support_ == "rows"
    assert nll(labels, fitted.predict_proba(new)) < nll(labels, rows.predict_proba(new)) - 0.1
    assert nll(labels, fitted.predict_proba(new)) == pytest.approx(fitted.fit_report_.held_out_after, abs=0.25)


def test_answers_are_the_normal_densities_around_the_means(few):
    x, y, _ = few
    fitted = KCal("lda").fit(x, y)
    means, seen, totals = class_means(fitted.points_, fitted.labels_, fitted.weights_, K)
    np.testing.assert_array_equal(seen, np.arange(K))
    new = x[:7]
    points = fitted._project(new)
    squared = ((points[:, None] - means) ** 2).sum(axis=2)
    density = totals * np.exp(-squared / (2 * fitted.bandwidth_**2))
    np.testing.assert_allclose(fitted.predict_proba(new), density / density.sum(axis=1, keepdims=True), atol=1e-6)
    told = fitted.explain(new[0], top=len(y))
    shares = np.bincount(told["labels"], told["weights"], K)
    np.testing.assert_allclose(shares, fitted.predict_proba(new[:1])[0], atol=1e-6)


def test_a_trained_projection_that_gives_way_says_so(few):
    pytest.importorskip("torch")
    x, y, _ = few
    with pytest.warns(CalibrationWarning, match="600 rows of 40 classes are too few for a kernel on each"):
        assert KCal("linear").fit(x, y).support_ == "class means"


def test_a_classifier_that_is_better_is_said_and_kept(few):
    x, y, logits = few
    new, labels, new_logits = _rows(2000, seed=1)
    with pytest.warns(CalibrationWarning, match="does not replace the classifier"):
        fitted = KCal("lda").fit(x, y, classifier_scores=3 * logits)
    assert fitted.answers_by_ == "classifier"
    assert fitted.fit_report_.details["before"] == "classifier"
    assert fitted.fit_report_.held_out_before == pytest.approx(
        nll(y, calibrant.make("identity").fit(3 * logits, y).predict_proba(3 * logits))
    )
    alone = calibrant.make("ts").fit(3 * logits, y)
    best = fitted.predict_proba(new, classifier_scores=3 * new_logits)
    np.testing.assert_array_equal(best, alone.predict_proba(3 * new_logits))
    np.testing.assert_array_equal(fitted.predict(new, classifier_scores=3 * new_logits), alone.predict(3 * new_logits))
    assert nll(labels, best) < nll(labels, fitted.predict_proba(new))


def test_a_classifier_that_is_worse_changes_nothing(few, tmp_path):
    x, y, logits = few
    noise = 0.3 * logits + np.random.default_rng(3).normal(size=logits.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = KCal("lda").fit(x, y, classifier_scores=noise)
    assert fitted.answers_by_ == "kernel"
    np.testing.assert_array_equal(fitted.predict_proba(x[:9], classifier_scores=noise[:9]), fitted.predict_proba(x[:9]))
    fitted.save(tmp_path / "k.calibrant")
    again = calibrant.load(tmp_path / "k.calibrant")
    np.testing.assert_array_equal(again.predict_proba(x[:9]), fitted.predict_proba(x[:9]))
    assert again.support_ == "class means"


def test_scores_that_fit_did_not_see_are_refused(few):
    x, y, logits = few
    with pytest.raises(InvalidInput, match="classifier_scores were not given to fit"):
        KCal("lda").fit(x, y).predict_proba(x, classifier_scores=logits)
    with pytest.raises(InvalidInput, match="for maps on embeddings"):
        KCal("lda", inputs="logits").fit(logits, y, classifier_scores=logits)


def _ring(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3, 3, size=(n, 2))
    return x, ((np.floor(x[:, 0]) + np.floor(x[:, 1])) % 2).astype(int)


def test_partial_fit_searches_the_bandwidth_again_now_and_then():
    """On a chessboard the best width falls much faster than n^(-1/(d+4)) would have it."""
    x, y = _ring(3000, 0)
    grown = KCal("identity").fit(x[:150], y[:150])
    for at in range(150, 3000, 50):
        grown.partial_fit(x[at : at + 50], y[at : at + 50])
    whole = KCal("identity").fit(x, y)
    first = KCal("identity").fit(x[:150], y[:150]).bandwidth_
    by_rule = first * (3000 / 150) ** (-1 / 6)
    assert abs(np.log(grown.bandwidth_ / whole.bandwidth_)) < 0.15
    assert abs(np.log(by_rule / whole.bandwidth_)) > 0.3
    before = grown.bandwidth_
    grown.partial_fit(x[:1], y[:1])  # one row more moves it by the rule alone
    assert grown.bandwidth_ == pytest.approx(before * (3001 / 3000) ** (-1 / 6), rel=1e-9)


def test_a_training_never_ends_behind_its_start(few):
    pytest.importorskip("torch")
    x, y, _ = few
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        fitted = KCal("learned", bandwidth="rule").fit(x, y)
    start = KCal("lda", bandwidth="rule").fit(x, y)
    assert min(fitted.projection_losses_) <= fitted.projection_losses_[0]
    if min(fitted.projection_losses_) == fitted.projection_losses_[0]:
        np.testing.assert_allclose(fitted.projection_["weight"], start.projection_["weight"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("how", ["pca", "lda"])
@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
def test_few_rows_of_many_columns_are_projected_within_their_span(how, monkeypatch):
    """The basis of the rows saves the decomposition of all columns, and gives the same answers as it."""
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    x = rng.normal(size=(30, 150)) + 0.5 * np.eye(3, 150)[y]
    new = rng.normal(size=(20, 150))
    within = KCal(how, dim=2).fit(x, y).predict_proba(new)
    monkeypatch.setattr("calibrant.maps.projection._span", lambda *_: None)
    np.testing.assert_allclose(within, KCal(how, dim=2).fit(x, y).predict_proba(new), atol=1e-6)


@pytest.mark.parametrize("directions", [_pca, _lda])
def test_a_weight_is_a_number_of_rows_to_a_projection(directions):
    rng = np.random.default_rng(0)
    x, y, counts = rng.normal(size=(60, 5)), np.arange(60) % 3, rng.integers(1, 4, 60)
    x[:, 0] += 2.0 * y
    weighed = directions(Block(x, y, counts * 1.0, 3), 2)
    repeated = directions(Block(np.repeat(x, counts, axis=0), np.repeat(y, counts), None, 3), 2)
    np.testing.assert_allclose(np.abs(weighed), np.abs(repeated), atol=1e-9)
    assert np.abs(np.abs(weighed) - np.abs(directions(Block(x, y, None, 3), 2))).max() > 1e-3


@pytest.mark.parametrize(("n", "folds"), [(11, False), (12, True)])
@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
def test_twelve_rows_are_enough_for_three_folds(n, folds, monkeypatch):
    """Fewer leave a fold of three rows or less: the bandwidth is then judged by leaving out one row at a time."""
    judged = []
    whole = KCal._cross_fit
    monkeypatch.setattr(KCal, "_cross_fit", lambda self, s, *more: (judged.append(s.n), whole(self, s, *more))[1])
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    KCal("linear").fit(rng.normal(size=(n, 4)) + 2.0 * np.eye(3, 4)[y], y)
    assert (n in judged) == folds
