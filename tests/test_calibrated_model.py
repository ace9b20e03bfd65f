"""A whole classifier with calibrated probabilities."""

import pickle
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

from calibrant import CalibratedModel, CalibrationWarning, Chain, Identity, TemperatureScaling, make
from calibrant.fitted_pair import _drawn_together

# Small sets make maps that say so; the tests look at other things.
pytestmark = pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")


@pytest.fixture(scope="module")
def data():
    return make_classification(300, 8, n_informative=5, n_classes=3, random_state=0)


@pytest.fixture(scope="module")
def binary():
    return make_classification(200, 6, n_informative=4, flip_y=0.1, random_state=1)


# As it comes, LinearSVC itself tells weights from repeated rows by 5e-5, and more or less of it is seen by processor.
_EXACT_SVC = LinearSVC(random_state=0, tol=1e-10, max_iter=100_000)


@pytest.mark.parametrize("ensemble", [True, False])
@pytest.mark.parametrize("estimator", [GaussianNB(), _EXACT_SVC], ids=["GaussianNB", "LinearSVC"])
@pytest.mark.filterwarnings("ignore")
def test_every_estimator_check_passes(estimator, ensemble):
    results = check_estimator(CalibratedModel(estimator, TemperatureScaling(), ensemble=ensemble), on_skip=None)
    assert {r["status"] for r in results} <= {"passed", "skipped"}
    assert sum(r["status"] == "skipped" for r in results) <= 1  # the array API, where its package is not installed


def test_prefit_and_frozen_fit_the_map_by_hand(data):
    X, y = data
    fitted = LogisticRegression().fit(X[:150], y[:150])
    by_hand = TemperatureScaling().fit(fitted.decision_function(X[150:]), y[150:])
    wanted = by_hand.predict_proba(fitted.decision_function(X))
    for model in (CalibratedModel(fitted, "ts", cv="prefit"), CalibratedModel(FrozenEstimator(fitted), "ts")):
        model.fit(X[150:], y[150:])
        np.testing.assert_array_equal(model.predict_proba(X), wanted)
        np.testing.assert_array_equal(model.predict(X), fitted.predict(X))
        assert len(model.calibrated_classifiers_) == 1


def test_prefit_knows_classes_that_the_calibration_rows_lack(data):
    X, y = data
    fitted = LogisticRegression().fit(X, y)
    model = CalibratedModel(fitted, "ts", cv="prefit").fit(X[y < 2], y[y < 2])
    assert model.predict_proba(X).shape == (300, 3)
    with pytest.raises(ValueError, match="y holds a label outside the classes"):
        CalibratedModel(fitted, cv="prefit").fit(X, y + 1)
    with pytest.raises(NotFittedError):
        CalibratedModel(LogisticRegression(), cv="prefit").fit(X, y)


def test_without_ensemble_it_is_the_map_of_cross_validated_scores(data):
    X, y = data
    model = CalibratedModel(LogisticRegression(), "ts", cv=4, ensemble=False).fit(X, y)
    scores = cross_val_predict(LogisticRegression(), X, y, cv=4, method="decision_function")
    wanted = TemperatureScaling().fit(scores, y).predict_proba(LogisticRegression().fit(X, y).decision_function(X))
    np.testing.assert_allclose(model.predict_proba(X), wanted, atol=1e-9)


def test_with_ensemble_probabilities_are_averaged(data):
    X, y = data
    model = CalibratedModel(LogisticRegression(), "ts", cv=3).fit(X, y)
    scores = cross_val_predict(LogisticRegression(), X, y, cv=3, method="decision_function")
    map_ = TemperatureScaling().fit(scores, y)
    estimators = [LogisticRegression().fit(X[train], y[train]) for train, _ in StratifiedKFold(3).split(X, y)]
    each = [map_.predict_proba(one.decision_function(X)) for one in estimators]
    surer = np.mean(each, axis=0) ** (1 + 100 / (200 + len(y)))
    wanted = surer / surer.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), wanted, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), wanted.argmax(axis=1))
    assert len(model.fit_reports_) == 3


def test_two_classes_are_averaged_as_they_are(binary):
    X, y = binary
    model = CalibratedModel(GaussianNB(), "ts", cv=4).fit(X, y)
    each = [pair.predict_proba(X) for pair in model.calibrated_classifiers_]
    np.testing.assert_allclose(model.predict_proba(X), np.mean(each, axis=0), atol=1e-12)
    model = CalibratedModel(GaussianNB(), "ts").fit(X, y)
    *each, whole = [pair.predict_proba(X) for pair in model.calibrated_classifiers_]
    np.testing.assert_allclose(model.predict_proba(X), 0.75 * np.mean(each, axis=0) + 0.25 * whole, atol=1e-12)


