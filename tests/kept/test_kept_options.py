"""What figures say with settings that are not the usual ones is what it was."""

import numpy as np
import pytest
from tests.kept.comparing import check
from tests.kept.test_kept_metrics import COMMON, COUNTS, FEW, FRACTIONS, MANY, RARE, SURE, TIED, classes

from calibrant import metrics
from calibrant.errors import CalibrantError
from calibrant.metrics.inference.class_test import class_wise_pvalue
from calibrant.metrics.inference.kernel_test import drawn_labels, kernel_features, label_steps
from calibrant.metrics.views.forecasts import read

RAW = np.random.default_rng(2).integers(0, 3, MANY[1].shape).astype(float)
HALVES = np.round(MANY[1] * 4) / 4 + np.eye(4)[MANY[1].argmax(1)] * (1 - (np.round(MANY[1] * 4) / 4).sum(1))[:, None]
WIDE = classes(200, 40, 14)
CALLS = {
    "smooth curves": [
        (name, {"smoother": smoother})
        for name in ("ici", "e50", "e90", "emax")
        for smoother in ("lowess", "loess", "rcs")
    ],
    "few and many knots": [("ici", {"smoother": smoother}) for smoother in ("rcs3", "rcs5", "spline", "none")],
    "kernels": [
        ("ece_kde", given)
        for given in (
            {"bandwidth": "reference"},
            {"bandwidth": 0.05},
            {"space": "logit"},
            {"space": "logit", "bandwidth": "reference", "norm": 2},
            {"norm": "max"},
            {"norm": 2},
            {"space": "none"},
            {"bandwidth": -1.0},
        )
    ],
    "smoothed": [
        ("smece", given) for given in ({"width": 0.03}, {"grid": "relplot"}, {"grid": "relplot", "width": 0.02})
    ],
    "lines": [(name, {}) for name in ("calibration_slope", "calibration_intercept", "calibration_in_the_large")],
    "others": [
        ("net_benefit", {"threshold": 0.3}),
        ("net_benefit", {"threshold": 0.3, "prevalence": 0.2}),
        ("decision_loss", {}),
        ("observed_expected", {}),
        ("two_bin_excess", {}),
        ("auroc", {}),
        ("scaled_brier", {}),
    ],
}
ROWS = {
    "an event": (*COMMON, None),
    "counts": (*COMMON, COUNTS),
    "fractions": (*COMMON, FRACTIONS),
    "rare": (*RARE, None),
    "ties": (*TIED, None),
    "few rows": (*FEW, None),
    "sure": (*SURE, None),
    "one score": (COMMON[0], np.full(400, 0.25), None),
    "one outcome": (np.ones(400, int), COMMON[1], COUNTS),
    "many rows": (
        np.tile(COMMON[0], 9),
        np.linspace(0.01, 0.99, 3600)[np.argsort(np.tile(COMMON[1], 9), kind="stable").argsort()],
        None,
    ),
}


def told(function, *given, **more):
    """Return what a function says, or the words in which it refuses."""
    try:
        return function(*given, **more)
    except CalibrantError as refusal:
        return str(refusal)


