"""What figures say at their corners — odd numbers of rows, two scores, many classes, exact labels — is what it was."""

import numpy as np
import pytest
from tests.kept.comparing import check
from tests.kept.test_kept_cells import pairs
from tests.kept.test_kept_laws import told
from tests.kept.test_kept_metrics import COMMON, COUNTS, FRACTIONS, IN_CLUSTERS, MANY, classes

from calibrant import metrics
from calibrant.arrays import weighted_quantiles
from calibrant.cells import summed
from calibrant.cells.pairs import Pairs
from calibrant.metrics.estimators import kde, smoothers
from calibrant.metrics.inference import bounds, cumulative_test, means, testing
from calibrant.metrics.inference.resampling import Sampling
from calibrant.metrics.views.forecasts import read

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
Y, P = MANY[0][:131], MANY[1][:131]
W = COUNTS[:131] + 0.5
EVENT = (COMMON[0][:75], COMMON[1][:75])
WIDE = classes(70, 65, 3)
TWO = (np.array([0, 1, 1, 0]), np.array([0.2, 0.2, 0.7, 0.7]))
RAW = np.random.default_rng(1).integers(0, 3, P.shape).astype(float)
CORNERS = {
    "accuracy": lambda: [metrics.accuracy(Y, P, sample_weight=w, raw_scores=r) for w in (None, W) for r in (None, RAW)],
    "best of few": lambda: [metrics.top_k_accuracy(Y, P, k=k, sample_weight=W) for k in (1, 2, 3, 4, 5)],
    "kernels of an odd number": lambda: [
        metrics.skce(Y[:n], P[:n], estimator=e, sample_weight=w[:n], kernel=k, bandwidth=0.5)
        for n in (2, 3, 4, 129)
        for e in ("linear", "unbiased", "biased")
        for k in ("gaussian", "laplacian")
        for w in (np.ones(131),)
    ],
    "weighted kernels": lambda: [
        told(metrics.skce, Y[:n], P[:n], estimator=e, sample_weight=COUNTS[:n])
        for n in (3, 8, 129)
        for e in ("linear", "unbiased", "biased")
    ],
    "kernels of many rows": lambda: [metrics.skce(*classes(n, 3, 5), estimator="linear") for n in (1000, 1001)],
    "densities": lambda: [
        metrics.ece_kde(*EVENT, bandwidth=b, space=s, norm=n)
        for b in ("reference", "rule", 0.004, 0.3, 1.0)
        for s in ("probability", "logit")
        for n in (1, 2, "max")
        if b != "rule"
    ],
    "rules of densities": lambda: [
        kde.bandwidth_of(rule, points.cells.scores, points.cells)
        for rule in ("reference", "silverman", 0.7)
        for points in (
            Pairs(EVENT[1], np.zeros(75)),
            Pairs(*EVENT[::-1], FRACTIONS[:75]),
            Pairs(np.full(9, 0.4), np.ones(9)),
        )
    ],
    "local lines": lambda: [
        smoothers._local(cells, x, span, degree)
        for cells in (pairs(60, digits=1).cells, pairs(60, weights="fractions").cells, pairs(9).cells)
        for x in (0.0, 0.1, 0.333, 0.9)
        for span in (0.2, 0.75)
        for degree in (1, 2)
    ],
    "crowded lines": lambda: [
        smoothers._local(
            Pairs(np.r_[np.linspace(0.5, 0.5003, 30), 0.9, 0.01], np.arange(32) % 2 * 1.0).cells, x, 0.5, d
        )
        for x in (0.5, 0.5001, 0.9)
        for d in (1, 2)
    ],
    "vertices": lambda: [
        smoothers._vertices(cells, least)
        for cells in (pairs(60).cells, pairs(700, weights="fractions").cells, pairs(9, digits=1).cells)
        for least in (0.05, 0.15, 0.4)
    ],
    "restricted curves": lambda: [
        smoothers.smoothed(pairs(700, weights=w), kind).at(np.array([0.01, 0.2, 0.5, 0.97]))
        for w in (None, "counts", "fractions")
        for kind in ("rcs", "rcs3", "rcs5", "lowess", "loess", "spline")
    ],
    "quantiles": lambda: [
        weighted_quantiles(np.arange(n) ** 1.5, np.arange(n) % 3 + 0.5, np.array([0.0, 0.05, 0.5, 0.95, 1.0]))
        for n in (2, 5, 12)
    ],
    "bases": lambda: [
        smoothers._restricted_basis(np.linspace(-2, 3, 7), np.array(knots))
        for knots in ([-1.0, 0.0, 1.5], [-1.0, -0.5, 0.5, 2.0])
    ],
    "many classes": lambda: (
        [
            told(getattr(metrics, name), *WIDE, sample_weight=w)
            for name in ("cwece", "ace", "brier", "nll", "ece", "ece_sweep", "accuracy")
            for w in (None, FRACTIONS[:70])
        ]
        + [metrics.cwece(WIDE[0] % k, WIDE[1][:, :k] / WIDE[1][:, :k].sum(1, keepdims=True)) for k in (63, 64)]
    ),
    "two scores": lambda: [
        told(getattr(metrics, name), *TWO)
        for name in ("calibration_slope", "calibration_intercept", "calibration_in_the_large", "auroc", "scaled_brier")
    ],
    "tests of two scores": lambda: [
        told(metrics.calibration_test, *given, method=m, resamples=39)
        for m in ("cox", "spiegelhalter", "two_bin", "ks", "ecce", "sweep")
        for given in (TWO, (np.array([0, 1]), np.array([0.0, 1.0])), (np.array([1, 1]), np.array([1.0, 1.0])))
    ],
    "exact scores": lambda: [
        testing.spiegelhalter_z(Pairs(np.array(s), np.array(o)))
        for s, o in (([0.0, 1.0], [0.0, 1.0]), ([0.0, 1.0], [1.0, 1.0]), ([1.0, 1.0], [0.0, 1.0]), ([0.5], [1.0]))
    ],
    "own metrics": lambda: [
        metrics.bootstrap(metric, *given, resamples=19, sample_weight=w, clusters=c)
        for metric in (mean_gap, metrics.brier)
        for given, w, c in ((COMMON, COUNTS, None), (IN_CLUSTERS[:2], None, IN_CLUSTERS[2]), (COMMON, None, None))
    ],
    "shares": lambda: [
        means.share_interval(Pairs(p, y, w, clusters=c), level)
        for level in (0.5, 0.95)
        for y in (COMMON[0][:40] * 1.0, np.ones(40), np.zeros(40), COMMON[0][:40] * 0.7)
        for p in (COMMON[1][:40],)
        for w, c in ((None, None), (FRACTIONS[:40], None), (None, np.arange(40) // 4), (None, np.zeros(40, dtype=int)))
    ],
    "losses": lambda: [
        means.loss_interval(values, Pairs(COMMON[1][:n], COMMON[0][:n] * 1.0, w, clusters=c), 0.9)
        for n in (1, 2, 12, 60)
        for values in ((COMMON[1][:n] - COMMON[0][:n]) ** 2, np.zeros(n), np.r_[np.inf, np.zeros(n - 1)])
        for w, c in ((None, None), (FRACTIONS[:n], None), (None, np.arange(n) // 3))
    ],
    "largest gaps": lambda: [
        bounds.largest_gap_interval(pairs(n, weights=w), 0.1, level, bins, edges)
        for n, w in ((1, None), (60, "fractions"), (700, "counts"))
        for level in (0.5, 0.95)
        for bins in (1, 5)
        for edges in ("equal_width", "equal_mass")
    ],
    "cumulative laws": lambda: [
        cumulative_test.cumulative_pvalue(pairs(n, way, weights=w, clusters=c), which, 49, np.random.default_rng(0))
        for n, c in ((9, None), (60, 4), (60, None))
        for way in ("as they are", "too high")
        for w in (None, "fractions")
        for which in ("ks", "ecce")
    ],
    "tails": lambda: [
        function(x)
        for function in (cumulative_test.range_pvalue, cumulative_test.maximum_pvalue)
        for x in (0.0, 1e-9, 0.1, 0.3, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 40.0)
    ],
    "curves by view": lambda: [
        metrics.reliability_curve(*given, view=view, bins=5, sample_weight=w)
        for given, view in ((COMMON, "top_label"), (COMMON, 0), (COMMON, 1), (MANY, "top_label"), (MANY, 2))
        for w in (None, FRACTIONS[: len(given[0])])
    ],
    "decisions": lambda: [
        told(metrics.net_benefit, *COMMON, threshold=t, prevalence=q, sample_weight=w)
        for t in (0.01, 0.25, 0.5, 0.99)
        for q in (None, 0.1)
        for w in (None, COUNTS)
    ],
    "kept scores": lambda: [
        summed.summed(pairs(700, weights=w), 10, cells).table.ravel() for w in (None, "fractions") for cells in (8, 64)
    ],
    "decisions elsewhere": lambda: [
        metrics.bootstrap("net_benefit", *COMMON, resamples=19, sample_weight=w, threshold=0.3, prevalence=q)
        for q in (None, 0.1)
        for w in (None, COUNTS)
    ],
    "kernel tests of few rows": lambda: [
        told(metrics.calibration_test, Y[:n], P[:n], method="skce", resamples=19) for n in (1, 2, 3)
    ],
    "rounds of a cross-fit": lambda: [
        told(metrics.variational_error, *EVENT, folds=f, random_state=r) for f in (2, 5) for r in (0, 1)
    ],
    "bounds": lambda: [
        told(metrics.calibration_error_bound, gap, n, bins)
        for gap in (0.0, 0.03)
        for n in (10, 5000)
        for bins in (1, 15)
    ],
    "information": lambda: [
        metrics.mutual_information(*given, edges, sample_weight=w)
        for given in (COMMON,)
        for edges in ([0.5], [0.2, 0.5, 0.7])
        for w in (None, COUNTS)
    ],
    "intervals of unions": lambda: [
        read(*MANY, w).one_class(k).rows for w in (None, COUNTS[:350], FRACTIONS[:350]) for k in range(4)
    ],
    "draws": lambda: [
        [one.weight_array @ np.arange(one.n) for one in Sampling(5, np.random.default_rng(0), slow=3).pairs(given)]
        for given in (
            pairs(60),
            pairs(60, weights="counts"),
            pairs(60, clusters=7),
            pairs(60, weights="fractions", clusters=7),
        )
    ],
}


def mean_gap(y_true, y_prob, sample_weight=None):
    return abs(float(np.average(np.asarray(y_true) - y_prob, weights=sample_weight)))


@pytest.mark.parametrize("what", CORNERS)
def test_corners(what):
    found = CORNERS[what]()
    check("corners", what, {str(i): one for i, one in enumerate(found)})
