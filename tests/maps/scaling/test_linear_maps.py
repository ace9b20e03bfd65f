"""Vector, matrix and Dirichlet scaling: what must hold for each of them."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp
from sklearn.datasets import make_gaussian_quantiles
from sklearn.naive_bayes import GaussianNB

from calibrant import CalibrationWarning, DirichletCalibration, MatrixScaling, TemperatureScaling, make, scan
from calibrant.testing import check_merging

NAMES = ["vector", "matrix", "matrix-odir", "dirichlet", "dirichlet-odir"]


def nll(p, y):
    return float(-np.log(p[np.arange(len(y)), y].astype(np.float64)).mean())


def skewed(n, k, seed=0, slope=2.0):
    """Over-confident logits in which one class is also systematically too low."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k)) * 1.5
    y = (z + rng.gumbel(size=(n, k))).argmax(axis=1)
    z = z * slope
    z[:, 0] -= 1.5
    return z, y


@pytest.mark.parametrize("name", [*NAMES, "svs", "sms"])
def test_improves_held_out_loss_where_temperature_cannot(name):
    z, y = skewed(3000, 4)
    ts = TemperatureScaling().fit(z[:1500], y[:1500])
    fitted = make(name).fit(z[:1500], y[:1500])
    assert nll(fitted.predict_proba(z[1500:]), y[1500:]) < nll(ts.predict_proba(z[1500:]), y[1500:]) - 0.02
    report = fitted.fit_report_
    assert report.converged
    assert report.loss_after < report.loss_before
    assert report.held_out_after < report.held_out_before


