"""Rows behind an engine: in memory or in a stream, the same to a fit."""

import pickle

import numpy as np
import pytest

from calibrant import TemperatureScaling
from calibrant.passes import Block, Rows, engines, in_memory, in_passes, in_stream
from calibrant.passes.engines import Stream
from calibrant.passes.statistic import Largest, merge
from calibrant.passes.survey import SampleSize, judged_rows, survey_of


def rows(n=500, k=4, seed=0, weights=True):
    generator = np.random.default_rng(seed)
    z = generator.normal(size=(n, k))
    labels = (z + generator.gumbel(size=(n, k))).argmax(axis=1)
    return Block(z, labels, generator.uniform(0.5, 2, size=n) if weights else None, k)


def stream(block, size):
    starts = range(0, block.n, size)
    return in_stream(
        lambda: (block.take(slice(s, s + size)) for s in starts), block.n_classes, block.logits.shape[1], float
    )


def weighted_mean(block):
    return block.weight_array @ block.logits, block.total_weight


def test_counts_are_those_of_the_rows():
    block = rows()
    for data in (in_memory(block), stream(block, 77)):
        assert data.n == 500
        assert data.total_weight == pytest.approx(block.weights.sum())
        np.testing.assert_allclose(data.class_weights, np.bincount(block.labels, block.weights))
        assert data.size == 2000
    absent = in_memory(block.with_weights(np.where(np.arange(500) < 100, 0.0, block.weights)))
    assert absent.n == 400


def test_a_pass_merges_what_blocks_give():
    block = rows()
    whole, parts = in_memory(block).reduce(weighted_mean), stream(block, 33).reduce(weighted_mean)
    np.testing.assert_allclose(whole[0], parts[0])
    assert whole[1] == pytest.approx(parts[1])


def test_statistics_merge_by_their_own_rule():
    assert merge((1, np.array([1.0, 2.0])), (2, np.array([3.0, 4.0])))[0] == 3
    np.testing.assert_array_equal((Largest(np.array([1, 5])) + Largest(np.array([2, 3]))).values, [2, 5])
    one, two = (Rows(np.array([1.0]), np.array([7])) + Rows(np.array([2.0]), np.array([8]))).columns
    np.testing.assert_array_equal(one, [1.0, 2.0])
    np.testing.assert_array_equal(two, [7, 8])


def test_blocks_without_rows_are_passed_over():
    block = rows()
    empty = block.take(slice(0, 0))
    data = in_stream(lambda: iter([empty, block, empty]), 4, 4, float)
    assert data.reduce(weighted_mean)[1] == pytest.approx(block.weights.sum())
    nothing = in_stream(lambda: iter([empty]), 4, 4, float)
    assert nothing.n == 0


def test_mapped_rows_are_read_through_the_map():
    block = rows()
    fitted = TemperatureScaling().fit(block.logits, block.labels)
    expected = block.logits / fitted.temperature_
    np.testing.assert_array_equal(in_memory(block).mapped(fitted).rows().logits, expected)
    np.testing.assert_array_equal(stream(block, 99).mapped(fitted).rows().logits, expected)


def test_a_stream_holds_nothing_between_passes():
    block, started = rows(), []

    def blocks():
        started.append(1)
        yield block

    data = in_stream(blocks, 4, 4, float)
    data.reduce(weighted_mean)
    data.reduce(weighted_mean)
    assert len(started) == 2


def test_views_of_arrays_too_large_to_hold_twice_are_slices(monkeypatch):
    block = rows()
    fitted = TemperatureScaling().fit(block.logits, block.labels)
    whole = in_memory(block).mapped(fitted).reduce(weighted_mean)
    monkeypatch.setattr(engines, "_HELD", 3200)
    sliced = in_memory(block).mapped(fitted)
    assert sliced.block is None
    np.testing.assert_allclose(sliced.reduce(weighted_mean)[0], whole[0])


@pytest.mark.parametrize("most", [40, 499])
def test_a_pilot_depends_on_the_set_of_rows_alone(most):
    block = rows()
    order = np.random.default_rng(1).permutation(500)
    first = in_memory(block).pilot(most).rows()
    assert first.n == most
    for other in (in_memory(block.take(order)), stream(block.take(order), 61), stream(block, 3)):
        found = other.pilot(most).rows()
        np.testing.assert_array_equal(found.logits, first.logits)
        np.testing.assert_array_equal(found.labels, first.labels)
        np.testing.assert_allclose(found.weights, first.weights)


