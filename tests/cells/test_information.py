"""Mutual information, I-Max and the optimal partition on fine cells."""

import json
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from imax_twin import closed_form_edges, jensen_shannon, logistic, slow_imax
from scipy.special import expit, logit

from calibrant import _core
from calibrant.arrays import log_odds
from calibrant.cells import counted as counted_cells
from calibrant.cells.counted import cells_of_groups
from calibrant.cells.fine import cells_of_scores
from calibrant.cells.imax import imax, imax_of_groups
from calibrant.cells.information import bin_information, partition_information
from calibrant.cells.partition import optimal_partition
from calibrant.errors import InvalidInput
from calibrant.metrics.scores.information import mutual_information
from calibrant.passes import Block, in_memory


def cells_of_classes(z, y, weights=None):
    """Cells of all classes of the rows together."""
    z = np.ascontiguousarray(z)
    data = in_memory(Block(z, y, weights, z.shape[1]))
    (cells,) = cells_of_groups(data, np.zeros(z.shape[1], dtype=np.int64))
    return cells


def scores_and_outcomes(seed, n=300, levels=None, slope=0.6):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n) * 3 - 1
    if levels:
        x = np.round(x * levels) / levels
    return x, (rng.random(n) < expit(slope * x - 0.5)).astype(np.float64)


samples = st.builds(
    scores_and_outcomes, st.integers(0, 10_000), st.integers(1, 120), st.sampled_from([None, 1, 3]), st.floats(-1, 2)
)


def test_mutual_information_by_hand():
    y, x = [0, 0, 1, 0, 1, 1], [-3.0, -2.0, -1.0, 1.0, 2.0, 3.0]
    joint = np.array([[2, 1], [1, 2]]) / 6
    expected = (joint * np.log2(joint / np.outer(joint.sum(1), joint.sum(0)))).sum()
    assert mutual_information(y, x, [0.0]) == pytest.approx(expected, abs=1e-15)
    assert mutual_information(y, x, []) == 0.0
    assert mutual_information(y, x, [0.0], [1, 1, 0, 0, 1, 1]) == pytest.approx(1.0)


def test_mutual_information_merges_the_pairs_of_all_classes(rng):
    scores, y = rng.normal(size=(50, 3)), rng.integers(0, 3, 50)
    merged = mutual_information((y[:, None] == np.arange(3)).ravel().astype(int), scores.ravel(), [-0.5, 0.5])
    assert mutual_information(y, scores, [-0.5, 0.5]) == pytest.approx(merged)


@pytest.mark.parametrize(
    ("y", "x", "edges"),
    [
        ([0, 2], [0.0, 1.0], [0.5]),
        ([0], [0.0, 1.0], [0.5]),
        ([0, 1], [0.0, np.nan], [0.5]),
        ([0, 1], [0.0, 1.0], [1, 0]),
    ],
)
def test_mutual_information_refuses(y, x, edges):
    with pytest.raises(InvalidInput):
        mutual_information(y, x, edges)


