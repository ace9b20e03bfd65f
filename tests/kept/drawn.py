"""Calls that are drawn by a number: any map or figure, of any setting, on few or many rows of any sort.

What people write down are the settings and the sets that they think of; most branches wait for the others.
"""

import re
import zlib

import numpy as np
from tests.kept.comparing import flat

import calibrant
from calibrant import metrics
from calibrant.errors import CalibrantError

SIZES = (1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 19, 20, 21, 40, 60, 90, 130)
NUMBERS = (None, True, False, 0, 0.01, 0.25, 0.5, 1, 1.5, 2, 3, 4, 5, 8, 0.1, 12.0)
BINARY = (
    *("PlattScaling", "BetaCalibration", "Isotonic", "CentredIsotonic", "SplineCalibration", "LogitSpline"),
    *("QuadraticScaling", "VennAbers", "BayesianBinning", "Binning", "Binning"),
)
CLASSES = ["TemperatureScaling", "EnsembleTemperatureScaling", "BinwiseTemperatureScaling", "OrderPreservingScaling"]
CLASSES += ["GaussianProcessCalibration", "VectorScaling", "MatrixScaling", "DirichletCalibration", "StructuredScaling"]
LEFT = {"inputs", "classes", "saturated", "noise", "representatives", "callable"}
PLAIN = (
    *("ece", "ece_sweep", "ece_debiased", "smece", "ks_error", "ecce", "mce", "ece_kde", "cwece", "ace"),
    *("calibration_slope", "calibration_intercept", "calibration_in_the_large", "observed_expected"),
    *("ici", "e50", "e90", "emax", "scaled_brier", "auroc", "averaged_two_bin", "two_bin_excess", "event_rate"),
    *("variational_error", "over_confidence", "under_confidence", "decision_loss", "canonical_error", "skce"),
    *("accuracy", "brier", "nll", "ece_crossfit"),
)
OPTIONS = {
    "calibration_error": {
        "estimator": (None, "binned", "sweep", "label_binned", "debiased", "kde", "smooth", "ks", "exact", "crossfit"),
        "norm": (None, 1, 2, "max"),
        "view": ("top_label", "class_wise", 0, 1, "top_1", "marginals"),
        "threshold": (None, None, 0.2, "1/K", "prior"),
        "squared": (False, False, True),
        "bins": (None, 1, 2, 7, "sturges"),
        "edges": (None, "equal_width", "equal_mass", "kmeans", "imax"),
    },
    "reliability_curve": {
        "view": ("top_label", 0, 1),
        "bins": (1, 2, 7, 15, "sturges"),
        "edges": ("equal_width", "equal_mass", "kmeans", "imax"),
        "method": ("wilson", "clopper_pearson"),
        "confidence": (0.5, 0.95),
    },
    "brier_decomposition": {
        "view": ("multi_class", "top_label", 1),
        "method": ("isotonic", "binned"),
        "bins": (1, 5, 15),
        "edges": ("equal_width", "equal_mass", "imax"),
    },
    "nll_decomposition": {"view": ("top_label", 0, 1), "method": (None, "isotonic", "binned"), "bins": (None, 4)},
    "decision_curve": {"thresholds": ((0.1, 0.5), (0.03, 0.3, 0.9)), "view": ("top_label", 1)},
    "top_k_accuracy": {"k": (1, 2, 3)},
    "net_benefit": {"threshold": (0.1, 0.5, 0.8), "prevalence": (None, 0.2), "view": ("top_label", 1)},
    "recalibration_benefit": {"threshold": (0.2, 0.5)},
    "ici": {"smoother": ("lowess", "loess", "rcs", "rcs3", "spline")},
    "canonical_error": {"norm": (1, 2), "bandwidth": ("likelihood", 0.1)},
    "skce": {
        "estimator": ("unbiased", "biased", "linear"),
        "kernel": ("gaussian", "laplacian", "total_variation"),
        "bandwidth": ("median", 0.3),
    },
    "ece_kde": {"bandwidth": (None, "reference", "silverman", 0.1), "space": (None, "logit"), "norm": (None, 2, "max")},
    "smece": {"width": (None, 0.05), "grid": (None, "relplot")},
    "variational_error": {"folds": (2, 5), "smoother": (None, "lowess", "rcs")},
}


