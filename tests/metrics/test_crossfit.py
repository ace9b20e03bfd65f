import numpy as np
import pytest

from calibrant.cells.pairs import Cells, Pairs
from calibrant.metrics import ece_crossfit
from calibrant.metrics.estimators.crossfit import crossfit_of, deal
from calibrant.simulation import Power, Scenario, Uniform, experiments, scenarios


@pytest.mark.parametrize("name", ["resnet_wide32_c100", "resnet110_c10", "resnet152_imgnet"])
def test_less_biased_than_the_sweep(name):
    settings = {"n": [1000], "repeats": 200, "norm": 2}
    ours = experiments.bias(scenarios[name], estimator="crossfit", **settings)
    swept = experiments.bias(scenarios[name], estimator="sweep", **settings)
    assert abs(ours[0, 0]) < max(abs(swept[0, 0]), 0.002)


def test_little_is_found_where_nothing_is():
    calibrated = Scenario(Uniform(), Power())
    found = experiments.run(calibrated, n=[1000], repeats=100, estimator="crossfit").estimates
    swept = experiments.run(calibrated, n=[1000], repeats=100, estimator="sweep").estimates
    assert found.mean() < 0.5 * swept.mean()


def test_standard_errors_cover_the_truth(rng):
    scenario = scenarios["densenet40_c100"]
    drawn = scenario.draw(200, 500, rng)
    inside = {1: 0, 2: 0}
    for s, y in zip(drawn.scores, drawn.outcomes, strict=True):
        pairs = Pairs(s, y.astype(float))
        low, high = crossfit_of(pairs, norm=2).bounds(0.95)
        inside[2] += low <= scenario.true_error(2) <= high
    assert inside[2] / 200 > 0.88


def test_folds_split_ties_without_looking_at_outcomes(rng):
    cells = Cells(np.array([0.2, 0.7]), np.array([1000.0, 500.0]), np.array([300.0, 400.0]))
    weights, outcomes = deal(cells, 5, 0)
    assert weights.sum(axis=0) == pytest.approx(cells.weights)
    assert outcomes.sum(axis=0) == pytest.approx(cells.outcomes)
    assert (outcomes <= weights).all()
    assert np.ptp(weights, axis=1).max() <= 500
    rates = np.array([deal(cells, 5, seed)[1][0, 0] for seed in range(200)])
    assert rates.std() == pytest.approx(np.sqrt(200 * 0.3 * 0.7 * (1 - 200 / 1000)), rel=0.25)


def test_ties_do_not_hide_the_noise(rng):
    # Two scores only, both calibrated: a plug-in finds the noise of two frequencies, the cross-fit does not on average.
    products = []
    for seed in range(300):
        y = np.random.default_rng(seed).random(200) < np.repeat([0.3, 0.8], 100)
        pairs = Pairs(np.repeat([0.3, 0.8], 100), y.astype(float))
        products.append(crossfit_of(pairs, random_state=seed).mean)
    assert abs(np.mean(products)) < 3 * np.std(products) / np.sqrt(300)


def test_fractional_weights_and_extremes_have_answers(rng):
    p = rng.random(50)
    y = rng.random(50) < p
    assert 0 <= ece_crossfit(y, p, sample_weight=rng.random(50)) <= 1
    assert ece_crossfit([1], [0.3]) == 0.0
    with pytest.raises(ValueError, match="folds"):
        ece_crossfit(y, p, folds=1)


def test_the_scale_of_fractional_weights_does_not_matter(rng):
    p, w = rng.random(300), rng.random(300)
    y = (rng.random(300) < p**2).astype(float)
    small, large = (crossfit_of(Pairs(p, y, scale * w)) for scale in (1e-3, 10.0))
    assert small.mean == pytest.approx(large.mean)
    assert small.mean_error == pytest.approx(large.mean_error)
    assert small.mean_error > 0.9 * crossfit_of(Pairs(p, y)).mean_error
