"""What is done in parts where there are many rows, classes or scores, is done in parts of few: the same answers."""

import importlib

import numpy as np
import pytest
from tests.kept.comparing import check
from tests.kept.test_kept_cells import pairs
from tests.kept.test_kept_maps import SETS, classes
from tests.kept.test_kept_metrics import COMMON, COUNTS, FRACTIONS, IN_CLUSTERS, MANY

import calibrant
from calibrant import metrics
from calibrant.cells import summed
from calibrant.cells.logit_spline import logit_spline
from calibrant.errors import CalibrantError
from calibrant.metrics.estimators.smoothers import _by_score
from calibrant.metrics.inference import class_test, shape
from calibrant.metrics.inference.kernel_test import kernel_features
from calibrant.metrics.views.forecasts import read
from calibrant.passes import Block, in_memory
from calibrant.validation import saturation

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
Y, P = MANY[0][:131], MANY[1][:131]
W = COUNTS[:131] + 0.5
CLUSTERED = read(Y, P, None).clustered(np.arange(131) // 3)


def fit(name, of="four classes", **given):
    z, y, w = SETS[of]
    fitted = calibrant.make(name).set_params(**given).fit(z, y, sample_weight=w)
    return np.r_[fitted.predict_proba(z).ravel(), fitted.fit_report_.loss_after, fitted.fit_report_.held_out_after]


def many(name, k):
    z, y = classes(5 * k, k, k)
    w = np.random.default_rng(k).integers(1, 3, len(y)) * 1.0
    fitted = calibrant.make(name).fit(z, y, sample_weight=w)
    return np.r_[fitted.predict_proba(z).ravel(), fitted.fit_report_.loss_after]


def interval(name, **given):
    found = metrics.bootstrap(name, *COMMON, resamples=24, sample_weight=COUNTS, **given)
    return [found.estimate, found.low, found.high]


def finding(clusters=None, weights=None, **given):
    y, p = (IN_CLUSTERS if clusters is not None else COMMON)[:2]
    found = metrics.calibration_test(y, p, resamples=49, clusters=clusters, sample_weight=weights, **given)
    return [found.statistic, found.pvalue]


def zeros():
    z = SETS["ruled out"][0]
    return [saturation.smallest_log(z), saturation.smallest_log(z - 90.0)]


SAME = {  # where, which constant, how small, what is asked, and how close it must be
    "distances": ("metrics.estimators.kernel", "_BLOCK", (1, 7, 130, 131), lambda: metrics.skce(Y, P), 1e-9),
    "weighted distances": (
        *("metrics.estimators.kernel", "_BLOCK", (7, 130)),
        lambda: [metrics.skce(Y, P, sample_weight=W, estimator=e, kernel="laplacian") for e in ("unbiased", "biased")],
        1e-9,
    ),
    "whole vectors": (
        *("metrics.estimators.canonical", "_BLOCK", (1, 7, 130, 131)),
        lambda: metrics.canonical_error(Y, P, sample_weight=W, bandwidth=0.02),
        1e-9,
    ),
    "features": ("metrics.inference.kernel_test", "_BLOCK", (1, 9, 130), lambda: kernel_features(P, 0.5), 1e-9),
    "resamples": ("metrics.inference.resampling", "BLOCK", (1, 1000, 2000), lambda: interval("ece"), 1e-12),
    "signs": (
        *("metrics.inference.class_test", "BLOCK", (1, 5000)),
        lambda: class_test.class_wise_pvalue(CLUSTERED, 49, np.random.default_rng(0)),
        1e-12,
    ),
    "logarithms": ("validation.saturation", "_ROWS", (1, 7, 199, 200), zeros, 1e-12),
    "products": ("maps.scaling._products", "_SCORES", (1, 900, 1190), lambda: many("matrix-odir", 34), 1e-5),
    "residuals": ("maps.scaling._problem", "_FUSED", (4,), lambda: fit("matrix-odir"), 1e-5),
    "rates": ("maps.binary.table", "_MOST_COUNTED", (1, 4), lambda: fit("hb-mass"), 1e-9),
    "two classes": ("maps.binary.two_class", "_SMALL", (1, 100), lambda: fit("isotonic-s", "one event"), 1e-9),
    "groups of bins": ("maps.binary.binning", "_TOGETHER", (1, 3), lambda: fit("imax-cw"), 1e-9),
    "views": ("passes.view", "_COPIED", (1,), lambda: fit("vector"), 1e-5),
    "held views": ("passes.engines", "_HELD", (4000,), lambda: fit("irova-ts"), 1e-5),
    "densities": (
        *("maps.density", "_BLOCK", (1, 64)),
        lambda: fit("kcal-logits", "five rows"),
        1e-9,
    ),
}


@pytest.mark.parametrize("what", SAME)
def test_parts_make_the_same(monkeypatch, what):
    room, constant, sizes, ask, close = SAME[what]
    whole = np.asarray(ask(), dtype=np.float64)
    module = importlib.import_module(f"calibrant.{room}")
    assert hasattr(module, constant)
    for size in sizes:
        with monkeypatch.context() as patch:
            patch.setattr(module, constant, size)
            np.testing.assert_allclose(np.asarray(ask(), dtype=np.float64), whole, rtol=close, atol=close)


def curve(n=700, weights=None):
    found = logit_spline(pairs(n, "too sure", weights=weights))
    return [*found.at(np.array([0.05, 0.4, 0.9])), *np.ravel(found.band(np.array([0.05, 0.4, 0.9]), 0.9))]


def risk(**given):
    y, p, w = COMMON[0], COMMON[1], FRACTIONS
    found = [metrics.bootstrap(name, y, p, sample_weight=w, **given) for name in LINES]
    return [end for one in found for end in (one.estimate, one.low, one.high)]


LINES = ("calibration_slope", "calibration_intercept", "calibration_in_the_large")
FEWER = {  # coarser where there is more: the answers are close, and kept
    "cells of a curve": ("cells.logit_spline", "_GROUPS", (40, 699, 700), lambda: [curve(), curve(700, "fractions")]),
    "cells of a profile": ("metrics.inference.risk", "_GROUPED", (50, 399), risk),
    "cells of shapes": (
        *("metrics.inference.shape", "GROUPS", (30, 100)),
        lambda: [shape.shape_of(pairs(700, way, weights="counts")) for way in ("too sure", "in places", "too high")],
    ),
    "a glance": (
        "cells.summed",
        "_GLANCE",
        (3, 600),
        lambda: [part.table for part in summed.summed_classes(P, Y, W, 8)],
    ),
    "places of a density": ("metrics.estimators.kde", "_PLACES", (64, 65), lambda: metrics.ece_kde(*COMMON)),
    "places of a kernel at the ends": (  # the last place and the one before it, whose gaps would cancel
        *("metrics.estimators.smooth", "_PLACES", (64,)),
        lambda: (
            [metrics.smece(np.repeat([k, 1 - k], 9), np.repeat([k, abs(k - 1.5 / 64)], 9), width=0.004) for k in (0, 1)]
            + [
                metrics.smece(np.repeat([1 - k, k], 9), np.repeat([k, abs(k - 1.5 / 64)], 9), width=0.004)
                for k in (0, 1)
            ]
        ),
    ),
    "places of a kernel": ("metrics.estimators.smooth", "_PLACES", (64, 65), lambda: metrics.smece(*COMMON)),
    "rows of a likelihood": (
        *("metrics.estimators.canonical", "_MOST", (20, 130)),
        lambda: [metrics.canonical_error(Y, P, norm=norm) for norm in (1, 2)],
    ),
    "rows of a kernel test": (
        *("metrics.inference.testing", "MOST_KERNEL_ROWS", (50, 349)),
        lambda: metrics.calibration_test(*MANY, method="skce", resamples=49),
    ),
    "rows of cumulative sums": (
        *("metrics.inference.cumulative_test", "MOST_ROWS", (50, 399)),
        lambda: [finding(IN_CLUSTERS[2], method=m) for m in ("ks", "ecce")] + [finding(method="ks", weights=FRACTIONS)],
    ),
    "rows of Rao's test": (
        *("metrics.inference.clustered", "MOST_DRAWN", (20, 49)),
        lambda: [finding(IN_CLUSTERS[2], method=m) for m in ("cox", "spiegelhalter")],
    ),
    "many rows": (
        "metrics.inference.uncertainty",
        "MANY",
        (100, 400),
        lambda: [interval("ece"), interval("ece_sweep")],
    ),
    "many clusters": (
        "metrics.inference.class_test",
        "MANY",
        (1, 30),
        lambda: class_test.class_wise_pvalue(CLUSTERED, 49, np.random.default_rng(0)),
    ),
    "few events": (
        "metrics.inference.testing",
        "FEW_EVENTS",
        (0.0, 1e9),
        lambda: [finding(method=m) for m in ("cox", "two_bin")],
    ),
    "classes of curves": (
        "metrics.measuring",
        "MOST_CLASSES",
        (1, 2),
        lambda: metrics.measure(*MANY, resamples=9).to_dict(),
    ),
    "rows of shifts": ("operators.prior_shift", "_ROWS", (60,), lambda: adapted()),
    "classes of shifts": ("operators._label_shift", "_NEWTON", (2, 3), lambda: adapted()),
    "dealt folds": ("passes.folds", "_DEALT", (10,), lambda: fit("ts")),
    "cells of keys": ("passes.folds", "_BUCKETS", (16, 64), lambda: fit("ts")),
    "a sample": ("maps.scaling.temperature", "_MANY_ROWS", (100,), lambda: fit("ts")),
    "a scan": ("maps.scaling.temperature", "_GRID_SCORES", (100,), lambda: fit("ts", "enormous")),
    "a pilot of curves": ("maps.scaling._curve_search", "_PILOT_ROWS", (100,), lambda: fit("iop")),
    "a pilot of mixtures": ("maps.scaling.ensemble", "_PILOT_ROWS", (100,), lambda: fit("ets")),
    "a pilot of lines": ("maps.binary.logistic_fit", "_PILOT_ROWS", (100,), lambda: fit("platt")),
    "few cells": ("maps.binary.binning", "_IMAX_CELLS", (32, 128), lambda: fit("imax")),
    "cells of splines": ("maps.binary.logit_spline", "_CELLS", (40,), lambda: fit("logit-spline")),
    "places of splines": ("maps.binary.spline", "_PLACES", (9, 33), lambda: fit("spline")),
    "one fold": ("fits.judge", "_ONE_FOLD", (1,), lambda: fit("vector")),
    "a judge's pilot": ("fits.judge", "_PILOT", (50,), lambda: fit("vector")),
    "part of the losses": ("operators.one_vs_rest", "_LARGE", (100,), lambda: fit("irova")),
}


def adapted():
    z, y = classes(200, 4, 8)
    fitted = calibrant.PriorShift(calibrant.make("ts")).fit(z, y)
    rare, labels = classes(200, 4, 9)
    fitted.adapt(rare[(labels > 1) | (np.arange(200) % 4 == 0)])
    return [*fitted.priors_, *np.ravel(fitted.priors_interval_), *fitted.predict_proba(z[:5]).ravel()]


@pytest.mark.parametrize("what", FEWER)
def test_fewer_parts_make_what_they_made(monkeypatch, what):
    room, constant, sizes, ask = FEWER[what]
    module = importlib.import_module(f"calibrant.{room}")
    assert hasattr(module, constant)
    found = {}
    for size in sizes:
        with monkeypatch.context() as patch:
            patch.setattr(module, constant, size)
            try:
                found[f"{size}"] = ask()
            except CalibrantError as refusal:
                found[f"{size}"] = str(refusal)
    check("parts", what, found)


def test_curves_of_grouped_scores_keep_their_means():
    """Neighbours that are joined have the weight, the mean score and the mean outcome of their rows."""
    given = pairs(700, weights="fractions")
    cells = given.cells
    few = _by_score(cells, 30)
    assert 15 <= len(few.scores) <= 31
    assert few.weights.sum() == pytest.approx(cells.weights.sum())
    assert few.weights @ few.scores == pytest.approx(cells.weights @ cells.scores)
    assert few.outcomes.sum() == pytest.approx(cells.outcomes.sum())
    assert (np.diff(few.scores) > 0).all()
    assert few.weights.max() < 3 * few.weights.mean() + cells.weights.max()
    assert _by_score(cells, len(cells.scores)) is cells


def test_blocks_hold_what_their_rows_hold():
    """Rows of weight zero are as good as absent in every statistic of a pass, whatever their scores."""
    z, y, _ = SETS["four classes"]
    w = np.random.default_rng(0).integers(0, 3, len(y)) * 1.0
    far = z.copy()
    far[w == 0] = [[0.0, -np.inf, -np.inf, -np.inf]]
    labels = np.where(w == 0, 3, y)
    one = calibrant.make("vector").fit(z[w > 0], y[w > 0], sample_weight=w[w > 0])
    two = calibrant.make("vector").fit(far, labels, sample_weight=w)
    np.testing.assert_allclose(two.predict_proba(z), one.predict_proba(z), atol=1e-5)
    assert two.fit_report_.held_out_after == pytest.approx(one.fit_report_.held_out_after, rel=1e-4)
    data = in_memory(Block(far, labels, w, 4))
    assert data.total_weight == w.sum()
    assert data.n == (w > 0).sum()
