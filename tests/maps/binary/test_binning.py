"""Binning: two choices, edges and representatives, alone and under the lift."""

import warnings

import numpy as np
import pytest
from scipy.special import expit, logit

import calibrant
from calibrant import Binning, OneVsRest, PlattScaling, TemperatureScaling, make
from calibrant.arrays import log_odds, softmax
from calibrant.cells import counted
from calibrant.cells.fine import cells_of_scores
from calibrant.errors import InvalidInput
from calibrant.maps.binary import binning
from calibrant.metrics.scores.information import mutual_information
from calibrant.passes import Block, in_memory

NAMES = ["equal_mass", "equal_width", "imax", "mi", "kmeans"]


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", calibrant.CalibrationWarning)
        yield


@pytest.fixture
def binary(rng):
    x = rng.normal(size=800) * 3
    return x, (rng.random(800) < expit(0.5 * x)).astype(int)


def test_frequencies_that_fall_are_pooled():
    x = np.array([-3.0, -2.9, -1.0, -0.9, 1.0, 1.1])
    fitted = Binning(edges=[0.2, 0.5], smoothing=1e-9).fit(x, [0, 1, 0, 0, 1, 1])
    np.testing.assert_allclose(fitted.representatives_, [0.25, 0.25, 1.0], atol=1e-6)
    free = Binning(edges=[0.2, 0.5], smoothing=1e-9, monotone=False).fit(x, [0, 1, 0, 0, 1, 1])
    np.testing.assert_allclose(free.representatives_, [0.5, 0.0, 1.0], atol=1e-6)


@pytest.mark.parametrize("edges", NAMES)
def test_frequencies_are_those_of_the_bins(binary, edges):
    x, y = binary
    fitted = Binning(edges, bins=6, smoothing=0).fit(x, y)
    place = np.searchsorted(fitted.edges_, x, side="right")
    for m in range(len(fitted.representatives_)):
        assert fitted.representatives_[m] == pytest.approx(y[place == m].mean())
    np.testing.assert_allclose(fitted.predict_proba(x)[:, 1], fitted.representatives_[place])
    assert fitted.counts_.sum() == len(x)


def test_equal_width_steps_are_equal_in_probability():
    fitted = Binning("equal_width", bins=4).fit([-3.0, -0.5, 0.5, 3.0], [0, 1, 0, 1])
    np.testing.assert_allclose(expit(fitted.edges_), [0.25, 0.5, 0.75])


def test_equal_mass_keeps_ties_together():
    x = np.r_[np.zeros(10), np.arange(1.0, 11.0)]
    fitted = Binning(bins=4).fit(x, np.tile([0, 1], 10))
    assert fitted.counts_.tolist() == [10.0, 5.0, 5.0]


def test_given_edges_are_probabilities(binary):
    fitted = Binning(edges=[0.2, 0.9]).fit(*binary)
    np.testing.assert_allclose(fitted.edges_, logit([0.2, 0.9]))
    with pytest.raises(InvalidInput, match="edges"):
        Binning(edges=[0.9, 0.2]).fit(*binary)


def test_smoothing_is_a_pseudo_count_at_the_prior(binary):
    x, y = binary
    fitted = Binning(edges=[0.5], smoothing=2.0).fit(x, y)
    low = x < 0
    prior = (y.sum() + 1) / (len(y) + 2)
    assert fitted.representatives_[0] == pytest.approx((y[low].sum() + 2 * prior) / (low.sum() + 2), rel=1e-12)


def test_no_default_answers_zero_or_one(rng):
    x = np.linspace(-4, 4, 60)
    for edges in NAMES:
        fitted = Binning(edges).fit(x, (x > 0).astype(int))
        assert ((fitted.representatives_ > 0) & (fitted.representatives_ < 1)).all()


def test_bins_without_rows_answer_their_middle():
    fitted = Binning(edges=[0.2, 0.4, 0.8]).fit([-5.0, -4.0, 4.0, 5.0], [0, 0, 1, 1])
    assert fitted.counts_.tolist() == [2.0, 0.0, 0.0, 2.0]
    np.testing.assert_allclose(fitted.representatives_[1:3], [0.3, 0.6])


def test_mean_score_and_lent_representatives(binary):
    x, y = binary
    place = x >= 0
    own = Binning(edges=[0.5], representatives="mean_score").fit(x, y)
    assert own.representatives_[1] == pytest.approx(expit(x[place]).mean())
    lender = TemperatureScaling().fit(x, y)
    lent = Binning(edges=[0.5], representatives=TemperatureScaling()).fit(x, y)
    assert lent.representatives_[1] == pytest.approx(lender.predict_proba(x)[place, 1].mean())
    platt = PlattScaling().fit(x, y)
    lent = Binning(edges=[0.5], representatives=PlattScaling()).fit(x, y)
    assert lent.representatives_[1] == pytest.approx(platt.predict_proba(x)[place, 1].mean())


def test_lent_representatives_under_the_lift(problem):
    z, y = problem
    lifted = OneVsRest(Binning("imax", representatives=TemperatureScaling()), share="all").fit(z, y)
    answers = TemperatureScaling().fit(z, y).predict_proba(z).ravel()
    place = np.searchsorted(lifted.maps_[0].edges_, log_odds(z).ravel(), side="right")
    expected = [answers[place == m].mean() for m in range(len(lifted.maps_[0].representatives_))]
    np.testing.assert_allclose(lifted.maps_[0].representatives_, expected)


def marginals_of(lifted, z, y):
    fitted = lifted.unfitted()
    fitted.fit_data(in_memory(Block(z, y, None, z.shape[1])))
    return fitted._marginals(z)


