import numpy as np
import pytest

from calibrant.errors import InvalidInput
from calibrant.metrics import calibration_error_bound, calibration_test, required_samples, skce
from calibrant.metrics.inference.intervals import drawn_pvalue
from calibrant.simulation import Beta, Power, Scenario, Uniform, experiments, scenarios


@pytest.mark.parametrize(("method", "runs"), [("sweep", 250), ("spiegelhalter", 1500)], ids=["sweep", "spiegelhalter"])
@pytest.mark.parametrize("law", [Uniform(), Beta(1.1, 0.1)], ids=["uniform", "skewed"])
def test_false_alarms_are_five_in_a_hundred(method, runs, law):
    scenario = Scenario(law, Power())
    alarms = 0
    for seed in range(runs):
        y, p = scenario.sample(150, random_state=seed)
        alarms += calibration_test(y, p, method=method, resamples=199, random_state=seed).pvalue <= 0.05
    noise = np.sqrt(0.05 * 0.95 / runs)
    assert abs(alarms / runs - 0.05) < 3 * noise + 0.002


def test_false_alarms_of_the_kernel_test_are_held(rng):
    alarms, runs = 0, 300
    for seed in range(runs):
        p = rng.dirichlet(np.ones(3), 100)
        y = (rng.random(100)[:, None] > p.cumsum(axis=1)).sum(axis=1)
        alarms += calibration_test(y, p, method="skce", resamples=199, random_state=seed).pvalue <= 0.05
    assert abs(alarms / runs - 0.05) < 3 * np.sqrt(0.05 * 0.95 / runs) + 0.01


def test_false_alarms_of_the_kernel_test_are_held_for_rare_events(rng):
    # Random signs of the residuals, another way to the null distribution, alarm in one of four here.
    alarms, runs = 0, 200
    for seed in range(runs):
        p = 0.02 * rng.random(200)
        y = (rng.random(200) < p).astype(int)
        alarms += calibration_test(y, p, method="skce", resamples=99, random_state=seed).pvalue <= 0.05
    assert abs(alarms / runs - 0.05) < 3 * np.sqrt(0.05 * 0.95 / runs) + 0.01


def test_the_kernel_tests_null_is_that_of_the_error(rng):
    p = rng.dirichlet(np.ones(4), 80)
    y = (rng.random(80)[:, None] > p.cumsum(axis=1)).sum(axis=1)
    seen, larger = skce(y, p), 0
    for _ in range(400):
        drawn = (rng.random(80)[:, None] > p.cumsum(axis=1)).sum(axis=1)
        larger += skce(drawn, p) >= seen
    found = calibration_test(y, p, method="skce", resamples=999)
    assert found.statistic == pytest.approx(seen)
    assert found.pvalue == pytest.approx(larger / 400, abs=0.08)


@pytest.mark.parametrize("method", ["sweep", "spiegelhalter", "skce"])
def test_a_miscalibrated_model_is_found(method):
    curve = Scenario(Uniform(), Power(2)) if method != "spiegelhalter" else scenarios["resnet110_c10"]
    y, p = curve.sample(4000 if method == "spiegelhalter" else 800, random_state=0)
    found = calibration_test(y, p, method=method, resamples=199)
    assert found.pvalue < 0.02
    assert found.rejects()
    assert found.method == method
    assert "true" in found.tested
    assert found.p in str(found)
    assert (found.p == "p ≤ 0.005") == (method != "spiegelhalter")


def test_the_kernel_test_sees_what_the_top_label_hides(rng):
    # The top label is right as often as it says; the other two classes have their probabilities swapped.
    n = 1500
    p = np.tile([0.5, 0.4, 0.1], (n, 1))
    y = rng.choice(3, size=n, p=[0.5, 0.1, 0.4])
    assert calibration_test(y, p, method="skce", resamples=199).pvalue < 0.02
    assert calibration_test(y, p, resamples=199).pvalue > 0.01


