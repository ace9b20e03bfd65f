import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant
from calibrant import KCal
from calibrant.errors import CalibrantError
from calibrant.maps.density import (
    Support,
    best_bandwidth,
    class_probabilities,
    leave_one_out,
    mean_loss,
    spread_of,
)


def direct(test, support, labels, h, k, weights=None):
    """Eq. 3 as written, with the largest term taken out."""
    d2 = ((test[:, None, :] - support[None]) ** 2).sum(-1)
    w = np.exp(-(d2 - d2.min(1, keepdims=True)) / (2 * h * h)) * (1 if weights is None else weights)
    sums = np.stack([w[:, labels == c].sum(1) for c in range(k)], 1)
    return sums / sums.sum(1, keepdims=True)


def blobs(n=300, d=6, k=4, seed=0):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(k), rng.integers(k, size=n - k)])
    return rng.normal(size=(n, d)) + 1.5 * np.eye(k, d)[y], y


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
@settings(max_examples=20, deadline=None)
@given(st.integers(5, 60), st.integers(1, 8), st.integers(0, 10**6), st.floats(0.3, 5.0))
def test_identity_projection_is_equation_three(n, d, seed, h):
    x, y = blobs(n, d, 3, seed)
    weights = np.random.default_rng(seed).random(n) + 0.1
    test = np.random.default_rng(seed + 1).normal(size=(7, d))
    cal = KCal(projection="identity", bandwidth=h).fit(x, y, sample_weight=weights)
    np.testing.assert_allclose(cal.predict_proba(test), direct(test, x, y, h, 3, weights), atol=1e-9)


def test_a_far_point_gets_the_class_frequencies():
    x, y = blobs()
    cal = KCal(projection="identity", bandwidth=1.0).fit(x, y)
    np.testing.assert_allclose(cal.predict_proba(np.full((1, 6), 1e6))[0], np.bincount(y) / len(y), atol=1e-9)


def test_adding_rows_in_blocks_equals_fitting_at_once():
    x, y = blobs()
    once = KCal(projection="identity", bandwidth=0.8).fit(x, y)
    parts = KCal(projection="identity", bandwidth=0.8).fit(x[:100], y[:100])
    parts.partial_fit(x[100:180], y[100:180]).partial_fit(x[180:], y[180:])
    np.testing.assert_allclose(parts.predict_proba(x[:20]), once.predict_proba(x[:20]), rtol=1e-12)
    kept = KCal(projection="identity", bandwidth=0.8).fit(x[100:], y[100:])
    np.testing.assert_allclose(parts.forget(before=100).predict_proba(x[:20]), kept.predict_proba(x[:20]), rtol=1e-12)


def apart(n=400):
    """Classes nearly apart, whose loss is flat and small."""
    x, y = blobs(n, 4, 3)
    return x + 2 * np.eye(3, 4)[y], y


@pytest.mark.parametrize("data", [blobs(400), blobs(150, 2, 2, 1), apart()], ids=["blobs", "few", "apart"])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_bandwidth_is_the_minimum_of_a_dense_scan(data, kind):
    x, y = data[0].astype(kind), data[1]
    support = Support.of(x, y, None, int(y.max()) + 1)
    trial = leave_one_out(support, np.zeros(len(x)))
    found = best_bandwidth([trial], spread_of(x))
    place = np.arange(len(x))
    labels = support.labels()

    def at(h):
        p = class_probabilities(support, support.points + support.centre, h, place)
        return -np.log(np.maximum(p[place, labels], 1e-10)).mean()

    scan = np.geomspace(0.05, 10, 300)
    rough = scan[np.argmin([at(h) for h in scan])]
    finer = rough * np.linspace(0.96, 1.04, 81)
    best = finer[np.argmin([at(h) for h in finer])]
    assert found == pytest.approx(best, rel=0.01)
    assert mean_loss([trial], found) == pytest.approx(at(found), rel=1e-9 if kind == np.float64 else 1e-5)


@pytest.mark.parametrize("projection", ["pca", "lda", "identity"])
def test_projections_without_torch_fit_explain_and_save(projection, tmp_path):
    x, y = blobs(500)
    cal = KCal(projection=projection, dim=3).fit_projection(x[:250], y[:250]).fit(x[250:], y[250:])
    p = cal.predict_proba(x)
    assert (p.argmax(1) == y).mean() > 0.55
    story = cal.explain(x[0], top=5)
    assert len(story["rows"]) == 5
    assert (np.diff(story["weights"]) <= 0).all()
    assert (story["labels"] == y[250:][story["rows"]]).all()
    cal.save(tmp_path / "k.calibrant")
    assert (calibrant.load(tmp_path / "k.calibrant").predict_proba(x) == p).all()


def test_float32_stays_float32_and_string_classes_come_back():
    x, y = blobs()
    names = np.array(list("abcd"))
    cal = KCal(projection="identity").fit(x.astype(np.float32), names[y])
    assert cal.predict_proba(x.astype(np.float32)).dtype == np.float32
    assert set(cal.predict(x.astype(np.float32))) <= set("abcd")


def test_bad_embeddings_are_refused():
    x, y = blobs()
    with pytest.raises(CalibrantError, match="embeddings"):
        KCal(projection="identity").fit(np.where(np.arange(6) == 2, np.nan, x), y)
    with pytest.raises(CalibrantError, match="features"):
        KCal(projection="identity").fit(x, y).predict_proba(x[:, :3])


def test_agrees_with_the_reference(shared_data):
    z = np.load(shared_data / "oracle" / "kcal_embeddings.npz")
    out = np.load(shared_data / "oracle" / "kcal_outputs.npz")
    x, test = z["X_cal"].astype(np.float64), z["X_test"].astype(np.float64)
    for b in (0.1, 0.5, 1.0, 2.0, 5.0, 10.0):  # their kernel is exp(-mean of squares / b)
        cal = KCal(projection="identity", bandwidth=float(np.sqrt(b * x.shape[1] / 2))).fit(x, z["y_cal"])
        np.testing.assert_allclose(cal.predict_proba(test), out[f"RBFM_h{b}_test"], atol=2e-6)
    reference = json.loads((shared_data / "oracle" / "kcal.json").read_text())["bw_RBFM_fold20"]
    ours = KCal(projection="identity").fit(x, z["y_cal"]).bandwidth_
    assert ours == pytest.approx(np.sqrt(reference["h_star"] * x.shape[1] / 2), rel=0.05)
