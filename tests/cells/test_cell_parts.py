"""Parts of cells by themselves, against what they are by definition."""

import json

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from calibrant.cells import counted
from calibrant.cells.edges import check_edges, equal_mass, kmeans
from calibrant.cells.fine import _between
from calibrant.cells.grid import grid, spans
from calibrant.cells.logistic import fit_logistic
from calibrant.cells.logit_spline import _basis, _knots_of, _roughness, logit_spline
from calibrant.cells.moments import moments_of
from calibrant.cells.pairs import Pairs, standard_error
from calibrant.cells.summed import CELLS, SummedCells, binned_classes, summed, summed_classes
from calibrant.errors import CalibrantError, InvalidInput
from calibrant.passes import Block


def test_moments_are_those_of_repeated_rows(rng):
    values, counts = rng.normal(size=50) + 3, rng.integers(1, 5, 50)
    repeated = np.repeat(values, counts)
    found = moments_of(values, counts * 1.0)
    for same in (
        found,
        found.about(1.7),
        moments_of(values[:20], counts[:20] * 1.0) + moments_of(values[20:], counts[20:] * 1.0),
    ):
        deviation, skewness = same.spread
        assert same.mean == pytest.approx(repeated.mean())
        assert deviation == pytest.approx(repeated.std(ddof=1))
        assert skewness == pytest.approx(((repeated - repeated.mean()) ** 3).mean() / deviation**3)
        assert same.rows == counts.sum()


def test_k_means_of_two_heaps_cut_half_way_between_their_means():
    scores, weights = np.array([0.1, 0.2, 0.7, 0.9]), np.array([3.0, 1.0, 1.0, 4.0])
    middle = (0.125 + 0.86) / 2
    np.testing.assert_allclose(kmeans(scores, 2, weights), [0, middle, 1])
    np.testing.assert_allclose(kmeans(np.repeat(scores, weights.astype(int)), 2), [0, middle, 1])


@pytest.mark.parametrize("bins", [0, -1, 2.5, "many", True, 10**6 + 1, 2**62, 10**30])
def test_numbers_of_bins_that_are_none_are_refused(bins):
    with pytest.raises(InvalidInput, match="bins is not valid"):
        check_edges("equal_width", bins)


def test_cells_end_half_way_between_neighbours():
    np.testing.assert_allclose(_between(np.array([0.0, 1.0, 5.0, 5.5])), [0.5, 3.0, 5.25])
    close = np.nextafter(1.0, 2.0)
    assert _between(np.array([1.0, close]))[0] == close


def test_knots_go_from_end_to_end():
    x = np.sort(np.random.default_rng(0).normal(size=400))
    knots = _knots_of(x, np.ones(400))
    assert (knots[0], knots[-1]) == (x[0], x[-1])
    assert np.diff(knots).min() > 0.01 * np.ptp(x)


def test_the_basis_is_that_of_a_natural_spline():
    knots = np.array([-2.0, -0.5, 0.3, 1.0, 4.0])
    values = np.array([1.0, -0.5, 2.0, 0.0, 0.7])
    spline = CubicSpline(knots, values, bc_type="natural")
    inside = np.linspace(-2, 4, 50)
    np.testing.assert_allclose(_basis(inside, knots) @ values, spline(inside), atol=1e-10)
    ends = np.array([-5.0, 7.0])
    lines = [values[0] - 3 * spline(-2, 1), values[-1] + 3 * spline(4, 1)]
    np.testing.assert_allclose(_basis(ends, knots) @ values, lines, atol=1e-10)


def test_rows_that_come_twice_in_one_cluster_say_no_more(rng):
    p = rng.uniform(0.05, 0.95, 300)
    y = (rng.random(300) < p) * 1.0
    once = logit_spline(Pairs(p, y, None, clusters=np.arange(300)))
    twice = logit_spline(Pairs(np.repeat(p, 2), np.repeat(y, 2), None, clusters=np.repeat(np.arange(300), 2)))
    plain = logit_spline(Pairs(p, y))
    np.testing.assert_allclose(np.diag(once.covariance), np.diag(plain.covariance), rtol=0.8)
    assert np.isfinite(np.diag(twice.covariance)).all()


