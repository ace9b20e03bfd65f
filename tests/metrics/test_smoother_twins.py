"""R's smoothers on few rows with ties, against the same written for rows one by one."""

import numpy as np
import pytest

from calibrant.cells.pairs import Pairs
from calibrant.metrics.estimators import smoothers
from calibrant.metrics.estimators.smoothers import SMOOTHERS, smoothed


def local(x, y, at, span, degree):
    """Return value and slope of a local polynomial over rows, with tricube weights over the nearest share."""
    distance = np.sort(np.abs(x - at))
    reach = distance[int(np.floor(span * len(x) + 1e-5)) - 1] if span * len(x) >= 1 else distance[0]
    away = np.abs(x - at)
    if reach <= 0:
        return y[away <= 0].mean(), 0.0
    w = np.where(away < reach, (1 - np.minimum(away / reach, 1) ** 3) ** 3, 0.0)
    if degree == 1:
        w = np.where(away <= 0.001 * reach, 1.0, w) * (away <= 0.999 * reach)
    if not w.any():
        return None  # the nearest score alone
    places = len(np.unique(x[w > 0]))
    middle = np.average(x, weights=w)
    crowded = degree == 1 and np.average((x - middle) ** 2, weights=w) ** 0.5 <= 0.001 * np.ptp(x)
    if crowded or places <= degree:
        return np.average(y, weights=w), 0.0
    found = np.polynomial.polynomial.polyfit((x - at) / reach, y, degree, w=np.sqrt(w))
    return found[0], found[1] / reach


def vertices(x, fewest):
    """Return R's vertices: parts with more rows are cut at the first row tied with their middle one."""
    beyond = 0.005 * max(x[-1] - x[0], 1e-3)
    found, parts = [x[0] - beyond, x[-1] + beyond], [(1, len(x), x[0] - beyond, x[-1] + beyond)]
    while parts:
        first, last, low, high = parts.pop()
        cut = x[(first + last) // 2 - 1]
        middle = int(np.flatnonzero(x == cut)[0]) + 1
        if last - first + 1 > fewest and middle >= first and low < cut < high:
            found.append(cut)
            parts += [(first, middle, low, cut), (middle + 1, last, cut, high)]
    return sorted(found)


def rows(seed):
    """Return scores of few values, outcomes and how often each row comes."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 30))
    p = np.sort(rng.integers(1, 4 + 2 * (seed % 12), n) / 32)
    return p, rng.integers(0, 2, n) * 1.0, rng.integers(1, 4, n)


@pytest.mark.parametrize("degree", [1, 2])
def test_local_polynomials_are_those_of_rows(degree):
    for seed in range(60):
        p, y, counts = rows(seed)
        cells = Pairs(p, y, counts * 1.0).cells
        x, o = np.repeat(p, counts), np.repeat(y, counts)
        for at in (*cells.scores[:3], 0.3, cells.scores[-1] + 0.01):
            for span in (0.2, 2 / 3, 0.75, 1.0):
                wanted = local(x, o, at, span, degree)
                if wanted is not None and span * counts.sum() >= 1:
                    np.testing.assert_allclose(smoothers._local(cells, at, span, degree), wanted, rtol=1e-6, atol=1e-6)


def test_vertices_are_those_of_rows():
    for seed in range(60):
        p, y, counts = rows(seed)
        x = np.repeat(p, counts)
        for least in (0.15, 0.05, 0.4):
            found = smoothers._vertices(Pairs(p, y, counts * 1.0).cells, least)
            np.testing.assert_allclose(found, vertices(x, np.floor(least * len(x) + 1e-9)), rtol=1e-12)


def test_lowess_stands_at_places_a_hundredth_of_the_range_apart():
    """Each is the last score within that reach of the one before, or the next where there is none."""
    x = np.r_[0.1, 0.105, 0.108, 0.2, 0.5, 0.5085, 0.509, 0.51, 0.9]
    y = np.r_[0, 1, 0, 1, 0, 1, 1, 0, 1] * 1.0
    curve = smoothed(Pairs(x, y), "lowess")
    wanted, at = [x[0]], 0
    while at < len(x) - 1:
        within = [i for i in range(len(x)) if x[i] <= x[at] + 0.01 * (x[-1] - x[0])]
        at = max(at + 1, within[-1])
        wanted.append(x[at])
    assert curve.places.tolist() == wanted
    values = [local(x, y, place, 2 / 3, 1)[0] for place in wanted]
    np.testing.assert_allclose(curve.values, values, rtol=1e-9)
    middles = (curve.places[1:] + curve.places[:-1]) / 2
    np.testing.assert_allclose(curve.at(middles), (curve.values[1:] + curve.values[:-1]) / 2)


@pytest.mark.parametrize("name", [name for name in SMOOTHERS if name != "spline"])
def test_counts_are_rows_and_fractions_have_no_unit(rng, name):
    p, counts = np.sort(rng.uniform(0.05, 0.95, 40)), rng.integers(1, 4, 40)
    y, at = (rng.random(40) < p) * 1.0, np.linspace(0.1, 0.9, 9)
    whole = smoothed(Pairs(np.repeat(p, counts), np.repeat(y, counts)), name).at(at)
    np.testing.assert_allclose(smoothed(Pairs(p, y, counts * 1.0), name).at(at), whole, rtol=1e-6, atol=1e-7)
    fractions = counts + 0.25
    known = smoothed(Pairs(p, y, fractions), name)
    for unit in (2.0**-20, 1000 / 3):
        found = smoothed(Pairs(p, y, fractions * unit), name)
        if name[:3] != "rcs":  # whose knots are at ranks of weights
            np.testing.assert_allclose(found.at(at), known.at(at), rtol=1e-7, atol=1e-8)


def test_joined_neighbours_keep_their_weights_scores_and_rows(rng):
    for weights in (None, rng.integers(1, 4, 900) * 1.0, rng.choice([0.5, 1.25], 900)):
        p = np.sort(rng.random(900))
        cells = Pairs(p, (rng.random(900) < p) * 1.0, weights).cells
        found = smoothers._by_score(cells, 100)
        steps = np.floor((np.cumsum(cells.weights) - cells.weights) * (100 / cells.weights.sum()))
        parts = [steps == step for step in np.unique(steps)]
        assert len(found.scores) == len(parts) <= 100
        np.testing.assert_allclose(found.weights, [cells.weights[part].sum() for part in parts])
        np.testing.assert_allclose(found.outcomes, [cells.outcomes[part].sum() for part in parts])
        means = [np.average(cells.scores[part], weights=cells.weights[part]) for part in parts]
        np.testing.assert_allclose(found.scores, means, rtol=1e-12)
        assert found.rows == pytest.approx(cells.rows)
        assert smoothers._by_score(cells, 900) is cells
