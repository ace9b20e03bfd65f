"""Cells, edges and sums on many small sets of few numbers, against their definitions in fractions and loops."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logit

from calibrant.cells import edges, logit_spline, moments, pairs
from calibrant.cells import summed as summed_cells
from calibrant.cells.fine import FineCells, cells_of_scores
from calibrant.cells.information import bin_information
from calibrant.cells.logistic import fit_logistic
from calibrant.cells.pairs import Pairs
from calibrant.cells.partition import optimal_partition
from calibrant.errors import FileProblem, InvalidInput


def small(seed, weights=(None, "counts", "halves", "zeros")):
    """Return a few rows whose scores and weights are few numbers."""
    rng = np.random.default_rng(seed)
    n, kind = int(rng.integers(1, 13)), weights[seed % len(weights)]
    w = {
        None: None,
        "counts": rng.integers(1, 4, n) * 1.0,
        "halves": rng.choice([0.25, 0.5, 1.5], n),
        "zeros": np.r_[1.0, rng.integers(0, 3, n)][:n] * 1.0,
    }[kind]
    return rng, rng.integers(0, 5 + seed % 7, n) / 16, rng.integers(0, 2, n) * 1.0, w


def bins_by_fractions(scores, weights, bins):
    """Return where bins of equal mass begin: a group of ties lies in bin ⌊C·b/n⌋, C the weight of smaller scores."""
    w = [Fraction(1)] * len(scores) if weights is None else list(map(Fraction, weights))
    total, found, last = sum(w), [0.0], 0
    for score in sorted(set(scores)):
        below = sum(one for one, s in zip(w, scores, strict=True) if s < score)
        place = int(below * bins / total)
        if place > last and below > 0:
            found.append(score)
            last = place
    return [*found, 1.0]


def test_bins_of_equal_mass_follow_ranks_in_fractions():
    for seed in range(150):
        rng, scores, _, w = small(seed, (None, "counts", "halves"))
        bins = int(rng.choice([1, 2, 3, 5, 16]))
        wanted = bins_by_fractions(scores.tolist(), w, bins)
        assert edges.equal_mass(scores, bins, w).tolist() == wanted
        assert edges.equal_mass(scores, bins, w, np.argsort(scores, kind="stable")).tolist() == wanted
        assert edges.make_edges("equal_mass", bins, Pairs(scores, scores, w)).tolist() == wanted


@pytest.mark.parametrize("unit", [2.0**50, 2.0**61, 2.0**80, 0.1, 1e-9, 1 / 3])
def test_bins_of_equal_mass_do_not_depend_on_the_unit_of_weights(unit):
    for seed, bins in np.ndindex(12, 8):
        _, scores, _, w = small(3 * seed + 1, (None, "counts", "halves"))
        bins += 1
        assert edges.equal_mass(scores, bins, w * unit).tolist() == bins_by_fractions(scores.tolist(), w, bins)


def test_sturges_number_grows_by_one_with_every_doubling():
    assert [edges.sturges(n) for n in (0, 1, 1.5, 2, 3, 4, 5, 8, 9, 1024, 1025)] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 11, 12]
    rows = Pairs(np.arange(9) / 16, np.zeros(9))
    assert len(edges.make_edges("sturges", 15, rows)) == len(edges.make_edges("equal_width", "sturges", rows)) == 6
    assert len(edges.make_edges("equal_mass", "sturges", rows)) == 6


def test_edges_of_a_user_are_completed_and_refused():
    for given, wanted in (
        ([], [0, 1]),
        ([0.5], [0, 0.5, 1]),
        ([0, 0.5], [0, 0.5, 1]),
        ([0.5, 1], [0, 0.5, 1]),
        ([0, 1], [0, 1]),
        ([0.5, 0.5], [0, 0.5, 0.5, 1]),
    ):
        assert edges.given(given).tolist() == wanted
    for bad in ([-0.1, 0.5], [0.5, 1.1], [0.5, 0.4], [[0.5]], [np.nan], [0.0, np.inf]):
        with pytest.raises(InvalidInput, match="edges must"):
            edges.given(bad)
    places = edges.bin_index(np.array([-1.0, 0.0, 0.25, 0.5, 0.75, 1.0, 2.0]), np.array([0, 0.25, 0.5, 1.0]))
    assert places.tolist() == [0, 0, 1, 2, 2, 2, 2]


def test_cells_and_numbers_of_rows_are_sums_over_ties():
    for seed in range(100):
        _, scores, y, w = small(seed)
        found, own = Pairs(scores, y, w), np.ones(len(y)) if w is None else w
        kept = sorted(set(scores[own > 0]))
        cells = found.cells
        assert cells.scores.tolist() == kept
        assert cells.weights.tolist() == [own[scores == s].sum() for s in kept]
        assert cells.outcomes.tolist() == [(own * y)[scores == s].sum() for s in kept]
        whole = bool((own == np.floor(own)).all())
        assert (cells.unit is None) == whole
        rows = own.sum() if whole else own.sum() ** 2 / (own**2).sum()
        assert (found.rows, cells.rows) == pytest.approx((rows, rows))
        assert cells.share.sum() == pytest.approx(1)
        assert cells.residuals.sum() == pytest.approx((own * (y - scores)).sum())
        assert found.counted().n == (own > 0).sum()
        assert found.weighted(None).total == found.n
        drawn = Pairs(scores, y, own + 1, np.full(len(y), 4.0))
        assert drawn.rows == pytest.approx((own + 1).sum() ** 2 / ((own + 1) ** 2 / 4).sum())


def test_whole_weights_stand_for_rows_up_to_a_number():
    for weights, whole in (([5e7, 5e7], True), ([5e7, 5e7 + 1], False), ([0.5, 0.5], False), ([0.0, 2.0], True)):
        assert pairs.is_whole(np.array(weights)) is whole


def test_the_standard_error_of_a_mean_adds_clusters_up():
    """√(G/(G-1) Σ_g (Σ share·(x - mean))²), each row a cluster of its own where there are none."""
    for seed in range(40):
        rng, scores, y, w = small(seed)
        own, values = np.ones(len(y)) if w is None else w, rng.normal(size=len(y))
        clusters = rng.integers(0, 4, len(y))
        share = own / own.sum()
        d = share * (values - share @ values)
        sums = [d[clusters == g].sum() for g in set(clusters[own > 0])]
        error, count = pairs.standard_error(values, Pairs(scores, y, w, clusters=clusters))
        assert count == len(sums)
        assert error == pytest.approx(
            math.sqrt(count / (count - 1) * sum(s * s for s in sums)) if count > 1 else math.inf
        )
        error, count = pairs.standard_error(values, Pairs(scores, y, w))
        assert count == pytest.approx(pairs.rows_of(len(y), w))
        spread = share @ (values - share @ values) ** 2
        assert error == pytest.approx(math.sqrt(spread / (count - 1)) if count > 1 else math.inf)


def test_moments_about_any_shift_are_sums_of_powers():
    for seed in range(40):
        rng, values, _, w = small(seed)
        values = values * 16 - 2
        own = np.ones(len(values)) if w is None else w
        if seed % 3 == 0:
            values[rng.random(len(values)) < 0.2] = np.inf
        finite, shift, other = np.isfinite(values), 1.75, -3.5
        parts = [
            moments.moments_of(values[i::2], None if w is None else w[i::2], shift) for i in range(2) if len(values) > i
        ]
        if len(parts) == 2 and parts[1].weight > 0 and parts[0].weight > 0:
            found = parts[0].about(other) + parts[1]
            found, whole = found.about(shift), moments.moments_of(values, w, shift)
            for name in moments._NUMBERS:
                assert getattr(found, name) == pytest.approx(getattr(whole, name)), name
            assert (found.least, found.whole) == (whole.least, whole.whole)
        found = moments.moments_of(values, w, shift).about(other)
        for power, name in enumerate(("first", "second", "third"), start=1):
            wanted = (own[finite] * (values[finite] - other) ** power).sum()
            assert getattr(found, name) == pytest.approx(wanted)
        assert found.infinite == own[~finite].sum()
        assert found.least == values[own > 0].min()
        if finite.all() and found.rows > 1:
            mean = np.average(values, weights=own)
            assert found.mean == pytest.approx(mean)
            variance = np.average((values - mean) ** 2, weights=own) * found.rows / (found.rows - 1)
            deviation, skewness = found.spread
            assert deviation == pytest.approx(math.sqrt(variance), abs=1e-12)
            third = np.average((values - mean) ** 3, weights=own)
            assert skewness == pytest.approx(third / deviation**3 if deviation > 1e-6 else 0.0, abs=1e-9)
        told = moments.moments_of(values, w, shift)
        assert moments.Moments.from_dict(told.to_dict()) == told


def test_moments_that_no_rows_have_are_refused():
    good = moments.moments_of(np.array([1.0, 2.0, 4.0]), np.array([1.0, 0.5, 2.0]), 0.0).to_dict()
    at_the_end = {**good, "first": good["weight"] * good["least"], "second": good["weight"] * good["least"] ** 2}
    at_the_end["third"] = good["weight"] * good["least"] ** 3
    moments.Moments.from_dict(at_the_end)  # all rows may be the least one
    moments.Moments.from_dict({**good, "infinite": good["weight"]})
    moments.Moments.from_dict({**good, "infinite": 0, "squares": 1})
    for name, values in {
        "weight": (0.0, -1.0, np.nan, np.inf, True, "3.5", 1e-320),
        "squares": (-1.0, np.inf, False, None),
        "first": (np.nan, -4.0, at_the_end["first"] * (1 - 1e-6), "1"),
        "second": (-1.0, np.inf, True),
        "third": (np.nan, 1e308 * 10, False),
        "shift": (np.inf, True),
        "infinite": (-1.0, 4.0, True, np.nan),
        "least": (np.nan, 3.5, True, "1.0", 2.8571429),
        "whole": (1, 0, "no", None),
    }.items():
        for bad in values:
            with np.errstate(all="ignore"), pytest.raises(FileProblem, match="moments"):
                moments.Moments.from_dict({**good, name: bad})


def test_fine_cells_are_merged_and_bounded_by_definition():
    for seed in range(30):
        rng, scores, y, w = small(seed)
        own = np.ones(len(y)) if w is None else w
        cells = cells_of_scores(scores, y if seed % 2 else y > 0, w)
        values = sorted(set(scores[own > 0]))
        assert cells.scores.tolist() == values
        assert cells.weights.tolist() == [own[scores == s].sum() for s in values]
        assert cells.outcomes.tolist() == [(own * y)[scores == s].sum() for s in values]
        assert cells.cuts.tolist() == [(a + b) / 2 for a, b in pairwise(values)]
        assert cells.exact
        edges_at = rng.choice(np.arange(-1, 12), 5) / 16
        first = {sum(v < e for v in values) for e in edges_at}
        assert cells.bounds(edges_at).tolist() == sorted(first - {0, len(values)})
        bounds = np.unique(rng.integers(1, max(2, cells.count), 3))
        bounds = bounds[bounds < cells.count]
        merged = cells.merged(bounds)
        parts = np.split(np.arange(cells.count), bounds)
        assert merged.weights.tolist() == [cells.weights[part].sum() for part in parts]
        assert merged.outcomes.tolist() == [cells.outcomes[part].sum() for part in parts]
        means = [np.average(cells.scores[part], weights=cells.weights[part]) for part in parts]
        np.testing.assert_allclose(merged.scores, means, rtol=1e-14)
        assert merged.cuts.tolist() == cells.cuts[bounds - 1].tolist()
        assert not merged.exact
        thin = cells.thinned(2)
        assert thin.weights.sum() == cells.weights.sum()
        assert thin.outcomes.sum() == cells.outcomes.sum()
        assert cells.thinned(cells.count) is cells


@pytest.mark.parametrize("bins", [2, 3, 4])
def test_the_best_partition_is_the_best_of_all(bins):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        count = int(rng.integers(1, 9))
        weights = rng.integers(1, 4, count) * 1.0
        cells = FineCells(
            np.arange(count) * 1.0, weights, rng.integers(0, weights + 1) * 1.0, np.arange(1, count) - 0.5
        )

        def told(bounds, cells=cells):
            merged = cells.merged(np.array(bounds, dtype=np.int64))
            return bin_information(merged.weights, merged.outcomes).sum()

        found = optimal_partition(cells, bins)
        assert len(found) < bins
        best = max(
            told(np.flatnonzero([mask >> i & 1 for i in range(count - 1)]) + 1)
            for mask in range(1 << (count - 1))
            if mask.bit_count() < bins
        )
        assert told(found) == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_a_logistic_fit_is_the_optimum_that_scipy_finds(seed):
    rng = np.random.default_rng(seed)
    design = np.column_stack([np.ones(12), rng.normal(size=12)])
    weights = rng.choice([0.5, 1.0, 4.0], 12)
    outcomes = weights * rng.choice([0.0, 0.25, 1.0], 12)
    offset = rng.normal(size=12) if seed % 2 else 0.3
    root = rng.normal(size=(2, 2))
    penalty, centre = root @ root.T + 0.1 * np.eye(2), rng.normal(size=2)

    def loss(theta):
        z, away = design @ theta + offset, theta - centre
        return -(outcomes @ log_expit(z) + (weights - outcomes) @ log_expit(-z)) + 0.5 * away @ penalty @ away

    best = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13, "maxiter": 4000})
    start = None if seed < 4 else rng.normal(size=2) * 3
    found = fit_logistic(design, outcomes, weights, offset=offset, penalty=penalty, start=start, centre=centre)
    assert found.converged
    np.testing.assert_allclose(found.theta, best.x, atol=1e-6)
    z = design @ found.theta + offset
    assert found.likelihood == pytest.approx(outcomes @ log_expit(z) + (weights - outcomes) @ log_expit(-z))
    bend = (design.T * (weights * expit(z) * expit(-z))) @ design
    np.testing.assert_allclose(found.curvature, bend, rtol=1e-6)
    np.testing.assert_allclose(found.covariance, np.linalg.inv(bend + penalty), rtol=1e-6)


def test_a_logistic_fit_of_separable_outcomes_ends_and_says_so():
    x = np.array([-2.0, -1.0, 1.0, 2.0])
    found = fit_logistic(x[:, None], (x > 0) * 1.0, np.ones(4))
    assert np.isfinite(found.theta).all()
    assert found.likelihood > -1e-6
    tall = fit_logistic(1e4 * x[:, None], (x > 0) * 1.0, np.ones(4), start=np.array([1.0]))
    assert tall.theta.tolist() == [1.0]


@pytest.mark.parametrize("weighed", [False, True])
def test_a_curve_of_clusters_knows_how_their_sums_vary(rng, weighed):
    """B(G/(G-1) Σ g gᵀ + P)B with g the sum of a cluster's scores, weights counting as rows, in any unit."""
    n = 80
    p, clusters = rng.uniform(0.05, 0.95, n), rng.integers(0, 9, n)
    y, w = (rng.random(n) < p**1.5) * 1.0, rng.choice([0.5, 1.25, 2.0], n) if weighed else None
    found = logit_spline.logit_spline(Pairs(p, y, w, clusters=clusters))
    own = np.ones(n) if w is None else w * w.sum() / (w**2).sum()
    basis = logit_spline._basis(logit(p), found.knots)
    rest = own * (y - found.at(p))
    sums = [basis[clusters == g].T @ rest[clusters == g] for g in range(9)]
    meat = sum(np.outer(one, one) for one in sums) * 9 / 8
    bread = found.fit.covariance
    np.testing.assert_allclose(found.covariance, bread @ (meat + found.fit.penalty) @ bread, rtol=1e-8)
    if weighed:
        again = logit_spline.logit_spline(Pairs(p, y, w * 1e-4, clusters=clusters))
        np.testing.assert_allclose(again.covariance, found.covariance, rtol=1e-4, atol=1e-9)
        assert again.strength == found.strength


