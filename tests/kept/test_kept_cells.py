"""What cells, edges, partitions and the laws behind the words of a measurement give for many sets is what it was."""

import numpy as np
import pytest
from scipy.special import expit, logit
from tests.kept.comparing import check
from tests.kept.test_kept_maps import classes

from calibrant.cells import counted, summed
from calibrant.cells.counted import cells_apart, cells_of_groups
from calibrant.cells.edges import make_edges
from calibrant.cells.logistic import fit_logistic
from calibrant.cells.logit_spline import logit_spline
from calibrant.cells.moments import moments_of
from calibrant.cells.pairs import Pairs, standard_error
from calibrant.metrics.inference import clustered, cumulative_test, group_test, means
from calibrant.metrics.inference.shape import shape_of
from calibrant.passes import Block, in_memory

SIZES = (1, 2, 9, 60, 700, 5000)
WAYS = {
    "as they are": lambda s: s,
    "too sure": lambda s: expit(0.5 * logit(s)),
    "too timid": lambda s: expit(1.8 * logit(s)),
    "too high": lambda s: expit(logit(s) - 0.8),
    "in places": lambda s: np.where((s > 0.3) & (s < 0.5), 0.9, s),
    "upside down": lambda s: 1 - s,
}


def parts(*found):
    """Return each by its place, arrays as a whole."""
    return dict(enumerate(found))


