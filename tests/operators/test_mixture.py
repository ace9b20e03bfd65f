"""Mixtures: the weights are optimal, the promises follow from the parts, and ETS is a special case."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax

import calibrant
from calibrant import (
    BinwiseTemperatureScaling,
    CalibrantError,
    Chain,
    EnsembleTemperatureScaling,
    GaussianProcessCalibration,
    Identity,
    Mixture,
    OrderPreservingScaling,
    TemperatureScaling,
    Uniform,
)
from calibrant.operators._joint import _Profile
from calibrant.passes import Block


def noisy(n=400, k=4, seed=0, flipped=0.15):
    """Over-confident scores, and some labels that have nothing to do with them: all three parts of ETS are needed."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k)) * 2
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    return 2.5 * z, np.where(rng.random(n) < flipped, rng.integers(0, k, n), y)


def loss_of(p, y, loss):
    chosen = p[np.arange(len(y)), y]
    return -np.log(chosen).mean() if loss == "nll" else ((p**2).sum(axis=1) - 2 * chosen + 1).mean()


@pytest.mark.parametrize("loss", ["nll", "brier"])
def test_no_other_weights_are_better(loss):
    z, y = noisy()
    parts = [TemperatureScaling(), Identity(), Uniform(), OrderPreservingScaling()]
    mixture = Mixture(parts, loss=loss).fit(z, y)
    assert_allclose(mixture.weights_.sum(), 1)
    answers = np.stack([part._map(z) for part in mixture.parts_])
    best = loss_of(np.tensordot(mixture.weights_, answers, 1), y, loss)
    assert_allclose(best, mixture.fit_report_.loss_after, rtol=1e-9)
    others = np.random.default_rng(1).dirichlet(np.ones(4) * 0.5, size=300)
    others = np.vstack([np.eye(4), others, 0.99 * mixture.weights_ + 0.01 * others])
    assert best <= min(loss_of(np.tensordot(w, answers, 1), y, loss) for w in others) + 1e-10


@pytest.mark.parametrize("loss", ["nll", "brier"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("flipped", [0.0, 0.15])
def test_ensemble_temperature_scaling_is_a_special_case(loss, dtype, flipped):
    z, y = noisy(flipped=flipped)
    z = z.astype(dtype)
    fused = EnsembleTemperatureScaling(loss=loss).fit(z, y)
    joint = Mixture([TemperatureScaling(), Identity(), Uniform()], weights="joint", loss=loss).fit(z, y)
    assert_allclose(joint.fit_report_.loss_after, fused.fit_report_.loss_after, rtol=1e-6)
    assert_allclose(joint.predict_proba(z), fused.predict_proba(z), atol=2e-3)


@pytest.mark.parametrize("loss", ["nll", "brier"])
def test_joint_is_at_least_as_good_as_after(loss):
    z, y = noisy()
    parts = [TemperatureScaling(loss=loss), Identity(), Uniform()]
    after, joint = (Mixture(parts, weights=how, loss=loss).fit(z, y).fit_report_ for how in ("after", "joint"))
    alone = TemperatureScaling(loss=loss).fit(z, y).fit_report_
    assert joint.loss_after <= after.loss_after + 1e-9 <= alone.loss_after + 2e-9


@pytest.mark.parametrize("loss", ["nll", "brier"])
def test_the_profile_has_the_gradient_it_says(loss):
    z, y = noisy(80)
    sample = Block(z, y, np.random.default_rng(2).random(80), 4)
    profile = _Profile(sample, [None, softmax_rows, None], loss)
    at = np.array([-1.2, -0.3])
    _, gradient = profile(at)
    for j, step in enumerate(np.eye(2) * 1e-5):
        assert_allclose(gradient[j], (profile(at + step)[0] - profile(at - step)[0]) / 2e-5, rtol=1e-4, atol=1e-8)


def softmax_rows(z):
    return softmax(z, axis=1)


def test_two_temperatures_beat_one():
    rng = np.random.default_rng(3)
    z = rng.normal(size=(3000, 4)) * 2
    sharp = rng.random(3000) < 0.5
    y = (z * np.where(sharp, 4.0, 0.4)[:, None] + rng.gumbel(size=z.shape)).argmax(axis=1)
    two = Mixture([TemperatureScaling(), TemperatureScaling()], weights="joint").fit(z, y)
    one = TemperatureScaling().fit(z, y)
    assert two.fit_report_.converged
    assert two.fit_report_.loss_after < one.fit_report_.loss_after - 0.01
    assert_allclose(sorted(part.temperature_ for part in two.parts_), [0.25, 2.5], rtol=0.35)


def test_one_part_alone_is_that_part():
    z, y = noisy()
    assert_allclose(
        Mixture([TemperatureScaling()]).fit(z, y).predict_proba(z), TemperatureScaling().fit(z, y).predict_proba(z)
    )


def test_parts_are_cloned_and_compose():
    z, y = noisy()
    part = TemperatureScaling()
    nested = Chain([Mixture([part, Mixture([Uniform(), Identity()])]), TemperatureScaling()]).fit(z, y)
    assert not hasattr(part, "temperature_")
    assert_allclose(nested.predict_proba(z).sum(axis=1), 1)


def test_stacking_distrusts_a_part_that_memorises():
    z, y = noisy(300)

    class Memory(calibrant.Calibrator):
        _traits = calibrant.Identity._traits

        def __init__(self, *, inputs="logits", classes=None):
            self.inputs, self.classes = inputs, classes

        def _fit_rows(self, sample):
            self.seen_ = {row.tobytes(): label for row, label in zip(sample.logits, sample.labels, strict=True)}
            return Identity()._fit(sample)

        def _map(self, logits):
            p = np.full_like(logits, 1.0 / logits.shape[1])
            for i, row in enumerate(logits):
                if row.tobytes() in self.seen_:
                    p[i] = np.eye(logits.shape[1])[self.seen_[row.tobytes()]]
            return p

    parts = [Memory(), TemperatureScaling()]
    sample = Block(z, y, None, 4)
    naive, stacked = Mixture(parts), Mixture(parts, cv=5)
    naive.fit_sample(sample)
    stacked.fit_sample(sample)
    assert naive.weights_[0] > 0.9
    assert stacked.weights_[0] < 0.3


def test_traits_follow_from_the_parts():
    assert Mixture([TemperatureScaling(), Uniform()]).traits.preserves == "ranking"
    assert Mixture([TemperatureScaling(), GaussianProcessCalibration()]).traits.preserves == "nothing"
    assert Mixture([TemperatureScaling(), Uniform()]).traits.calibrates == "top label"
    assert Mixture([TemperatureScaling(), Uniform()]).traits.parameters == "1 + 0 + 1"


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from([-1e4, -2.0, 0.0, 0.5, 0.50000006, 3.0, 1e4]), min_size=4, max_size=4), st.booleans())
def test_worst_rows_keep_their_ranking(fitted, row, wide):
    z = np.array([row], dtype=np.float64 if wide else np.float32)
    p = fitted._map(z)
    assert p.dtype == z.dtype
    assert_allclose(p.sum(), 1, atol=1e-6)
    assert (np.diff(p[0][np.argsort(z[0], kind="stable")]) >= 0).all()
    assert_array_equal(p.argmax(axis=1), z.argmax(axis=1))