@given(samples, st.integers(1, 8), st.booleans(), st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_imax_loss_never_increases_and_ends_at_a_fixed_point(pair, bins, affine, seed):
    cells = cells_of_scores(*pair)
    found = imax(cells, bins, affine=affine, seed=seed)
    assert found.converged
    assert (np.diff(found.losses) <= 1e-12).all()
    assert len(found.bounds) == min(bins, cells.count) - 1
    assert (np.diff(found.bounds) > 0).all()


def test_imax_loss_is_minus_the_information_of_the_model(rng):
    """With outcomes replaced by the model's own probabilities, Eq. 4 at the best representatives is -I(y; m)."""
    x = np.sort(rng.normal(size=200) * 3)
    cells = cells_of_scores(x, expit(x))
    found = imax(cells, 6, affine=False)
    assert found.losses[-1] == pytest.approx(-partition_information(cells, found.bounds), abs=1e-12)


def test_closed_form_edges_part_equal_losses():
    phi = np.array([-900.0, -400.0, -5.0, -1.0, -1.0 + 1e-12, 0.5, 3.0, 500.0])
    edges = closed_form_edges(phi)
    assert np.isfinite(edges).all()
    assert ((edges > phi[:-1] - 1e-9) & (edges < phi[1:] + 1e-9)).all()
    for low, high, g in zip(phi[2:6], phi[3:7], edges[2:6], strict=True):
        cost = [-(expit(g) * np.log(expit(c)) + expit(-g) * np.log(expit(-c))) for c in (low, high)]
        assert cost[0] == pytest.approx(cost[1], abs=1e-10)


def test_jensen_shannon_is_bounded_and_zero_at_equality():
    p = np.linspace(0, 1, 11)
    apart = jensen_shannon(p[:, None], p[None, :])
    np.testing.assert_allclose(apart, apart.T)
    np.testing.assert_allclose(np.diag(apart), 0, atol=1e-15)
    assert apart.max() == pytest.approx(np.log(2))


def test_logistic_finds_the_model():
    x, y = scores_and_outcomes(3, n=40_000)
    slope, offset = logistic(cells_of_scores(x, y))
    assert slope == pytest.approx(0.6, abs=0.03)
    assert offset == pytest.approx(-0.5, abs=0.05)


@given(samples, st.integers(1, 20), st.booleans(), st.integers(0, 3))
@settings(max_examples=40, deadline=None)
def test_the_kernel_answers_as_its_twin(pair, bins, affine, seed):
    cells = cells_of_scores(*pair)
    ours, twin = (f(cells, bins, affine=affine, seed=seed) for f in (imax, slow_imax))
    assert (ours.slope, ours.offset) == pytest.approx((twin.slope, twin.offset), rel=1e-6, abs=1e-6)
    assert ours.losses[-1] == pytest.approx(twin.losses[-1], abs=1e-9)
    assert ours.converged == twin.converged


@pytest.mark.parametrize(("n", "slope"), [(3_000, 0.6), (30_000, 1.0)])
def test_many_groups_answer_as_one_by_one_and_as_the_twin(n, slope):
    weights = np.random.default_rng(0).integers(1, 3, n).astype(np.float64)
    groups = [cells_of_scores(*scores_and_outcomes(seed, n=n, slope=slope), weights) for seed in range(3)]
    for cells, found in zip(groups, imax_of_groups(groups, 15), strict=True):
        alone, twin = imax(cells, 15), slow_imax(cells, 15)
        np.testing.assert_array_equal(found.bounds, alone.bounds)
        np.testing.assert_array_equal(found.bounds, twin.bounds)
        np.testing.assert_allclose(found.losses, twin.losses, atol=1e-12)


@pytest.mark.parametrize(
    "outcomes", [np.zeros(50), np.ones(50), np.r_[np.zeros(49), 1.0], np.r_[np.zeros(20), np.ones(30)]]
)
def test_hopeless_and_perfect_outcomes(outcomes):
    cells = cells_of_scores(np.linspace(-5, 5, 50), outcomes)
    found = imax(cells, 15)
    assert found.converged
    best = optimal_partition(cells, 15, found.bounds)
    assert partition_information(cells, best) >= partition_information(cells, found.bounds) - 1e-12


@given(samples, st.integers(1, 6))
@settings(max_examples=40, deadline=None)
def test_the_optimal_partition_is_never_below_imax(pair, bins):
    cells = cells_of_scores(*pair)
    best = partition_information(cells, optimal_partition(cells, bins))
    for affine in (False, True):
        assert best >= partition_information(cells, imax(cells, bins, affine=affine).bounds) - 1e-12


def programme(weights, positives, bins):
    """best[m, j] = max_i best[m - 1, i] + information of cells i … j-1; the bounds of the best with all cells."""
    mass, positive = (np.concatenate([[0.0], np.cumsum(part)]) for part in (weights, positives))
    count = len(weights)
    gain = bin_information(np.tril(mass[:, None] - mass), np.tril(positive[:, None] - positive))  # [stop, start]
    gain[np.triu_indices(count + 1)] = -np.inf
    best, choices = gain[:, 0], []
    for _ in range(1, min(bins, count)):
        values = best + gain
        choices.append(values.argmax(axis=1))
        best = values.max(axis=1)
    stop, bounds = count, []
    for choice in reversed(choices):
        stop = int(choice[stop])
        bounds.append(stop)
    return np.array(bounds[::-1], dtype=np.int64), best[count]


@given(st.integers(1, 120), st.integers(1, 20), st.integers(0, 1000), st.booleans())
@settings(max_examples=40, deadline=None)
def test_the_compiled_programme_is_its_twin(count, bins, seed, whole):
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 5, count).astype(float) if whole else rng.random(count) + 1e-3
    positives = np.rint(weights * rng.random(count)) if whole else weights * rng.choice([0, 0.3, 1], count)
    found, (_, best) = _core.best_partition(weights, positives, bins), programme(weights, positives, bins)
    assert len(found) == min(bins, count) - 1
    starts = np.concatenate([[0], found]).astype(np.int64)
    assert (np.diff(np.append(starts, count)) > 0).all()
    parts = (np.add.reduceat(a, starts) for a in (weights, positives))
    assert bin_information(*parts).sum() == pytest.approx(best, abs=1e-10)