def test_tied_scores_count_as_many_rows_as_their_weights(rng):
    weights, outcomes = rng.random(900) + 0.5, rng.random(900) < 0.5
    tied = Pairs(rng.integers(0, 11, 900) / 10, outcomes, weights)
    assert len(tied.cells.scores) == 11
    assert tied.cells.rows == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    summed_up = Pairs(np.array([0.2, 0.7]), np.array([0.5, 0.5]), np.array([40.5, 60.2]), draws=np.array([40.0, 60.0]))
    assert summed_up.cells.rows == pytest.approx(summed_up.rows)


def test_the_standard_error_of_a_mean(rng):
    x = rng.normal(size=60)
    error, rows = standard_error(x, Pairs(np.full(60, 0.5), np.zeros(60)))
    assert error == pytest.approx(x.std(ddof=1) / np.sqrt(60))
    assert rows == 60
    clusters = np.repeat(np.arange(20), 3)
    error, rows = standard_error(x, Pairs(np.full(60, 0.5), np.zeros(60), clusters=clusters))
    means = x.reshape(20, 3).mean(axis=1)
    assert error == pytest.approx(means.std(ddof=1) / np.sqrt(20))
    assert rows == 20


def test_the_roughness_is_the_integral_of_the_squared_second_derivative():
    knots = np.array([-2.0, -0.5, 0.3, 1.0, 4.0])
    values = np.array([1.0, -0.5, 2.0, 0.0, 0.7])
    bends = CubicSpline(knots, values, bc_type="natural")(knots, 2)  # linear between the knots: Simpson's rule is exact
    squares = np.diff(knots) * (bends[:-1] ** 2 + bends[:-1] * bends[1:] + bends[1:] ** 2) / 3
    assert values @ _roughness(knots) @ values == pytest.approx(squares.sum() * 6.0**3)


def test_fractional_weights_make_the_bins_of_the_rows_they_stand_for():
    scores, counts = np.linspace(0.05, 0.95, 10), np.array([1, 5, 2, 2, 7, 1, 1, 3, 4, 2])
    whole = equal_mass(np.repeat(scores, counts), 4)
    assert len(whole) == 5
    for unit in (0.3, 0.03):
        np.testing.assert_array_equal(equal_mass(scores, 4, counts * unit), whole)