@pytest.fixture(scope="module")
def fitted():
    z, y = noisy()
    parts = [TemperatureScaling(), BinwiseTemperatureScaling(), OrderPreservingScaling(), Uniform()]
    mixture = Mixture(parts).fit(z, y)
    mixture.weights_ = np.array([0.3, 0.3, 0.3, 0.1])
    return mixture


@pytest.mark.parametrize("how", ["after", "joint"])
@pytest.mark.parametrize("loss", ["nll", "brier"])
def test_weight_two_is_the_row_twice_and_order_does_not_matter(how, loss):
    z, y = noisy(200)
    rng = np.random.default_rng(5)
    weights, order = rng.integers(0, 3, len(y)), rng.permutation(len(y))
    make = lambda: Mixture([TemperatureScaling(), Identity(), Uniform()], weights=how, loss=loss)  # noqa: E731
    a = make().fit(z, y, sample_weight=weights)
    b = make().fit(np.repeat(z, weights, axis=0), np.repeat(y, weights))
    c = make().fit(z[order], y[order], sample_weight=weights[order])
    for other in (b, c):
        assert_allclose(other.predict_proba(z), a.predict_proba(z), atol=2e-4)


def test_joint_refuses_parts_it_cannot_refit():
    z, y = noisy()
    with pytest.raises(CalibrantError, match=r"joint.*cannot refit.*BinwiseTemperatureScaling.*after"):
        Mixture([TemperatureScaling(), BinwiseTemperatureScaling()], weights="joint").fit(z, y)


@pytest.mark.parametrize("bad", [{"weights": "together"}, {"loss": "hinge"}, {"cv": 1}, {"parts": []}, {"parts": [3]}])
def test_bad_parameters_are_named(bad):
    z, y = noisy(50)
    with pytest.raises(CalibrantError, match=next(iter(bad))):
        Mixture(**{"parts": [Identity()], **bad}).fit(z, y)


def test_saves_loads_and_has_a_name(tmp_path):
    z, y = noisy()
    mixture = calibrant.make("ts + identity + uniform", weights="joint", loss="brier").fit(z, y)
    assert isinstance(mixture, Mixture)
    mixture.save(tmp_path / "m.calibrant")
    assert_array_equal(calibrant.load(tmp_path / "m.calibrant").predict_proba(z), mixture.predict_proba(z))