@pytest.mark.parametrize("of", ROWS)
@pytest.mark.parametrize("family", CALLS)
@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
def test_settings(family, of):
    y, p, w = ROWS[of]
    for name, given in CALLS[family]:
        if (of, str(given.get("smoother"))[:3]) in (("few rows", "rcs"), ("ties", "spl")):
            continue  # outcomes that few rows nearly part, and bends that few scores hardly tell: last bits decide
        found = told(getattr(metrics, name), y, p, sample_weight=w, **given)
        check("options", f"{of}, {name} {given}", {"found": found})


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
def test_classes():
    y, p = MANY
    found = {}
    for weights in (None, COUNTS[:350]):
        of = "plain" if weights is None else "counts"
        for k in (1, 2, 4):
            given = {"k": k, "sample_weight": weights}
            found[f"top {k} {of}"] = told(metrics.top_k_accuracy, y, p, **given)
            found[f"top {k} of ties {of}"] = told(metrics.top_k_accuracy, y, HALVES, raw_scores=RAW, **given)
            found[f"top {k} of an event {of}"] = told(metrics.top_k_accuracy, COMMON[0][:350], COMMON[1][:350], **given)
        found[f"sharpness {of}"] = [told(metrics.sharpness, one, sample_weight=weights) for one in (p, COMMON[1][:350])]
        for name in ("skce", "canonical_error", "brier", "nll", "cwece", "ace"):
            found[f"{name} {of}"] = told(getattr(metrics, name), y, p, sample_weight=weights)
    for kernel in ("gaussian", "laplacian", "total_variation"):
        for bandwidth in ("median", 0.4):
            found[f"skce {kernel} {bandwidth}"] = told(metrics.skce, y, p, kernel=kernel, bandwidth=bandwidth)
    for estimator in ("unbiased", "biased", "linear"):
        found[f"skce {estimator}"] = told(metrics.skce, y, p, estimator=estimator)
    for name, one in found.items():
        check("options", f"classes, {name}", {"found": one})


@pytest.mark.parametrize("of", ["classes", "clusters", "counts", "many classes"])
@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
def test_tests_of_all_classes(of):
    (y, p), more = (WIDE, {}) if of == "many classes" else (MANY, {})
    if of == "clusters":
        more = {"clusters": np.arange(350) // 7}
    elif of == "counts":
        more = {"sample_weight": COUNTS[:350]}
    for method in ("skce", "sweep", "cox", "ecce", "two_bin"):
        for view in ("pooled", 1) if method != "skce" else ("top_label",):
            found = told(metrics.calibration_test, y, p, method=method, view=view, resamples=99, **more)
            check("options", f"test, {of}, {method}, {view}", {"found": found})


@pytest.mark.parametrize("n", [60, 350])
@pytest.mark.parametrize("weights", ["plain", "counts", "fractions"])
def test_all_classes_at_once(n, weights):
    """Few rows of clusters share random numbers, many share random signs; a weight is as many rows of its cluster."""
    y, p = MANY[0][:n], MANY[1][:n] ** 0.8 / (MANY[1][:n] ** 0.8).sum(axis=1, keepdims=True)
    w = {"plain": None, "counts": COUNTS[:n], "fractions": FRACTIONS[:n]}[weights]
    clusters = np.arange(n) // 3
    found = {}
    for name, forecasts in (("apart", read(y, p, w)), ("together", read(y, p, w).clustered(clusters))):
        found[name] = [
            class_wise_pvalue(forecasts, 399, np.random.default_rng(s), bins) for s in (0, 1) for bins in (5, 15)
        ]
    check("options", f"all classes, {n}, {weights}", found)


def test_a_weight_is_as_many_rows_of_its_cluster():
    (y, p), clusters, counts = MANY, np.arange(350) // 3, COUNTS[:350].astype(int) + 1
    rows = np.repeat(np.arange(350), counts)
    weighed, repeated = read(y, p, counts).clustered(clusters), read(y[rows], p[rows]).clustered(clusters[rows])
    pvalues = [class_wise_pvalue(one, 399, np.random.default_rng(0)) for one in (weighed, repeated)]
    assert pvalues[0] == pvalues[1]


def test_kernel_features_and_drawn_labels():
    for p, close in ((MANY[1], 1e-4), (WIDE[1], 0.2)):  # as close as 64 features can be
        features = kernel_features(p, 0.5)
        distances = ((p[:, None] - p[None]) ** 2).sum(axis=2)
        assert np.abs(features @ features.T - np.exp(-0.5 * distances / 0.25)).max() < close
        uniforms = np.random.default_rng(0).random((50, len(p)))
        drawn = drawn_labels(label_steps(p), uniforms)
        ends = np.cumsum(p / p.sum(axis=1, keepdims=True), axis=1)
        np.testing.assert_array_equal(drawn, (uniforms[:, :, None] >= ends[None, :, :-1]).sum(axis=2))