def pairs(n, way="too sure", weights=None, digits=6, clusters=None):
    rng = np.random.default_rng(n)
    scores = np.round(np.clip(expit(rng.normal(-0.4, 1.6, n)), 0.001, 0.999), digits)
    outcomes = (rng.random(n) < WAYS[way](scores)).astype(float)
    w = {
        None: None,
        "counts": rng.integers(0, 4, n).astype(float) + (np.arange(n) == 0),
        "fractions": rng.exponential(size=n) + 0.01,
    }[weights]
    return Pairs(scores, outcomes, w, clusters=None if clusters is None else np.arange(n) // clusters)


@pytest.mark.parametrize("weights", [None, "counts", "fractions"])
@pytest.mark.parametrize("kind", ["equal_width", "equal_mass", "kmeans", "imax", "sturges"])
def test_edges(kind, weights):
    found = {
        f"{n} {bins}": make_edges(kind, bins, pairs(n, weights=weights, digits=digits))
        for n, digits in ((9, 6), (60, 1), (700, 2), (700, 6))
        for bins in (1, 2, 7, 40)
    }
    check("cells", f"edges {kind} {weights}", found)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ways", ["exact", "counted"])
def test_cells_of_log_odds(monkeypatch, ways, weighted):
    if ways == "counted":
        monkeypatch.setattr(counted, "_EXACT", 0)
        monkeypatch.setattr(counted, "_FINE", 1 << 11)
        monkeypatch.setattr(counted, "MOST_FINE", 1 << 9)
    z, y = classes(900, 5, 3)
    w = np.random.default_rng(0).exponential(size=900) if weighted else None
    found = {}
    for name, groups in (
        ("each", np.arange(5)),
        ("all", np.zeros(5, dtype=np.int64)),
        ("two", np.array([0, 1, 0, 1, -1])),
    ):
        data = in_memory(Block(z, y, w, 5))
        whole = list(cells_of_groups(data, groups))
        _, rest = cells_apart(data, groups, 7)
        for g, (cells, part) in enumerate(zip(whole, rest, strict=True)):
            sums = (cells.scores, cells.weights, cells.outcomes, cells.cuts, part.weights, part.outcomes)
            merged = cells.thinned(37)
            found[f"{name} {g}"] = parts(*sums, cells.raw_loss, merged.scores, merged.weights, merged.cuts)
            found[f"{name} {g} cut"] = parts(
                cells.bounds(np.array([-2.0, -0.1, 3.0])), cells.sums(np.array([-1.0, 2.0]))
            )
    check("cells", f"fine {ways} {weighted}", found)


@pytest.mark.parametrize("weights", [None, "counts", "fractions"])
def test_sums_of_rows(weights):
    found = {}
    for n in SIZES:
        for digits in (2, 6):
            given = pairs(n, weights=weights, digits=digits)
            one, two = summed.summed(given, 10), summed.summed(given.take(np.arange(n) % 3 > 0), 10) if n > 1 else None
            found[f"{n} {digits}"] = parts(one.table.ravel(), one.exact, (one + one).table.ravel())
            found[f"{n} {digits} more"] = None if two is None else (one + two).table.ravel()
            values = given.scores**2
            moments = moments_of(values, given.weights)
            more = moments + moments_of(values + 1.0, given.weights)
            found[f"{n} {digits} moments"] = [moments.mean, moments.rows, *moments.spread, more.mean, *more.spread]
            found[f"{n} {digits} error"] = [*standard_error(values, given), given.rows, given.total]
            own = given.cells
            found[f"{n} {digits} cells"] = parts(own.scores, own.weights, own.outcomes, own.rows, own.residuals)
    z, y = classes(3000, 4, 1)
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    w = None if weights is None else pairs(3000, weights=weights).weights
    each = summed.summed_classes(p, y, w, 12)
    found["classes"] = parts(*(part.table.ravel() for part in each))
    found["binned"] = summed.binned_classes(each, np.array([0.0, 0.1, 0.5, 1.0])).ravel()
    check("cells", f"sums {weights}", found)


@pytest.mark.parametrize("way", WAYS)
def test_curves_and_lines(way):
    found = {}
    at = np.array([0.01, 0.2, 0.5, 0.9])
    for n, weights, clusters in ((700, "counts", 5), (5000, None, None)):
        given = pairs(n, way, weights=weights, clusters=clusters)
        curve = logit_spline(given)
        x = logit(given.scores)
        design = np.column_stack([np.ones(n), x])
        fit = fit_logistic(design, given.weight_array * given.outcomes, given.weight_array, penalty=np.eye(2) * 0.3)
        key = f"{n} {weights} {clusters}"
        line = (fit.theta, fit.covariance.ravel(), fit.likelihood)
        found[key] = parts(curve.at(at), *curve.band(at, 0.9), *line)
        shape = shape_of(given)
        found[f"{key} shape"] = parts(shape.kind, *shape.ranges)
    check("cells", f"curves {way}", found)


@pytest.mark.parametrize("way", ["as they are", "too sure", "too high"])
def test_laws_of_figures(way):
    found = {}
    for n, weights, clusters in (
        (9, None, None),
        (60, None, None),
        (60, None, 4),
        (700, "fractions", None),
        (700, "counts", 5),
    ):
        given, rng = pairs(n, way, weights=weights, clusters=clusters), np.random.default_rng(n)
        key = f"{n} {weights} {clusters}"
        places = np.arange(n) % 3
        found[key] = {
            "groups": group_test.group_findings(given, places, list("abc"), 0.9, 39, rng),
            "differ": group_test.groups_differ(given, places, 3, 39, rng),
            "ecce": cumulative_test.cumulative_pvalue(given, "ecce", 39, rng),
            "ks": cumulative_test.cumulative_pvalue(given, "ks", 39, rng),
            "rate": means.share_interval(given, 0.9),
            "loss": means.loss_interval((given.scores - given.outcomes) ** 2, given, 0.9),
            "rarer": means.rarer(given),
        }
        if clusters is not None:
            known = clustered.clusters_of(given.counted())
            ones = np.ones((known.pairs.n, 1))
            drawn = np.concatenate(list(known.drawn(5, rng)))
            spread = known.spread(ones, drawn).ravel()
            found[key]["clusters"] = parts(bool(known.few), float(known.share_of(known.residuals)), spread)
    check("cells", f"laws {way}", found)
