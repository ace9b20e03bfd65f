"""A row's fold comes from its content."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.passes import Block, in_memory, in_stream
from calibrant.passes.folds import KeyCounts, fine_keys, row_keys


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


@pytest.mark.parametrize("n", [300, 6000])
def test_folds_of_few_values_do_not_depend_on_the_precision(n):
    """As forests have them: log .3 has other digits in single precision, but no other content has its key."""
    generator = np.random.default_rng(0)
    votes = generator.integers(1, 10, n) / 10
    block = Block(np.log(np.column_stack([1 - votes, votes])), generator.integers(0, 2, n), None, 2)
    single = block.with_logits(block.logits.astype(np.float32))
    one, two = (in_memory(rows).plan(5) for rows in (block, single))
    assert len(one.frequent) == 18
    np.testing.assert_array_equal(one.start()(block), two.start()(single))


def test_a_row_twice_is_held_out_together():
    block = rows()
    twice = block.take(np.repeat(np.arange(53), np.arange(53) % 3 + 1))
    for one, two in zip(held(block), held(twice), strict=True):
        np.testing.assert_array_equal(one, np.unique(two))


def test_rows_of_one_score_twice_are_in_the_folds_of_rows_of_weight_two():
    """Keys are blind to rounding: of 400 scores on a line some share one, and more do if their rows are given twice."""
    generator = np.random.default_rng(1)
    scores, labels = np.round(generator.normal(size=400), 2) + 1e-9 * np.arange(400), generator.integers(0, 2, 400)
    block = Block(np.column_stack([np.zeros(400), scores]), labels, None, 2)
    twice = block.take(np.repeat(np.arange(400), 2))
    counts = np.unique(row_keys(block), return_counts=True)[1]
    assert 2 < counts.max() <= 4 < 2 * counts.max()
    for f in range(5):
        one, two = (in_memory(rows).only(f, 5).rows().logits[:, 1] for rows in (block, twice))
        np.testing.assert_array_equal(np.unique(one), np.unique(two))


def test_rows_of_the_same_scores_are_in_one_fold_whatever_their_labels():
    """Of frequent scores every row goes by itself, also those of a label that few of them have."""
    generator = np.random.default_rng(2)
    scores = np.append(np.round(generator.normal(size=300), 2), np.full(60, 7.0))
    labels = np.append(generator.integers(0, 2, 300), np.arange(60) % 20 == 0)
    block = Block(np.column_stack([np.zeros(360), scores]), labels, None, 2)
    numbers = in_memory(block).plan(5).start()(block)
    values, place, times = np.unique(scores, return_inverse=True, return_counts=True)
    shared = [i for i in range(len(values)) if 1 < times[i] <= 4 and len(set(labels[place == i])) == 2]
    assert len(shared) > 20
    assert all(len(set(numbers[place == i])) == 1 for i in shared)
    assert len(set(numbers[(scores == 7) & (labels == 1)])) > 1
    assert np.ptp(np.bincount(numbers)) <= 20
    order = generator.permutation(360)
    mixed = block.take(order)
    found = in_memory(mixed).plan(5).start()(mixed)
    rare = (times[place] <= 4)[order]  # others are told apart by their number
    np.testing.assert_array_equal(found[rare], numbers[order][rare])
    pieces = cut(block, (0, 7, 330))
    for f in range(5):
        one, two = in_memory(block).only(f, 5).rows(), pieces.only(f, 5).rows()
        assert sorted(zip(one.logits[:, 1], one.labels, strict=True)) == sorted(
            zip(two.logits[:, 1], two.labels, strict=True)
        )


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


@pytest.mark.parametrize("k", [2, 8, 9, 10, 40, 300])
def test_rows_of_few_values_that_differ_in_any_column_have_keys_of_their_own(k):
    """As k-NN has them: .8 for the label and .2 for one other class."""
    logits = np.full((k - 1, k), np.log(1e-3))
    logits[:, 0] = np.log(0.8)
    logits[np.arange(k - 1), np.arange(1, k)] = np.log(0.2)
    block = Block(logits, np.zeros(k - 1, dtype=np.int64), None, k)
    for keys in (row_keys(block), fine_keys(block), row_keys(block.with_logits(logits.astype(np.float32)))):
        assert len(np.unique(keys)) == k - 1


def crowded(n, kind):
    """Rows of which many share a key: scores in a narrow range, or votes of five neighbours."""
    generator = np.random.default_rng(3)
    if kind == "narrow":
        odds = generator.uniform(3.0, 3.01, n)
        return Block(np.column_stack([np.zeros(n), odds]), generator.integers(0, 2, n), None, 2)
    votes = generator.multinomial(5, [0.7, 0.1, 0.1, *[0.01] * 10], n)
    return Block(np.log(votes + 0.01), votes.argmax(axis=1), None, 13)


def folds_by_content(data, block, count=5):
    """How many rows of each content every fold has."""
    folds = [data.only(f, count).rows() for f in range(count)]
    contents = np.unique(np.column_stack([block.logits, block.labels]), axis=0)
    found = np.zeros((len(contents), count), dtype=np.int64)
    for f, fold in enumerate(folds):
        rows_ = np.column_stack([fold.logits, fold.labels])
        place = np.unique(np.concatenate([contents, rows_]), axis=0, return_inverse=True)[1].ravel()[len(contents) :]
        np.add.at(found, (place, f), 1)
    return found


@pytest.mark.parametrize("kind", ["narrow", "votes"])
@pytest.mark.parametrize("n", [900, 6000])
def test_crowded_rows_are_in_the_same_folds_in_any_order_and_any_blocks(n, kind):
    block = crowded(n, kind)
    other = block.take(np.random.default_rng(1).permutation(n))
    expected = folds_by_content(in_memory(block), block)
    assert expected.sum() == n
    assert np.abs(expected.sum(axis=0) - n / 5).max() < 0.1 * n
    np.testing.assert_array_equal(folds_by_content(in_memory(other), block), expected)
    np.testing.assert_array_equal(folds_by_content(cut(other, (1, n // 3, n - 1)), block), expected)


def test_of_too_many_crowded_contents_keys_alone_are_counted(monkeypatch):
    monkeypatch.setattr("calibrant.passes.folds._MOST_APART", 100)
    block = crowded(6000, "narrow")
    whole, parts = in_memory(block), cut(block, (1, 2000, 5999))
    plan = whole.plan(5)
    assert len(plan.frequent)
    assert not len(plan.crowded)  # no key is split by digits that were not counted
    np.testing.assert_array_equal(folds_by_content(whole, block), folds_by_content(parts, block))
    assert np.abs(folds_by_content(whole, block).sum(axis=0) - 1200).max() < 600


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), max_size=40), st.integers(0, 40), st.integers(1, 12))
def test_counts_of_keys_merge_to_what_all_rows_give(rows_, at, most):
    fine = np.array([content for content, _ in rows_], dtype=np.uint64)
    parts = np.array([part for _, part in rows_], dtype=np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("calibrant.passes.folds._MOST_APART", most)
        pieces = [slice(0, at), slice(at, None), slice(0, None)]
        one, two, whole = (
            KeyCounts.of(fine[s] // 2, fine[s], parts[s], np.ones_like(parts[s]), coarse=False) for s in pieces
        )
        merged = one + two
    assert merged.coarse == whole.coarse == (len(set(rows_)) > most)
    for name in ("keys", "fine", "parts", "counts"):
        np.testing.assert_array_equal(getattr(merged, name), getattr(whole, name))


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
