"""Isotonic curves of single folds, and their share of what a model answers by default."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from calibrant import CalibratedModel
from calibrant.fitted_pair import Held, splits_of
from calibrant.fold_curves import FoldCurves

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")


def some(n, classes):
    return make_classification(n, 8, n_informative=5, n_classes=classes, class_sep=1.5, random_state=classes)


def curves_alone(model, X):
    pairs = model.calibrated_classifiers_[: len(model._fold_curves)]
    said = [c.predict_proba(pair.scores(X)) for c, pair in zip(model._fold_curves, pairs, strict=True)]
    return np.mean(said, axis=0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("estimator", [GaussianNB(), LinearSVC(random_state=0)], ids=repr)
@pytest.mark.parametrize("classes", [2, 3])
def test_curves_are_those_of_scikit_learn(estimator, classes, weighted):
    X, y = some(120, classes)
    weights = np.random.default_rng(0).integers(0, 4, len(y)).astype(float) if weighted else None
    model = CalibratedModel(estimator).fit(X, y, weights)
    theirs = CalibratedClassifierCV(estimator, method="isotonic", cv=splits_of("auto", X, y, len(y), classifier=True))
    theirs.fit(X, y, weights)
    new, _ = some(300, classes)
    np.testing.assert_allclose(curves_alone(model, new), theirs.predict_proba(new), atol=1e-7)


@pytest.mark.parametrize(("n", "classes", "over"), [(90, 3, 100), (90, 2, 60), (300, 2, 60)])
def test_two_fifths_of_the_answer_are_the_curves(n, classes, over):
    X, y = some(n, classes)
    model = CalibratedModel(GaussianNB()).fit(X, y)
    each = [pair.predict_proba(X) for pair in model.calibrated_classifiers_]
    mean = np.mean(each, axis=0) if n > 200 else 0.75 * np.mean(each[:-1], axis=0) + 0.25 * each[-1]
    surer = mean ** (1 + over / (200 + n))
    surer /= surer.sum(axis=1, keepdims=True)
    wanted = 0.6 * surer + 0.4 * curves_alone(model, X)
    np.testing.assert_allclose(model.predict_proba(X), wanted, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), wanted.argmax(axis=1))


@pytest.mark.parametrize(
    ("n", "classes", "settings"),
    [(300, 3, {}), (2001, 2, {}), (90, 2, {"cv": 5}), (90, 2, {"ensemble": False}), (90, 3, {"calibrator": "ts"})],
)
def test_there_are_no_curves_where_none_were_asked_for(n, classes, settings):
    X, y = some(n, classes)
    model = CalibratedModel(GaussianNB(), **settings).fit(X, y)
    mean = np.mean([pair.predict_proba(X) for pair in model.calibrated_classifiers_], axis=0)
    assert model._fold_curves == []
    if classes == 2:
        np.testing.assert_allclose(model.predict_proba(X), mean, atol=1e-12)


@pytest.mark.filterwarnings("ignore:The least populated class")
def test_there_are_none_where_a_fold_lacks_a_class():
    X, y = some(60, 2)
    y = np.r_[np.zeros(56, dtype=int), np.ones(4, dtype=int)]
    assert CalibratedModel(GaussianNB()).fit(X, y)._fold_curves == []


def test_another_fit_forgets_the_curves():
    X, y = some(60, 2)
    model = CalibratedModel(GaussianNB()).fit(X, y)
    assert len(model._fold_curves) == 20
    assert model.set_params(calibrator="ts").fit(X, y)._fold_curves == []


def test_what_no_curve_has_seen_is_answered():
    ends = np.array([[0.0, np.inf], [0.0, -np.inf], [0.0, 0.5]])
    held = Held(np.array([[0.0, -np.inf], [0.0, 0.0], [0.0, 1.0], [0.0, np.inf]]), np.array([0, 0, 1, 1]), None)
    curves = FoldCurves.of(held, "decision_function")
    np.testing.assert_array_equal(curves.predict_proba(ends), [[0, 1], [1, 0], [0.5, 0.5]])
    three = Held(np.eye(3)[[0, 1, 2]], np.array([0, 1, 2]), None)
    np.testing.assert_allclose(FoldCurves.of(three, "predict_proba").predict_proba(np.zeros((1, 3))), 1 / 3)


def test_a_fold_without_weight_counts_as_if_it_had_none_given():
    scores, labels = np.array([[0.0, -1.0], [0.0, 1.0], [0.0, 0.0]]), np.array([0, 1, 1])
    without = FoldCurves.of(Held(scores, labels, np.zeros(3)), "decision_function")
    plain = FoldCurves.of(Held(scores, labels, None), "decision_function")
    np.testing.assert_array_equal(without.predict_proba(scores), plain.predict_proba(scores))
