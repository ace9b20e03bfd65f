"""Figures of risk against R's val.prob, dcurves, MAPIE and closed forms, on the eval halves of real outputs."""

import json

import numpy as np
import pytest
from scipy.special import chdtrc, erfc, expit, logit
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

import calibrant
from calibrant import metrics
from calibrant.cells.logit_spline import logit_spline
from calibrant.cells.pairs import Pairs
from calibrant.errors import InvalidInput
from calibrant.metrics.estimators import crossfit
from calibrant.metrics.estimators.smoothers import smoothed
from calibrant.metrics.estimators.variational import variational_of

SETS = ("imdb", "cat", "soccer")


def read_case(name, shared_data):
    """Eval half of a set, R's answers where there are some, and those of the other peers."""
    oracle = shared_data / "oracle-2"
    if not oracle.is_dir():
        pytest.skip("the second set of reference numbers is not here")
    d = np.load(oracle / f"bin_{name}.npz")
    r = json.loads((oracle / "cox_valprob_r.json").read_text())["sets"].get(name)
    m = json.loads((oracle / "measures.json").read_text())["sets"][name]
    return name, d["y_eval"], d["p_eval"], r, m


@pytest.fixture(params=SETS)
def case(request, shared_data):
    return read_case(request.param, shared_data)


@pytest.fixture(params=[*SETS, "ties"])
def measured(request, shared_data):
    return read_case(request.param, shared_data)


def test_line_and_in_the_large_agree_with_r(case):
    _, y, p, r, _ = case
    for name, place, profile, wald in (
        ("calibration_slope", "slope", "profile_slope", "slope_wald"),
        ("calibration_intercept", "intercept", "profile_intercept", None),
    ):
        found = metrics.bootstrap(name, y, p, method="profile")
        assert found.estimate == pytest.approx(r["cox"][place], abs=1e-6)
        assert (found.low, found.high) == pytest.approx(tuple(r["cox"][profile]), abs=2e-4)
        if wald:
            plain = metrics.bootstrap(name, y, p, method="wald")
            assert (plain.low, plain.high) == pytest.approx(tuple(r["cox"][wald]), abs=2e-5)
    large = metrics.bootstrap("calibration_in_the_large", y, p, method="profile")
    assert large.estimate == pytest.approx(r["citl"]["est"], abs=1e-6)
    assert large.standard_error == pytest.approx(r["citl"]["se"], rel=1e-5)
    assert (large.low, large.high) == pytest.approx(tuple(r["citl"]["profile"]), abs=2e-4)
    ratio = metrics.bootstrap("observed_expected", y, p)
    assert (ratio.low, ratio.high) == pytest.approx(tuple(r["oe"]["ci_log"]), abs=1e-9)
    test = metrics.calibration_test(y, p, method="cox")
    assert test.statistic == pytest.approx(r["lr"]["both"], abs=1e-6)
    assert test.pvalue == pytest.approx(r["lr"]["p_both"], rel=1e-5)
    assert metrics.auroc(y, p) == pytest.approx(roc_auc_score(y, p), abs=1e-12)
    assert metrics.auroc(y, p) == pytest.approx(r["val_prob"]["C (ROC)"], abs=2e-3)  # lrm rounds scores for its C


@pytest.mark.parametrize("smoother", ["lowess", "loess", "rcs3", "rcs", "rcs5"])
def test_distances_of_named_smoothers_agree_with_r(case, smoother):
    _, y, p, r, _ = case
    wanted = {
        "lowess": r["lowess_iter0_f23"],
        "loess": r["loess_span75_deg2"],
        **{"rcs" + k.strip("k4"): v for k, v in r["rcs_logit"].items()},
    }[smoother]
    if wanted.get("converged") is False:
        assert 0 < metrics.ici(y, p, smoother=smoother) < 0.05
        return
    close = 1e-12 if smoother in ("lowess", "loess") else 2e-7  # R's glm stops there
    for figure, key in (("ici", "ICI"), ("e50", "E50"), ("e90", "E90"), ("emax", "Emax")):
        assert getattr(metrics, figure)(y, p, smoother=smoother) == pytest.approx(wanted[key], abs=close), figure


def test_loess_has_rs_curve(case):
    _, y, p, r, _ = case
    curve = smoothed(Pairs(p.astype(np.float64), y.astype(np.float64)), "loess")
    assert curve.at(p[:5].astype(np.float64)) == pytest.approx(r["loess_span75_deg2"]["fitted_first5"], abs=1e-11)
    found = curve.at(p.astype(np.float64))
    assert [found.min(), found.max()] == pytest.approx(r["loess_span75_deg2"]["range"], abs=1e-11)