def test_row_order_and_counts_do_not_matter(rng):
    p = np.round(rng.random(200), 1)
    y, w = (rng.random(200) < p).astype(int), rng.integers(0, 3, 200)
    rows = np.repeat(np.arange(200), w)
    plain = calibration_test(y[rows], p[rows], resamples=99)
    assert calibration_test(y, p, sample_weight=w, resamples=99).pvalue == pytest.approx(plain.pvalue, abs=0.15)
    assert calibration_test(y, p, sample_weight=w, resamples=99).statistic == pytest.approx(plain.statistic)
    z = calibration_test(y[rows], p[rows], method="spiegelhalter")
    assert calibration_test(y, p, sample_weight=w, method="spiegelhalter").statistic == pytest.approx(z.statistic)


def test_fractional_weights(rng):
    p = rng.random(150)
    y, w = (rng.random(150) < p).astype(int), rng.random(150)
    assert 0 < calibration_test(y, p, sample_weight=w, resamples=99).pvalue <= 1
    assert 0 < calibration_test(y, p, sample_weight=w, method="spiegelhalter").pvalue <= 1
    with pytest.raises(InvalidInput, match="whole"):
        calibration_test(y, p, sample_weight=w, method="skce")


def test_certain_scores():
    assert calibration_test([0, 1, 1], [0.0, 1.0, 1.0], resamples=99).pvalue == 1.0
    assert calibration_test([1, 1, 1], [0.0, 1.0, 1.0], resamples=99).pvalue == 0.01
    assert calibration_test([1, 1, 1], [0.0, 1.0, 1.0], method="spiegelhalter").pvalue == 0.0


@pytest.mark.parametrize("bad", [{"method": "guess"}, {"resamples": 3}, {"norm": 3}])
def test_bad_arguments_are_refused(bad):
    with pytest.raises(InvalidInput):
        calibration_test([0, 1], [0.2, 0.9], **bad)


def test_required_samples_have_the_power_asked_for():
    n = required_samples(0.1, power=0.8, repeats=300)
    assert 100 < n < 1500
    missed = experiments.miss_rate(tce=[0.1], n=[n], repeats=400, estimator="sweep", random_state=7).rates[0, 0]
    assert missed == pytest.approx(0.2, abs=0.08)


def test_required_samples_refuses_the_impossible():
    for bad in ({"tce": 0.9}, {"tce": 0.0}, {"tce": 0.1, "power": 1.0}, {"tce": 0.1, "scores": [2.0]}):
        with pytest.raises(InvalidInput):
            required_samples(**bad)


def test_the_bound_of_hoki():
    assert calibration_error_bound(0.02, 10_000, 15, 0.05) == pytest.approx(
        0.02 + 15 * np.sqrt(2 / 10_000 * (2 * np.log(2) - np.log(0.05)))
    )
    assert calibration_error_bound(0.0, 10**9, 10) < 0.001
    for bad in ((1.5, 10, 5), (0.1, 0, 5), (0.1, 10, 5, 0.0)):
        with pytest.raises(InvalidInput):
            calibration_error_bound(*bad)


@pytest.mark.parametrize("method", ["ecce", "ks"])
def test_false_alarms_are_held_where_scores_are_tied(method):
    """Eleven places stray less far than Brownian motion, by which 2.6 % of such samples were called wrong."""
    alarms = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        p = np.round(rng.beta(1.5, 1.5, 300), 1)
        found = calibration_test(rng.random(300) < p, p, method=method, resamples=99, random_state=seed)
        alarms += found.rejects()
    assert 12 <= alarms <= 28  # 3 to 7 %: two standard errors about 5 %


def test_many_places_are_brownian_motion_and_few_are_drawn(rng):
    p = rng.random(2000)
    assert calibration_test(rng.random(2000) < p, p, method="ecce").floor == 0.0
    tied = np.round(p, 1)
    assert calibration_test(rng.random(2000) < tied, tied, method="ecce").floor > 0
    assert calibration_test(rng.random(2000) < tied**3, tied, method="ecce").pvalue < 1e-9  # beyond what draws can tell


def test_what_equals_the_one_seen_counts_half():
    drawn = np.array([0.0, 1.0, 1.0 + 1e-12, 1.0, 2.0])
    assert drawn_pvalue(1.0, drawn) == pytest.approx((1 + 1 + 1.5) / 6)
    assert drawn_pvalue(3.0, drawn) == pytest.approx(1 / 6)
    assert drawn_pvalue(0.0, np.zeros(5)) == 1.0
