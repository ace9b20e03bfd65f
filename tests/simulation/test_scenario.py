import numpy as np
import pytest
from scipy import integrate, special

from calibrant.errors import InvalidInput
from calibrant.simulation import (
    GLM,
    Beta,
    Empirical,
    LogitNormal,
    Power,
    Scenario,
    Uniform,
    mix_n_match_cases,
    power_scenario,
    scenarios,
)


def test_the_true_error_of_figure_4():
    assert scenarios["resnet110_c10"].true_error(norm=2) == pytest.approx(0.10709, abs=5e-6)


def test_the_ten_scenarios_are_there_and_over_confident():
    assert len(scenarios) == 10
    for name, scenario in scenarios.items():
        assert scenario.name == name
        assert 0.03 < scenario.true_error(1) < scenario.true_error(2) < 0.25


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0, 7.0])
def test_power_curves_on_uniform_scores_have_a_closed_form(exponent):
    scenario = Scenario(Uniform(), Power(exponent))
    first = abs(0.5 - 1 / (exponent + 1))
    second = 1 / 3 - 2 / (exponent + 2) + 1 / (2 * exponent + 1)
    assert scenario.true_error(1) == pytest.approx(first, abs=1e-11)
    assert scenario.true_error(2) ** 2 == pytest.approx(second, abs=1e-11)


@pytest.mark.parametrize(("alpha", "beta"), [(2.7752, 0.0478), (0.05, 0.05), (1.0, 1.0), (3.0, 40.0)])
def test_quadrature_survives_poles(alpha, beta):
    law = Beta(alpha, beta)
    assert law.expectation(lambda s, t: s) == pytest.approx(alpha / (alpha + beta), abs=1e-11)
    assert law.expectation(lambda s, t: t**0.3) == pytest.approx(
        np.exp(special.betaln(alpha, beta + 0.3) - special.betaln(alpha, beta)), abs=1e-11
    )


def test_a_curve_that_crosses_the_diagonal():
    scenario = Scenario(Uniform(), GLM("logit", "identity", -5.0, 10.0))
    exact = integrate.quad(lambda s: abs(s - special.expit(10 * s - 5)), 0, 1, points=[0.5], epsabs=1e-13)[0]
    assert scenario.true_error(1) == pytest.approx(exact, abs=1e-10)
    assert scenario.true_error("max") == pytest.approx(0.1810, abs=2e-3)


@pytest.mark.parametrize(
    ("case", "first", "second"), [(0, 0.0744433, 0.00924516), (1, 0.0234589, 0.000911696)], ids=["case1", "case2"]
)
def test_the_closed_form_of_mix_n_match(case, first, second):
    scenario = mix_n_match_cases[case]
    assert scenario.true_error(1) == pytest.approx(first, abs=5e-8)
    assert scenario.true_error(2) ** 2 == pytest.approx(second, abs=5e-9)


def test_mix_n_match_draws_follow_equation_13(rng):
    scenario = mix_n_match_cases[0]
    label = rng.random(200_000) < 0.5
    x = rng.standard_normal(200_000) + np.where(label, -1.0, 1.0)
    score = special.expit(0.5 - 1.5 * x)
    drawn = scenario.draw(1, 200_000, rng)
    probe = np.linspace(0.05, 0.95, 7)
    assert np.quantile(drawn.scores, probe) == pytest.approx(np.quantile(score, probe), abs=0.01)
    assert (drawn.scores * drawn.outcomes).mean() == pytest.approx((score * label).mean(), abs=0.005)


@pytest.mark.parametrize(
    "law", [Beta(2.0, 0.05), Uniform(0.2, 0.9), LogitNormal((-1.0, 2.0), 1.5), Empirical([0.1, 0.5, 1.0])]
)
def test_samples_agree_with_expectations(law, rng):
    scenario = Scenario(law, Power(2.0))
    drawn = scenario.draw(4, 50_000, rng)
    assert drawn.scores.mean() == pytest.approx(law.expectation(lambda s, t: s), abs=0.005)
    assert drawn.complements.mean() == pytest.approx(law.expectation(lambda s, t: t), abs=0.005)
    assert drawn.outcomes.mean() == pytest.approx(scenario.event_rate(), abs=0.005)


def test_complements_keep_what_scores_round_away(rng):
    drawn = Scenario(Beta(2.7752, 0.0478), Power()).draw(1, 20_000, rng)
    saturated = drawn.scores == 1.0
    assert 0.15 < saturated.mean() < 0.21
    assert len(np.unique(drawn.complements[saturated])) == saturated.sum()


def test_the_same_seed_gives_the_same_sample():
    first, second = (scenarios["densenet40_c10"].sample(50, random_state=3) for _ in range(2))
    assert (first.y_prob == second.y_prob).all()
    assert (first.y_true == second.y_true).all()


def test_power_scenario_reaches_the_error_asked_for():
    assert power_scenario(Uniform(), 0.05).true_error(2) == pytest.approx(0.05, abs=1e-9)
    with pytest.raises(InvalidInput, match="cannot be reached"):
        power_scenario(Uniform(), 0.9)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Beta(0.0, 1.0),
        lambda: Uniform(0.5, 0.5),
        lambda: Power(-1.0),
        lambda: GLM("probit", "logit", 0.0, 1.0),
        lambda: Empirical([0.5, np.nan]),
        lambda: LogitNormal((0.0,), 0.0),
    ],
)
def test_impossible_parameters_are_refused(build):
    with pytest.raises(InvalidInput):
        build()


def test_rows_of_table_2_whose_name_is_garbled_are_read_by_elimination():
    read = {
        name: (s.curve.link, s.curve.transform, s.curve.intercept, s.curve.slope)
        for name, s in scenarios.items()
        if s.note
    }
    assert read == {
        "resnet110_SD_c10": ("logit", "logflip", -0.27, -0.33),
        "resnet110_c100": ("logflip", "logflip", -0.11, 0.28),
        "resnet_wide32_c100": ("logflip", "logflip", -0.15, 0.21),
        "densenet161_imgnet": ("log", "log", -0.05, 1.27),
    }


@pytest.mark.parametrize(
    "stranger", [None, "x", 1j, object(), np.nan, [[1], [1, 2]], np.datetime64("2020"), [], -1e300]
)
def test_strangers_make_no_laboratory(stranger):
    for make in (
        lambda: Uniform(low=stranger),
        lambda: Uniform(high=stranger),
        lambda: LogitNormal(stranger, 1.0),
        lambda: LogitNormal((stranger,), 1.0),
        lambda: Beta(stranger, 1.0),
        lambda: Empirical(stranger),
        lambda: power_scenario(stranger, 0.1),
        lambda: power_scenario(Uniform(), stranger),
    ):
        with pytest.raises(InvalidInput):
            make()


@pytest.mark.parametrize(("alpha", "beta"), [(100, 100), (20, 2000), (2000, 20)])
def test_integrals_reach_the_mode_of_a_narrow_beta_distribution(alpha, beta):
    mean = alpha / (alpha + beta)
    assert Beta(alpha, beta).expectation(np.multiply) == pytest.approx(
        mean * (1 - mean) * (alpha + beta) / (alpha + beta + 1), rel=1e-9
    )


@pytest.mark.parametrize("law", [Beta(1e5, 1e5), LogitNormal((0.05, 0.3), 1e-3)])
def test_a_distribution_that_the_panels_miss_has_no_integral(law):
    with pytest.raises(InvalidInput, match="too narrow"):
        Scenario(law, Power(2.0)).true_error()