def test_the_strength_of_a_curve_has_the_greatest_evidence(rng):
    """Laplace: log-likelihood less half the penalty, less half the log-determinant, plus (k - 2)/2 logs of strength."""
    p = rng.uniform(0.02, 0.98, 150)
    y = (rng.random(150) < p**2) * 1.0
    found = logit_spline.logit_spline(Pairs(p, y))
    cells, k = Pairs(p, y).cells, len(found.knots)
    basis, rough = logit_spline._basis(logit(cells.scores), found.knots), logit_spline._roughness(found.knots)

    def evidence(strength):
        fit = fit_logistic(basis, cells.outcomes, cells.weights, penalty=strength / 100 * rough)
        bend = np.linalg.slogdet(fit.curvature + fit.penalty + 1e-10 * np.eye(k))[1]
        return fit.likelihood - fit.theta @ fit.penalty @ fit.theta / 2 - bend / 2 + (k - 2) / 2 * np.log(strength)

    told = {strength: evidence(strength) for strength in 10.0 ** np.arange(5, -3.1, -0.5)}
    assert found.strength == pytest.approx(max(told, key=told.get))
    assert 1e-3 < found.strength < 1e5


def test_many_scores_are_joined_in_groups_of_equal_mass(rng):
    """Groups of whole cells whose mean log-odds and sums stay, as many as the limit where weights are even."""
    p, y = np.sort(rng.uniform(0.01, 0.99, 6000)), rng.integers(0, 2, 6000) * 1.0
    joined = logit_spline.grouped(Pairs(p, y, np.full(6000, 0.5)).cells, 600.0)
    assert len(joined.scores) == 1500
    np.testing.assert_allclose(joined.weights, 0.4)  # 600 rows in 1500 groups
    np.testing.assert_allclose(logit(joined.scores), logit(p).reshape(-1, 4).mean(axis=1))
    np.testing.assert_allclose(joined.outcomes, 0.1 * y.reshape(-1, 4).sum(axis=1))
    few = logit_spline.grouped(Pairs(p[:1500], y[:1500]).cells, 750.0)
    assert len(few.scores) == 1500
    np.testing.assert_allclose(few.weights, 0.5)
    np.testing.assert_allclose(few.outcomes, 0.5 * y[:1500])


