import json
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax, softmax
from tests.conftest import overconfident

from calibrant import CalibrationWarning, EnsembleTemperatureScaling, TemperatureScaling, make


def loss_at(z, y, t, loss):
    log_p = log_softmax(z.astype(np.float64) / t, axis=1)
    if loss == "nll":
        return -log_p[np.arange(len(y)), y].mean()
    return ((np.exp(log_p) - np.eye(z.shape[1])[y]) ** 2).sum(1).mean()


@settings(max_examples=25, deadline=None)
@given(
    st.integers(20, 200),
    st.integers(2, 12),
    st.integers(0, 10**6),
    st.floats(-3, 3),
    st.floats(-1e3, 1e3),
    st.sampled_from(["nll", "brier"]),
)
def test_finds_the_global_optimum_at_any_scale_and_shift(n, k, seed, decades, shift, loss):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k)) * 2
    y = np.where(rng.random(n) < 0.7, (z + rng.gumbel(size=z.shape)).argmax(1), rng.integers(k, size=n))
    y[:2] = [0, 1]
    z = z * 10.0**decades + shift
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        t = TemperatureScaling(loss=loss).fit(z, y).temperature_
    grid = min(loss_at(z, y, s, loss) for s in 10.0**decades * np.geomspace(1e-3, 1e3, 400))
    assert loss_at(z, y, t, loss) <= grid + 1e-9


def test_derivative_is_zero_at_the_answer(problem):
    z, y = problem
    t = TemperatureScaling().fit(z, y).temperature_
    h = 1e-4
    assert abs(loss_at(z, y, t * (1 + h), "nll") - loss_at(z, y, t * (1 - h), "nll")) < 1e-9
    assert abs(t - 2.5) < 0.4


def test_temperatures_from_a_thousandth_to_a_thousand(problem):
    z, y = problem
    t = TemperatureScaling().fit(z, y).temperature_
    for factor in (1e-3 / 2.5, 1.0, 1e3 / 2.5):
        assert TemperatureScaling().fit(z * factor, y).temperature_ == pytest.approx(t * factor, rel=1e-6)
        single = TemperatureScaling().fit((z * factor).astype(np.float32), y).temperature_
        assert single == pytest.approx(t * factor, rel=1e-4)


def test_separable_rows_end_at_a_finite_temperature_with_a_warning():
    z = np.eye(4)[[0, 1, 2, 3] * 5] * 3
    with pytest.warns(CalibrationWarning, match="T = 0"):
        cal = TemperatureScaling().fit(z, [0, 1, 2, 3] * 5)
    assert 0 < cal.temperature_ < 1
    assert (1 - cal.predict_proba(z).max(axis=1)).sum() == pytest.approx(0.5, rel=0.02)  # half an error of all rows
    assert cal.fit_report_.at_bound == ("temperature_",)
    assert np.isfinite(cal.predict_proba(z)).all()


def test_an_error_by_a_hair_does_not_make_the_rest_certain():
    """One error with a margin of 0.001 among rows with margins of 3: the loss alone would take T to about 0.002."""
    z = np.array([[0.0, 3.0], [3.0, 0.0]] * 30 + [[0.001, 0.0]])
    for map_ in (TemperatureScaling(), EnsembleTemperatureScaling()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)
            sure = map_.fit(z, [1, 0] * 30 + [1]).predict_proba([[0.0, 3.0]])[0, 1]
        assert 0.99 < sure < 1 - 1e-6


def test_sure_scores_without_an_error_are_left_alone():
    """Fewer than half an error was expected, and none was seen: no reason to be surer still, nor to doubt."""
    z = np.array([[0.0, 9.0], [9.0, 0.0]] * 50)
    with pytest.warns(CalibrationWarning, match="half an error"):
        assert TemperatureScaling().fit(z, [1, 0] * 50).temperature_ == pytest.approx(1.0)


