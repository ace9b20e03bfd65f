import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from calibrant import EnsembleTemperatureScaling, TemperatureScaling, make


def loss_of(p, y, loss):
    rows = np.arange(len(y))
    return -np.log(p[rows, y]).mean() if loss == "nll" else ((p - np.eye(p.shape[1])[y]) ** 2).sum(1).mean()


def mixed_problem(n, k, seed):
    """Labels from a mixture of a sharp, a plain and a uniform forecast, so that no weight is degenerate."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k)) * 2.5
    p = 0.5 * softmax(z / 2.5, axis=1) + 0.35 * softmax(z, axis=1) + 0.15 / k
    return z, (p.cumsum(1) > rng.random((n, 1))).argmax(1)


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")  # few rows may tell that it harms on others
@settings(max_examples=15, deadline=None)
@given(st.integers(60, 300), st.integers(2, 8), st.integers(0, 10**6), st.sampled_from(["nll", "brier"]))
def test_never_worse_than_temperature_scaling_on_its_own_data(n, k, seed, loss):
    z, y = mixed_problem(n, k, seed)
    y[:2] = [0, 1]
    ets = EnsembleTemperatureScaling(loss=loss).fit(z, y)
    ts = TemperatureScaling(loss=loss).fit(z, y)
    assert loss_of(ets.predict_proba(z), y, loss) <= loss_of(ts.predict_proba(z), y, loss) + 1e-10
    assert ets.weights_.min() >= 0
    assert ets.weights_.sum() == pytest.approx(1)


@pytest.mark.parametrize("loss", ["nll", "brier"])
@pytest.mark.parametrize("seed", [0, 1])
def test_no_point_of_a_dense_grid_is_better(loss, seed):
    z, y = mixed_problem(400, 5, seed)
    ets = EnsembleTemperatureScaling(loss=loss).fit(z, y)
    ours = loss_of(ets.predict_proba(z), y, loss)
    b, u = softmax(z, axis=1), np.full_like(z, 1 / z.shape[1])
    simplex = [(i / 20, j / 20, 1 - (i + j) / 20) for i in range(21) for j in range(21 - i)]
    for t in np.geomspace(0.1, 20, 60):
        a = softmax(z / t, axis=1)
        for w in simplex:
            assert ours <= loss_of(w[0] * a + w[1] * b + w[2] * u + 1e-300, y, loss) + 1e-9


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
@pytest.mark.parametrize("seed", [20, 26, 30, 38])
def test_every_order_of_the_rows_leads_to_one_optimum(seed):
    """Where the weight of the scores as they are was 1e-16 by rounding, not zero, the search could not go on."""
    rng = np.random.default_rng(seed)
    odds = rng.normal(-3, 1.2, 400)
    y = (rng.random(400) < 0.97 / (1 + np.exp(-1.15 * odds - 0.2)) + 0.01).astype(int)
    z = np.column_stack([np.zeros(400), odds])
    orders = [np.random.default_rng(s).permutation(400) for s in range(6)]
    fits = [EnsembleTemperatureScaling().fit(z[order], y[order]) for order in orders]
    losses = [fitted.fit_report_.loss_after for fitted in fits]
    assert max(losses) - min(losses) < 1e-9
    answers = np.array([fitted.predict_proba(z) for fitted in fits])
    assert np.ptp(answers, axis=0).max() < 1e-5


@pytest.mark.parametrize("loss", ["nll", "brier"])
def test_large_samples_take_the_pilot_and_stay_optimal(loss):
    z, y = mixed_problem(8000, 6, 5)
    ets = EnsembleTemperatureScaling(loss=loss).fit(z, y)
    small_step = [1.02, 1 / 1.02]
    ours = loss_of(ets.predict_proba(z), y, loss)
    w = ets.weights_
    for factor in small_step:
        p = w[0] * softmax(z / (ets.temperature_ * factor), axis=1) + w[1] * softmax(z, axis=1) + w[2] / z.shape[1]
        assert ours <= loss_of(p, y, loss) + 1e-10
    assert ours < loss_of(TemperatureScaling(loss=loss).fit(z, y).predict_proba(z), y, loss)


def test_the_map_is_the_formula():
    z, y = mixed_problem(300, 4, 2)
    ets = EnsembleTemperatureScaling().fit(z, y)
    w, t = ets.weights_, ets.temperature_
    expected = w[0] * softmax(z / t, axis=1) + w[1] * softmax(z, axis=1) + w[2] / 4
    np.testing.assert_allclose(ets.predict_proba(z), expected, rtol=1e-12)


def test_weights_are_repetitions_and_held_out_loss_is_filled_in():
    z, y = mixed_problem(300, 4, 3)
    count = np.tile([1, 2, 0], 100)
    repeated = np.repeat(np.arange(300), count)
    for loss in ("nll", "brier"):
        a = EnsembleTemperatureScaling(loss=loss).fit(z, y, sample_weight=count)
        b = EnsembleTemperatureScaling(loss=loss).fit(z[repeated], y[repeated])
        np.testing.assert_allclose(a.predict_proba(z), b.predict_proba(z), atol=2e-5)
        assert a.fit_report_.held_out_after is not None
        assert a.fit_report_.held_out_after >= a.fit_report_.loss_after - 1e-6


def test_loss_is_at_most_the_reference(shared_data):
    for case in ("k10", "k10m"):
        z = np.load(shared_data / "oracle" / f"multi_{case}.npz")
        reference = json.loads((shared_data / "oracle" / f"mixnmatch_{case}.json").read_text())
        for loss, key in (("nll", "ce"), ("brier", "mse")):
            p = make("ets", loss=loss).fit(z["logits_cal"], z["labels_cal"]).predict_proba(z["logits_cal"])
            scale = 1 if loss == "nll" else 10  # theirs averages the squares over classes
            assert loss_of(p, z["labels_cal"], loss) / scale <= reference[f"ets_{key}"]["loss_at_w"] + 1e-9
