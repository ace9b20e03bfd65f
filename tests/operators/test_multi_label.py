"""MultiLabel: events that may happen together, missing outcomes, sharing, refusals."""

import warnings

import numpy as np
import pytest
from scipy.special import expit

from calibrant import CalibrantError, CalibrationWarning, Isotonic, MultiLabel, PlattScaling, load


def fit(map_, *data, **keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return map_.fit(*data, **keywords)


def drawn(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    odds = rng.normal(size=(n, 3)) * 2 - 1
    y = (rng.random((n, 3)) < expit(0.5 * odds + [0.0, 1.0, -1.0])).astype(float)
    return odds, y


def test_each_event_has_its_own_map():
    odds, y = drawn()
    map_ = fit(MultiLabel(PlattScaling()), odds, y)
    alone = fit(PlattScaling(), np.stack([np.zeros(3000), odds[:, 1]], axis=1), y[:, 1].astype(int))
    two = np.stack([np.zeros(3000), odds[:, 1]], axis=1)
    np.testing.assert_allclose(map_.predict_marginals(odds)[:, 1], alone.predict_proba(two)[:, 1], atol=1e-9)
    truth = expit(0.5 * odds + [0.0, 1.0, -1.0])
    assert np.abs(map_.predict_marginals(odds) - truth).mean() < 0.03
    assert (map_.predict_proba(odds).sum(axis=1) > 1.2).any()
    assert set(np.unique(map_.predict(odds))) == {0, 1}


def test_unknown_outcomes_play_no_part():
    odds, y = drawn()
    some = y.copy()
    some[1000:, 0] = np.nan
    map_ = fit(MultiLabel(PlattScaling()), odds, some)
    fewer = fit(PlattScaling(), np.stack([np.zeros(1000), odds[:1000, 0]], axis=1), y[:1000, 0].astype(int))
    np.testing.assert_allclose(map_.maps_[0].coefficients_, fewer.coefficients_)
    np.testing.assert_array_equal(map_.labelled_, [1000, 3000, 3000])


def test_sharing_weights_and_saving(tmp_path):
    odds, y = drawn(400)
    shared = fit(MultiLabel(Isotonic(), share="all"), odds, y)
    assert len(shared.maps_) == 1
    w = np.random.default_rng(0).integers(0, 3, 400)
    weighed = fit(MultiLabel(PlattScaling()), odds, y, sample_weight=w)
    copied = fit(MultiLabel(PlattScaling()), np.repeat(odds, w, axis=0), np.repeat(y, w, axis=0))
    np.testing.assert_allclose(weighed.predict_marginals(odds), copied.predict_marginals(odds), atol=1e-7)
    shared.save(tmp_path / "map")
    np.testing.assert_array_equal(load(tmp_path / "map").predict_marginals(odds), shared.predict_marginals(odds))


def test_probabilities_of_exactly_zero_and_one():
    rng = np.random.default_rng(0)
    p = rng.integers(0, 6, size=(500, 2)) / 5
    y = (rng.random((500, 2)) < 0.1 + 0.8 * p).astype(float)
    map_ = fit(MultiLabel(PlattScaling(), inputs="probabilities"), p, y)
    q = map_.predict_marginals(np.array([[0.0, 1e-300], [1e-9, 1.0]]))
    assert ((q > 0) & (q < 1)).all()
    alone = map_.predict_marginals(np.array([[0.0, 1e-300]]))
    np.testing.assert_array_equal(alone[0], q[0])


def test_refusals():
    odds, y = drawn(50)
    for bad, words in (
        (y[:, :2], "column for each event"),
        (y + 1, "0, 1 or NaN"),
        (np.full(y.shape, np.nan), "no known"),
    ):
        with pytest.raises(CalibrantError, match=words):
            MultiLabel(PlattScaling()).fit(odds, bad)
    with pytest.raises(CalibrantError, match="not probabilities"):
        MultiLabel(PlattScaling(), inputs="probabilities").fit(odds, y)


@pytest.mark.parametrize("share", ["none", "all"])
def test_the_error_knows_that_the_events_of_a_row_go_together(share):
    g = np.random.default_rng(3)
    z = g.normal(size=(400, 1)) * 3
    y = (g.random((400, 1)) < expit(z / 2)).astype(float)
    one = fit(MultiLabel(PlattScaling(), share=share), z, y).fit_report_
    eight = fit(MultiLabel(PlattScaling(), share=share), np.tile(z, 8), np.tile(y, 8)).fit_report_
    assert eight.held_out_error == pytest.approx(one.held_out_error, rel=0.05)  # one event, told eight times
    apart = fit(MultiLabel(PlattScaling(), share=share), z.reshape(100, 4), y.reshape(100, 4)).fit_report_
    assert apart.held_out_error < 1.3 * one.held_out_error