def test_scores_against_the_labels_end_at_a_finite_temperature_with_a_warning(problem):
    z, y = problem
    with pytest.warns(CalibrationWarning, match="infinite"):
        cal = TemperatureScaling().fit(-z, y)
    assert np.isfinite(cal.temperature_)
    np.testing.assert_allclose(cal.predict_proba(z), 1 / z.shape[1], atol=1e-3)


def test_weights_are_repetitions_and_zero_is_absence(problem):
    z, y = problem
    w = np.tile([1, 2, 0, 3], len(y) // 4).astype(float)
    repeated = np.repeat(np.arange(len(y)), w.astype(int))
    weighted = TemperatureScaling().fit(z, y, sample_weight=w).temperature_
    assert weighted == pytest.approx(TemperatureScaling().fit(z[repeated], y[repeated]).temperature_, rel=1e-8)


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
def test_weights_are_repetitions_also_where_the_temperature_ends_at_a_bound():
    z = np.random.default_rng(3).normal(size=(60, 3)) * np.geomspace(0.1, 10, 60)[:, None]
    w = np.arange(60) % 4 + 1.0
    twice = np.repeat(np.arange(60), w.astype(int))
    y = z.argmin(axis=1)
    weighted = TemperatureScaling().fit(z, y, w)
    assert weighted.fit_report_.at_bound
    assert weighted.temperature_ == pytest.approx(TemperatureScaling().fit(z[twice], y[twice]).temperature_, rel=1e-12)


def test_probabilities_and_logits_of_one_model_agree(problem):
    z, y = problem
    from_probabilities = TemperatureScaling(inputs="probabilities").fit(softmax(z, axis=1), y).temperature_
    assert from_probabilities == pytest.approx(TemperatureScaling().fit(z, y).temperature_, rel=1e-8)


def test_large_samples_take_the_pilot_and_reach_the_same_optimum():
    rng = np.random.default_rng(3)
    z = rng.normal(size=(20_000, 8)) * 2
    y = (0.4 * z + rng.gumbel(size=z.shape)).argmax(1)
    for loss in ("nll", "brier"):
        t = TemperatureScaling(loss=loss).fit(z, y).temperature_
        best = min(loss_at(z, y, s, loss) for s in np.geomspace(0.5, 10, 200))
        assert loss_at(z, y, t, loss) <= best + 1e-9


def test_held_out_losses_are_those_of_other_rows():
    """Akaike's estimate: on average over samples the loss that other rows show; the rows of the fit show too little."""
    other, truth = overconfident(50_000, 4, seed=999)
    off, flattered = [], []
    for seed in range(60):
        z, y = overconfident(100, 4, seed=seed)
        fitted = TemperatureScaling().fit(z, y)
        raw = loss_at(z, y, 1.0, "nll")
        assert fitted.fit_report_.held_out_before == pytest.approx(raw)
        # The gain, not the loss: how hard the rows of a sample are is the same before and after.
        gain = loss_at(other, truth, 1.0, "nll") - loss_at(other, truth, fitted.temperature_, "nll")
        off.append(raw - fitted.fit_report_.held_out_after - gain)
        flattered.append(raw - fitted.fit_report_.loss_after - gain)
    assert abs(np.mean(off)) < 2 * np.std(off) / np.sqrt(60)
    assert np.mean(flattered) - np.mean(off) == pytest.approx(1 / 100)


def test_agrees_with_the_reference(shared_data):
    for case in ("k10", "k10m"):
        z = np.load(shared_data / "oracle" / f"multi_{case}.npz")
        reference = json.loads((shared_data / "oracle" / f"mixnmatch_{case}.json").read_text())
        for loss, key in (("nll", "ce"), ("brier", "mse")):
            t = make("ts", loss=loss).fit(z["logits_cal"], z["labels_cal"]).temperature_
            assert t == pytest.approx(reference[f"ts_{key}"]["t_bounded_brent_1e-12"], rel=1e-4)
