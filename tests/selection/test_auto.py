"""The comparison as an estimator: it chooses and answers as `compare` does."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier
from tests.conftest import overconfident

import calibrant
from calibrant import AutoCalibrator, compare


def test_auto_calibrator_is_a_calibrator(tmp_path: Path) -> None:
    z, y = overconfident(300, 4)
    auto = AutoCalibrator(methods=["ts", "platt"], cv=3).fit(z, y)
    assert auto.best_ == "ts"
    assert auto.traits.preserves_accuracy
    auto.save(tmp_path / "m.calibrant")
    loaded = calibrant.load(tmp_path / "m.calibrant")
    assert loaded.predict_proba(z).tobytes() == auto.predict_proba(z).tobytes()
    assert loaded.reason_ == auto.reason_


def test_auto_calibrator_judges_zeros_as_it_answers_them() -> None:
    p = np.array([[1.0, 0.0], [0.0, 1.0]] * 40)
    y = np.array([0, 1] * 39 + [1, 0])
    auto = AutoCalibrator(["ts"], cv=4, inputs="probabilities").fit(p, y)
    assert auto.fit_report_.held_out_before is not None
    found = compare(p, y, methods=["ts"], cv=4, inputs="probabilities")
    assert auto.fit_report_.held_out_before == found["identity"].metrics["nll"].value
    assert auto.fit_report_.held_out_after == found[auto.best_].metrics["nll"].value


def _with_zeros(model: Any, classes: int) -> tuple[Any, Any, Any]:
    """Probabilities for rows to fit on and others, and the labels of the former; some labels have a zero."""
    drawn = make_classification(
        900, 12, n_informative=5, n_classes=classes, n_clusters_per_class=1, flip_y=0.1, random_state=0
    )
    x, y = drawn
    p = model.fit(x[:300], y[:300]).predict_proba(x)
    assert (p[np.arange(900), y][300:600] == 0).any()
    return p[300:600], p[600:], y[300:600]


@pytest.mark.parametrize("saturated", ["small", "exact"])
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("model", [RandomForestClassifier(20, random_state=0), KNeighborsClassifier(5)])
def test_it_chooses_as_compare_does_where_probabilities_hold_zeros(model: Any, classes: int, saturated: str) -> None:
    p, other, y = _with_zeros(model, classes)
    options = {"methods": ["ts", "ets", "irova", "vector"], "inputs": "probabilities", "saturated": saturated}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = compare(p, y, **options)
        auto = AutoCalibrator(**options).fit(p, y)
        refit = found.refit_
    assert (auto.best_, auto.reason_) == (found.best_, found.reason)
    for mine, theirs in zip(auto.table_, found.to_dict()["rows"], strict=True):
        assert (mine["name"], mine["metrics"]) == (theirs["name"], theirs["metrics"])
    assert auto.predict_proba(other).tobytes() == refit.predict_proba(other).tobytes()


def test_a_scan_is_judged_as_its_rows_are() -> None:
    p, _, y = _with_zeros(KNeighborsClassifier(5), 3)
    options = {"methods": ["ts", "ets"], "inputs": "probabilities"}

    def batches() -> Any:
        yield p[:100], y[:100]
        yield p[100:], y[100:]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scanned, whole = AutoCalibrator(**options).fit(calibrant.scan(batches)), AutoCalibrator(**options).fit(p, y)
    names = [[row["name"] for row in auto.table_] for auto in (scanned, whole)]
    assert names[0] == names[1]
    assert scanned.zero_ == pytest.approx(whole.zero_)
    assert scanned.fit_report_.held_out_before == pytest.approx(whole.fit_report_.held_out_before)


def test_an_event_is_chosen_for_as_compare_does() -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(size=300)
    y = (rng.uniform(size=300) < p**2).astype(int)
    chosen = AutoCalibrator(["ts", "platt"], inputs="probabilities").fit(p, y)
    found = compare(p, y, methods=["ts", "platt"], inputs="probabilities")
    assert chosen.reason_ == found.reason
    assert "accuracy" not in chosen.reason_
    assert "accuracy" not in chosen.table_[0]["metrics"]