@pytest.mark.parametrize(("n", "times"), [(60, 4), (100, 4), (120, 3), (200, 2), (201, 1), (300, 1)])
def test_few_rows_are_dealt_several_times(data, n, times):
    X, y = data[0][:n], data[1][:n]
    model = CalibratedModel(GaussianNB(), "ts").fit(X, y)
    assert len(model.calibrated_classifiers_) == 5 * times + (times > 1)
    whole = CalibratedModel(GaussianNB(), "ts", ensemble=False).fit(X, y).calibrated_classifiers_
    assert len(whole) == 1
    if times > 1:
        np.testing.assert_array_equal(whole[0].predict_proba(X), model.calibrated_classifiers_[-1].predict_proba(X))
    once = CalibratedModel(GaussianNB(), "ts", cv=5).fit(X, y)
    assert len(once.calibrated_classifiers_) == 5
    again = CalibratedModel(GaussianNB(), "ts").fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    first = [pair.scores(X) for pair in model.calibrated_classifiers_[:5]]
    np.testing.assert_array_equal(first, [pair.scores(X) for pair in once.calibrated_classifiers_])


def test_many_rows_are_answered_as_few_are(data):
    X, y = data
    model = CalibratedModel(GaussianNB()).fit(X, y)
    many = model.predict_proba(np.tile(X, (4, 1)))
    np.testing.assert_allclose(many, np.tile(model.predict_proba(X), (4, 1)), atol=1e-12)


def test_a_class_of_few_rows_is_dealt_once_and_told_once(binary):
    X, y = binary[0][:60], np.r_[binary[1][:57], [2, 2, 2]]
    with pytest.warns(UserWarning, match="least populated class") as told:
        model = CalibratedModel(GaussianNB(), "ts").fit(X, y)
    assert len(model.calibrated_classifiers_) == 5
    assert sum("least populated" in str(one.message) for one in told) == 1


