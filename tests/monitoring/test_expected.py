"""Performance without labels: against labels drawn from the probabilities, under shift of the inputs, with weights."""

import warnings

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.metrics import confusion_matrix, log_loss, roc_auc_score

from calibrant import CalibrantError, CalibrationWarning, MultiLabel, PlattScaling, estimate_performance, make


def fit(map_, *data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return map_.fit(*data)


def binary(n, shift, seed):
    rng = np.random.default_rng(seed)
    odds = rng.normal(size=n) * 2 + shift
    return expit(2 * odds), (rng.random(n) < expit(odds)).astype(int)


def test_true_under_covariate_shift():
    map_ = fit(make("platt", inputs="probabilities"), *binary(20_000, 0.0, 0))
    inside = 0
    for seed in range(20):
        p, y = binary(1500, 1.5, seed + 1)
        found = estimate_performance(map_, p)
        q = map_.predict_proba(p)
        truth = {
            "accuracy": np.mean(map_.predict(p) == y),
            "log_loss": log_loss(y, q),
            "brier": np.mean(((q - np.eye(2)[y]) ** 2).sum(axis=1)),
            "auroc": roc_auc_score(y, q[:, 1]),
        }
        for name, value in truth.items():
            figure = getattr(found, name)
            inside += figure.low <= value <= figure.high
        shares = confusion_matrix(y, map_.predict(p)) / len(y)
        assert np.abs(found.confusion - shares).max() < 0.05
    assert inside >= 68  # of 80, at 95 % each, with a map that is itself estimated


def test_the_labels_of_the_fit_count_too():
    """With ten rows for each of the map's, the chance of these rows' labels alone held half of the samples."""
    inside = np.zeros(4)
    for seed in range(40):
        map_ = fit(make("platt", inputs="probabilities"), *binary(200, 0.0, 2 * seed))
        p, y = binary(2000, 0.0, 2 * seed + 1)
        found, q = estimate_performance(map_, p), map_.predict_proba(p)
        truths = np.mean(map_.predict(p) == y), log_loss(y, q), roc_auc_score(y, q[:, 1])
        shares = confusion_matrix(y, map_.predict(p)) / len(y)
        held = [
            f.low <= t <= f.high for f, t in zip((found.accuracy, found.log_loss, found.auroc), truths, strict=True)
        ]
        inside += [*held, np.mean((found.confusion_low <= shares) & (shares <= found.confusion_high))]
    assert (inside >= 34).all(), inside  # 85 %: 95 % less three standard errors


def test_many_classes_by_hand():
    p = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])
    found = estimate_performance(fit_identity(p), p)
    assert found.accuracy.value == pytest.approx(0.65)
    assert found.log_loss.value == pytest.approx(-(p * np.log(p)).sum() / 2)
    np.testing.assert_allclose(found.confusion[:, 0], p[0] / 2)
    np.testing.assert_allclose(found.confusion[:, 2], p[1] / 2)
    assert found.auroc is None


def fit_identity(p):
    return fit(
        make("identity", inputs="probabilities"), softmax(np.eye(3)[np.arange(30) % 3], axis=1), np.arange(30) % 3
    )


def test_ties_count_a_half():
    map_ = fit(make("identity", inputs="probabilities"), *binary(100, 0.0, 0))
    assert estimate_performance(map_, np.full(50, 0.3)).auroc.value == pytest.approx(0.5)


def test_weights_say_how_many_rows_they_leave():
    map_ = fit(make("identity", inputs="probabilities"), *binary(500, 0.0, 0))
    p, _ = binary(200, 0.0, 1)
    with pytest.warns(CalibrationWarning, match="effective rows"):
        few = estimate_performance(map_, p, sample_weight=np.r_[np.full(10, 1000.0), np.full(190, 0.001)])
    assert few.effective_rows == pytest.approx(10, rel=0.01)
    assert "effective" in str(few)
    with pytest.raises(CalibrantError, match="needs a fitted map"):
        estimate_performance(object(), p)


def test_labels_that_do_not_exclude_each_other_are_refused():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(60, 3))
    labels = (rng.random((60, 3)) < expit(z)).astype(int)
    map_ = fit(MultiLabel(PlattScaling()), z, labels)
    with pytest.raises(CalibrantError, match="exclude each other"):
        estimate_performance(map_, z)


@pytest.mark.filterwarnings("error")
def test_rows_that_all_have_one_loss_have_an_interval_of_no_width():
    """Uniform probabilities: a variance that rounding leaves below zero is zero."""
    z = np.random.default_rng(0).normal(size=(50, 3))
    for k in (2, 3):
        found = estimate_performance(make("uniform").fit(z[:, :k], np.arange(50) % k), z[:1, :k])
        assert found.log_loss.value == pytest.approx(np.log(k))
        assert found.log_loss.low == pytest.approx(found.log_loss.high, abs=1e-7)