def test_other_weights_replace_those_of_the_pairs():
    pairs = Pairs(np.array([0.7, 0.2]), np.array([1.0, 0.0]), np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    other = pairs.weighted(np.array([3.0, 5.0]))
    assert other.weight_array.tolist() == [3.0, 5.0]
    assert other.draws is None
    assert other.order.tolist() == [1, 0]
    assert pairs.weighted(None).total == 2


def test_summed_cells_are_worth_as_many_rows_as_there_were(rng):
    scores, y, counts = rng.integers(0, 5, 60) / 4, rng.integers(0, 2, 60) * 1.0, rng.integers(1, 4, 60) * 0.37
    given = Pairs(scores, y, counts)
    told = SummedCells.from_dict(summed(given).to_dict()).pairs
    for cell in np.unique(scores):
        own, kept = given.take(scores == cell), told.take(told.scores == cell)
        assert kept.total == pytest.approx(own.total)
        assert kept.rows == pytest.approx(own.rows)
        assert kept.weight_array @ kept.outcomes == pytest.approx(own.weight_array @ own.outcomes)


@pytest.mark.parametrize("n", [100, 3000])
def test_sums_of_fractional_weights_count_as_many_rows_as_the_weights(rng, n):
    """A cell of one row is one row, but rows of unlike weights together are worth fewer: (Σw)²/Σw²."""
    given = Pairs(rng.random(n), rng.integers(0, 2, n) * 1.0, rng.gamma(0.5, 1.0, n))
    assert given.rows < n / 2
    assert summed(given).pairs.rows == pytest.approx(given.rows)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_all_classes_at_once_are_summed_as_each_by_itself(rng, dtype, weighted):
    p = rng.dirichlet(np.full(5, 0.2), 1500).astype(dtype)
    p[:, 2] = rng.choice(grid(0, 15), 1500)  # on the edges themselves
    p[:2, 0] = 0.0, 1.0
    labels = rng.integers(0, 5, 1500)
    weights = rng.random(1500) * (rng.random(1500) > 0.1) if weighted else None
    for column, found in enumerate(summed_classes(p, labels, weights)):
        outcomes = (labels == column).astype(np.float64)
        alone = summed(Pairs(p[:, column].astype(np.float64), outcomes, weights), 15, 0)
        np.testing.assert_allclose(found.table, alone.table, rtol=1e-11)


@pytest.mark.parametrize("cells", [0, 16, 45, CELLS])
@pytest.mark.parametrize("bins", [1, 7, 20])
def test_the_grid_has_every_edge_of_the_bins_and_cells_of_zero_and_one(cells, bins):
    edges = grid(cells, bins)
    assert (edges[0], edges[-1]) == (0.0, 1.0)
    assert np.isin(np.arange(bins + 1) / bins, edges).all()
    assert np.diff(edges).min() > 0
    assert len(edges) - 1 <= cells + bins + 3
    if cells:  # 0 and 1 are by themselves
        places = np.searchsorted(edges, [0.0, 1e-300, 0.5, 1 - 1e-15, 1.0], "right")
        assert (np.diff(places) > 0).all()
    low, high = spans(cells, bins)
    assert (edges[:-1] <= low).all()
    assert (low <= high).all()
    assert (high[:-1] < edges[1:-1]).all()


def drawn(rng, n, weighted):
    p = 1 / (1 + np.exp(-rng.normal(-1, 6, n)))
    p[:4] = 0.0, 1.0, 1e-30, 1 - 2.0**-53
    weights = {"no": None, "counts": rng.integers(0, 4, n) * 1.0, "fractions": rng.gamma(0.5, 1.0, n)}[weighted]
    return Pairs(p, (rng.random(n) < p) * 1.0, weights)


@pytest.mark.parametrize("weighted", ["no", "counts", "fractions"])
@pytest.mark.parametrize("n", [100, 3000])
def test_sums_told_as_short_numbers_are_the_sums(rng, n, weighted):
    """Places are told to 1e-5 of a cell, weights that are no counts to 7 digits; telling them again changes nothing."""
    part = summed(drawn(rng, n, weighted))
    told = json.loads(json.dumps(part.to_dict()))
    again = SummedCells.from_dict(told)
    assert again.to_dict() == told
    assert again.exact == part.exact == (n == 100)
    score, *sums = again.table
    scores, *others = part.table
    at = np.searchsorted(grid(CELLS, 15)[1:-1], scores, side="right")
    low, high = spans(CELLS, 15)
    assert (np.abs(score - scores) <= (0 if part.exact else 0.51e-5 * (high - low)[at] + 2.0**-53)).all()
    np.testing.assert_allclose(sums, others, rtol=0 if weighted == "no" else 1.1e-6)
    if weighted == "counts":
        np.testing.assert_array_equal(sums[:2], others[:2])


def test_what_the_grid_holds_does_not_depend_on_how_blocks_met(rng):
    """Blocks of few scores are kept as they are until too many meet: the order must not be seen, nor saving between."""
    given = drawn(rng, 900, "no")
    blocks = [summed(given.take(rows)) for rows in np.split(np.arange(900), [30, 90, 150, 151, 500])]
    whole = summed(given)
    assert not whole.exact
    assert [block.exact for block in blocks] == [True, True, True, True, False, False]
    for order in (range(6), [5, 4, 3, 2, 1, 0], [3, 5, 0, 2, 4, 1]):
        found = blocks[order[0]]
        kept = found
        for place in order[1:]:
            found = found + blocks[place]
            kept = SummedCells.from_dict(json.loads(json.dumps((kept + blocks[place]).to_dict())))
        np.testing.assert_allclose(found.table, whole.table, rtol=1e-12)
        np.testing.assert_array_equal(kept.table[1:], whole.table[1:])
        np.testing.assert_allclose(kept.table[0], whole.table[0], atol=1e-6)


def test_saving_after_every_row_loses_no_row(rng):
    """A mean that is rounded must not stand still while rows move it."""
    scores = np.sort(rng.random(400)) * 0.001 + 0.3  # all in one cell, rising
    state = SummedCells.from_dict(summed(Pairs(np.linspace(0, 1, 300), np.zeros(300))).to_dict())
    for score in scores:
        state = SummedCells.from_dict((state + summed(Pairs(np.array([score]), np.ones(1)))).to_dict())
    whole = summed(Pairs(np.r_[np.linspace(0, 1, 300), scores], np.r_[np.zeros(300), np.ones(400)]))
    np.testing.assert_array_equal(state.table[1:], whole.table[1:])
    np.testing.assert_allclose(state.table[0], whole.table[0], atol=1e-6)


def told_of(score=0.5, weight=2.0, happened=1.0, squares=4.0, bins=15):
    """What one cell tells; its rows are (Σw)² / Σw²."""
    rows = weight * weight / squares if squares else float("inf")
    lists = {"scores": [score], "weights": [weight], "happened": [happened], "rows": [rows], "counts": False}
    return {"grid": [CELLS, bins], **lists}


FORGED = {
    "another grid": {"grid": [CELLS + 1, 15]},
    "no grid": {"grid": [CELLS]},
    "bins that are none": {"grid": [CELLS, 0]},
    "bins without end": {"grid": [CELLS, 10**9]},
    "a truth value": {"grid": [CELLS, True]},
    "a first cell beyond the grid": {"first": 10**6},
    "a first cell before it": {"first": -1},
    "a first cell that is no number": {"first": "0"},
    "a place beyond its cell": {"places": 100_001},
    "a place before it": {"places": -1},
    "no number": {"places": float("nan")},
    "a number as text": {"weights": "3"},
    "a truth value for a weight": {"weights": True},
    "a weight below zero": {"weights": -1},
    "a weight that overflows": {"weights": 1e200},
    "more events than rows": {"happened": 10**6},
    "events below zero": {"happened": -1},
    "a cell without rows that has events": {"weights": 0},
    "no lists": {"weights": None},
    "lists of other lengths": {"happened": []},
    "worth less than a row": {"rows": 0.5},
    "worth more than all": {"rows": 1e30},
}


@pytest.mark.parametrize("name", FORGED)
@pytest.mark.parametrize("exact", [False, True])
def test_forged_lists_of_cells_are_refused(rng, name, exact):
    told = summed(drawn(rng, 120 if exact else 3000, "counts")).to_dict()
    assert ("scores" in told) == exact
    (key, value) = next(iter(FORGED[name].items()))
    if exact and key == "first":
        return  # distinct scores have no first cell
    key = "scores" if exact and key == "places" else key
    if isinstance(told[key], list) and key != "grid" and not isinstance(value, list) and value is not None:
        place = int(np.argmax(np.array(told["happened"]) > 0))
        told[key] = [*told[key][:place], value, *told[key][place + 1 :]]
    else:
        told[key] = value
    with pytest.raises(CalibrantError, match="no table of summed cells"):
        SummedCells.from_dict(told)


def test_forged_cells_on_another_grid_than_the_metric_has_are_refused(rng):
    told = summed(drawn(rng, 3000, "no"), 20).to_dict()
    assert SummedCells.from_dict(told, 20).bins == 20
    for shape in ((15, CELLS), (20, 16), (1, CELLS)):
        with pytest.raises(CalibrantError, match="no table of summed cells"):
            SummedCells.from_dict(told, *shape)


def test_cells_of_all_classes_are_binned_as_each_by_itself(rng):
    p, labels, w = rng.dirichlet(np.ones(3), 4000), rng.integers(0, 3, 4000), rng.random(4000)
    edges = np.linspace(0, 1, 16)
    found = binned_classes(summed_classes(p, labels, w), edges)
    for column in range(3):
        place = np.minimum((p[:, column] * 15).astype(int), 14)
        parts = w, w * p[:, column], w * (labels == column), w**2
        expected = [np.bincount(place, part, 15) for part in parts]
        np.testing.assert_allclose(found[:, column], expected, rtol=1e-9)


@pytest.mark.parametrize("squares", [4.1, 0.0, 1e-100])
def test_summed_cells_cannot_be_worth_less_than_a_row_or_more_than_all(squares):
    with pytest.raises(CalibrantError, match="no table of summed cells"):
        SummedCells.from_dict(told_of(squares=squares))
    assert SummedCells.from_dict(told_of()).pairs.rows == pytest.approx(1.0)


LIMITS = {
    "weight": ((1.1e-100, 0.9e100), (1e-100, 1e100, 0.0, -1.0)),
    "score": ((-1e-6, 0.0, 1.0, 1 + 1e-6), (-2e-6, 1 + 2e-6, np.nan)),
    "happened": ((0.0, 2.0, 2 * (1 + 1e-6)), (-1e-9, 2 * (1 + 2e-6))),
}


@pytest.mark.parametrize("name", LIMITS)
def test_summed_cells_are_taken_to_their_limits_and_refused_beyond(name):
    good, bad = LIMITS[name]
    for value in (*good, *bad):
        told = told_of(**{name: value})
        if name == "weight":
            told = {**told, "happened": [0.0], "rows": [1.0]}
        if value in good:
            assert SummedCells.from_dict(told).table[["score", "weight", "happened"].index(name), 0] == value
            continue
        with pytest.raises(CalibrantError, match="no table of summed cells"):
            SummedCells.from_dict(told)


@pytest.mark.parametrize(("bins", "good"), [(0, False), (1, True), (10**6, True), (10**6 + 1, False), (15.0, False)])
def test_summed_cells_have_a_number_of_bins(bins, good):
    if good:
        assert SummedCells.from_dict(told_of(bins=bins)).bins == bins
        return
    with pytest.raises(CalibrantError, match="no table of summed cells"):
        SummedCells.from_dict(told_of(bins=bins))


def test_a_logistic_fit_of_one_number_is_its_log_odds():
    found = fit_logistic(np.ones((2, 1)), np.array([3.0, 6.0]), np.array([10.0, 20.0]))
    assert found.theta[0] == pytest.approx(np.log(9 / 21))
    assert found.converged


def test_moments_of_rows_without_weight_are_those_of_the_others():
    """A loss that is infinite where a row counts nothing is no loss."""
    found = moments_of(np.array([1.0, np.inf, 4.0]), np.array([2.0, 0.0, 1.0]))
    assert (found.mean, found.weight, found.infinite, found.least) == (2.0, 3.0, 0.0, 1.0)


def test_squared_weights_are_those_of_the_rows():
    rows = Block(np.zeros((3, 2)), np.array([0, 1, 1]), np.array([0.5, 3.0, 2.0]), 2)
    assert counted._squared(rows).weight_array.tolist() == [0.25, 9.0, 4.0]
    assert counted._squared(Block(rows.logits, rows.labels, None, 2)).weights is None
