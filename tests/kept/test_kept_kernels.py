"""What KCal answers from embeddings, of few rows and more, as rows come and go, is what it was."""

import numpy as np
import pytest
from tests.kept.comparing import check

from calibrant import KCal

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")


def embeddings(n, seed=0, k=3, d=5):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    return np.round(np.eye(k, d)[y] * 1.5 + rng.normal(size=(n, d)), 3), y


def told(fitted, x):
    report = fitted.fit_report_
    return {
        "p": fitted.predict_proba(x),
        "few": fitted.predict_proba(x[:2]).ravel(),
        "bandwidth": fitted.bandwidth_,
        "support": fitted.support_,
        "rows": len(fitted.points_),
        "kept": fitted.labels_.astype(float),
        "losses": [report.loss_before, report.loss_after, report.held_out_before, report.held_out_after],
    }


@pytest.mark.parametrize("n", [2, 11, 64])
@pytest.mark.parametrize("projection", ["linear", "lda", "pca", "identity"])
def test_projections(projection, n):
    x, y = embeddings(n, n)
    w = np.linspace(0.5, 2.0, n)
    found = {name: told(KCal(projection, **given).fit(x, y, sample_weight=w), x) for name, given in SETTINGS.items()}
    check("kernels", f"{projection} {n}", found)


SETTINGS = {
    "cv": {},
    "rule": {"bandwidth": "rule", "dim": 2},
    "given": {"bandwidth": 0.8},
    "herding": {"capacity": 12, "bandwidth": "rule"},
    "reservoir": {"capacity": 12, "keep": "reservoir", "random_state": 5, "bandwidth": 0.9},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_rows_come_and_go(name):
    x, y = embeddings(80, 1)
    fitted = KCal("lda", **SETTINGS[name]).fit(x[:30], y[:30])
    found = {"first": told(fitted, x)}
    for place in (30, 40, 75):
        end = {30: 40, 40: 75, 75: 80}[place]
        fitted.partial_fit(x[place:end], y[place:end], sample_weight=np.full(end - place, 1.5))
        found[f"to {end}"] = told(fitted, x)
    if SETTINGS[name].get("capacity") is None:
        found["forgotten"] = told(fitted.forget(25), x)
    explained = fitted.explain(x[3], top=4)
    found["explained"] = {key: np.asarray(value, dtype=float) for key, value in explained.items()}
    check("kernels", f"come and go {name}", found)


@pytest.mark.parametrize("k", [4, 12])
def test_few_rows_of_many_classes(k):
    x, y = embeddings(6 * k, 2, k, 14)
    found = {name: told(KCal(name).fit(x, y), x) for name in ("linear", "lda")}
    check("kernels", f"classes {k}", found)
