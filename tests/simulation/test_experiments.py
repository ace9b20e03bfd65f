import numpy as np
import pytest

from calibrant.errors import InvalidInput
from calibrant.metrics import ece
from calibrant.simulation import GLM, Power, Scenario, Uniform, experiments, scenarios

FIGURE_4 = np.array([[-4.34, -4.72], [0.62, -1.67], [4.54, 1.13]])


def test_figure_4_of_paper_003():
    table = experiments.bias(
        scenarios["resnet110_c10"], n=[200, 1600], bins=[2, 16, 64], edges="equal_width", norm=2, repeats=600
    )
    assert table.shape == (3, 2)
    assert np.abs(100 * table - FIGURE_4).max() < 0.25


def test_fast_and_plain_estimates_agree():
    settings = {"n": [60], "bins": [5, 15], "repeats": 40, "norm": 1}
    fast = experiments.run(scenarios["resnet152_imgnet"], **settings)
    plain = experiments.run(scenarios["resnet152_imgnet"], estimator=lambda y, p: ece(y, p, bins=15), **settings)
    assert fast.estimates[1] == pytest.approx(plain.estimates[1], abs=1e-12)


def test_controls_help_and_do_not_shift_the_mean():
    result = experiments.run(scenarios["resnet110_c10"], n=[200], repeats=1500, random_state=1)
    plain = result.estimates.mean() - result.truth
    plain_error = result.estimates.std() / np.sqrt(1500)
    assert result.standard_error()[0, 0] < 0.8 * plain_error
    assert abs(result.bias()[0, 0] - plain) < 4 * plain_error


def test_a_few_repeats_use_the_plain_mean():
    result = experiments.run(scenarios["resnet110_c10"], n=[50], repeats=5)
    assert result.bias()[0, 0] == pytest.approx(result.estimates.mean() - result.truth)


def test_variance_and_absolute_error_shrink_with_n():
    settings = {"n": [100, 1600], "repeats": 150, "estimator": "sweep"}
    assert np.diff(experiments.variance(scenarios["densenet40_c100"], **settings)[0]) < 0
    assert np.diff(experiments.absolute_error(scenarios["densenet40_c100"], **settings)[0]) < 0


def test_sweep_chooses_more_bins_for_a_steep_curve():
    steep = Scenario(Uniform(), GLM("logit", "identity", -5.0, 10.0))
    chosen = experiments.sweep_bins(steep, n=[200, 2000], repeats=100).mean(axis=1)
    assert 3 < chosen[0] < chosen[1]


def test_a_larger_error_is_missed_less_and_false_alarms_are_held():
    found = experiments.miss_rate(tce=[0.03, 0.1], n=[200, 1000], repeats=300, estimator="sweep")
    assert found.rates.shape == (2, 2)
    assert (found.rates[1] < found.rates[0]).all()
    calibrated = experiments.run(Scenario(Uniform(), Power()), n=[1000], repeats=500, estimator="sweep", random_state=9)
    assert (calibrated.estimates[0, 0] > found.critical[1]).mean() == pytest.approx(0.05, abs=0.04)


def test_progress_reaches_the_end():
    seen = []
    experiments.miss_rate(tce=[0.05], n=[50, 100], repeats=10, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1]
    assert sorted(seen) == seen


def test_the_same_seed_gives_the_same_numbers():
    settings = {"n": [50], "repeats": 20, "estimator": "sweep"}
    first, second = (experiments.run(scenarios["resnet110_c100"], **settings).estimates for _ in range(2))
    assert (first == second).all()


@pytest.mark.parametrize("settings", [{"n": []}, {"repeats": 0}, {"estimator": "magic"}, {"edges": "round"}])
def test_bad_settings_are_refused(settings):
    with pytest.raises(InvalidInput):
        experiments.run(scenarios["resnet110_c10"], **{"n": [20], "repeats": 3, **settings})


@pytest.mark.parametrize(
    "bad",
    [
        {"bins": [0]},
        {"bins": [7.5]},
        {"n": [10.5]},
        {"n": True},
        {"repeats": 2.0},
        {"nonsense": 1},
        {"estimator": "sweep", "bandwidth": 1},
        {"estimator": "ks", "norm": "max", "edges": "equal_mass"},
        {"norm": 3},
    ],
)
def test_settings_that_mean_nothing_are_refused(bad):
    with pytest.raises(InvalidInput):
        experiments.run(scenarios["resnet110_c10"], **{"repeats": 3, **bad})


def test_one_number_is_enough_and_options_reach_functions():
    settings = {"n": 60, "repeats": 5, "norm": 1}
    named = experiments.run(scenarios["densenet40_c10"], bins=9, **settings)
    own = experiments.run(scenarios["densenet40_c10"], estimator=ece, bins=1, edges="equal_mass", **settings)
    assert named.n == (60,)
    assert named.bins == (9,)
    assert named.estimates.shape == (1, 1, 5)
    plain = experiments.run(scenarios["densenet40_c10"], edges="equal_mass", **settings)
    assert own.estimates == pytest.approx(plain.estimates)
    assert experiments.sweep_bins(scenarios["densenet40_c10"], n=60, repeats=4).shape == (1, 4)
    assert experiments.miss_rate(tce=[0.1], n=60, repeats=20).n == (60,)