def rows(rng, *, most=130, events=0.4):
    """Draw scores, labels, weights and clusters of any sort; labels go with the scores, more or less."""
    n, k = (
        int(rng.choice([size for size in SIZES if size <= most])),
        2 if rng.random() < events else 3 + int(rng.integers(4)),
    )
    true = rng.normal(size=(n, k)) * rng.choice([0.3, 1.5, 4.0]) - np.linspace(0, rng.choice([0.0, 2.0]), k)
    y = (true * rng.choice([1.0, 1.0, -0.5, 0.0]) + rng.gumbel(size=(n, k))).argmax(axis=1)
    z = np.round(true * rng.choice([0.5, 1.0, 2.0]), int(rng.choice([0, 1, 6, 6])))
    w = [None, None, rng.integers(0, 4, n) + (np.arange(n) == 0), rng.exponential(size=n) + 0.05][rng.integers(4)]
    w = None if w is None else w.astype(float)
    own = np.sort(rng.integers(0, max(1, n // 3), n)) if rng.random() < 0.25 else None
    return z, y, w, None if own is None else np.unique(own, return_inverse=True)[1]


def probabilities(z):
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def setting(rng, kind):
    """Draw a map with settings that it accepts: each by its name alone, whatever else may be set."""
    given, salt = {}, int(rng.integers(10**6))
    for name, rule in getattr(kind, "_constraints", {}).items():
        words = re.findall(r"'([a-z_\-]+)'", rule.allowed)
        fit = [(zlib.crc32(f"{name} {value} {salt}".encode()), value) for value in (*NUMBERS, *words)]
        fit = [value for _, value in sorted(fit, key=lambda drawn: drawn[0]) if rule.accepts(value)]
        if name not in LEFT and fit and zlib.crc32(f"{name} {salt}".encode()) % 10 < 6:
            given[name] = fit[0]
    return kind(**given)


def fitted(rng):
    """Return what a drawn map answers to its rows and to others, and what its report says."""
    z, y, w, _ = rows(rng)
    binary = rng.random() < 0.5
    kind = getattr(calibrant, rng.choice(BINARY if binary else CLASSES))
    made = setting(rng, kind)
    if binary and (z.shape[1] > 2 or rng.random() < 0.3):
        share = rng.choice(["none", "all", "prior"]) if z.shape[1] > 2 else "none"
        made = calibrant.OneVsRest(made, share=str(share), normalize=str(rng.choice(["sum", "softmax"])))
    z = z.astype(rng.choice([np.float64, np.float64, np.float32]))
    if rng.random() < 0.2:
        made.inputs, z = "probabilities", probabilities(z)
    apart = np.concatenate([z[:4], probabilities(9.0 * rng.normal(size=(5, z.shape[1])))]).astype(z.dtype)

    def call(order, times):
        made.fit(z[order] * (times if made.inputs == "logits" else 1), y[order], **weighed(w, order))
        report = made.fit_report_
        numbers = (report.loss_before, report.loss_after, report.held_out_after, report.held_out_error)
        return made.predict_proba(apart), numbers, report.held_out_pvalue, len(report.messages), bool(report.caveat)

    return call, len(y)


def weighed(w, order, **clusters):
    """Return the options of rows in another order: those that there are."""
    given = {"sample_weight": w, **clusters}
    return {name: part[order] for name, part in given.items() if part is not None}


def figure(rng):
    """Return what a drawn figure says with drawn options."""
    z, y, w, _ = rows(rng)
    name = str(rng.choice([*OPTIONS, "calibration_error", *PLAIN]))
    drawn = {key: some[rng.integers(len(some))] for key, some in OPTIONS.get(name, {}).items()}
    given = {key: value for key, value in drawn.items() if value is not None}
    p = forecast(rng, z)
    return lambda order, times: getattr(metrics, name)(
        y[order], near(p[order], times), **given, **weighed(w, order)
    ), len(y)


def near(p, times):
    """Return probabilities with other last bits, but for those that are exactly 0 or 1."""
    return np.where((p == 0) | (p == 1), p, np.where(p < 0.5, p * times, 1 - (1 - p) * times))


def forecast(rng, z):
    """Return probabilities, of two classes sometimes as one score, sometimes exactly 0 or 1."""
    p = probabilities(z)
    if z.shape[1] == 2 and rng.random() < 0.7:
        p = p[:, 1]
        return np.where(rng.random(len(p)) < rng.choice([0.0, 0.0, 0.1]), np.round(p), p)
    return p


def tested(rng):
    """Return what a drawn test says."""
    z, y, w, own = rows(rng)
    method = str(rng.choice(["sweep", "ecce", "ks", "two_bin", "cox", "spiegelhalter", "skce"]))
    given = {"method": method, "resamples": 29, "norm": int(rng.integers(1, 3)), "random_state": int(rng.integers(3))}
    if method != "skce":
        given["view"] = ("top_label", 0, 1, "pooled")[rng.integers(4)]
    p = forecast(rng, z)
    return lambda order, times: metrics.calibration_test(
        y[order], near(p[order], times), **given, **weighed(w, order, clusters=own)
    ), len(y)


def drawn_again(rng):
    """Return the interval of a drawn figure."""
    z, y, w, own = rows(rng, events=0.7)
    name, p = str(rng.choice(PLAIN)), forecast(rng, z)
    given = {"resamples": 29, "confidence": float(rng.choice([0.5, 0.9]))}
    return lambda order, times: metrics.bootstrap(
        name, y[order], near(p[order], times), **given, **weighed(w, order, clusters=own)
    ), len(y)


def measured(rng):
    """Return what a drawn measurement says."""
    z, y, w, own = rows(rng, most=90, events=0.6)
    p = forecast(rng, z)
    of = rng.choice(["a", "b", "c"], len(y), p=[0.6, 0.3, 0.1]) if rng.random() < 0.3 else None
    given = {"resamples": 29, "bins": int(rng.integers(1, 16)), "confidence": float(rng.choice([0.5, 0.8, 0.95]))}
    given["profile"] = str(rng.choice(["default", "risk", "forecast"] if p.ndim == 1 else ["default"]))

    def call(order, times):
        found = calibrant.measure(
            y[order], near(p[order], times), **given, **weighed(w, order, clusters=own, groups=of)
        )
        return found.to_dict(), str(found)

    return call, len(y)


def grouped(rng):
    """Return what maps beside maps answer: by group, of other frequencies, of several labels."""
    z, y, w, _ = rows(rng)
    of = rng.choice(["a", "b"], len(y), p=[0.7, 0.3])
    kind, inner = int(rng.integers(4)), calibrant.make(str(rng.choice(["ts", "platt", "isotonic-s", "vector"])))
    later = rng.permutation(len(y))[: max(1, len(y) // 2)]

    def call(order, times):
        if kind == 0:
            made = calibrant.ByGroup(inner).fit(z[order] * times, y[order], groups=of[order], **weighed(w, order))
            return made.predict_proba(z, groups=of)
        if kind == 1:
            made = calibrant.Multicalibrated(inner, cells=3, level=0.3)
            made.fit(z[order] * times, y[order], groups=of[order], **weighed(w, order))
            return made.predict_proba(z, groups=of)
        if kind == 2:
            made = calibrant.PriorShift(inner, pseudo_count=0.5).fit(z[order] * times, y[order], **weighed(w, order))
            adapted = made.adapt(z[later], check=False)
            return adapted.predict_proba(z)
        several = (z[order] > 0.3).astype(int)
        several[:2] = np.eye(2, z.shape[1])[: len(y)]
        made = calibrant.MultiLabel(calibrant.PlattScaling()).fit(1.7 * z[order], several, **weighed(w, order))
        return made.predict_proba(z)

    return call, len(y)


FAMILIES = {
    "fitted": fitted,
    "figure": figure,
    "tested": tested,
    "drawn again": drawn_again,
    "measured": measured,
    "grouped": grouped,
}


def told(call, order, times=1.0):
    """Return all that a call says as three numbers and a word: counted, added up, added up in turns, and spelt."""
    try:
        found = call(order, times)
    except CalibrantError as refusal:
        found = {"refused": str(refusal)}
    numbers, words = [], []
    for place, value in flat(found):
        some = value if isinstance(value, list) else [value]
        numbers += [value for value in some if not isinstance(value, str)]
        words += [place, *(value for value in some if isinstance(value, str))]
    small = np.arcsinh(1e3 * np.nan_to_num(np.array(numbers, dtype=float), nan=-1.5, posinf=1e3, neginf=-1e3))
    turns = np.cos(np.arange(len(small)))
    return [len(small), float(small.sum()), float(small @ turns), zlib.crc32(" ".join(words).encode())]


def agree(one, other, close):
    """Whether two calls said the same but for rounding."""
    return (one[0], one[3]) == (other[0], other[3]) and bool(np.allclose(one[1:3], other[1:3], rtol=1e-7, atol=close))


def stable(call, n):
    """Return what a call says; None where other last bits, or another order of the rows, make it say other things."""
    found = told(call, np.arange(n))
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(n)
        if not agree(found, told(call, order, 1.0 + (seed - 1) * 1e-13), 1e-4):
            return None
    return [found[0], *(float(f"{value:.10g}") for value in found[1:3]), found[3]]


def case(family, seed):
    """Return a drawn call and the number of its rows."""
    return FAMILIES[family](np.random.default_rng([seed, zlib.crc32(family.encode())]))
