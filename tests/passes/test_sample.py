"""The rows a fit works on."""

import numpy as np
import pytest

from calibrant.passes import Block, reduce


def _sample(n=53, k=4, seed=0, weights=True):
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, k, n)
    return Block(generator.normal(size=(n, k)), labels, generator.uniform(size=n) if weights else None, k)


def test_reduce_hands_rows_in_memory_over_as_one_block():
    sample = _sample()
    assert reduce(lambda rows: rows.weight_array.sum(), sample) == sample.total_weight


def test_missing_weights_are_ones():
    sample = _sample(weights=False)
    assert sample.total_weight == 53
    np.testing.assert_array_equal(sample.weight_array, np.ones(53))


def test_take_keeps_rows_together_and_contiguous():
    sample = _sample()
    for rows in (np.array([3, 3, 10]), slice(None, None, 2)):
        part = sample.take(rows)
        np.testing.assert_array_equal(part.logits, sample.logits[rows])
        np.testing.assert_array_equal(part.labels, sample.labels[rows])
        np.testing.assert_array_equal(part.weights, sample.weights[rows])
        assert part.logits.flags.c_contiguous
        assert part.n_classes == 4


def test_with_logits_keeps_the_rest():
    sample = _sample()
    other = sample.with_logits(np.asfortranarray(sample.logits * 2))
    assert other.logits.flags.c_contiguous
    assert other.labels is sample.labels


def test_folds_hold_every_row_out_once_and_are_stratified():
    sample = _sample()
    folds = list(sample.folds(5))
    held = np.concatenate([fold.logits for _, fold in folds])
    np.testing.assert_array_equal(np.sort(held[:, 0]), np.sort(sample.logits[:, 0]))
    for rest, fold in folds:
        assert rest.n + fold.n == sample.n
        counts = np.bincount(fold.labels, minlength=4)
        assert np.abs(counts - np.bincount(sample.labels, minlength=4) / 5).max() <= 1


@pytest.mark.parametrize("k", [4, 3])
def test_folds_do_not_depend_on_the_order_of_the_rows(k):
    sample = _sample()
    sample = Block(sample.logits, sample.labels % k, sample.weights, k)  # fewer classes than columns: embeddings
    order = np.random.default_rng(1).permutation(sample.n)
    for (_, one), (_, two) in zip(sample.folds(5), sample.take(order).folds(5), strict=True):
        np.testing.assert_array_equal(np.sort(one.logits[:, 0]), np.sort(two.logits[:, 0]))


def test_folds_do_not_depend_on_a_shift_of_the_rows():
    sample = _sample()
    shifted = sample.with_logits(sample.logits + np.arange(53)[:, None] * 8.0)
    for (_, one), (_, two) in zip(sample.folds(5), shifted.folds(5), strict=True):
        np.testing.assert_array_equal(one.weights, two.weights)


def test_a_row_twice_is_held_out_together():
    sample = _sample()
    twice = np.repeat(np.arange(53), np.arange(53) % 3 + 1)
    for (_, one), (_, two) in zip(sample.folds(5), sample.take(twice).folds(5), strict=True):
        np.testing.assert_array_equal(np.unique(one.logits[:, 0]), np.unique(two.logits[:, 0]))


def test_scores_of_few_values_still_make_even_folds():
    sample = _sample(n=200, k=2)
    coarse = sample.with_logits(np.round(sample.logits / 2))
    assert {fold.n for _, fold in coarse.folds(5)} == {40}


def test_the_rest_need_not_be_copied():
    sample = _sample()
    for copied, lent in zip(sample.folds(5), sample.folds(5, copy=False), strict=True):
        kept = lent[0].weight_array > 0
        assert lent[0].logits is sample.logits
        np.testing.assert_array_equal(lent[0].logits[kept], copied[0].logits)
        np.testing.assert_array_equal(lent[0].weight_array[kept], copied[0].weight_array)
        np.testing.assert_array_equal(lent[1].logits, copied[1].logits)
