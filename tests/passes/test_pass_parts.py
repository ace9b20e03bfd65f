"""Parts of passes by themselves."""

import numpy as np
import pytest

from calibrant.errors import FileProblem
from calibrant.passes.sample import bit_hash
from calibrant.passes.survey import SampleSize
from calibrant.passes.wire import from_bytes, to_bytes


def test_a_partition_sends_no_more_than_it_may():
    assert SampleSize(100, 50).of(70) == 70
    assert SampleSize(100, 50, sent=20).of(70) == 20
    assert SampleSize(100, 50, sent=20).of(7) == 7


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