@pytest.mark.parametrize("cells", [16, 192])
def test_distinct_scores_are_kept_up_to_a_number(cells):
    """A third more than cells, and the grid beyond; whether they come at once or in two blocks."""
    most = summed_cells.distinct(cells)
    assert most == cells * 4 // 3
    for count in (most - 1, most, most + 1):
        rows = Pairs(np.arange(count) / 1024, np.ones(count))
        found = summed_cells.summed(rows, 15, cells)
        blocks = [summed_cells.summed(rows.take(slice(i, None, 2)), 15, cells) for i in (0, 1)]
        for one in (found, blocks[0] + blocks[1]):
            assert one.exact == (count <= most)
            assert one.table[1].sum() == count
            assert (one.table.shape[1] == count) == (count <= most)


@pytest.mark.parametrize("weights", [[5e9 - 1, 5e9 + 1], [5e9, 5e9], [5e9 + 1, 5e9 - 1], [2.0**55, 2.0**55 - 8]])
def test_whole_weights_are_compared_to_the_last_row(weights):
    """Half a row short of the middle is the first bin, however many rows there are."""
    scores = np.array([0.25, 0.5])
    assert edges.equal_mass(scores, 2, np.array(weights)).tolist() == bins_by_fractions([0.25, 0.5], weights, 2)


def test_edges_that_are_known_need_no_scores():
    assert edges.fixed_edges([0.5], 15, 9).tolist() == [0, 0.5, 1]
    assert edges.fixed_edges(None, 15, 9) is None
    assert edges.fixed_edges("equal_mass", 15, 9) is None
    assert len(edges.fixed_edges("equal_width", 15, 9)) == 16
    assert len(edges.fixed_edges("sturges", 15, 9)) == len(edges.fixed_edges("equal_width", "sturges", 9)) == 6
    for name in ("equal_mass", "imax", "kmeans"):
        assert edges.fixed_edges(name, "sturges", 9) is None
