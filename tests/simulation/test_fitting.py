import numpy as np
import pytest

from calibrant.errors import InvalidInput
from calibrant.simulation import Beta, Power, Scenario, fit_beta, fit_curves, fit_scenario, scenarios


@pytest.mark.parametrize(("alpha", "beta"), [(2.7752, 0.0478), (1.1, 0.1), (2.0, 5.0)])
def test_a_beta_distribution_is_found_again_though_scores_round_to_one(alpha, beta, rng):
    drawn = Scenario(Beta(alpha, beta), Power()).draw(1, 40_000, rng)
    for fitted in (fit_beta(drawn.scores[0]), fit_beta(drawn.scores[0].astype(np.float32))):
        assert (fitted.alpha, fitted.beta) == pytest.approx((alpha, beta), rel=0.05)


def test_the_curve_that_made_the_data_has_the_smallest_aic(rng):
    scenario = scenarios["resnet152_imgnet"]
    drawn = scenario.draw(1, 40_000, rng)
    fitted = fit_curves(drawn.outcomes[0], drawn.scores[0], drawn.complements[0])
    assert len(fitted) == 12
    assert [f.aic for f in fitted] == sorted(f.aic for f in fitted)
    assert fitted[0].name == "logflip_logflip_b0_b1"
    assert (fitted[0].curve.intercept, fitted[0].curve.slope) == pytest.approx((-0.12, 0.58), abs=0.03)


def test_real_outputs_are_near_the_papers_table(shared_data):
    stored = np.load(shared_data / "top1_guo_models.npz")
    fitted = fit_scenario(stored["resnet110_c100_correct"], stored["resnet110_c100_confidence"])
    assert fitted.note.startswith("logflip_logflip_b0_b1")
    assert (fitted.curve.intercept, fitted.curve.slope) == pytest.approx((-0.11, 0.28), abs=0.03)


@pytest.mark.parametrize("scores", [[0.5], [0.5, 0.5], [0.1, 1.2], [[0.1, 0.2]]])
def test_scores_without_a_fit_are_refused(scores):
    with pytest.raises(InvalidInput):
        fit_beta(np.array(scores))
