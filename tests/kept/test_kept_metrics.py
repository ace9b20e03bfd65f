"""What every figure says of a few sets, with its interval, its test and its words, is what it was."""

from itertools import product

import numpy as np
import pytest
from tests.kept.comparing import check

from calibrant import measure, metrics
from calibrant.errors import InvalidInput
from calibrant.metrics.measuring import Measuring
from calibrant.metrics.table import TABLE


def event(n, rare, seed, digits=4):
    rng = np.random.default_rng(seed)
    p = np.round(rng.beta(rare, 2, n), digits)
    return (rng.random(n) < p**1.25).astype(int), p


def classes(n, k, seed):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k))
    p = np.exp(1.8 * z)
    return (z + rng.gumbel(size=(n, k))).argmax(axis=1), p / p.sum(axis=1, keepdims=True)


def clustered(n, rare, seed):
    rng = np.random.default_rng(seed)
    own = np.arange(n) // 8
    p = rng.beta(rare, 2, n // 8 + 1)[own] * 0.9 + 0.05 * rng.random(n)
    return (rng.random(n // 8 + 1)[own] < p).astype(int), p, own


COMMON, RARE, FEW, TIED = event(400, 1.0, 0), event(600, 0.05, 1), event(12, 1.0, 2), event(300, 0.7, 3, 1)
MANY = classes(350, 4, 4)
FRACTIONS = np.random.default_rng(5).exponential(size=400) + 0.05
COUNTS = np.random.default_rng(6).integers(0, 4, 400).astype(float)
IN_CLUSTERS, RARE_IN_CLUSTERS = clustered(400, 1.5, 7), clustered(800, 0.04, 8)
SURE = (COMMON[0], np.where(np.arange(400) % 3, COMMON[1], np.round(COMMON[1])))
GROUPS = np.random.default_rng(9).choice(["a", "b", "c"], 400, p=[0.6, 0.3, 0.1])
SETS = {
    "an event": (COMMON, {}),
    "rare": (RARE, {}),
    "few rows": (FEW, {}),
    "ties": (TIED, {"confidence": 0.8, "bins": 7}),
    "fractions": (COMMON, {"sample_weight": FRACTIONS}),
    "counts": (COMMON, {"sample_weight": COUNTS}),
    "clusters": (IN_CLUSTERS[:2], {"clusters": IN_CLUSTERS[2]}),
    "rare clusters": (RARE_IN_CLUSTERS[:2], {"clusters": RARE_IN_CLUSTERS[2]}),
    "weighted clusters": (IN_CLUSTERS[:2], {"clusters": IN_CLUSTERS[2], "sample_weight": FRACTIONS}),
    "classes": (MANY, {}),
    "weighted classes": (MANY, {"sample_weight": FRACTIONS[:350]}),
    "groups": (COMMON, {"groups": GROUPS}),
    "weighted groups": (COMMON, {"groups": GROUPS, "sample_weight": FRACTIONS}),
    "groups in clusters": (IN_CLUSTERS[:2], {"groups": GROUPS, "clusters": IN_CLUSTERS[2]}),
    "a level": (COMMON, {"confidence": 0.99, "random_state": 3}),
    "sure": (SURE, {}),
    "constant": ((COMMON[0], np.full(400, 0.3)), {}),
    "classes in clusters": (MANY, {"clusters": np.arange(350) // 7}),
}
SETS |= {f"{n} rows": ((COMMON[0][:n], COMMON[1][:n]), {}) for n in (1, 2, 3, 5)}
NOT_TESTED = ("groups", "weighted groups", "groups in clusters", "a level")  # of which tests say nothing new


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        *((name, "default") for name in SETS),
        ("few rows", "risk"),  # of others a curve's bias is taken off, or not, by its last bit
        *((name, "forecast") for name in ("an event", "rare", "weighted clusters")),
    ],
)
def test_a_measurement_says_what_it_did(name, profile):
    given, options = SETS[name]
    found = measure(*given, profile=profile, resamples=99, **options)
    check("measurements", f"{name}, {profile}", found.to_dict())


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("labels", {}),
        ("weighted labels", {"sample_weight": FRACTIONS[:200]}),
        ("labels in clusters", {"clusters": np.arange(200) // 4, "confidence": 0.9}),
    ],
)
def test_labels_that_go_together_are_measured_as_they_were(name, options):
    rng = np.random.default_rng(10)
    p = rng.random((200, 3))
    y = np.where(rng.random((200, 3)) < 0.05, np.nan, (rng.random((200, 3)) < p**1.2).astype(float))
    check("measurements", name, measure(y, p, profile="multilabel", resamples=99, **options).to_dict())


@pytest.mark.parametrize("name", ["an event", "rare", "fractions", "counts", "classes", "weighted classes", "groups"])
def test_blocks_are_measured_as_they_were(name):
    (y, p), options = SETS[name]
    measuring = Measuring(resamples=99)
    for rows in np.array_split(np.arange(len(y)), 3):
        measuring.update(y[rows], p[rows], **{key: value[rows] for key, value in options.items()})
    check("measurements", f"{name}, in blocks", measuring.finalise().to_dict())


@pytest.mark.parametrize("name", [name for name in SETS if name not in NOT_TESTED])
@pytest.mark.parametrize("method", ["sweep", "ecce", "ks", "two_bin", "cox", "spiegelhalter"])
def test_a_test_says_what_it_did(name, method):
    given, options = SETS[name]
    options = {key: options[key] for key in ("clusters", "sample_weight") if key in options}
    found = [metrics.calibration_test(*given, method=method, resamples=99, norm=norm, **options) for norm in (2, 1)]
    check("tests", f"{name}, {method}", found)


ESTIMATORS = ("binned", "sweep", "label_binned", "debiased", "kde", "smooth", "ks", "exact", "crossfit")
VIEWS = ("top_label", "class_wise", 1)


@pytest.mark.parametrize(("estimator", "view"), list(product(ESTIMATORS, VIEWS)))
def test_an_estimator_says_what_it_did(estimator, view):
    found = {}
    for norm, weights, squared in product((1, 2), (None, COUNTS[:350]), (False, True)):
        try:
            value = metrics.calibration_error(
                *MANY, estimator=estimator, view=view, norm=norm, squared=squared, sample_weight=weights
            )
        except InvalidInput as error:
            value = type(error).__name__
        found[f"{norm} {weights is None} {squared}"] = value
    check("estimators", f"{estimator}, {view}", found)


@pytest.mark.parametrize("name", sorted(TABLE.keys() - {"ici"}))  # whose bias hangs on the last bit of a curve
def test_a_bootstrap_says_what_it_did(name):
    given = {"threshold": 0.3} if name in ("net_benefit", "recalibration_benefit") else {}
    weights = np.ceil(FRACTIONS) if name == "canonical_error" else COUNTS
    found = [
        metrics.bootstrap(name, *COMMON, resamples=49, confidence=0.9, sample_weight=w, **given)
        for w in (None, weights)
    ]
    check("bootstraps", name, found)


@pytest.mark.parametrize("edges", ["equal_width", "equal_mass", "kmeans", "imax", "sturges"])
def test_edges_are_what_they_were(edges):
    curves = [
        metrics.reliability_curve(*COMMON, bins=9, edges=edges, method=method, sample_weight=w)
        for method, w in (("wilson", None), ("wilson", COUNTS), ("clopper_pearson", FRACTIONS))
    ]
    parts = metrics.brier_decomposition(*MANY, method="binned", bins=9, edges=edges)
    check("curves", edges, [*curves, parts])


def test_what_is_left_says_what_it_did():
    y, p = COMMON
    better = p**1.25
    found = {
        "samples": [metrics.required_samples(0.05, norm=norm, scores=p, repeats=60) for norm in (1, 2)],
        "plain": metrics.required_samples(0.1, repeats=60),
        "compared": [metrics.compare_forecasts(y, p, better, loss=loss) for loss in ("brier", "nll")],
        "weighted": metrics.compare_forecasts(y, p, better, sample_weight=FRACTIONS),
        "gain": metrics.calibration_gain(y, p, better),
        "brier": metrics.brier_decomposition(y, p, sample_weight=FRACTIONS),
        "nll": metrics.nll_decomposition(y, p),
        "decisions": metrics.decision_curve(y, p, sample_weight=FRACTIONS),
        "information": metrics.mutual_information(y, p, [0.2, 0.5, 0.7]),
        "bound": metrics.calibration_error_bound(0.03, 5000, 15),
    }
    check("others", "others", found)