@pytest.mark.parametrize("name", [*NAMES, "svs", "sms"])
def test_does_no_harm_with_few_rows_and_many_classes(name):
    z, y = skewed(300, 40, slope=3.0)
    ts = TemperatureScaling().fit(z, y)
    fitted = make(name).fit(z, y)
    fresh, truth = skewed(2000, 40, seed=1, slope=3.0)
    assert nll(fitted.predict_proba(fresh), truth) < 1.02 * nll(ts.predict_proba(fresh), truth)


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 1000), scale=st.sampled_from([0.01, 1.0, 100.0]))
@settings(max_examples=4, deadline=None)
def test_shift_scale_and_order_do_not_matter(name, seed, scale):
    rng = np.random.default_rng(seed)
    z, y = skewed(120, 3, seed)
    order = rng.permutation(len(y))
    plain = make(name, strength=3.0).fit(z, y).predict_proba(z)
    other = make(name, strength=3.0).fit((log_softmax(z, axis=1) * scale)[order], y[order])
    moved = other.predict_proba(log_softmax(z, axis=1) * scale + rng.normal(size=(len(y), 1)))
    np.testing.assert_allclose(moved, plain, atol=1e-4)


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 1000))
@settings(max_examples=4, deadline=None)
def test_weights_are_repetition(name, seed):
    z, y = skewed(80, 3, seed)
    w = np.random.default_rng(seed).integers(0, 4, 80)
    w[np.unique(y, return_index=True)[1]] = 1
    weighted = make(name, strength=3.0).fit(z, y, sample_weight=w)
    repeated = make(name, strength=3.0).fit(np.repeat(z, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(weighted.predict_proba(z), repeated.predict_proba(z), atol=1e-4)


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
@pytest.mark.parametrize("name", NAMES)
def test_the_chosen_strength_knows_weights_as_repetition_and_no_order(name):
    z, y = skewed(250, 3)
    w = np.random.default_rng(0).integers(1, 4, 250)
    weighted = make(name).fit(z, y, sample_weight=w)
    order = np.random.default_rng(1).permutation(w.sum())
    repeated = make(name).fit(np.repeat(z, w, axis=0)[order], np.repeat(y, w)[order])
    np.testing.assert_allclose(repeated.strength_, weighted.strength_, rtol=1e-3)
    np.testing.assert_allclose(weighted.predict_proba(z), repeated.predict_proba(z), atol=1e-4)


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
@pytest.mark.parametrize("name", NAMES)
def test_float32_agrees_with_float64(name):
    z, y = skewed(500, 5)
    one = make(name, strength=10.0).fit(z.astype(np.float32), y).predict_proba(z.astype(np.float32))
    two = make(name, strength=10.0).fit(z, y).predict_proba(z)
    assert one.dtype == np.float32
    assert two.dtype == np.float64
    np.testing.assert_allclose(one, two, atol=2e-3)


@pytest.mark.parametrize("name", ["matrix", "dirichlet"])
@pytest.mark.parametrize("intercepts", ["average", "origin"])
def test_a_full_matrix_finds_the_optimum_that_a_plain_solver_finds(name, intercepts):
    z, y = skewed(300, 3)
    s = 5.0
    fitted = make(name, strength=s, intercepts=intercepts).fit(z, y)
    u = log_softmax(z / fitted.temperature_, axis=1)
    x = np.maximum(u, fitted.floor_)
    if name == "matrix":
        x = x - x.mean(axis=1, keepdims=True)
    average = x.mean(axis=0) if intercepts == "average" else np.zeros(3)

    def objective(theta):
        a = u + (x - average) @ theta[:9].reshape(3, 3).T + theta[9:]
        return (logsumexp(a, axis=1) - a[np.arange(300), y]).sum() + 0.5 * s * (theta**2).sum()

    best = minimize(objective, np.zeros(12), method="BFGS", options={"gtol": 1e-4}).fun
    own = objective(np.concatenate([fitted.weights_.ravel(), fitted.intercept_ + fitted.weights_ @ average]))
    assert own <= best + 1e-3


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
@pytest.mark.parametrize("name", NAMES)
def test_never_worse_on_its_rows_than_its_start(name):
    z, y = skewed(200, 6)
    start = nll(TemperatureScaling().fit(z, y).predict_proba(z), y)
    for strength in (0.1, 10.0, 1e4):
        assert nll(make(name, strength=strength).fit(z, y).predict_proba(z), y) <= start + 1e-6


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("saturated", ["small", "exact"])
def test_hard_rows_give_distributions(name, saturated):
    z, y = skewed(60, 4)
    fitted = make(name, saturated=saturated).fit(z, y)
    hard = np.array([[1e4, -1e4, 0, 3], [-np.inf, 0, 1, -np.inf], [2, 2, 2, 2], [-1e4, -1e4, -1e4, -1e4]])
    p = fitted.predict_proba(np.vstack([hard, z]))
    assert np.isfinite(p).all()
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
    assert ((p[1, [0, 3]] == 0) == (saturated == "exact")).all()


@pytest.mark.parametrize("name", NAMES)
def test_one_row_and_missing_classes(name):
    with pytest.warns(CalibrationWarning):
        one = make(name).fit(np.array([[1.0, 2.0, -1.0]]), [1])
    np.testing.assert_allclose(one.predict_proba(np.eye(3)[:, ::-1] * 2).sum(axis=1), 1)
    z, y = skewed(600, 20)
    z, y = z[y < 3], y[y < 3]
    fitted = make(name).fit(z, y)
    assert np.isfinite(fitted.predict_proba(z)).all()


def test_a_fit_that_harms_says_so():
    z, y = skewed(150, 30)
    with pytest.warns(CalibrationWarning, match="held-out nll worse"):
        make("dirichlet", strength=0.0).fit(z / 2 + np.eye(30)[0] * 1.5, y)


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
def test_extreme_logits(shared_data):
    with np.load(shared_data / "cifar10_extreme_logits.npz") as file:
        z, y = file["logits"], file["labels"]
    for name in NAMES:
        p = make(name).fit(z[:1000], y[:1000]).predict_proba(z[2000:])
        assert np.isfinite(p).all()
        assert nll(np.maximum(p, 1e-30), y[2000:]) < 2.3


@pytest.mark.parametrize("name", NAMES)
def test_merging_follows_the_rule_for_all_maps(name):
    check_merging(make(name))


def in_blocks(z, y, cuts):
    """A scan of rows that come in blocks."""
    edges = [0, *cuts, len(y)]
    return scan(lambda: ((z[a:b], y[a:b]) for a, b in pairwise(edges)))


def reported(fitted):
    report = fitted.fit_report_
    return [report.loss_before, report.loss_after, report.held_out_before, report.held_out_after, report.held_out_error]


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
@pytest.mark.parametrize("name", ["vector", "matrix", "dirichlet-odir"])
@pytest.mark.parametrize(("n", "k"), [(300, 4), (600, 40)])
def test_cross_validation_knows_neither_blocks_nor_order(name, n, k):
    z, y = skewed(n, k)
    plain = make(name, strength="cv").fit(z, y)
    order = np.random.default_rng(1).permutation(n)
    for other in (
        make(name, strength="cv").fit(in_blocks(z, y, [1, 1, 40, n // 2])),
        make(name, strength="cv").fit(z[order], y[order]),
    ):
        np.testing.assert_allclose(other.strength_, plain.strength_)
        np.testing.assert_allclose(other.predict_proba(z), plain.predict_proba(z), atol=1e-5)
        np.testing.assert_allclose(reported(other), reported(plain), rtol=1e-6)
        np.testing.assert_allclose(
            other.fit_report_.details["held_out"], plain.fit_report_.details["held_out"], rtol=1e-6
        )


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
@pytest.mark.parametrize("name", ["matrix", "dirichlet", "dirichlet-odir"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "k"), [(300, 40), (2000, 40), (300, 100), (5000, 100)])
def test_many_classes_know_weights_as_repetition_and_no_order(name, dtype, n, k):
    z, y = skewed(n, k, slope=3.0)
    z, truth = z.astype(dtype), skewed(400, k, seed=1, slope=3.0)[0].astype(dtype)
    order = np.random.default_rng(1).permutation(n)
    plain, turned = make(name).fit(z, y), make(name).fit(z[order], y[order])
    np.testing.assert_allclose(turned.predict_proba(truth), plain.predict_proba(truth), atol=1e-5)
    weighted = make(name).fit(z, y, sample_weight=np.full(n, 2.0))
    twice = make(name).fit(np.repeat(z, 2, axis=0), np.repeat(y, 2))
    np.testing.assert_allclose(weighted.predict_proba(truth), twice.predict_proba(truth), atol=1e-4)


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [5, 40])
@pytest.mark.parametrize("strength", ["evidence", "cv", 1.0])
def test_enormous_logits_end_in_a_map_that_is_no_worse(name, dtype, k, strength):
    rng = np.random.default_rng(k)
    z = (rng.standard_t(2, size=(200, k)) * 1e30).astype(dtype)
    y = np.where(rng.random(200) < 0.1, rng.integers(0, k, 200), z.argmax(axis=1))
    fitted = make(name, strength=strength).fit(z, y)
    assert np.isfinite(fitted.predict_proba(z)).all()
    assert np.isfinite(fitted.weights_).all()
    assert fitted.fit_report_.loss_after < fitted.fit_report_.loss_before


@pytest.mark.parametrize(("name", "count"), [("vector", 9), ("matrix", 21), ("dirichlet-odir", 21)])
def test_parameters_are_counted(name, count):
    z, y = skewed(200, 4)
    assert make(name).fit(z, y).n_parameters_ == count


@pytest.mark.parametrize("name", ["matrix-odir", "dirichlet-odir", "sms"])
def test_a_long_search_ends_where_the_order_of_rows_does_not_matter(name):
    """Naive Bayes in single precision: the search took 60 passes, and other orders ended 1e-3 apart."""
    x, y = make_gaussian_quantiles(n_samples=2500, n_features=6, n_classes=12, random_state=1)
    mixed = np.random.default_rng(2).permutation(len(y))
    x, y = x[mixed], y[mixed]
    p = GaussianNB().fit(x[:1250], y[:1250]).predict_proba(x[1250:]).astype(np.float32)
    y = y[1250:]
    order = np.random.default_rng(0).permutation(len(y))
    one = make(name).set_params(inputs="probabilities").fit(p, y)
    other = make(name).set_params(inputs="probabilities").fit(p[order], y[order])
    np.testing.assert_allclose(other.predict_proba(p), one.predict_proba(p), atol=1e-4)
    assert other.fit_report_.held_out_after == pytest.approx(one.fit_report_.held_out_after, abs=1e-5)


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
@pytest.mark.parametrize("regularisation", ["odir", "l2"])
@pytest.mark.parametrize("kind", [MatrixScaling, DirichletCalibration])
def test_a_class_that_no_row_of_a_fold_speaks_about_has_no_slope(kind, regularisation):
    """Its block of the curvature is zero and, with no penalty on what is its own, had no inverse: a LinAlgError."""
    z = np.array([[0, 0, -1], [-1, 0, 0], [-1, -1, 1], [0, -1, 1], [0, 0, 1.0]])
    w = np.array([3.8, 0.3, 0.6, 0.3, 0.6])
    fitted = kind(regularisation=regularisation, strength="cv", intercepts="origin")
    p = fitted.fit(z, np.array([1, 2, 2, 2, 2]), sample_weight=w).predict_proba(z)
    np.testing.assert_allclose(p.sum(axis=1), 1)