def test_cumulative_and_two_bin_agree_with_exact_values(measured):
    _, y, p, _, m = measured
    exact = m["exact"]
    assert metrics.ecce(y, p) == pytest.approx(exact["ecce_r"], abs=1e-12)
    assert metrics.ks_error(y, p) == pytest.approx(exact["ecce_mad"], abs=1e-12)
    if len(np.unique(p)) == len(p):  # with ties ours are those of drawn outcomes
        assert metrics.ecce_test(y, p).pvalue == pytest.approx(exact["p_range"], abs=1e-9)
        assert metrics.calibration_test(y, p, method="ks").pvalue == pytest.approx(exact["p_mad"], abs=1e-9)
    assert metrics.averaged_two_bin(y, p) == pytest.approx(exact["atb"], abs=1e-12)
    assert metrics.averaged_two_bin(y, p, norm=1) == pytest.approx(exact["atb_l1"], abs=1e-9)
    assert metrics.two_bin_excess(y, p) == pytest.approx(exact["atb_excess_over_expected_noise"], abs=1e-12)


def test_statistics_agree_with_mapie_and_probmetrics(measured):
    """MAPIE adds noise of 1e-8 to scores and probmetrics has float32; MAPIE's p of Spiegelhalter is one-sided."""
    _, y, p, _, m = measured
    mapie, peer, s = m["mapie"], m["probmetrics"], p.astype(np.float64)
    scale = np.sqrt((s * (1 - s)).sum()) / len(s)
    for ours, theirs, method in ((metrics.ecce, "kuiper", "ecce"), (metrics.ks_error, "ks", "ks")):
        assert ours(y, p) / scale == pytest.approx(mapie[f"{theirs}_stat"], abs=1e-7)
        assert ours(y, p) == pytest.approx(peer[theirs], abs=2e-8)
        test = metrics.calibration_test(y, p, method=method)
        assert test.floor or test.pvalue == pytest.approx(mapie[f"{theirs}_p"], abs=1e-8)
    test = metrics.calibration_test(y, p, method="spiegelhalter")
    assert test.statistic == pytest.approx(mapie["spiegelhalter_z"], abs=1e-9)
    pvalue = erfc(test.statistic / np.sqrt(2))  # where events are few, ours is that of drawn outcomes
    assert pvalue == pytest.approx(2 * mapie["spiegelhalter_p"], rel=1e-3)
    assert test.pvalue == (1 / 1001 if test.floor else pytest.approx(pvalue, rel=1e-9))
    assert metrics.brier(y, p) == pytest.approx(m["scaled_brier"]["brier"], abs=1e-12)
    assert metrics.scaled_brier(y, p) == pytest.approx(m["scaled_brier"]["scaled"], abs=1e-12)


def test_everything_val_prob_prints(case):
    """Indices of deviance are those of our log-losses; lrm looks at scores in steps of 1/5000 for its C and Dxy."""
    _, y, p, r, _ = case
    rms, n, p = r["val_prob"], len(y), p.astype(np.float64)
    line = expit(metrics.calibration_intercept(y, p) + metrics.calibration_slope(y, p) * logit(p))
    none, said, fitted = (2 * n * metrics.nll(y, q) for q in (np.full(n, y.mean()), p, line))
    figures = {
        "D": (none - said - 1) / n,
        "D:Chi-sq": none - said,
        "U": (said - fitted - 2) / n,
        "U:Chi-sq": metrics.calibration_test(y, p, method="cox").statistic,
        "Q": (none - said - 1 - (said - fitted - 2)) / n,
        "R2": -np.expm1((said - none) / n) / -np.expm1(-none / n),
        "Brier": metrics.brier(y, p),
        "Emax": metrics.emax(y, p, smoother="lowess"),
        "E90": metrics.e90(y, p, smoother="lowess"),
        "Eavg": metrics.ici(y, p, smoother="lowess"),
        "S:z": metrics.calibration_test(y, p, method="spiegelhalter").statistic,
    }
    for name, found in figures.items():
        assert found == pytest.approx(rms[name], rel=1e-9, abs=1e-11), name
    assert erfc(figures["S:z"] / np.sqrt(2)) == pytest.approx(rms["S:p"], rel=1e-8)
    assert chdtrc(2, figures["U:Chi-sq"]) == pytest.approx(rms["U:p"], rel=2e-3)  # R's is 1 - F, which cancels
    assert metrics.calibration_slope(y, p) == pytest.approx(rms["Slope"], abs=2e-8)
    assert metrics.calibration_intercept(y, p) == pytest.approx(rms["Intercept"], abs=2e-8)
    in_steps = metrics.auroc(y, np.floor(5000 * p) / 5000)
    assert in_steps == pytest.approx(rms["C (ROC)"], abs=1e-12)
    assert 2 * in_steps - 1 == pytest.approx(rms["Dxy"], abs=1e-12)


