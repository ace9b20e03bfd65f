"""What maps answer where scores are few or alike, and what their parts say of such rows, is what it was."""

import numpy as np
import pytest
from tests.kept.comparing import check
from tests.kept.test_kept_kernels import embeddings, told
from tests.kept.test_kept_maps import SETS, classes

import calibrant
from calibrant import KCal, registry
from calibrant.maps import prototypes
from calibrant.maps.scaling import _problem, _products

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
ALIKE = {
    "one score": (np.tile([0.4, -0.1, 0.2], (40, 1)), np.arange(40) % 3),
    "two scores": (np.where(np.arange(60)[:, None] % 2, [1.5, 0.0], [-0.5, 0.0]), (np.arange(60) % 5 < 2).astype(int)),
    "one label is never seen": (classes(50, 3, 22)[0], np.arange(50) % 2),
}
UNFIT = ("kcal", "kcal-linear", "kcal-logits", "blend", "hoki", "svs", "sms")


@pytest.mark.parametrize("of", ALIKE)
@pytest.mark.parametrize("name", [name for name in registry.names() if name not in UNFIT])
def test_scores_that_say_little(name, of):
    z, y = ALIKE[of]
    fitted = calibrant.make(name, classes=list(range(z.shape[1]))).fit(z, y)
    report = fitted.fit_report_
    more = np.concatenate([z[:4], 5.0 * np.eye(z.shape[1]) - 1.0])
    check(
        "corner_maps",
        f"{name}, {of}",
        {"p": fitted.predict_proba(more), "losses": [report.loss_before, report.loss_after]},
    )


@pytest.mark.parametrize("scores", [1, 90, 1 << 20])
@pytest.mark.parametrize("name", ["matrix", "matrix-odir", "dirichlet-odir", "sms"])
def test_products_of_many_classes_are_the_kernels_of_few(monkeypatch, name, scores):
    z, y, w = SETS["weights"]
    fused = calibrant.make(name).fit(z[:90], y[:90], sample_weight=w[:90])
    monkeypatch.setattr(_problem, "_FUSED", 1)
    monkeypatch.setattr(_products, "_SCORES", scores)
    apart = calibrant.make(name).fit(z[:90], y[:90], sample_weight=w[:90])
    np.testing.assert_allclose(apart.predict_proba(z), fused.predict_proba(z), atol=1e-6)
    for part in ("loss_after", "held_out_after"):
        assert getattr(apart.fit_report_, part) == pytest.approx(getattr(fused.fit_report_, part), rel=1e-6)


def uneven(n, seed=0):
    """Embeddings off the origin, of classes that are not equally frequent, with weights."""
    x, y = embeddings(n, seed)
    y = np.where(np.arange(n) % 5 < 3, 0, y)
    return x + np.where(np.arange(5) % 2, 3.0, -1.0) + y[:, None] * [0.0, 1.0, 0.0, -1.0, 0.5], y


@pytest.mark.parametrize("projection", ["linear", "lda", "pca", "identity"])
def test_projections_of_uneven_classes(projection):
    x, y = uneven(90)
    w = np.linspace(0.2, 3.0, 90)
    found = {}
    for name, given in (("all", {}), ("few", {"capacity": 20}), ("two", {"dim": 2, "bandwidth": "rule"})):
        if projection == "identity":
            given = {key: value for key, value in given.items() if key != "dim"}
        fitted = KCal(projection, **given).fit(x, y, sample_weight=w)
        directions = getattr(fitted, "projection_", None)
        found[name] = {**told(fitted, x), "count": fitted.n_parameters_}
        if projection in ("pca", "identity") or name == "two":  # directions beyond those of the means are any
            found[name]["points"] = fitted.points_
            found[name] |= {f"own {key}": np.asarray(value) for key, value in (directions or {}).items()}
    check("corner_maps", f"projection {projection}", found)


def test_rows_that_come_later_are_searched_anew():
    x, y = uneven(330, 3)
    fitted = KCal("identity").fit(x[:120], y[:120])
    found = {"first": [fitted.bandwidth_]}
    for first, last in ((120, 140), (140, 260), (260, 330)):
        fitted.partial_fit(x[first:last], y[first:last])
        found[f"to {last}"] = [fitted.bandwidth_, *fitted.predict_proba(x[:2]).ravel()]
    check("corner_maps", "later rows", found)


@pytest.mark.parametrize("capacity", [2, 7, 20, 200])
def test_quotas_are_shared_by_weight(capacity):
    """As many prototypes as there is room for, and one at least of each class that has rows."""
    counts = np.array([40, 30, 0, 3])
    found = prototypes.quotas(np.array([50.0, 30.0, 0.0, 1.0]), counts, capacity)
    assert found.sum() == min(max(capacity, 3), 73)
    assert ((found >= 1) == (counts > 0)).all()
    assert (found <= counts).all()
    check("corner_maps", f"quotas of {capacity}", {"found": found})
