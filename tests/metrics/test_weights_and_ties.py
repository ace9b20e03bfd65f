"""Weights as numbers of rows or as factors of any scale, rows of weight zero, and tied scores in many samples."""

import numpy as np
import pytest

from calibrant.cells.pairs import Pairs
from calibrant.errors import InvalidInput
from calibrant.metrics import (
    BinnedState,
    bootstrap,
    brier,
    calibration_error,
    calibration_gain,
    calibration_test,
    canonical_error,
    compare_forecasts,
    cwece,
    ece,
    ece_debiased,
    ece_kde,
    ece_sweep,
    measure,
    nll,
    required_samples,
    skce,
)
from calibrant.metrics.estimators.calibration_error import ESTIMATORS
from calibrant.metrics.estimators.sweep import sweep_cells
from calibrant.metrics.inference.replicates import from_rows
from calibrant.simulation import Empirical, Power, Scenario, experiments


@pytest.fixture
def rows(rng):
    p = rng.dirichlet(np.ones(4), 150)
    return np.array([rng.choice(4, p=row) for row in p]), p


@pytest.mark.parametrize(
    "options", [{"edges": "sturges"}, {"bins": "sturges"}, {"bins": "sturges", "edges": "equal_mass"}]
)
@pytest.mark.parametrize("view", ["top_label", "class_wise", "pooled", 2])
def test_sturges_counts_weights_as_rows(rng, rows, options, view):
    y, p = rows
    w = rng.integers(0, 4, len(y))
    often = np.repeat(np.arange(len(y)), w)
    weighted = calibration_error(y, p, view=view, sample_weight=w, **options)
    assert weighted == pytest.approx(calibration_error(y[often], p[often], view=view, **options), abs=1e-12)


def test_the_scale_of_fractional_weights_does_not_matter(rng, rows):
    y, p = rows
    w, flat = rng.random(len(y)), np.full_like(p, 0.25)
    for metric in (ece_kde, ece_sweep, skce, canonical_error, cwece):
        assert metric(y, p, sample_weight=1e-3 * w) == pytest.approx(metric(y, p, sample_weight=w), rel=1e-6)
    for view in ("top_label", "class_wise"):
        found = [ece(y, p, view=view, bins="sturges", sample_weight=scale * w) for scale in (1e-3, 1.0)]
        assert found[0] == pytest.approx(found[1], rel=1e-9)
    for compare in (calibration_gain, compare_forecasts):
        small, large = (compare(y, p, flat, sample_weight=scale * w) for scale in (1e-3, 1.0))
        assert small.standard_error == pytest.approx(large.standard_error, rel=1e-9)
        assert 0 < large.standard_error < 0.1


def test_fractional_weights_know_how_unequal_they_are(rng, rows):
    y, p = rows
    flat, w = np.full_like(p, 0.25), np.full(len(y), 0.5)
    assert calibration_gain(y, p, flat, sample_weight=w).standard_error == pytest.approx(
        calibration_gain(y, p, flat).standard_error
    )
    w[:100] = 1e-9
    alone = calibration_gain(y[100:], p[100:], flat[100:]).standard_error
    assert calibration_gain(y, p, flat, sample_weight=w).standard_error == pytest.approx(alone, rel=1e-6)


@pytest.mark.parametrize("view", ["top_label", "class_wise"])
def test_the_debiased_error_counts_fractional_weights_as_the_rows_they_are_worth(rng, rows, view):
    """Their sum was taken for the number of rows: weights of 37 a row left the bias where it was."""
    y, p = rows
    options = {"view": view, "estimator": "debiased"}
    for edges in ("equal_mass", [0.3, 0.5, 0.7]):
        plain = calibration_error(y, p, edges=edges, **options)
        for scale in (0.001, 0.3, 37.3):
            same = calibration_error(y, p, edges=edges, sample_weight=np.full(len(y), scale), **options)
            assert same == pytest.approx(plain, abs=1e-12)
    w = rng.gamma(2, 1.0, len(y))
    state = BinnedState(view=view).update(y, p, sample_weight=w)
    with pytest.raises(InvalidInput, match="how many rows fractional weights count"):
        state.finalise("debiased")