@given(st.integers(0, 1000), st.integers(2, 4))
@settings(max_examples=25, deadline=None)
def test_the_optimal_partition_is_the_best_of_all(seed, bins):
    cells = cells_of_scores(*scores_and_outcomes(seed, n=11))
    every = (np.array(c, dtype=np.int64) for c in combinations(range(1, cells.count), min(bins, cells.count) - 1))
    best = max(partition_information(cells, bounds) for bounds in every)
    assert partition_information(cells, optimal_partition(cells, bins)) == pytest.approx(best, abs=1e-12)


def test_many_cells_are_thinned_without_falling_below_imax():
    x, y = scores_and_outcomes(0, n=30_000)
    cells = cells_of_scores(x, y)
    start = imax(cells, 15)
    found = optimal_partition(cells, 15, start.bounds)
    assert partition_information(cells, found) > partition_information(cells, start.bounds)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 300.0])
def test_counted_cells_lead_where_exact_ones_do(scale, monkeypatch):
    rng = np.random.default_rng(0)
    base = rng.normal(size=(4000, 20)) * 2
    y = (base + rng.gumbel(size=base.shape)).argmax(1)
    z = (base * scale).astype(np.float32)
    exact = cells_of_classes(z, y)
    monkeypatch.setattr(counted_cells, "_EXACT", 0)
    counted = cells_of_classes(z, y)
    assert counted.count < exact.count
    assert counted.weights.sum() == exact.weights.sum()
    assert counted.outcomes.sum() == exact.outcomes.sum()
    scores = log_odds(z)
    place = np.searchsorted(counted.cuts, scores.ravel().astype(np.float64), side="right")
    np.testing.assert_array_equal(np.bincount(place, minlength=counted.count), counted.weights)
    information = [mutual_information(y, scores, c.cuts[imax(c, 15).bounds - 1]) for c in (exact, counted)]
    assert information[1] == pytest.approx(information[0], abs=2e-4)


def test_cells_do_not_see_order_and_take_weights_as_repeats(rng, monkeypatch):
    monkeypatch.setattr(counted_cells, "_EXACT", 0)
    z = rng.normal(size=(500, 6)) * 3
    y, w = rng.integers(0, 6, 500), rng.integers(1, 4, 500).astype(np.float64)
    plain = cells_of_classes(z, y, w)
    order = rng.permutation(500)
    shuffled = cells_of_classes(z[order], y[order], w[order])
    rows = np.repeat(np.arange(500), w.astype(int))
    repeated = cells_of_classes(z[rows], y[rows])
    for other in (shuffled, repeated):
        for name in ("scores", "weights", "outcomes", "cuts"):
            np.testing.assert_array_equal(getattr(other, name), getattr(plain, name))


@pytest.mark.parametrize("case", ["k10", "k10m"])
def test_information_reaches_the_reference(shared_data, case):
    data = np.load(shared_data / "oracle" / f"multi_{case}.npz")
    reference = np.load(shared_data / "oracle" / f"imax_{case}.npz")
    printed = json.loads((shared_data / "oracle" / f"imax_{case}.json").read_text())
    scores, y = log_odds(np.ascontiguousarray(data["logits_cal"])), data["labels_cal"]
    cells = cells_of_scores(scores.ravel(), (y[:, None] == np.arange(10)).ravel())
    ours = mutual_information(y, scores, cells.cuts[imax(cells, 15).bounds - 1])
    assert ours >= mutual_information(y, scores, reference["sCW_imax_edges"][0]) - 1e-3
    assert ours >= printed["sCW_imax"]["MI_bits_mean"] - 1e-3


def test_merged_cells_keep_sums(rng):
    cells = cells_of_scores(*scores_and_outcomes(1))
    few = cells.thinned(20)
    assert few.count <= 24
    assert few.weights.sum() == pytest.approx(cells.weights.sum())
    np.testing.assert_array_equal(cells.cuts[cells.bounds(few.cuts) - 1], few.cuts)
    assert logit(expit(few.scores[0])) == pytest.approx(few.scores[0])
