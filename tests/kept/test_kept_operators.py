"""What operators, and maps with other parameters than their names have, answer to a few rows is what it was."""

import numpy as np
import pytest
from tests.kept.comparing import check
from tests.kept.test_kept_maps import SETS, classes, told

import calibrant
from calibrant import registry
from calibrant.maps.binary.base import BinaryMap

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
OTHERS = {
    "chain": "ts > vector > irova",
    "mixture": "ts + vector",
    "mixture of three": "ts + gp + irova",
    "top label": calibrant.TopLabel(calibrant.PlattScaling()),
    "top label, free": calibrant.TopLabel(calibrant.Isotonic(), keep_label=False),
    "one against the rest": calibrant.OneVsRest(calibrant.BetaCalibration(), normalize="softmax"),
    "joint mixture": calibrant.Mixture([calibrant.TemperatureScaling(), calibrant.Uniform()], weights="joint"),
    "likely mixture": calibrant.Mixture([calibrant.make("ts"), calibrant.make("irova")], weights="likely"),
    "mixture by Brier": calibrant.Mixture([calibrant.make("ts"), calibrant.make("vector")], loss="brier", cv=3),
    "temperature by Brier": calibrant.TemperatureScaling(loss="brier"),
    "ensemble by Brier": calibrant.EnsembleTemperatureScaling(loss="brier"),
    "matrix by folds": calibrant.MatrixScaling(strength="cv", intercepts="origin"),
    "vector, given": calibrant.VectorScaling(strength=0.5),
    "hoki, given": calibrant.Hoki(("gaussian", 0.0, 2.0), bins=4, init="confidence"),
    "kernel": calibrant.KCal(projection="lda", bandwidth="rule", inputs="logits"),
    "kernel, few": calibrant.KCal(projection="pca", dim=2, capacity=40, inputs="logits"),
    "venn-abers by folds": calibrant.VennAbers(folds=3, loss="brier"),
    "spline of ranks": calibrant.SplineCalibration(along="rank", knots=4),
    "free spline": calibrant.LogitSpline(monotone=False, strength=2.0, smooth_targets=False),
    "free parabola": calibrant.QuadraticScaling(monotone=False, strength=0.3, smooth_targets=1.0, clip=5.0),
    "few models": calibrant.BayesianBinning(strength=4.0, models=5),
    "diagonal": calibrant.OrderPreservingScaling(form="diagonal"),
    "few points": calibrant.GaussianProcessCalibration(points=6),
    "few bins": calibrant.BinwiseTemperatureScaling(bins=3),
    "plain frequencies": calibrant.Binning(edges="equal_mass", bins=5, smoothing=0.0),
    "means of scores": calibrant.Binning(edges="kmeans", bins=6, representatives="mean_score"),
    "lent": calibrant.Binning(edges="mi", bins=5, representatives=calibrant.PlattScaling()),
    "given edges": calibrant.Binning(edges=[0.2, 0.4, 0.9]),
    "without affine": calibrant.Binning(edges="imax", affine=False, random_state=3),
    "cells of one width": calibrant.Binning(edges="equal_width", bins=8, monotone=False, smoothing=2.0),
    "beta, one slope": calibrant.BetaCalibration(form="am", smooth_targets=True),
    "beta, through a half": calibrant.BetaCalibration(form="ab", smooth_targets=0.0),
    "beta, one number": calibrant.BetaCalibration(form="a"),
    "Platt's targets": calibrant.PlattScaling(smooth_targets=True),
    "centred, raw": calibrant.CentredIsotonic(smoothing=0.0),
    "isotonic, raw": calibrant.Isotonic(strict=True, epsilon=0.01, interpolate=False, smoothing=0.0),
    "dirichlet, given": calibrant.DirichletCalibration(regularisation="odir", strength=0.01, intercepts="origin"),
    "dirichlet by folds": calibrant.DirichletCalibration(strength="cv"),
    "matrix, given": calibrant.MatrixScaling(regularisation="odir", strength=0.1),
    "vector by folds": calibrant.VectorScaling(strength="cv"),
    "process, given": calibrant.GaussianProcessCalibration(variance=0.5, length=2.0),
    "hoki, searched": calibrant.Hoki(transformations=200, bins=6, random_state=1),
    "hoki, uniform": calibrant.Hoki(("uniform", -1.0, 1.0), bins=5, max_iterations=3),
    "hoki, integrated": calibrant.Hoki(("gaussian", 0.0, 1.5), transformations=None, bins=4),
    "hoki, uniform integral": calibrant.Hoki(("uniform", 0.0, 3.0), transformations=None, bins=3),
    "kernel, reservoir": calibrant.KCal(
        projection="identity", bandwidth=0.7, capacity=60, keep="reservoir", random_state=2, inputs="logits"
    ),
    "few knots": calibrant.LogitSpline(knots=4, clip=4.0, smooth_targets=True),
    "curve, smooth": calibrant.OrderPreservingScaling(smoothness=3.0, temperature=2.0),
    "steep parabola": calibrant.QuadraticScaling(strength=0.0, clip=3.0),
    "venn-abers in units": calibrant.VennAbers(unit=2.5),
    "given mixture": calibrant.Mixture([calibrant.make("ts"), calibrant.Uniform()], weights=(0.9, 0.1)),
    "handicaps": calibrant.Mixture(
        [calibrant.make("ts"), calibrant.make("irova")], weights="likely", cv=3, handicaps=(0.0, 4.0)
    ),
    "shared": calibrant.OneVsRest(calibrant.Isotonic(), share="all"),
    "shared by prior": calibrant.OneVsRest(calibrant.PlattScaling(), share="prior"),
    "vector, structured": calibrant.StructuredScaling(shape="vector"),
}