def test_a_sweep_has_as_many_bins_as_there_are_rows_whatever_the_scale_of_weights(rng):
    """The sum of fractional weights was taken for the number of rows, up to which bins are tried."""
    for _ in range(30):
        p = np.round(rng.random(200), 1)
        y, w = (rng.random(200) < p).astype(int), rng.random(200)
        found = [ece_sweep(y, p, sample_weight=w * scale) for scale in (0.004, 1, 30)]
        assert found == pytest.approx(found[:1] * 3, abs=1e-9)


def test_kernel_errors_take_whole_weights_for_rows(rng, rows):
    y, p = rows
    w = rng.integers(0, 3, len(y))
    often = np.repeat(np.arange(len(y)), w)
    for kernel in ("gaussian", "laplacian"):
        assert skce(y, p, kernel=kernel, sample_weight=w) == pytest.approx(skce(y[often], p[often], kernel=kernel))
    with pytest.raises(InvalidInput, match="two rows"):
        skce([0, 1], [[0.5, 0.5], [0.2, 0.8]], sample_weight=[1, 0])


@pytest.mark.parametrize("metric", [ece, ece_sweep, ece_debiased, ece_kde, cwece, brier, nll])
def test_rows_of_weight_zero_are_absent_from_intervals(rows, metric):
    y, p = rows
    w = np.r_[np.ones(20), np.zeros(130)]
    here, gone = bootstrap(metric, y[:20], p[:20], resamples=40), bootstrap(metric, y, p, sample_weight=w, resamples=40)
    assert gone.estimate == pytest.approx(here.estimate)
    assert (gone.low, gone.high) == pytest.approx((here.low, here.high))


def test_rows_of_weight_zero_are_absent_from_a_measurement(rows):
    y, p = rows
    w = np.r_[np.ones(20), np.zeros(130)]
    here, gone = measure(y[:20], p[:20], resamples=40), measure(y, p, sample_weight=w, resamples=40)
    assert gone.n == gone.test.n == 20
    assert gone.test.pvalue == here.test.pvalue
    assert gone.metrics["ece_sweep"] == here.metrics["ece_sweep"]
    assert calibration_test(y, p, method="spiegelhalter", sample_weight=w).n == 20


@pytest.mark.parametrize("norm", [1, 2, "max"])
def test_many_samples_keep_ties_together(rng, norm):
    scores = np.round(rng.random((6, 70)), 1)
    outcomes = rng.random(scores.shape) < scores
    many = from_rows(scores, outcomes, 1 - scores)
    for edges in ("equal_width", "equal_mass"):
        binned, (swept, _) = many.binned(7, edges, norm), many.sweep(edges, norm)
        for i in range(6):
            pairs = Pairs(scores[i], outcomes[i].astype(float))
            assert binned[i] == pytest.approx(ESTIMATORS["binned"](pairs, norm=norm, bins=7, edges=edges), abs=1e-12)
            assert swept[i] == pytest.approx(sweep_cells(pairs.cells, norm=norm, edges=edges).error, abs=1e-12)
            assert many.debiased(7, edges)[i] == pytest.approx(ESTIMATORS["debiased"](pairs, bins=7, edges=edges))
            assert many.ks()[i] == pytest.approx(ESTIMATORS["ks"](pairs), abs=1e-12)


def test_experiments_on_rounded_scores_use_the_plain_estimators(rng):
    scenario = Scenario(Empirical(np.round(rng.random(300), 1)), Power(1.3))
    settings = {"n": [60], "repeats": 8, "norm": 1, "edges": "equal_mass"}
    fast, slow = experiments.run(scenario, **settings), experiments.run(scenario, estimator=ece, **settings)
    assert fast.estimates == pytest.approx(slow.estimates, abs=1e-12)


def test_required_samples_look_at_the_scores_however_many(rng):
    scores = 0.9 - 0.01 * rng.random(4097)
    settings = {"tce": 0.15, "repeats": 60}
    found = [required_samples(scores=given, **settings) for given in (scores, scores[:4096])]
    assert found[1] == pytest.approx(found[0], rel=0.2)
    for bad in ({"norm": "max"}, {"repeats": 3}, {"repeats": 100.0}):
        with pytest.raises(InvalidInput):
            required_samples(0.1, **bad)


def test_weights_that_sum_to_one_are_measured(rng, rows):
    y, p = rows
    w = rng.random(len(y))
    small, large = (measure(y, p, sample_weight=w * s, resamples=50) for s in (1 / w.sum(), len(w) / w.sum()))
    for name, found in small.metrics.items():
        assert found.estimate == pytest.approx(large.metrics[name].estimate, rel=1e-6)