def test_a_pilot_takes_a_row_twice_as_one_of_twice_the_weight():
    block = rows(weights=False)
    weights = np.where(np.arange(500) % 3 == 0, 2.0, 1.0)
    heavy = in_memory(block.with_weights(weights)).pilot(100).rows()
    twice = in_memory(block.take(np.repeat(np.arange(500), weights.astype(int)))).pilot(100).rows()
    np.testing.assert_array_equal(heavy.logits, twice.logits)
    np.testing.assert_allclose(heavy.weights, twice.weights)


def test_a_pilot_of_few_rows_is_all_of_them():
    block = rows()
    data = in_memory(block)
    assert data.pilot(500) is data
    assert stream(block, 100).pilot(1000).rows().n == 500


def test_a_pilot_is_a_fair_sample():
    means = []
    for seed in range(30):
        labels = np.random.default_rng(seed).integers(0, 3, 3000)
        block = Block(np.random.default_rng(100 + seed).normal(size=(3000, 3)), labels, None, 3)
        means.append(in_memory(block).pilot(300).rows().logits.mean() - block.logits.mean())
    spread = np.sqrt(1 / 900 - 1 / 9000)
    assert abs(np.mean(means)) < 4 * spread / np.sqrt(30)
    assert np.std(means) == pytest.approx(spread, rel=0.4)


def test_what_a_pass_needs_is_kept_for_rows_in_memory():
    block, calls = rows(), []

    def squares(some, power):
        calls.append(power)
        return some.logits**power

    assert block.kept(squares, 2) is block.kept(squares, 2)
    block.kept(squares, 3)
    assert calls == [2, 3]


def test_blocks_pickle_with_their_rows_and_plans_without():
    block = rows(3000)
    data = in_memory(block)
    assert len(pickle.dumps(data.plan(5))) < 64_000


def test_surveys_of_parts_add_up_to_that_of_the_whole():
    """Weights and numbers of rows apart, of all rows and of first folds, whatever parts they come in."""
    block = rows(600)
    size = SampleSize(rows=50, held=20)
    parts = [survey_of(block.take(part), size) for part in (slice(0, 100), slice(100, 130), slice(130, 600))]
    together, whole = (parts[0] + parts[1] + parts[2]).known, survey_of(block, size).known
    np.testing.assert_allclose(together.counts[0], np.bincount(block.labels, block.weights))
    np.testing.assert_array_equal(together.counts[1], np.bincount(block.labels))
    for count, own in whole.folds.items():
        for mine, its in zip(together.folds[count].counts, own.counts, strict=True):
            np.testing.assert_allclose(mine, its)
        assert 0 < own.counts[1].sum() < 600
        rest, left = together.first_fold(count, inside=False), whole.first_fold(count, inside=False)
        np.testing.assert_allclose(rest.counts, left.counts)
    np.testing.assert_array_equal(together.cells, whole.cells)
    np.testing.assert_array_equal(together.pilot(50, 4).labels, whole.pilot(50, 4).labels)


def test_as_many_rows_judge_a_fit_as_have_two_million_scores():
    """But no fewer than 2,048 and no more than 65,536."""
    rows = {1: 65536, 2: 65536, 32: 65536, 33: 63550, 64: 32768, 1000: 2097, 1024: 2048, 1025: 2048, 100_000: 2048}
    assert {columns: judged_rows(columns) for columns in rows} == rows


def test_few_rows_are_themselves_in_a_pilot_wherever_they_are():
    """Of many rows those of one content are one row with their weight; of few, each is known, as in memory."""
    block = rows(300, weights=False)
    block = block.take(np.repeat(np.arange(100), 3))
    size = SampleSize(rows=1000, held=100)
    known = survey_of(block, size).known
    passes = Stream(lambda: iter([block.take(slice(0, 130)), block.take(slice(130, 300))]))
    data = in_passes(passes, block.n_classes, block.n_classes, block.logits.dtype, known)
    found = data.pilot(1000).rows()
    np.testing.assert_array_equal(found.logits, block.logits)
    np.testing.assert_array_equal(data.pilot(50).rows().logits, in_memory(block).pilot(50).rows().logits)


def test_a_pilot_of_answers_is_of_the_same_rows_wherever_they_are():
    block = rows(500, weights=False)
    answers = (data.mapped(Halved()).pilot(60).rows() for data in (in_memory(block), stream(block, 61)))
    first, other = answers
    np.testing.assert_array_equal(first.logits, other.logits)
    np.testing.assert_array_equal(first.logits, Halved().link_logits(in_memory(block).pilot(60).rows().logits))


class Halved:
    """A map that halves logits."""

    def link_logits(self, logits):
        return logits / 2