def exact(seed):
    """Probabilities of which many are exactly 0 or 1, as votes of a few trees are."""
    z, y = classes(240, 3, seed)
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return np.round(6 * p / p.sum(axis=1, keepdims=True)) / 6, y


def lifted(given):
    """Return a map for any number of classes."""
    map_ = calibrant.make(given) if isinstance(given, str) else given
    return calibrant.OneVsRest(map_) if isinstance(map_, BinaryMap) else map_


BY_ROUNDING = {(name, "ruled out") for name in ("temperature by Brier", "ensemble by Brier", "lent")}


@pytest.mark.parametrize(
    ("name", "of"),
    [(name, of) for name in OTHERS for of in ("four classes", "weights", "ruled out") if (name, of) not in BY_ROUNDING],
)
def test_an_operator_answers_as_it_did(name, of):
    z, y, w = SETS[of]
    check("operators", f"{name}, {of}", told(lifted(OTHERS[name]).fit(z, y, sample_weight=w), z))


@pytest.mark.parametrize("saturated", ["small", "exact"])
@pytest.mark.parametrize(
    "name", ["ts", "ets", "vector", "matrix-odir", "irova", "platt", "beta", "hb-mass", "bts", "sms"]
)
def test_zeros_and_ones_are_read_as_they_were(name, saturated):
    p, y = exact(12)
    p /= p.sum(axis=1, keepdims=True)
    fitted = calibrant.make(name).set_params(inputs="probabilities", saturated=saturated).fit(p, y)
    report = fitted.fit_report_
    found = {
        "p": fitted.predict_proba(p),
        "passes": report.iterations,
        "losses": [report.loss_before, report.loss_after],
    }
    check("operators", f"{name}, {saturated}", found)


@pytest.mark.parametrize("weighted", [False, True])
def test_groups_answer_as_they_did(weighted):
    z, y = classes(300, 3, 4)
    groups = np.random.default_rng(4).choice(["a", "b", "c"], 300, p=[0.5, 0.4, 0.1])
    w = np.random.default_rng(5).exponential(size=300) + 0.1 if weighted else None
    apart = calibrant.ByGroup(calibrant.make("ts")).fit(z, y, sample_weight=w, groups=groups)
    fair = calibrant.Multicalibrated(calibrant.make("ts")).fit(z, y, sample_weight=w, groups=groups)
    found = {
        "apart": apart.predict_proba(z[:20], groups=groups[:20]),
        "effects": apart.effects_,
        "variances": apart.variances_,
        "report": [apart.fit_report_.loss_after, apart.fit_report_.held_out_after],
        "fair": fair.predict_proba(z[:20], groups=groups[:20]),
    }
    check("operators", f"groups, {'weighted' if weighted else 'plain'}", found)


def test_labels_that_go_together_answer_as_they_did():
    z = np.random.default_rng(6).normal(size=(200, 3)) * 3
    y = (np.random.default_rng(7).random((200, 3)) < 1 / (1 + np.exp(-z / 2))).astype(int)
    fitted = calibrant.MultiLabel(calibrant.BetaCalibration()).fit(z, y)
    check("operators", "labels", {"p": fitted.predict_proba(z[:10])})


@pytest.mark.parametrize("count", [0.0, 5.0])
def test_other_frequencies_are_found_as_they_were(count):
    z, y = classes(400, 4, 8)
    shifted = calibrant.PriorShift(calibrant.make("ts"), pseudo_count=count).fit(z, y)
    rare, labels = classes(400, 4, 9)
    kept = (labels > 1) | (np.arange(400) % 4 == 0)
    shifted.adapt(rare[kept])
    found = {
        "priors": [shifted.source_priors_, shifted.priors_],
        "interval": shifted.priors_interval_,
        "test": shifted.shift_test_,
        "p": shifted.predict_proba(z[:10]),
    }
    check("operators", f"shift {count:g}", found)


@pytest.mark.parametrize("name", [name for name in registry.names() if "kcal" not in name and name != "blend"])
def test_many_rows_are_answered_as_they_were(name):
    """So many that sums are taken of some of them first, that cells are thinned, and that one fold is enough."""
    z, y = MANY
    fitted = calibrant.make(name).fit(z, y)
    report = fitted.fit_report_
    found = {
        "p": fitted.predict_proba(z[:200]),
        "passes": report.iterations,
        "losses": [report.loss_before, report.loss_after, report.held_out_after, report.held_out_error],
    }
    check("operators", f"many rows, {name}", found)


MANY = classes(20_000, 3, 20)
