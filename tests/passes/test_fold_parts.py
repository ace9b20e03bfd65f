"""Keys of rows in loops: which contents are told apart, how they are counted, and how folds are dealt."""

from collections import Counter

import numpy as np
import pytest

from calibrant.passes import Block, folds, in_memory

U = np.uint64


def contents(seed):
    """Return keys of few numbers, fine keys that refine them, partitions, weights and labels."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    fine = rng.integers(0, 9, n)
    return (
        (fine // 3).astype(U),
        fine.astype(U),
        rng.integers(0, 3, n),
        rng.integers(0, 3, n) * 0.5,
        rng.integers(0, 2, n),
    )


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_keys_are_crowded_by_contents_and_contents_frequent_by_rows(limit):
    for seed in range(40):
        keys, fine, *_ = contents(seed)
        counts = np.random.default_rng(seed).integers(1, 3, len(keys))
        rows, by_key = Counter(), {}
        for key, content, count in zip(keys.tolist(), fine.tolist(), counts.tolist(), strict=True):
            rows[content] += count
            by_key.setdefault(key, set()).add(content)
        often = {content for content in rows if rows[content] > limit}
        crowded = {k for k, some in by_key.items() if len(some) > limit or (len(some) > 1 and some & often)}
        frequent = {content if content // 3 in crowded else content // 3 for content in often}
        times = folds._times(fine, counts)
        assert times.tolist() == [rows[content] for content in fine.tolist()]
        found = folds._told_apart(keys, fine, times > limit, limit)
        assert found[0].tolist() == sorted(crowded)
        assert found[1].tolist() == sorted(frequent)
        finer = folds._finer(keys, fine, found[0])
        assert finer.tolist() == [f if k in crowded else k for k, f in zip(keys.tolist(), fine.tolist(), strict=True)]


@pytest.mark.parametrize("most", [3, 1000])
def test_counts_are_by_content_and_partition(monkeypatch, most):
    """Where there are too many contents, by key and partition."""
    monkeypatch.setattr(folds, "_MOST_APART", most)
    for seed in range(40):
        keys, fine, parts, *_ = contents(seed)
        counts = np.random.default_rng(seed).integers(1, 3, len(keys))
        whole = Counter()
        for content, part, count in zip(fine.tolist(), parts.tolist(), counts.tolist(), strict=True):
            whole[content, part] += count
        coarse = len(whole) > most
        if coarse:
            by_key = Counter()
            for (content, part), count in whole.items():
                by_key[content // 3, part] += count
            whole = by_key
        one = folds.KeyCounts.of(keys, fine, parts, counts, coarse=False)
        halves = [folds.KeyCounts.of(keys[i::2], fine[i::2], parts[i::2], counts[i::2], coarse=False) for i in (0, 1)]
        for found in (one, halves[0] + halves[1]):
            assert found.coarse == coarse
            told = zip(found.fine.tolist(), found.parts.tolist(), strict=True)
            assert dict(zip(told, found.counts.tolist(), strict=True)) == dict(whole)
            assert found.keys.tolist() == [f if coarse else f // 3 for f in found.fine.tolist()]
    nothing = np.zeros(0, np.int64)
    none = folds.KeyCounts.of(nothing.astype(U), nothing.astype(U), nothing, nothing, coarse=False)
    assert len(none.keys) == len(none.counts) == 0


def mixed(key, number):
    """Return the key of the row of this number, from 0, among those of one content."""
    mask = (1 << 64) - 1
    found = ((key ^ ((number + 1) * int(folds._ODD) & mask)) * int(folds._ODD)) & mask
    return found ^ (found >> 29)


def test_rows_of_a_frequent_content_are_numbered_by_weight():
    """Whatever comes later goes on from there; rows of no weight and of other contents keep their key."""
    for seed in range(40):
        keys, _, _, weights, _ = contents(seed)
        frequent, seen = np.array([0, 2], dtype=U), np.array([3, 0])
        counts = {0: 3, 2: 0}
        wanted = keys.tolist()
        for i in sorted(range(len(keys)), key=lambda i: (weights[i], i)):
            if wanted[i] in counts and weights[i] > 0:
                key = int(keys[i])
                wanted[i], counts[key] = mixed(key, counts[key]), counts[key] + 1
        found = folds._numbered(keys, weights, frequent, seen)
        assert found.tolist() == wanted
        assert seen.tolist() == [counts[0], counts[2]]
        assert folds._numbered(keys, weights, frequent[:0], np.zeros(0, int)) is keys


@pytest.mark.parametrize("count", [2, 3, 7])
def test_few_rows_are_dealt_label_by_label_in_the_order_of_their_keys(count):
    """Rows of scores that several labels share are in one fold; of frequent scores all are told apart."""
    for seed in range(20):
        keys, fine, _, weights, _ = contents(seed)
        weights = weights + 0.5
        labels = (fine % 2).astype(np.int64)  # what is one content has one label
        scores = fine // 2 + U(1000)
        plan = folds._dealt_plan(keys, fine, scores, labels, weights, count, 5)
        told = plan.of_rows(keys, fine, scores, weights)
        times = Counter(scores.tolist())
        of_labels = {s: {b for t, b in zip(scores.tolist(), labels.tolist(), strict=True) if t == s} for s in times}
        joined = [s for s in sorted(times) if times[s] <= 5 and len(of_labels[s]) > 1]
        assert plan.joined.tolist() == joined
        often = {f for f, s in zip(fine.tolist(), scores.tolist(), strict=True) if times[s] > 5}
        assert often <= {*plan.frequent.tolist()} | {f for f in often if f // 3 in plan.frequent.tolist()}
        finer = folds._finer(keys, fine, plan.crowded)
        own = folds._numbered(finer, weights, plan.frequent, np.zeros(len(plan.frequent), int))
        own = np.where(np.isin(scores, joined), scores, own)
        lowest = {}
        for key, label in zip(own.tolist(), labels.tolist(), strict=True):
            lowest[key] = min(label, lowest.get(key, label))
        turn = {key: i % count for i, key in enumerate(sorted(lowest, key=lambda key: (lowest[key], key)))}
        assert told.tolist() == [turn[key] for key in own.tolist()]
        assert not plan.by_key
    assert folds.FoldPlan(5, np.zeros(0, U), np.zeros(0, U)).by_key
    assert folds.FoldPlan(5, np.zeros(0, U), np.zeros(0, U)).of_rows(
        np.array([7, 12, 13], dtype=U), np.zeros(3, U), np.zeros(3, U), np.ones(3)
    ).tolist() == [2, 2, 3]


def test_how_many_rows_may_be_alike():
    least, share = folds._ALIKE, folds._LARGE_SHARE
    assert folds.alike_limit(1) == folds.alike_limit(least * share) == least
    assert folds.alike_limit((least + 1) * share) == least + 1


@pytest.mark.parametrize(("most", "dealt"), [(39, False), (40, True), (41, True)])
def test_folds_are_dealt_up_to_so_many_rows(monkeypatch, most, dealt):
    monkeypatch.setattr(folds, "_DEALT", most)
    rng = np.random.default_rng(0)
    data = in_memory(Block(rng.normal(size=(40, 2)), np.arange(40) % 2, None, 2))
    assert (data.plan(5).dealt is not None) is dealt
