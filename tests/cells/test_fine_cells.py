"""Fine cells of groups of classes: exact and counted, in blocks, in any order, and how far counting is off."""

import pickle
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from tests.conftest import overconfident

from calibrant.arrays import log_odds
from calibrant.cells import counted as counted_cells
from calibrant.cells.counted import cells_apart, cells_of_groups
from calibrant.passes import Block, in_memory, in_stream

PARTS = ("scores", "weights", "outcomes", "cuts")
GROUPS = [np.zeros(8, dtype=np.int64), np.arange(8), np.array([0, 1, -1, 0, 2, 1, -1, 0])]
CUTS = [0, 1, 40, 40, 300, 301, 900, 1000]


@pytest.fixture(params=["exact", "counted"])
def way(request, monkeypatch):
    if request.param == "counted":
        monkeypatch.setattr(counted_cells, "_EXACT", 0)
    return request.param


def rows(dtype=np.float64, weighted=False):
    z, y = overconfident(1000, 8)
    w = np.random.default_rng(1).integers(0, 3, 1000).astype(np.float64) if weighted else None
    return Block(z.astype(dtype), y, w, 8)


def blocks(block):
    return in_stream(lambda: (block.take(slice(a, b)) for a, b in pairwise(CUTS)), 8, 8, block.logits.dtype)


def assert_same(one, other):
    one, other = list(one), list(other)
    assert len(one) == len(other)
    for mine, its in zip(one, other, strict=True):
        for name in PARTS:
            np.testing.assert_array_equal(getattr(mine, name), getattr(its, name))


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_score_lies_in_the_cell_that_counts_it(way, groups, dtype, weighted):
    block = rows(dtype, weighted)
    odds, weights = log_odds(block.logits).astype(np.float64), block.weight_array
    for g, cells in enumerate(cells_of_groups(in_memory(block), groups)):
        columns = np.flatnonzero(groups == g)
        assert cells.exact == (way == "exact")
        assert (cells.weights > 0).all()
        assert (cells.scores[:-1] < cells.cuts).all()
        assert (cells.cuts <= cells.scores[1:]).all()
        place = np.searchsorted(cells.cuts, odds[:, columns], side="right")
        heavy = np.broadcast_to(weights[:, None], place.shape)
        happened = block.labels[:, None] == columns
        found = [np.bincount(place.ravel(), w.ravel(), cells.count) for w in (heavy, heavy * happened)]
        np.testing.assert_array_equal(found, [cells.weights, cells.outcomes])


@pytest.mark.parametrize("groups", GROUPS)
def test_blocks_and_order_change_no_bit(way, groups):
    block = rows(weighted=True)
    whole = list(cells_of_groups(in_memory(block), groups))
    assert_same(whole, cells_of_groups(blocks(block), groups))
    assert_same(whole, cells_of_groups(in_memory(block.take(np.random.default_rng(2).permutation(1000))), groups))


@pytest.mark.parametrize("groups", GROUPS)
def test_cells_without_a_fold_are_those_of_the_other_rows(way, groups):
    data = in_memory(rows())
    whole, rest = (list(cells) for cells in cells_apart(data, groups, 10))
    assert_same(whole, cells_of_groups(data, groups))
    held = list(cells_of_groups(data.only(0, 10), groups))
    for all_rows, some, few in zip(whole, rest, held, strict=True):
        assert 0 < few.weights.sum() < all_rows.weights.sum()
        np.testing.assert_allclose(some.weights.sum() + few.weights.sum(), all_rows.weights.sum())
        assert np.isin(some.scores, all_rows.scores).all()


@pytest.mark.parametrize("count", [1, 40])
def test_a_counted_cell_holds_little(monkeypatch, count):
    """About 1/F of the mass and of the positives; a density that changes within a coarse cell makes it a few times."""
    monkeypatch.setattr(counted_cells, "_EXACT", 0)
    monkeypatch.setattr(counted_cells, "_FINE", 1 << 13)
    monkeypatch.setattr(counted_cells, "MOST_FINE", 1 << 9)
    z, y = overconfident(30_000, 40)
    groups = np.zeros(40, dtype=np.int64) if count == 1 else np.arange(40)
    fine = 1 << 9 if count == 1 else (1 << 13) // 40
    for cells in cells_of_groups(in_memory(Block(z, y, None, 40)), groups):
        assert cells.count < 6 * fine + 200
        assert cells.weights.max() < 8 * cells.weights.sum() / fine
        assert cells.outcomes.max() < 8 * cells.outcomes.sum() / fine


def test_many_groups_share_a_bounded_number_of_cells():
    z, y = overconfident(6000, 800)
    groups = np.arange(800)
    found = list(cells_of_groups(in_memory(Block(z.astype(np.float32), y, None, 800)), groups))
    assert not found[0].exact  # 4.8 million scores
    assert sum(cells.count for cells in found) < 4 << 20
    np.testing.assert_array_equal([cells.weights.sum() for cells in found], 6000)
    np.testing.assert_array_equal([cells.outcomes.sum() for cells in found], np.bincount(y, minlength=800))


def test_sums_by_bin_and_raw_loss():
    block = rows()
    (cells,) = cells_of_groups(in_memory(block), GROUPS[0])
    edges = np.array([-6.0, -6.0, -2.0, 1.0, 90.0])
    odds, happened = log_odds(block.logits).ravel(), (block.labels[:, None] == np.arange(8)).ravel()
    place = np.searchsorted(edges, odds, side="right")
    sums = cells.sums(edges)
    for column, values in enumerate((np.ones(8000), happened, 1 / (1 + np.exp(-odds)), np.zeros(8000))):
        np.testing.assert_allclose(sums[:, column], np.bincount(place, values, minlength=6), rtol=1e-12)
    loss = np.logaddexp(0, np.where(happened, -odds, odds)).sum()
    assert cells.raw_loss == pytest.approx(loss, rel=1e-12)


def test_passes_hold_no_rows():
    block = rows()
    split = counted_cells._split_of(in_memory(block), GROUPS[0])
    parameters = len(pickle.dumps((split, GROUPS[0])))
    for function in (
        partial(counted_cells.class_scores, columns=np.arange(8)),
        counted_cells.CellSums(GROUPS[0], 16),
        counted_cells.CellSums(GROUPS[0], 16, split),
    ):
        assert len(pickle.dumps(function)) < parameters + 1000
