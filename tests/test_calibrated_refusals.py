"""What CalibratedModel is told wrongly is refused in words; what the user's own model raises goes through untouched."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from calibrant import CalibratedModel
from calibrant.errors import InvalidInput

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(90, 3)), np.arange(90) % 3
EVENTS = (RNG.random((90, 3)) < 0.5).astype(int)
ROWS = np.arange(90)


def searched(model):
    return GridSearchCV(make_pipeline(StandardScaler(), model), {"svc__C": [1.0]}, cv=2)


def answering(change, method="predict_log_proba", base=GaussianNB):
    """Return a model whose answers are changed."""

    def answer(self, rows):
        return change(getattr(base, method)(self, rows))

    return type("Odd", (base,), {method: answer})()


def events(change):
    """Return a model of three events that answers what the change makes of the number of rows."""
    members = {"fit": lambda self, X, y: self, "predict_proba": lambda self, X: change(len(X))}
    return type("Odd", (GaussianNB,), members)()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("rows", "labels", "weights"),
    [
        (X[:50], Y, None),
        (None, Y, None),
        ("abc", Y, None),
        (X, np.where(Y == 0, np.nan, Y), None),
        (X, [[1], [1, 2]] * 45, None),
        (X, {"a": 1}, None),
        (X, Y, np.ones(5)),
        (X, Y, "a"),
        (X, Y, 2.0),
        (X[:40], EVENTS, None),
        (X, EVENTS, np.ones(4)),
    ],
)
def test_rows_that_do_not_fit_each_other_are_refused(rows, labels, weights):
    estimator, map_ = (MultiOutputClassifier(GaussianNB()), "blend") if labels is EVENTS else (GaussianNB(), "ts")
    with pytest.raises(InvalidInput):
        CalibratedModel(estimator, map_).fit(rows, labels, sample_weight=weights)


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_missing_labels_are_named(missing):
    labels = [missing if row == 3 else "abc"[label] for row, label in enumerate(Y)]
    with pytest.raises(InvalidInput, match=f"y has missing labels; seen: {missing} in row 3"):
        CalibratedModel(GaussianNB(), "ts").fit(X, labels)


@pytest.mark.parametrize(
    "wrapped", [lambda model: model, lambda model: make_pipeline(StandardScaler(), model), searched]
)
def test_scores_of_the_three_pairs_of_three_classes_are_refused(wrapped):
    pairs = wrapped(SVC(decision_function_shape="ovo"))
    with pytest.raises(InvalidInput, match=r"each of the three pairs.*decision_function_shape=\"ovr\""):
        CalibratedModel(pairs, "ts").fit(X, Y)
    CalibratedModel(pairs, "ts").fit(X[:, :1], X[:, 0] + X[:, 1] > 0)  # two classes are one pair


@pytest.mark.parametrize("labels", [Y, EVENTS], ids=["classes", "events"])
@pytest.mark.parametrize(
    "cv",
    [
        *(1, 0, -3, 1000, 2.5, object(), [], [1, 2], [(1, 2, 3)], [("ab", "cd")], GroupKFold(3)),
        *([(ROWS, np.array([1000]))], [(ROWS[:80] + 0.0, ROWS[80:] + 0.0)], [(ROWS, ROWS[:0])], [(ROWS[:0], ROWS)]),
    ],
    ids=lambda cv: type(cv).__name__,
)
def test_splits_that_are_none_are_refused(cv, labels):
    estimator, map_ = (MultiOutputClassifier(GaussianNB()), "blend") if labels is EVENTS else (GaussianNB(), "ts")
    with pytest.raises(InvalidInput, match="cv"):
        CalibratedModel(estimator, map_, cv=cv).fit(X, labels)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "change",
    [
        lambda p: np.full(p.shape, "a"),
        lambda p: np.full(p.shape, object()),
        lambda p: [[1], [1, 2]] * 45,
        lambda p: p + 1j,
        lambda p: p.astype("datetime64[s]"),
        lambda p: None,
        lambda p: p[:, :2],
        lambda p: p[:-1],
        lambda p: p * np.nan,
    ],
)
def test_scores_that_are_none_are_refused(change):
    with pytest.raises(InvalidInput):
        CalibratedModel(answering(change), "ts").fit(X, Y)


@pytest.mark.parametrize(
    "change",
    [
        lambda n: "abc",
        lambda n: np.full(n, 0.5),
        lambda n: [np.full(n, 0.5)] * 3,
        lambda n: [np.full((n, 2), "a")] * 3,
        lambda n: [np.full((n, 2), 0.5), np.full((n + 1, 2), 0.5), np.full((n, 2), 0.5)],
    ],
)
def test_scores_of_events_that_are_none_are_refused(change):
    with pytest.raises(InvalidInput):
        CalibratedModel(events(change)).fit(X, EVENTS)


def test_models_that_cannot_be_used_are_refused():
    with pytest.raises(InvalidInput, match="copied"):
        CalibratedModel(GaussianNB, "ts").fit(X, Y)
    with pytest.raises(InvalidInput, match="no predict_proba"):
        CalibratedModel(RidgeClassifier()).fit(X, EVENTS)
    with pytest.raises(InvalidInput, match="n_jobs"):
        CalibratedModel(GaussianNB(), "ts", n_jobs=0).fit(X, Y)
    nameless = type("Nameless", (GaussianNB,), {"fit": lambda self, X, y: self, "predict_log_proba": lambda self, X: X})
    with pytest.raises(InvalidInput, match="classes_"):
        CalibratedModel(nameless(), "ts").fit(X, Y)


class Duck:
    """A model that has what is needed of scikit-learn's, and no class of theirs."""

    def get_params(self, deep=True):
        return {}

    def set_params(self):
        return self

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.full((len(X), 3), 1 / 3)


