"""CalibratedModel around models of several events."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_multilabel_classification
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calibrant import CalibrantError, CalibratedModel, CalibrationWarning, MultiLabel, PlattScaling


def loss(p, y):
    p = np.clip(p, 1e-12, 1 - 1e-12)
    return -np.where(y == 1, np.log(p), np.log1p(-p)).mean()


@pytest.mark.parametrize(
    "model",
    [MultiOutputClassifier(GaussianNB()), make_pipeline(StandardScaler(), OneVsRestClassifier(GaussianNB()))],
)
@pytest.mark.parametrize("ensemble", [True, False])
def test_probabilities_of_events_become_truer(model, ensemble):
    X, y = make_multilabel_classification(1200, n_classes=4, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        fitted = CalibratedModel(model, cv=3, ensemble=ensemble).fit(X[:800], y[:800])
        frozen = CalibratedModel(model.fit(X[:400], y[:400]), MultiLabel(PlattScaling()), cv="prefit")
        frozen.fit(X[400:800], y[400:800])
    raw = model.fit(X[:800], y[:800]).predict_proba(X[800:])
    raw = np.stack([p[:, 1] for p in raw], axis=1) if isinstance(raw, list) else raw
    for own in (fitted, frozen):
        p = own.predict_proba(X[800:])
        assert p.shape == (400, 4)
        assert loss(p, y[800:]) < loss(raw, y[800:])
        assert own.predict(X[800:]).shape == (400, 4)


def test_another_map_is_refused():
    X, y = make_multilabel_classification(100, n_classes=3, random_state=0)
    with pytest.raises(CalibrantError, match="need a MultiLabel"):
        CalibratedModel(MultiOutputClassifier(GaussianNB()), "ts").fit(X, y)
