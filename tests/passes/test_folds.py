"""A row's fold comes from its content."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.passes import Block, in_memory, in_stream
from calibrant.passes.folds import row_keys


def rows(n=53, k=4, seed=0, weights=True):
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, k, n)
    return Block(generator.normal(size=(n, k)), labels, generator.uniform(size=n) if weights else None, k)


def held(block, count=5):
    """The rows of each fold, as a sorted list of their first scores."""
    data = in_memory(block)
    return [np.sort(data.only(f, count).rows().logits[:, 0]) for f in range(count)]


def cut(block, cuts):
    pieces = [block.take(slice(a, b)) for a, b in zip((0, *cuts), (*cuts, block.n), strict=True)]
    return in_stream(lambda: iter(pieces), block.n_classes, block.logits.shape[1], block.logits.dtype)


def test_every_row_is_held_out_once_and_classes_are_spread():
    block = rows()
    data = in_memory(block)
    np.testing.assert_array_equal(np.sort(np.concatenate(held(block))), np.sort(block.logits[:, 0]))
    for f in range(5):
        rest, fold = data.without(f, 5).rows(), data.only(f, 5).rows()
        assert rest.n + fold.n == block.n
        assert not set(rest.logits[:, 0]) & set(fold.logits[:, 0])
        counts = np.bincount(fold.labels, minlength=4)
        assert np.abs(counts - np.bincount(block.labels, minlength=4) / 5).max() <= 1


@pytest.mark.parametrize("n", [53, 6000])
@pytest.mark.parametrize("k", [4, 3])
def test_folds_do_not_depend_on_the_order_of_the_rows(n, k):
    block = rows(n)
    block = Block(block.logits, block.labels % k, block.weights, k)  # fewer classes than columns: embeddings
    order = np.random.default_rng(1).permutation(n)
    for one, two in zip(held(block), held(block.take(order)), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("n", [300, 6000])
@pytest.mark.parametrize("coarse", [False, True])
def test_folds_do_not_depend_on_blocks(n, coarse):
    block = rows(n, k=2, weights=False)
    block = block.with_logits(np.round(block.logits)) if coarse else block
    whole, parts = in_memory(block), cut(block, (0, 1, n // 3, n // 3, n - 1))
    for f in range(5):
        one, two = whole.only(f, 5).rows(), parts.only(f, 5).rows()
        order = [np.lexsort((*b.logits.T, b.labels)) for b in (one, two)]
        np.testing.assert_array_equal(one.logits[order[0]], two.logits[order[1]])
        np.testing.assert_array_equal(one.labels[order[0]], two.labels[order[1]])


def test_folds_do_not_depend_on_the_partitions_of_a_cluster():
    """Rows of one content are dealt on where the partition before left off."""
    block = rows(6000, k=2, weights=False)
    block = block.with_logits(np.round(block.logits))
    pieces = [replace(block.take(slice(a, a + 2000)), part=a // 2000) for a in (0, 2000, 4000)]
    parts = in_stream(lambda: iter(pieces), 2, 2, block.logits.dtype)
    whole = in_memory(block)
    for f in range(5):
        one, two = whole.only(f, 5).rows(), parts.only(f, 5).rows()
        order = [np.lexsort((*b.logits.T, b.labels)) for b in (one, two)]
        np.testing.assert_array_equal(one.logits[order[0]], two.logits[order[1]])


def test_folds_do_not_depend_on_a_shift_or_on_the_precision():
    block = rows(400)
    numbers = in_memory(block).plan(5).start()(block)
    shifted = block.with_logits(block.logits + np.arange(400)[:, None] * 8.0)
    np.testing.assert_array_equal(in_memory(shifted).plan(5).start()(shifted), numbers)
    single = block.with_logits(block.logits.astype(np.float32))
    assert np.mean(row_keys(single) == row_keys(block)) > 0.99  # a score may lie where rounding decides


def test_a_row_twice_is_held_out_together():
    block = rows()
    twice = block.take(np.repeat(np.arange(53), np.arange(53) % 3 + 1))
    for one, two in zip(held(block), held(twice), strict=True):
        np.testing.assert_array_equal(one, np.unique(two))


@pytest.mark.parametrize("n", [200, 5000, 20_000])
def test_scores_of_few_values_make_even_folds_that_are_not_alike(n):
    generator = np.random.default_rng(0)
    said = generator.integers(0, 11, n)
    happened = (generator.random(n) < said / 10).astype(np.int64)
    block = Block(np.column_stack([np.zeros(n), said - 5.0]), happened, None, 2)
    data = in_memory(block)
    folds = [data.only(f, 5).rows() for f in range(5)]
    assert all(abs(fold.n - n / 5) <= 0.1 * n for fold in folds)
    shares = [fold.labels[fold.logits[:, 1] == 2.0].mean() for fold in folds]
    assert np.std(shares) > 0.2 * np.sqrt(0.21 / (n / 55))  # as chance would have it, not the same in every fold


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 60), st.integers(2, 7), st.integers(0, 10_000))
def test_folds_are_a_partition_whatever_the_rows(n, count, seed):
    generator = np.random.default_rng(seed)
    block = Block(generator.integers(-1, 2, size=(n, 2)).astype(float), generator.integers(0, 2, n), None, 2)
    numbers = in_memory(block).plan(count).start()(block)
    assert numbers.min() >= 0
    assert numbers.max() < count
    sizes = np.bincount(numbers, minlength=count)
    assert sizes.sum() == n
    assert sizes.max() <= n / count + 4 * 2 + 2  # at most four rows of a content stay together


def test_large_blocks_are_not_copied(monkeypatch):
    monkeypatch.setattr("calibrant.passes.view._COPIED", 10)
    block = rows()
    lent = in_memory(block).without(2, 5).rows()
    assert lent.logits is block.logits
    monkeypatch.undo()
    kept = lent.weight_array > 0
    taken = in_memory(block).without(2, 5).rows()
    np.testing.assert_array_equal(lent.logits[kept], taken.logits)
    np.testing.assert_array_equal(lent.weight_array[kept], taken.weight_array)
