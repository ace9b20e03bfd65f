"""Samples of the smallest keys, in loops: which rows stand for their key, what they weigh, and what is left out."""

import numpy as np
import pytest

from calibrant.passes import Block, sample


def rows(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    w = (None, rng.integers(1, 4, n) * 1.0, rng.choice([0.5, 1.25], n))[seed % 3]
    logits = rng.normal(size=(5, 2))[rng.integers(0, 5, n)]
    return rng.integers(0, 12, n).astype(np.uint64), Block(logits, rng.integers(0, 2, n), w, 2)


def plain(keys, block, most, end=None):
    """Return key, row and weight of each of the smallest keys, and from where on keys are left out."""
    hashes, w = sample.bit_hash(block.logits), block.weight_array
    own = sorted({int(k) for k in keys if end is None or k < end})
    found = []
    for key in own[:most]:
        some = np.flatnonzero(keys == key)
        found.append((key, min(some, key=lambda i: (hashes[i], i)), w[some].sum()))
    return found, (own[most] if len(own) > most else end)


@pytest.mark.parametrize("end", [None, 4, 9])
@pytest.mark.parametrize("most", [1, 3, 5, 50])
def test_the_rows_of_the_smallest_keys(most, end):
    for seed in range(40):
        keys, block = rows(seed)
        found = sample.bottom_of(keys, block, most, end)
        wanted, left = plain(keys, block, most, end)
        assert found.keys.tolist() == [key for key, _, _ in wanted]
        np.testing.assert_array_equal(found.logits, block.logits[[i for _, i, _ in wanted]].reshape(-1, 2))
        np.testing.assert_allclose(found.weights, [weight for _, _, weight in wanted])
        assert found.end == left


@pytest.mark.parametrize("most", [2, 6])
def test_samples_of_parts_add_up_to_that_of_all(most):
    for seed in range(40):
        keys, block = rows(seed)
        whole = sample.bottom_of(keys, block, most)
        parts = [sample.bottom_of(keys[i::3], block.take(slice(i, None, 3)), most) for i in range(3) if block.n > i]
        found = parts[0]
        for part in parts[1:]:
            found = found + part
        assert found.keys.tolist() == whole.keys.tolist()
        np.testing.assert_array_equal(found.logits, whole.logits)
        np.testing.assert_allclose(found.weights, whole.weights)
        assert found.end == whole.end


def test_a_sample_covers_as_many_rows_as_it_has_or_all():
    keys, block = np.arange(9, dtype=np.uint64), Block(np.arange(18.0).reshape(9, 2), np.zeros(9, int), None, 2)
    found = sample.bottom_of(keys, block, 4)
    assert [found.covers(rows) for rows in (3, 4, 5)] == [True, True, False]
    assert found.block(3, 2).logits[:, 0].tolist() == [0.0, 2.0, 4.0]
    everything = sample.bottom_of(keys, block, 9)
    assert everything.end is None
    assert everything.covers(9)
    fewer = found.first(2)
    assert fewer.keys.tolist() == [0, 1]
    assert fewer.end == 2


def test_rows_of_few_digits_have_hashes_of_their_own():
    """Numbers such as 2 and 0.5 have no low bits: products keep the high ones only, and sums of them cancelled."""
    values = np.array([0.0, 0.25, 0.5, 1.0, 2.0, -2.0])
    rows = np.array(np.meshgrid(values, values, values)).reshape(3, -1).T
    assert len(np.unique(sample.bit_hash(rows))) == len(rows)