def test_being_surer_rules_no_class_out():
    class Sure(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

        def predict_proba(self, X):
            return np.tile(np.array([1 - 2e-38, 1e-38, 1e-38], dtype=np.float32), (len(X), 1))

    X, y = np.zeros((30, 1)), np.tile([0, 1, 2], 10)
    answer = CalibratedModel(Sure(), make("identity", saturated="exact")).fit(X, y).predict_proba(X)
    assert answer.dtype == np.float32
    assert (answer > 0).all()


def test_members_that_rule_out_different_classes_still_answer():
    class One(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_, self.odd_ = np.unique(y), int(X[0, 0]) % 2
            return self

        def predict_proba(self, X):
            return np.tile([[0.0, 1.0], [1.0, 0.0]][self.odd_], (len(X), 1))

    X, y = np.arange(40.0)[:, None], np.tile([0, 1], 20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CalibratedModel(One(), make("identity", saturated="exact"), cv=KFold(2)).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_agrees_with_scikit_learn(data):
    """Without an ensemble; with one, scikit-learn fits a map for each split, and ours one on the rows of all."""
    X, y = data
    theirs = CalibratedClassifierCV(LogisticRegression(), method="temperature", cv=3, ensemble=False)
    try:
        theirs.fit(X, y)
    except ValueError:
        pytest.skip("this scikit-learn has no temperature scaling")
    ours = CalibratedModel(LogisticRegression(), "ts", cv=3, ensemble=False).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=2e-3)


@pytest.mark.parametrize(
    ("estimator", "method"),
    [
        (LogisticRegression(), "decision_function"),
        (GaussianNB(), "predict_log_proba"),
        (DecisionTreeClassifier(max_depth=3), "predict_log_proba"),
        (KNeighborsClassifier(), "predict_proba"),
        (make_pipeline(StandardScaler(), LinearSVC()), "decision_function"),
    ],
    ids=["logistic", "bayes", "tree", "neighbours", "pipeline"],
)
def test_auto_takes_the_first_method_there_is(data, estimator, method):
    X, y = data
    model = CalibratedModel(estimator, "ts", cv=3).fit(X, y)
    assert model.response_method_ == method
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_methods_of_one_model_agree(data):
    X, y = data
    answers = [
        CalibratedModel(LogisticRegression(), "ts", cv=3, response_method=method).fit(X, y).predict_proba(X)
        for method in ("decision_function", "predict_log_proba", "predict_proba")
    ]
    np.testing.assert_allclose(answers[0], answers[1], atol=1e-8)
    np.testing.assert_allclose(answers[0], answers[2], atol=1e-8)


def test_decision_values_that_look_like_probabilities_are_still_logits(binary):
    class Ranker(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

        def decision_function(self, X):
            return (X[:, 0] - X[:, 0].min()) / np.ptp(X[:, 0])

    X, y = binary
    model = CalibratedModel(Ranker(), "ts", cv=3).fit(X, y)
    assert model.predict_proba(X).shape == (200, 2)


def test_decision_values_that_are_all_one_are_still_log_odds():
    """A support-vector machine on a rare event may say the same of every row."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(400, 3)), np.arange(400) % 100 != 0

    class Same(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

        def decision_function(self, X):
            return np.ones(len(X))

    p = CalibratedModel(Same(), cv=4).fit(x, y).predict_proba(x)
    np.testing.assert_allclose(p[:, 1], 0.99, atol=0.005)


def test_labels_are_answered_as_they_came(binary):
    X, y = binary
    numbers = CalibratedModel(LogisticRegression(), cv=3).fit(X, y)
    names = np.array(["no", "yes"])
    for labels in (names[y], names.astype(object)[y], names[y].tolist(), y.astype(bool), 2 * y - 1):
        model = CalibratedModel(LogisticRegression(), cv=3).fit(X, labels)
        np.testing.assert_array_equal(model.classes_, np.unique(labels))
        np.testing.assert_allclose(model.predict_proba(X), numbers.predict_proba(X))
        np.testing.assert_array_equal(model.predict(X), model.classes_[numbers.predict(X)])


def test_weights_reach_the_estimator_and_the_map(binary):
    X, y = binary
    weights = np.random.default_rng(0).uniform(0.2, 2, len(y))
    model = CalibratedModel(LogisticRegression(), "ts", cv=3, ensemble=False).fit(X, y, sample_weight=weights)
    scores = np.empty(len(y))
    for train, test in StratifiedKFold(3).split(X, y):
        scores[test] = LogisticRegression().fit(X[train], y[train], weights[train]).decision_function(X[test])
    by_hand = TemperatureScaling().fit(np.c_[0 * scores, scores], y, weights)
    final = model.calibrated_classifiers_[0]
    assert final.calibrator.temperature_ == pytest.approx(by_hand.temperature_, rel=1e-6)
    np.testing.assert_allclose(final.estimator.coef_, LogisticRegression().fit(X, y, weights).coef_)


def test_weights_the_estimator_cannot_take_are_told(binary):
    X, y = binary
    with pytest.warns(CalibrationWarning, match="does not take sample_weight"):
        CalibratedModel(KNeighborsClassifier(20), "ts", cv=3).fit(X, y, sample_weight=np.full(len(y), 2.0))


def test_metadata_is_routed(binary):
    X, y = binary
    weights = np.random.default_rng(0).uniform(0.2, 2, len(y))
    groups = np.arange(len(y)) % 10
    plain = CalibratedModel(LogisticRegression(), cv=list(GroupKFold(5).split(X, y, groups))).fit(X, y, weights)
    with config_context(enable_metadata_routing=True):
        estimator = LogisticRegression().set_fit_request(sample_weight=True)
        model = CalibratedModel(estimator, cv=GroupKFold(5)).fit(X, y, sample_weight=weights, groups=groups)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X))


def test_fit_parameters_are_split_with_the_rows(binary):
    class Recorder(LogisticRegression):
        def fit(self, X, y, colour=None):
            assert len(colour) == len(y)
            return super().fit(X, y)

    X, y = binary
    CalibratedModel(Recorder(), cv=3).fit(X, y, colour=np.arange(len(y)))


@pytest.mark.parametrize("ensemble", [True, False])
def test_classes_missing_from_a_fold(ensemble):
    X, y = make_classification(120, 6, n_informative=4, n_classes=4, random_state=3)
    fold = np.arange(120) % 3
    fold[y == 3] = 0  # the estimators of the first split never see class 3, the maps of the others neither
    for estimator in (LogisticRegression(), GaussianNB(), RandomForestClassifier(20, random_state=0)):
        for method in ("auto", "predict_proba"):
            model = CalibratedModel(
                estimator, "ts", cv=PredefinedSplit(fold), ensemble=ensemble, response_method=method
            ).fit(X, y)
            p = model.predict_proba(X)
            assert p.shape == (120, 4)
            np.testing.assert_allclose(p.sum(axis=1), 1)


def test_two_of_three_classes_in_a_training_part():
    X, y = make_classification(90, 6, n_informative=4, n_classes=3, random_state=3)
    fold = np.arange(90) % 2
    fold[y == 2] = 0
    model = CalibratedModel(LogisticRegression(), cv=PredefinedSplit(fold)).fit(X, y)
    binary = next(p for p in model.calibrated_classifiers_ if len(p.estimator.classes_) == 2)
    assert np.isneginf(binary.scores(X)[:, 2]).all()
    # The rows held out say how often a class that an estimator never saw is the label: more often than not at all.
    assert (binary.predict_proba(X)[:, 2] > 0.01).all()
    exact = CalibratedModel(LogisticRegression(), TemperatureScaling(saturated="exact"), cv=PredefinedSplit(fold))
    binary = next(p for p in exact.fit(X, y).calibrated_classifiers_ if len(p.estimator.classes_) == 2)
    np.testing.assert_array_equal(binary.predict_proba(X)[:, 2], 0)


def test_splits_that_hold_out_one_class_only_are_no_trouble(binary):
    X, y = binary[0][:40], binary[1][:40]
    model = CalibratedModel(GaussianNB(), "ts", cv=LeaveOneOut()).fit(X, y)
    assert len(model.calibrated_classifiers_) == 40
    assert len({id(pair.calibrator) for pair in model.calibrated_classifiers_}) == 1


def test_the_default_survives_naive_bayes():
    """Log-probabilities of naive Bayes are enormous; a temperature alone would leave 2.0 where others have .5."""
    X, y = load_digits(return_X_y=True)
    X, other, y, truth = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
    p = CalibratedModel(GaussianNB()).fit(X, y).predict_proba(other)
    theirs = CalibratedClassifierCV(GaussianNB()).fit(X, y).predict_proba(other)
    assert log_loss(truth, p) < 0.85 * log_loss(truth, theirs)
    assert (p.argmax(axis=1) == truth).mean() > 0.8


def test_splits_need_not_be_a_partition(data):
    X, y = data
    model = CalibratedModel(LogisticRegression(), cv=ShuffleSplit(2, random_state=0), ensemble=False).fit(X, y)
    assert model.predict_proba(X).shape == (300, 3)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_row_that_is_held_out_twice_counts_once(binary, weighted):
    x, y = binary
    weights = np.linspace(0.5, 2.0, len(y)) if weighted else None
    splits = list(StratifiedKFold(4).split(x, y))
    once, twice = (
        CalibratedModel(GaussianNB(), "platt", cv=cv, ensemble=False).fit(x, y, weights)
        for cv in (splits, [split for split in splits for _ in range(2)])
    )
    np.testing.assert_allclose(twice.predict_proba(x), once.predict_proba(x), rtol=1e-6)
    held = twice.calibrated_classifiers_[0].calibrator
    assert held.n_samples_ == 2 * len(y)


def test_any_map_by_instance_or_name(data):
    X, y = data
    chain = Chain([TemperatureScaling(), Identity()])
    by_instance = CalibratedModel(LogisticRegression(), chain, cv=3).fit(X, y).predict_proba(X)
    by_name = CalibratedModel(LogisticRegression(), "ts > identity", cv=3).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(by_instance, by_name)
    assert not hasattr(chain, "parts_")  # it was cloned


def test_works_inside_and_around_scikit_learn(data):
    X, y = data
    model = CalibratedModel(make_pipeline(StandardScaler(), LogisticRegression()), TemperatureScaling(), cv=3)
    search = GridSearchCV(model, {"calibrator__loss": ["nll", "brier"], "estimator__logisticregression__C": [0.1, 1]})
    search.fit(X, y)
    assert search.best_score_ > 0.5
    assert cross_val_score(make_pipeline(StandardScaler(), clone(model)), X, y, cv=2).mean() > 0.5
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(search)).predict_proba(X), search.predict_proba(X))


def test_sparse_and_frames(data):
    pandas = pytest.importorskip("pandas")
    X, y = data
    wanted = CalibratedModel(LogisticRegression(), cv=3).fit(X, y).predict_proba(X)
    sparse = CalibratedModel(LogisticRegression(), cv=3).fit(csr_matrix(X), y).predict_proba(csr_matrix(X))
    np.testing.assert_allclose(sparse, wanted, atol=1e-4)
    frame = pandas.DataFrame(X, columns=list("abcdefgh"), index=np.arange(300) + 1000)
    model = CalibratedModel(LogisticRegression(), cv=3).fit(frame, pandas.Series(y, index=frame.index))
    np.testing.assert_allclose(model.predict_proba(frame), wanted)
    assert list(model.feature_names_in_) == list("abcdefgh")
    assert model.n_features_in_ == 8


def test_jobs_do_not_change_the_answer(data):
    X, y = data
    one, two = (CalibratedModel(LogisticRegression(), cv=3, n_jobs=n).fit(X, y).predict_proba(X) for n in (None, 2))
    np.testing.assert_array_equal(one, two)


def test_it_does_calibrate():
    X, y = make_classification(3000, 20, n_informative=6, n_redundant=12, random_state=0)
    fit, test = slice(0, 1500), slice(1500, None)
    raw = GaussianNB().fit(X[fit], y[fit]).predict_proba(X[test])
    model = CalibratedModel(GaussianNB(), make("ts")).fit(X[fit], y[fit])
    rows = np.arange(1500)
    before, after = (-np.log(p[rows, y[test]].clip(1e-300)).mean() for p in (raw, model.predict_proba(X[test])))
    assert after < 0.8 * before


def test_ties_are_broken_by_the_scores(data):
    X, y = data
    model = CalibratedModel(LogisticRegression(), "uniform", cv=3).fit(X, y)
    assert model.score(X, y) > 0.6


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"calibrator": "no-such-map"}, "no map has this name"),
        ({"calibrator": 3}, "calibrator is not valid"),
        ({"cv": "five"}, "cv is not valid"),
        ({"response_method": "predict"}, "response_method is not valid"),
        ({"ensemble": "auto"}, "ensemble is not valid"),
        ({"n_jobs": 1.5}, "n_jobs is not valid"),
        ({"estimator": "tree"}, "estimator has no fit"),
        ({"estimator": StandardScaler()}, "has no decision_function or predict_log_proba or predict_proba"),
        ({"estimator": LinearSVC(), "response_method": "predict_proba"}, "has no predict_proba"),
        ({"estimator": SVC(decision_function_shape="ovo")}, None),
    ],
)
def test_bad_parameters_are_refused(data, parameters, message):
    X, y = data
    model = CalibratedModel(LogisticRegression()).set_params(**parameters)
    if message is None:  # six pairs of four classes; three pairs of three are in test_calibrated_refusals.py
        X, y = make_classification(200, 8, n_informative=5, n_classes=4, random_state=0)
        message = "must give one column a class"
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


def test_bad_rows_are_refused(data):
    X, y = data
    for labels, message in ((None, "requires y"), (0 * y, "one class only"), (y[:-1], "inconsistent numbers")):
        with pytest.raises(ValueError, match=message):
            CalibratedModel(LogisticRegression()).fit(X, labels)
    with pytest.raises(ValueError, match="sample_weight has negative"):
        CalibratedModel(LogisticRegression()).fit(X, y, sample_weight=-1.0 * np.ones(300))
    with pytest.raises(NotFittedError):
        CalibratedModel(LogisticRegression()).predict(X)


@pytest.mark.parametrize("name", ["ts", "ets", "platt", "beta", "vector", "iop"])
def test_naive_bayes_that_is_surer_than_any_digit_tells_keeps_its_accuracy(name):
    """Log-probabilities reach -1e8 there: no temperature serves them and the others, and classes lost their slopes."""
    X, y = load_digits(return_X_y=True)
    model = CalibratedModel(GaussianNB(), name).fit(X[::2], y[::2])
    p = model.predict_proba(X[1::2])
    assert (p.argmax(axis=1) == y[1::2]).mean() > 0.8
    assert -np.log(p[np.arange(len(p)), y[1::2]]).mean() < 0.75


def test_log_probabilities_that_no_digit_shows_keep_their_order():
    least = np.log(2.0**-53)
    logs = np.array([[0.0, -np.inf, -6e8, -6e7, -40.0, least, -1.0]])
    drawn = _drawn_together(logs)
    assert drawn[0, 1] == -np.inf
    np.testing.assert_array_equal(drawn[0, [0, 5, 6]], logs[0, [0, 5, 6]])
    assert least - 25 < drawn[0, 2] < drawn[0, 3] < drawn[0, 4] < least
    np.testing.assert_allclose(drawn[0, 4], least - np.log1p(least + 40), rtol=1e-12)