@pytest.mark.parametrize("cv", ["prefit", 3])
def test_a_model_that_is_none_of_scikit_learns_serves(cv):
    model = CalibratedModel(Duck().fit(X, Y), "ts", cv=cv).fit(X, Y)
    assert model.predict_proba(X[:2]).shape == (2, 3)
    assert not model.__sklearn_tags__().input_tags.sparse


@pytest.mark.parametrize("estimator", [None, GaussianNB, GaussianNB()])
def test_what_a_fit_that_failed_left_is_not_fitted(estimator):
    model = CalibratedModel(estimator, "ts", cv=[([0.5], [1])])
    with pytest.raises(InvalidInput):
        model.fit(X, Y)
    for ask in (lambda: model.predict_proba(X), lambda: model.predict(X), lambda: model.fit_reports_):
        with pytest.raises(NotFittedError):
            ask()


class Mine(Exception):
    """An exception of the user's own."""


@pytest.mark.parametrize("kind", [Mine, KeyError, ZeroDivisionError, MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("labels", [Y, EVENTS], ids=["classes", "events"])
def test_what_the_model_raises_goes_through(kind, labels):
    raised = kind("of the model")

    def fail(self, *given):
        raise raised

    for name in ("fit", "predict_proba"):
        members = {"fit": lambda self, X, y: self, "predict_proba": lambda self, X: None, name: fail}
        model = type("Failing", (RidgeClassifier,), {**members, "decision_function": property()})()
        with pytest.raises(kind) as seen:
            CalibratedModel(model, response_method="predict_proba").fit(X, labels)
        assert seen.value is raised


def test_what_the_model_says_of_its_rows_goes_through():
    with pytest.raises(ValueError, match="GaussianNB does not accept missing values") as seen:
        CalibratedModel(GaussianNB(), "ts").fit(np.full_like(X, np.nan), Y)
    assert not isinstance(seen.value, InvalidInput)
    fitted = CalibratedModel(GaussianNB(), "ts", cv=5).fit(X, Y)
    with pytest.raises(ValueError, match="GaussianNB is expecting 3 features"):
        fitted.predict_proba(X[:, :2])
    with pytest.raises(NotFittedError, match="GaussianNB"):
        CalibratedModel(GaussianNB(), "ts", cv="prefit").fit(X, Y)
    with pytest.raises(NotFittedError, match="CalibratedModel"):
        CalibratedModel(GaussianNB(), "ts").predict(X)
