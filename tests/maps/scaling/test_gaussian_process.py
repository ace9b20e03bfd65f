"""Gaussian-process calibration against its limits, a slow twin and its promises."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.gaussian_process.kernels import Matern

from calibrant import CalibrationWarning, GaussianProcessCalibration, TemperatureScaling, load, scan
from calibrant.maps.scaling.gaussian_process import _family


def overconfident(n=600, k=5, seed=0, factor=2.5):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k)) * 2
    return z * factor, (z + rng.gumbel(size=z.shape)).argmax(axis=1)


def test_tiny_variance_leaves_the_scores_alone():
    z, y = overconfident()
    gp = GaussianProcessCalibration(variance=1e-13).fit(z, y)
    assert_allclose(gp.predict_proba(z), softmax(z, axis=1), atol=1e-6)


def test_recovers_a_temperature():
    z, y = overconfident(4000)
    unseen, labels = overconfident(4000, seed=1)
    at = np.arange(len(labels)), labels
    gp, ts = GaussianProcessCalibration().fit(z, y), TemperatureScaling().fit(z, y)
    loss, best = (-np.log(m.predict_proba(unseen)[at]).mean() for m in (gp, ts))
    assert loss < best + 0.004


def test_equals_a_slow_twin_on_the_dense_posterior():
    z, y = overconfident(150, 3)
    gp = GaussianProcessCalibration(variance=0.5, length=1.0, points=6).fit(z, y)
    t = gp.points_[:-1]
    unit = gp.points_[-1] - gp.points_[-2]
    w = np.log1p(t / unit)
    r = np.sqrt(5) * np.abs(w[:, None] - w) / 1.0
    covariance = 0.5 * (np.outer(t, t) + (1 + r + r**2 / 3) * np.exp(-r) + 1e-8 * np.eye(len(t)))
    surprise = -log_softmax(z, axis=1)

    factor = np.linalg.cholesky(covariance)

    def objective(theta):
        g = np.interp(surprise, t, -t + factor @ theta)
        return -log_softmax(g, axis=1)[np.arange(len(y)), y].sum() + 0.5 * theta @ theta

    slow = minimize(objective, np.zeros(len(t)), method="BFGS", options={"gtol": 1e-5, "maxiter": 2000})
    fitted = np.linalg.solve(factor, gp.values_[0, :-1] + t)
    assert objective(fitted) <= slow.fun + 1e-6
    assert_allclose(fitted, slow.x, atol=2e-3)


def test_beyond_the_data_it_runs_parallel_to_the_identity():
    z, y = overconfident()
    gp = GaussianProcessCalibration().fit(z, y)
    assert_allclose(gp.values_[0, -1] - gp.values_[0, -2], gp.points_[-2] - gp.points_[-1])
    far = gp.points_[-1] * 2
    p = gp.predict_proba([[0.0, -far, -far - 3.0, -far - 5.0, -far]])
    assert_allclose(np.log(p[0, 1] / p[0, 2]), 3.0, rtol=1e-9)


def test_weight_two_is_the_row_twice_and_zero_is_absent():
    z, y = overconfident(300)
    weights = np.random.default_rng(3).integers(0, 3, len(y))
    a = GaussianProcessCalibration(points=10).fit(z, y, sample_weight=weights)
    b = GaussianProcessCalibration(points=10).fit(np.repeat(z, weights, axis=0), np.repeat(y, weights))
    assert a.kernel_ == b.kernel_
    assert_allclose(a.predict_proba(z), b.predict_proba(z), atol=1e-5)


def test_row_order_shift_and_log_probabilities_do_not_matter():
    z, y = overconfident(300)
    rng = np.random.default_rng(1)
    order = rng.permutation(len(y))
    answers = [
        GaussianProcessCalibration().fit(z, y).predict_proba(z),
        GaussianProcessCalibration().fit(z[order], y[order]).predict_proba(z),
        GaussianProcessCalibration().fit(z + rng.normal(size=(len(y), 1)) * 40, y).predict_proba(z + 7.0),
        GaussianProcessCalibration(inputs="probabilities").fit(softmax(z, axis=1), y).predict_proba(softmax(z, axis=1)),
    ]
    for other in answers[1:]:
        assert_allclose(other, answers[0], atol=1e-5)


@cache
def fitted():
    return GaussianProcessCalibration().fit(*overconfident(400))


@settings(max_examples=40, deadline=None)
@given(
    scores=st.sampled_from([(1, 2), (4, 5), (2, 60), (1, 1000)]).flatmap(
        lambda shape: hnp.arrays(
            np.float32,
            shape,
            elements=st.sampled_from([-1e4, -3.0, -0.5, 0.0, 0.5, float(np.float32(0.50000006)), 3.0, 1e4, -np.inf]),
        )
    ),
    wide=st.booleans(),
)
def test_worst_rows_get_distributions(scores, wide):
    z = scores.astype(np.float64) if wide else scores
    z[:, 0] = np.where(np.isneginf(z[:, 0]), 0, z[:, 0])  # one class must be possible
    p = fitted()._map(z)
    assert p.dtype == z.dtype
    assert np.isfinite(p).all()
    assert (p >= 0).all()
    assert_allclose(p.sum(axis=1), 1, atol=1e-5)
    assert (p[np.isneginf(z)] == 0).all()
    for row, answer in zip(z, p, strict=True):
        assert all(len(set(answer[row == value].tolist())) == 1 for value in set(row.tolist()))  # equal in, equal out


def test_one_row():
    with pytest.warns(CalibrationWarning):
        gp = GaussianProcessCalibration().fit([[1.0, 2.0, 0.0]], [0])
    assert_allclose(gp.predict_proba([[1.0, 1.0, 1.0], [3.0, 2.0, 1.0]]).sum(axis=1), 1)


def test_two_fits_give_the_same_bytes():
    z, y = overconfident(300)
    assert_array_equal(*(GaussianProcessCalibration().fit(z, y).values_ for _ in range(2)))


@pytest.mark.parametrize("name", ["cifar10_resnet110", "cifar10_extreme_logits", "cifar100_resnet50"])
def test_real_outputs_lose_log_loss(shared_data, name):
    stored = np.load(shared_data / f"{name}.npz")
    if "logits_val" in stored:
        z, y, unseen, labels = (stored[key] for key in ("logits_val", "labels_val", "logits_test", "labels_test"))
    else:
        z, y, unseen, labels = (stored[key][part::2] for part in (0, 1) for key in ("logits", "labels"))
    at, tiny = (np.arange(len(labels)), labels), np.float32(1e-38)
    gp, ts = GaussianProcessCalibration().fit(z, y), TemperatureScaling().fit(z, y)
    loss, other = (-np.log(m.predict_proba(unseen)[at] + tiny).mean() for m in (gp, ts))
    assert loss < 0.95 * other


@pytest.mark.parametrize("n", [700, 9000])
def test_blocks_and_order_do_not_matter(n):
    z, y = overconfident(n)
    whole = GaussianProcessCalibration().fit(z, y)
    order = np.random.default_rng(5).permutation(n)
    edges = [0, 0, 1, n // 7, n // 3, n]

    def batches():
        for a, b in pairwise(edges):
            yield z[order[a:b]], y[order[a:b]]

    streamed = GaussianProcessCalibration().fit(scan(batches))
    assert_allclose(streamed.predict_proba(z[:500]), whole.predict_proba(z[:500]), atol=1e-7)
    mine, other = whole.fit_report_, streamed.fit_report_
    assert_allclose(other.held_out_after, mine.held_out_after, rtol=1e-9)
    assert_allclose(other.held_out_error, mine.held_out_error, rtol=1e-6)
    assert other.iterations == mine.iterations


def test_its_values_are_counted():
    gp = GaussianProcessCalibration(points=10).fit(*overconfident(100))
    assert gp.n_parameters_ == 10


@pytest.mark.filterwarnings("error::RuntimeWarning", "ignore::calibrant.CalibrationWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-30, 1e5, 1e30])
def test_logits_of_any_size_end_in_a_finite_map_that_does_no_harm(dtype, scale):
    z, y = overconfident(200)
    mixed = z * 10.0 ** np.linspace(0, np.log10(scale), len(z))[:, None]
    one = z.copy()
    one[0, (y[0] + 1) % 5] = scale  # a single row that is absurdly sure, and wrong
    for scores in (z * scale, -z * scale, mixed, one):
        scores = scores.astype(dtype)
        gp = GaussianProcessCalibration().fit(scores, y)
        p = gp.predict_proba(scores)
        assert np.isfinite(p).all()
        assert_allclose(p.sum(axis=1), 1, atol=1e-5)
        assert gp.fit_report_.loss_after <= gp.fit_report_.loss_before * (1 + 1e-6)


def test_scores_of_a_huge_scale_get_the_answers_of_a_plain_one():
    z, y = overconfident(500)
    plain = TemperatureScaling().fit(z, y).fit_report_.loss_after
    assert GaussianProcessCalibration().fit(z * 1e20, y).fit_report_.loss_after < plain + 1e-3


def test_it_comes_back_from_its_file(tmp_path):
    z, y = overconfident(200)
    gp = GaussianProcessCalibration().fit(z, y)
    gp.save(tmp_path / "gp.calibrant")
    assert_array_equal(load(tmp_path / "gp.calibrant").predict_proba(z), gp.predict_proba(z))


def test_the_prior_is_a_matern_covariance_of_its_length():
    knots = np.array([0.0, 1.0, 3.0, 7.0, 9.0])
    bends = _family(knots, 0.5, 1.0, 2.0, 1.7).basis[:-1, 1:]
    wanted = 2.0 * Matern(length_scale=1.7, nu=2.5)(np.log1p(knots[:-1] / 0.5)[:, None])
    assert_allclose(bends @ bends.T, wanted, atol=1e-4)
