"""Parts of passes by themselves."""

import contextlib
import json

import numpy as np
import pytest

from calibrant.cells.moments import Moments, moments_of
from calibrant.errors import CalibrantError, FileProblem
from calibrant.passes.batch import rows_in
from calibrant.passes.block import Block
from calibrant.passes.sample import bit_hash
from calibrant.passes.survey import SampleSize, survey_of
from calibrant.passes.wire import from_bytes, to_bytes


def test_hashes_tell_columns_in_another_order_apart(rng):
    z = rng.normal(size=(200, 3))
    assert len(set(bit_hash(z).tolist())) == 200
    assert not (bit_hash(z) == bit_hash(z[:, [1, 0, 2]])).any()
    np.testing.assert_array_equal(bit_hash(z), bit_hash(np.asfortranarray(z)))


def test_statistics_come_back_from_their_bytes():
    told = {"a": (1, 2.5, None, np.inf), "b": [np.arange(6).reshape(2, 3), np.float32(1.5)], "c": "é"}
    found = from_bytes(to_bytes(told))
    assert found["a"] == told["a"]
    assert found["c"] == "é"
    np.testing.assert_array_equal(found["b"][0], told["b"][0])
    with pytest.raises(FileProblem, match="another version"):
        from_bytes(b"CALS\x07" + to_bytes(told)[5:])


def message(header, arrays=(), lengths=None):
    parts = [json.dumps(header).encode(), json.dumps([len(a) for a in arrays] if lengths is None else lengths).encode()]
    return b"".join([b"CALS\x01", *(len(part).to_bytes(8, "little") for part in parts), *parts, *arrays])


FORGED = {
    "another module": message({"class": "os:system", "fields": {}}),
    "a program": message({"class": "calibrant.__main__:main", "fields": {}}),
    "a module that is not there": message({"class": "calibrant.nothing:Here", "fields": {}}),
    "a function": message({"class": "calibrant.registry:make", "fields": {"name": "ts"}}),
    "a class that is no statistic": message({"class": "calibrant.errors:InvalidInput", "fields": {}}),
    "another's class in our module": message({"class": "calibrant.passes.wire:Path", "fields": {}}),
    "fields of others": message({"class": "calibrant.cells.moments:Moments", "fields": {"colour": 1}}),
    "a state of nothing": message({"state": "calibrant.cells.moments:Moments", "told": {"dict": []}}),
    "an array twice": message({"list": [{"array": 0, "dtype": "<f8", "shape": [1]}] * 2}, [bytes(8)]),
    "an array of objects": message({"array": 0, "dtype": "|O", "shape": [1]}, [bytes(8)]),
    "a shape of more": message({"array": 0, "dtype": "<f8", "shape": [2**40, 2**40]}, [bytes(8)]),
    "lengths below zero": message({"array": 0, "dtype": "<f8", "shape": [1]}, [bytes(8)], [-8]),
    "bytes behind the end": message(1) + b"x",
    "keys that are lists": message({"dict": [[{"list": []}, 1]]}),
    "no kind": message({"colour": 1}),
    "deep nesting": b"CALS\x01" + (200_000).to_bytes(8, "little") + (2).to_bytes(8, "little") + b"[" * 200_000 + b"[]",
    "nothing": b"",
    "a word alone": b"CALS",
    "half": message({"list": [1, 2, 3]})[:-4],
}


@pytest.mark.parametrize("what", FORGED)
def test_a_forged_message_is_refused(what):
    with pytest.raises(CalibrantError):
        from_bytes(FORGED[what])


def test_a_damaged_message_is_refused_or_a_value(rng):
    whole = to_bytes({"m": moments_of(np.array([0.5, 1.5]), np.array([1.0, 2.0])), "a": np.arange(3)})
    assert isinstance(from_bytes(whole)["m"], Moments)
    for _ in range(2000):
        data = bytearray(whole)
        data[rng.integers(len(data))] = rng.integers(256)
        cut = rng.integers(len(data) + 1) if rng.random() < 0.3 else len(data)
        with contextlib.suppress(CalibrantError):  # any other exception is a failure
            from_bytes(bytes(data[:cut]))


@pytest.mark.parametrize("weights", ["none", "whole", "fractions"])
def test_a_survey_that_knows_what_was_seen_keeps_the_same_rows(rng, weights):
    logits = np.round(rng.normal(size=(3000, 2)), 2)  # many rows share their key
    given = {"none": None, "whole": rng.integers(0, 3, 3000) * 1.0, "fractions": rng.random(3000)}[weights]
    block = Block(logits, rng.integers(0, 2, 3000), given, 2)
    size = SampleSize(rows=50, held=20)
    parts = [block.take(np.arange(first, first + 500)) for first in range(0, 3000, 500)]
    knowing = survey_of(parts[0], size)
    for part in parts[1:]:
        knowing = knowing + survey_of(part, size, knowing)
    for found, whole in zip(
        (knowing.sample, knowing.held), (survey_of(block, size).sample, survey_of(block, size).held), strict=True
    ):
        assert len(found.keys) == len(whole.keys) == found.most
        np.testing.assert_array_equal(found.keys, whole.keys)
        np.testing.assert_array_equal(found.logits, whole.logits)
        np.testing.assert_allclose(found.weights, whole.weights, rtol=1e-12)
        assert found.end == whole.end
    np.testing.assert_array_equal(knowing.cells, survey_of(block, size).cells)


@pytest.mark.parametrize("most", [1, 7, 20, 60])
def test_partitions_that_send_a_part_of_their_samples_are_trusted_as_far_as_all_sent(rng, most):
    block = Block(np.round(rng.normal(size=(3000, 2)), 2), rng.integers(0, 2, 3000), None, 2)
    size, sent = SampleSize(rows=50, held=40), SampleSize(rows=most, held=most)
    cuts = np.sort(rng.integers(0, 3000, 5))
    parts = [block.take(rows) for rows in np.split(np.arange(3000), cuts) if len(rows)]
    surveys = [survey_of(part, size).sent(sent) for part in parts]
    assert all(len(one.sample.keys) <= most and len(one.held.keys) <= most for one in surveys)
    total = surveys[0]
    for one in surveys[1:]:
        total = total + one
    whole = survey_of(block, size)
    for found, all_rows in ((total.sample, whole.sample), (total.held, whole.held)):
        known = min(found.count, len(all_rows.keys))
        assert known >= min(most, len(all_rows.keys))
        np.testing.assert_array_equal(found.keys[:known], all_rows.keys[:known])
        np.testing.assert_array_equal(found.logits[:known], all_rows.logits[:known])
        np.testing.assert_array_equal(found.weights[:known], all_rows.weights[:known])
        assert found.covers(known)
        assert found.covers(known + 1) == (found.count > known)


def test_a_batch_has_as_many_rows_as_its_bytes_hold_and_one_at_least():
    """A row counts for 32 bytes however few its scores: what is made of it is as large."""
    assert rows_in(3200, np.zeros(1, np.float32)) == 100
    assert rows_in(3200, np.zeros(8)) == 50
    assert rows_in(10, np.zeros(8)) == 1