def test_the_variational_error_agrees_on_the_same_folds(case, monkeypatch):
    """The references deal by scikit-learn's stratified folds; dealt likewise, as clusters of one row, ours is equal."""
    _, y, p, _, m = case
    wanted, folds = m["exact"]["variational_l1_isotonic_cv5_own"], np.empty(len(y), np.int64)
    p, curve = p.astype(np.float64), np.empty(len(y))
    for fold, (rest, rows) in enumerate(StratifiedKFold(5, shuffle=True, random_state=0).split(p, y)):
        folds[rows] = fold
        curve[rows] = IsotonicRegression(out_of_bounds="clip").fit(p[rest], y[rest]).predict(p[rows])
    monkeypatch.setattr(crossfit, "_dealt_clusters", lambda *_: folds)
    pairs = Pairs(p, y.astype(np.float64), clusters=np.arange(len(y)))
    ours = variational_of(pairs, smoother="isotonic").mean
    assert ours == pytest.approx(wanted, abs=1e-12)
    # probmetrics compares the curve with both columns of (1 - p, p), where it should with the second: one more term.
    peer = m["probmetrics"]["variational_cv5_isotonic"]["calib-err_proper-L1-binary-as-1d_isotonic_cv-5"]
    more = np.mean((np.sign(curve - (1 - p)) - np.sign(2 * p - 1)) * (y - (1 - p)))
    assert ours + more == pytest.approx(peer, abs=1e-12)


def test_decisions_agree_with_dcurves(measured):
    _, y, p, _, m = measured
    told = {name: np.array(values) for name, values in m["dcurves"].items()}
    curve, t = metrics.decision_curve(y, p, told["threshold"]), told["threshold"]
    assert curve.net_benefit == pytest.approx(told["net_benefit"], abs=1e-12)
    assert (curve.net_benefit - curve.treat_all) * (1 - t) / t == pytest.approx(
        told["net_intervention_avoided"], abs=1e-12
    )
    for place, row in enumerate(m["net_benefit_ci_own"]):
        found = metrics.bootstrap("net_benefit", y, p, threshold=row["threshold"])
        assert found.standard_error == pytest.approx(row["se"], rel=2e-3)
        assert curve.treat_all[list(curve.thresholds).index(row["threshold"])] == pytest.approx(row["treat_all"])
        assert place < len(curve.thresholds)


