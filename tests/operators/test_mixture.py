"""Mixtures: the weights are optimal, the promises follow from the parts, and ETS is a special case."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

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
from calibrant.fits.likely import LossMoments, likely_best
from calibrant.fits.mixing import Mixing
from calibrant.fits.mixture_search import best_weights
from calibrant.passes import Block, in_memory
from calibrant.scanning import scanned as scanned_data


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


@pytest.mark.parametrize("streamed", [False, True])
def test_two_temperatures_beat_one(monkeypatch, streamed):
    monkeypatch.setattr(scanned_data, "HELD", 0)  # rows of a scan are not held in memory
    rng = np.random.default_rng(3)
    z = rng.normal(size=(3000, 4)) * 2
    sharp = rng.random(3000) < 0.5
    y = (z * np.where(sharp, 4.0, 0.4)[:, None] + rng.gumbel(size=z.shape)).argmax(axis=1)
    given = (in_blocks(z, y),) if streamed else (z, y)
    two = Mixture([TemperatureScaling(), TemperatureScaling()], weights="joint").fit(*given)
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
            return Identity()._fit(in_memory(sample))

        def _map(self, logits):
            p = np.full_like(logits, 1.0 / logits.shape[1])
            for i, row in enumerate(logits):
                if row.tobytes() in self.seen_:
                    p[i] = np.eye(logits.shape[1])[self.seen_[row.tobytes()]]
            return p

    parts = [Memory(), TemperatureScaling()]
    data = in_memory(Block(z, y, None, 4))
    naive, stacked = Mixture(parts), Mixture(parts, cv=5)
    naive.fit_data(data)
    stacked.fit_data(data)
    assert naive.weights_[0] > 0.9
    assert stacked.weights_[0] < 0.3
    likely = Mixture(parts, weights="likely", cv=5)
    report = likely.fit_data(data)
    assert [type(part) for part in likely.parts_] == [TemperatureScaling]
    alone = TemperatureScaling().fit(z, y).fit_report_
    assert report.held_out_after == pytest.approx(alone.held_out_after, abs=2 * alone.held_out_error)


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
def test_a_blend_is_no_worse_than_its_parts_on_other_rows():
    """Weighed by held-out rows, maps of every kind together lose nothing to the best of them."""
    z, y = noisy(600)
    other, truth = noisy(20_000, seed=1)
    losses = {}
    for name in ("blend", "ets", "irm", "irova", "svs", "sms", "bbq", "identity"):
        p = calibrant.make(name).fit(z, y).predict_proba(other)
        losses[name] = -np.log(p[np.arange(len(truth)), truth]).mean()
    assert losses["blend"] <= 1.01 * min(losses.values())


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


@pytest.mark.parametrize(
    "bad",
    [
        {"weights": "together"},
        {"weights": (0.5, 0.5)},
        {"weights": (2.0,)},
        {"weights": ("all",)},
        {"weights": "likely", "loss": "brier"},
        {"loss": "hinge"},
        {"cv": 1},
        {"parts": []},
        {"parts": [3]},
    ],
)
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


def in_blocks(z, y, weights=None):
    cuts = [0, 1, 1, 40, 100, len(y)]
    pieces = [slice(a, b) for a, b in pairwise(cuts)]
    if weights is None:
        return calibrant.scan(lambda: ((z[some], y[some]) for some in pieces))
    return calibrant.scan(lambda: ((z[some], y[some], weights[some]) for some in pieces))


@pytest.mark.parametrize("how", ["after", "joint", "likely", (0.5, 0.3, 0.2)])
def test_a_scan_gives_the_same_mixture(how):
    z, y = noisy(300)
    make = lambda: Mixture([TemperatureScaling(), Identity(), Uniform()], weights=how)  # noqa: E731
    whole, parts = make().fit(z, y), make().fit(in_blocks(z, y))
    assert_allclose(parts.predict_proba(z), whole.predict_proba(z), atol=1e-6)
    assert_allclose(parts.fit_report_.loss_after, whole.fit_report_.loss_after, rtol=1e-9)


def test_a_scan_gives_the_same_stacked_mixture():
    z, y = noisy(300)
    make = lambda: Mixture([TemperatureScaling(), Identity(), Uniform()], cv=3)  # noqa: E731
    assert_allclose(make().fit(in_blocks(z, y)).predict_proba(z), make().fit(z, y).predict_proba(z), atol=1e-6)


def test_given_weights_are_used():
    z, y = noisy()
    mixture = Mixture([TemperatureScaling(), Uniform()], weights=(0.9, 0.1)).fit(z, y)
    expected = 0.9 * TemperatureScaling().fit(z, y).predict_proba(z) + 0.1 / 4
    assert_allclose(mixture.predict_proba(z), expected, rtol=1e-12)
    assert mixture.n_parameters_ == 1


def test_likely_weights_follow_the_rule_and_leave_out_the_hopeless():
    z, y = noisy(3000)
    mixture = Mixture([Uniform(), TemperatureScaling(), EnsembleTemperatureScaling()], weights="likely").fit(z, y)
    assert [type(part) for part in mixture.parts_] == [EnsembleTemperatureScaling]
    close = Mixture([TemperatureScaling(), OrderPreservingScaling()], weights="likely").fit(*noisy(600, flipped=0.0))
    z, y = noisy(600, flipped=0.0)
    alone = [TemperatureScaling().fit(z, y), OrderPreservingScaling().fit(z, y)]
    losses = np.stack([-np.log(part.predict_proba(z)[np.arange(600), y]) for part in alone], axis=1)
    costs = np.array([part.fit_report_.details["effective_parameters"] for part in alone])
    assert_allclose(close.weights_, likely_best(LossMoments.of(losses, np.ones(600)), costs), rtol=1e-6)
    assert len(close.weights_) == 2


class Counted(TemperatureScaling):
    """Counts how often it is fitted and asked."""

    fits = asked = 0

    def _fit(self, data):
        Counted.fits += 1
        return super()._fit(data)

    def _map_logits(self, logits):
        Counted.asked += 1
        return super()._map_logits(logits)


def test_chains_share_the_fit_and_the_answer_of_their_first_link():
    z, y = noisy(200)
    sample = in_memory(Block(z, y, None, 4))
    parts = [Chain([Counted(), TemperatureScaling()]), Chain([Counted(), OrderPreservingScaling()]), Identity()]
    Counted.fits = 0
    mixture = Mixture(parts)
    mixture.fit_data(sample)
    assert Counted.fits == 1
    assert mixture.parts_[0].parts_[0] is mixture.parts_[1].parts_[0]
    mixture.weights_ = np.array([0.3, 0.3, 0.4])
    Counted.asked = 0
    answer = mixture._map(z)
    assert Counted.asked == 1
    assert_allclose(answer, sum(w * p._map(z) for w, p in zip([0.3, 0.3, 0.4], mixture.parts_, strict=True)))
    other = Mixture([Chain([Counted(), Identity()]), Chain([Counted(loss="brier"), Identity()])])
    Counted.fits = 0
    other.fit_data(sample)
    assert Counted.fits == 2


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")  # the curve alone harms, and says so
def test_a_link_that_does_not_pay_is_not_followed():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(500, 3))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)  # nothing to correct
    bent = Chain([OrderPreservingScaling(temperature=1.0), TemperatureScaling()])
    mixture = Mixture([Identity(), bent], weights="likely").fit(z, y)
    assert [type(part) for part in mixture.parts_] == [Identity]
    only = Mixture([bent], weights="likely").fit(z, y)  # where there is nothing else it must do
    assert len(only.parts_) == 1


def test_many_parts_take_no_longer_than_few_passes():
    z, y = noisy(300)
    temperatures = np.geomspace(0.2, 20, 18)
    mixing = Mixing(tuple((1 / temperatures).tolist()), "nll")
    found = best_weights([(in_memory(Block(z, y, None, 4)), mixing)])
    assert found.converged
    assert found.passes < 30