@pytest.mark.parametrize("edges", NAMES)
@pytest.mark.parametrize("representatives", ["frequency", "mean_score", TemperatureScaling(), PlattScaling()])
@pytest.mark.parametrize("share", ["all", "none", [[0, 1], [2, 3, 4]]])
def test_counted_fits_follow_exact_ones(problem, monkeypatch, edges, representatives, share):
    """Above a size, scores are counted in cells and never held: the same map up to the cells' width."""
    lifted = OneVsRest(Binning(edges, bins=5, representatives=representatives), share=share)
    exact = marginals_of(lifted, *problem)
    monkeypatch.setattr(counted, "_EXACT", 0)
    assert np.mean(np.abs(exact - marginals_of(lifted, *problem)) < 0.02) > 0.99


def test_shared_imax_takes_few_values_and_keeps_accuracy(problem):
    z, y = problem
    fitted = make("imax").fit(z, y)
    assert len(np.unique(fitted.predict_marginals(z))) <= 15
    # Shared bins whose frequencies do not fall keep the order of a row but for ties, which the raw scores break.
    assert (np.diff(fitted.maps_[0].representatives_) >= 0).all()
    np.testing.assert_array_equal(fitted.predict(z), z.argmax(1))


def test_mi_is_never_below_imax(problem):
    z, y = problem
    information = {
        name: mutual_information(y, log_odds(z), make(name).fit(z, y).maps_[0].edges_)
        for name in ("imax", "mi-binning")
    }
    assert information["mi-binning"] >= information["imax"] - 1e-12


@pytest.mark.parametrize("edges", NAMES)
@pytest.mark.parametrize("share", ["none", "all", "prior"])
@pytest.mark.parametrize("case", ["no positives", "one positive", "equal scores", "one row a class", "far apart"])
def test_poor_data(edges, share, case, rng):
    z, y = rng.normal(size=(60, 4)) * 2, rng.integers(0, 4, 60)
    if case == "no positives":
        y = y % 2
    elif case == "one positive":
        y = np.r_[3, y[1:] % 2]
    elif case == "equal scores":
        z = np.zeros((60, 4))
    elif case == "one row a class":
        z, y = z[:4], np.arange(4)
    else:
        z = z * 1e4
    for representatives in ("frequency", "mean_score"):
        lifted = OneVsRest(Binning(edges, representatives=representatives), share=share).fit(z, y)
        p = lifted.predict_proba(np.vstack([z, [[-np.inf, 0, 0, 0]], [[1e4, -1e4, 0, 0]]]))
        assert np.isfinite(p).all()
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("edges", NAMES)
def test_weights_are_repeats(rng, edges):
    z, y, w = rng.normal(size=(200, 3)) * 2, rng.integers(0, 3, 200), rng.integers(0, 3, 200)
    weighted = OneVsRest(Binning(edges), share="all").fit(z, y, w)
    rows = np.repeat(np.arange(200), w)
    repeated = OneVsRest(Binning(edges), share="all").fit(z[rows], y[rows])
    np.testing.assert_allclose(weighted.maps_[0].edges_, repeated.maps_[0].edges_)
    np.testing.assert_allclose(weighted.maps_[0].representatives_, repeated.maps_[0].representatives_)


def test_smoothing_reaches_into_presets(problem):
    z, y = problem
    plain = make("hb-width", smoothing=0).fit(z, y).maps_[2]
    place = np.searchsorted(plain.edges_, log_odds(z)[:, 2], side="right")
    assert plain.representatives_[0] == pytest.approx((y[place == 0] == 2).mean(), abs=1e-15)


def test_imax_beats_no_calibration_on_overconfident_scores(problem):
    z, y = problem
    report = make("imax").fit(z, y).fit_report_
    assert report.held_out_after < report.held_out_before
    assert report.loss_before == pytest.approx(-np.log(softmax(z)[np.arange(len(y)), y]).mean())


@pytest.mark.parametrize(
    "bad", [{"edges": "quantile"}, {"bins": 0}, {"representatives": "median"}, {"smoothing": -1.0}]
)
def test_bad_parameters_are_named(binary, bad):
    with pytest.raises(InvalidInput, match=next(iter(bad))):
        Binning(**bad).fit(*binary)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cells_of_rows_are_those_of_equal_weights(rng, dtype):
    x = np.append(np.round(rng.normal(size=500), 1), [0.0, -0.0, 1e4, -1e4]).astype(dtype)
    y = rng.random(504) < 0.1
    alike, heavy = cells_of_scores(x, y), cells_of_scores(x, y, np.full(504, 3.0))
    dropped = cells_of_scores(np.append(x, 7), np.append(y, True), np.append(np.ones(504), 0.0))
    for name in ("scores", "weights", "outcomes", "cuts"):
        times = 3 if name in ("weights", "outcomes") else 1
        np.testing.assert_array_equal(getattr(alike, name) * times, getattr(heavy, name))
        np.testing.assert_array_equal(getattr(alike, name), getattr(dropped, name))


def test_imax_needs_few_cells(rng, monkeypatch):
    y, z = rng.integers(0, 4, 4000), rng.normal(size=(4000, 4)) * 1.5
    z[np.arange(4000), y] += 2
    exact = make("imax-cw").fit(z, y)
    monkeypatch.setattr(binning, "_IMAX_CELLS", 1024)
    few = make("imax-cw").fit(z, y)
    for own, other in zip(exact.maps_, few.maps_, strict=True):
        mine, found = own.fit_report_, other.fit_report_
        assert mine.loss_before == pytest.approx(found.loss_before, rel=1e-12)
        assert mine.details["loss"] == pytest.approx(found.details["loss"], abs=1e-3)  # of Eq. 4, in bits
        assert mine.details["information"] == pytest.approx(found.details["information"], abs=1e-2)