def test_a_line_that_does_not_describe_the_rows_has_the_error_of_their_residuals(rng):
    """Of over-confident scores near 0 and 1 the shift's usual error is 1.4 times too small, and 87 % were covered."""
    p = np.clip(rng.beta(0.1, 0.1, 3000), 1e-9, 1 - 1e-9)
    y = (rng.random(3000) < expit(logit(p) / 2)).astype(int)
    found = metrics.bootstrap("calibration_in_the_large", y, p)
    mean = expit(logit(p) + found.estimate)
    robust = np.sqrt(((y - mean) ** 2).sum()) / (mean * (1 - mean)).sum()
    usual = metrics.bootstrap("calibration_in_the_large", y, p, method="wald")
    assert robust > 1.3 * usual.standard_error
    assert found.standard_error == pytest.approx(robust, rel=1e-6)
    assert found.high - found.low == pytest.approx(2 * 1.96 * robust, rel=0.01)
    true = metrics.bootstrap("calibration_in_the_large", (rng.random(3000) < p).astype(int), p)
    assert true.method == "profile"


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [7, 13, 49])
def test_scores_that_are_the_threshold_act(n, dtype):
    """A mean of equal scores is one digit less than they are in one of two cases, and .7 is less than .7 as float32."""
    for t in (0.1, 0.3, 0.6, 0.7, 0.9):
        p = np.full(n, t, dtype)
        for events in (0, n // 3, n):
            y = (np.arange(n) < events).astype(int)
            worth = y.mean() - (1 - y.mean()) * t / (1 - t)
            assert metrics.net_benefit(y, p, t) == pytest.approx(worth)
            assert metrics.recalibration_benefit(y, p, threshold=t) == pytest.approx(max(0.0, -worth), abs=1e-12)


def test_decision_loss_is_the_linear_programme(case, shared_data):
    name, y, p, _, _ = case
    known = json.loads((shared_data / "oracle-2" / "extra_own.json").read_text())
    wanted = known[f"cdl_{name}_eval_15_equal_mass_bins"]["cdl_by_linear_programme"]
    assert metrics.decision_loss(y, p) == pytest.approx(wanted, abs=2e-4)


def test_spline_is_platt_where_a_line_is_true_and_follows_a_bend_where_none_is(rng):
    x = rng.normal(size=4000) * 2
    y = (rng.random(4000) < expit(0.3 + 0.6 * x)).astype(float)
    p = expit(x)
    curve = logit_spline(Pairs(p, y))
    places = np.linspace(0.02, 0.98, 50)
    slope, intercept = metrics.calibration_slope(y, p), metrics.calibration_intercept(y, p)
    assert np.abs(curve.at(places) - expit(intercept + slope * logit(places))).max() < 0.03
    bent = (rng.random(4000) < p**3).astype(float)
    assert np.abs(logit_spline(Pairs(p, bent)).at(places) - places**3).max() < 0.06
    low, high = curve.band(places)
    assert ((low < curve.at(places)) & (curve.at(places) < high)).all()


def test_bands_cover_the_whole_curve(rng):
    inside, places = 0, np.linspace(0.03, 0.97, 60)
    for seed in range(60):
        g = np.random.default_rng(seed)
        x = g.normal(size=600) * 1.5
        y = (g.random(600) < expit(0.2 + 0.8 * x)).astype(float)
        low, high = logit_spline(Pairs(expit(x), y)).band(places)
        truth = expit(0.2 + 0.8 * logit(places))
        inside += bool(((low <= truth) & (truth <= high)).all())
    assert inside >= 52


@pytest.mark.parametrize("profile", ["risk", "forecast"])
def test_what_is_not_defined_is_no_number_in_the_text(profile):
    """Of rows of one outcome there is neither an area nor a scaled score, and notes say why."""
    text = str(calibrant.measure(np.ones(30, int), np.full(30, 0.4), profile=profile))
    assert "nan" not in text.split()
    assert " none   no interval *" in text


def test_hard_cases_have_words(rng):
    flat = metrics.bootstrap("calibration_slope", [0, 1, 1, 0], [0.5] * 4)
    assert np.isnan(flat.estimate)
    assert "all scores are one" in flat.note
    split = metrics.bootstrap("calibration_slope", [0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9])
    assert np.isfinite(split.estimate)
    assert "separable" in split.note
    p = np.r_[0.0, 1.0, rng.random(200)]
    y = (rng.random(202) < p).astype(int)
    assert "2 rows with a score of exactly 0 or 1" in metrics.bootstrap("calibration_slope", y, p).note
    none = metrics.bootstrap("observed_expected", np.zeros(50, int), np.full(50, 0.02))
    assert none.low == 0
    assert none.high > 1
    with pytest.raises(InvalidInput, match="auroc is not defined"):
        metrics.auroc([1, 1], [0.2, 0.3])
    assert metrics.bootstrap("auroc", [1, 1], [0.2, 0.3]).low is None
    with pytest.raises(InvalidInput, match="threshold"):
        metrics.net_benefit(y, p, 1.0)
    with pytest.raises(InvalidInput, match="smoother"):
        metrics.ici(y, p, smoother="loss")


def test_ties_do_not_depend_on_the_order(rng):
    p = np.round(rng.random(500), 1)
    y = (rng.random(500) < p).astype(int)
    order = rng.permutation(500)
    for name in ("ecce", "averaged_two_bin", "auroc", "ici", "variational_error"):
        metric = getattr(metrics, name)
        assert metric(y, p) == pytest.approx(metric(y[order], p[order]), abs=1e-12), name
    # MAPIE leaves out C₀: y = 1, 1, 1 with scores .2, .3, .4 has the range 2.1, and 2.69 in deviations.
    sure = metrics.ecce([1, 1, 1], [0.2, 0.3, 0.4])
    assert sure == pytest.approx(0.7)


def test_weights_are_repetitions(rng):
    p, w = np.round(rng.random(150), 3), rng.integers(1, 4, 150)
    y = (rng.random(150) < p).astype(int)
    rows = np.repeat(np.arange(150), w)
    for name, row in metrics.table.TABLE.items():
        if type(row).__name__ != "Figure" or name in ("net_benefit", "recalibration_benefit", "sharpness"):
            continue
        metric = getattr(metrics, name)
        assert metric(y, p, sample_weight=w) == pytest.approx(metric(y[rows], p[rows]), abs=1e-6), name


def test_clusters_widen_intervals_where_rows_repeat(rng):
    p = rng.random(300)
    y = (rng.random(300) < p).astype(int)
    twice, own = np.tile(np.arange(300), 4), np.tile(np.arange(300), 4)
    for name in (
        "calibration_slope",
        "observed_expected",
        "scaled_brier",
        "auroc",
        "ece_crossfit",
        "brier",
        "accuracy",
    ):
        one = metrics.bootstrap(name, y, p)
        naive = metrics.bootstrap(name, y[twice], p[twice])
        aware = metrics.bootstrap(name, y[twice], p[twice], clusters=own)
        if name not in ("ece_crossfit", "observed_expected"):  # whose usual interval is wide
            assert aware.high - aware.low == pytest.approx(one.high - one.low, rel=0.2), name
        assert aware.high - aware.low > 1.4 * (naive.high - naive.low), name
    for method in ("sweep", "ecce", "two_bin", "cox", "spiegelhalter"):
        options = {"method": method, "resamples": 199}
        aware = metrics.calibration_test(y[twice], p[twice], clusters=own, **options).pvalue
        assert aware >= metrics.calibration_test(y[twice], p[twice], **options).pvalue - 0.05, method


def test_scikit_learns_words_are_understood(rng):
    p = rng.random(400)
    y = (rng.random(400) < p**2).astype(int)
    same = metrics.calibration_error(y, p, norm="l2", squared=True, n_bins=10, strategy="quantile")
    assert same == pytest.approx(metrics.calibration_error(y, p, norm=2, bins=10, edges="equal_mass") ** 2)
    assert metrics.calibration_error(y, p, norm="l1") == metrics.ece(y, p)
    with pytest.raises(InvalidInput, match="squared"):
        metrics.calibration_error(y, p, norm="l1", squared=True)
    with pytest.raises(InvalidInput, match="strategy"):
        metrics.calibration_error(y, p, strategy="uni")


def test_a_slope_far_from_one_is_told_where_the_test_sees_nothing(rng):
    p = np.r_[rng.uniform(0.3, 0.7, 300), np.full(6, 1e-9)]  # few rows are far out, and wrong
    y = np.r_[rng.random(300) < p[:300], [1, 1, 0, 0, 0, 0]].astype(int)
    found = calibrant.measure(y, p, profile="risk", resamples=99)
    slope = found.metrics["calibration_slope"]
    assert slope.high < 1
    assert found.verdict.startswith("No evidence")
    assert "too extreme" in found.verdict
    assert "slope" not in calibrant.measure(y, p, resamples=99).verdict


def test_scores_without_log_odds_have_no_shift():
    """All of them exactly 1: it was an infinite one, with words about outcomes of which there are two."""
    found = calibrant.measure([0, 1] * 20, [1.0] * 40, profile="risk", resamples=19).metrics["calibration_in_the_large"]
    assert np.isnan(found.estimate)
    assert "exactly 0 or 1" in found.note
    with pytest.raises(calibrant.CalibrantError, match="not defined"):
        metrics.calibration_in_the_large([0, 1] * 20, [1.0] * 40)


@pytest.mark.parametrize("scores", [(0.0, 1.0), (0.0,), (1e-13, 0.5, 1 - 1e-13)])
def test_scores_of_zero_and_one_that_are_false_are_found_so(scores):
    """The likelihood is flat at log-odds of 36: a search that began there found no way, and the error was called 0."""
    p = np.repeat(scores, 50)
    y = np.tile([0, 1], 25 * len(scores))
    expected = np.abs(p - 0.5).mean()
    assert metrics.ici(y, p) == pytest.approx(expected, abs=1e-6)
    assert metrics.emax(y, p) == pytest.approx(0.5, abs=1e-6)


def test_the_upper_end_of_the_cross_fitted_error_holds_in_clusters():
    """Its own standard error is small where the estimate is: by that alone 10 of 100 upper ends were too low."""
    held, clusters = 0, np.repeat(np.arange(120), 5)
    for seed in range(150):
        rng = np.random.default_rng(seed)
        p = np.repeat(rng.uniform(0.02, 0.98, 120), 5)
        true = expit(0.2 + 0.7 * logit(p))
        y = (np.repeat(rng.random(120), 5) < true).astype(float)  # all rows of a cluster share what decides them
        found = crossfit.crossfit_of(Pairs(p, y, clusters=clusters)).bounds(0.95)
        held += found[0] <= np.sqrt(np.mean((p - true) ** 2)) <= found[1]
    assert held >= 138  # 92 %: 95 % less two standard errors
