"""What is read while others compute: in order, two items at a time, errors where they belong, no thread left."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import calibrant
from calibrant.errors import FileProblem
from calibrant.files.pieces import Names
from calibrant.files.scanned.arrays import npy_batches, one_ahead


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    gc.collect()
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("calibrant-ahead")] == []


def test_the_next_item_is_made_while_the_last_is_worked_on():
    made = [threading.Event() for _ in range(4)]

    def items():
        for number, event in enumerate(made):
            event.set()
            yield number

    for number in one_ahead(items()):
        assert made[min(number + 1, 3)].wait(10)
        assert not any(event.is_set() for event in made[number + 2 :])


def test_an_error_is_raised_where_its_item_is_asked_for():
    def items():
        yield from (1, 2)
        raise FileProblem("the third is damaged")

    coming = one_ahead(items())
    assert [next(coming), next(coming)] == [1, 2]
    with pytest.raises(FileProblem, match="the third"):
        next(coming)


def test_an_iteration_that_is_given_up_ends_its_thread():
    coming = one_ahead(iter(range(100)))
    assert next(coming) == 0
    del coming


def test_a_system_without_a_thread_to_spare_reads_all_the_same(monkeypatch):
    def refused(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(ThreadPoolExecutor, "submit", refused)
    assert list(one_ahead(iter(range(5)))) == [0, 1, 2, 3, 4]


def test_no_more_than_two_windows_are_mapped_at_a_time(tmp_path: Path, monkeypatch):
    np.save(tmp_path / "z.npy", np.arange(4000.0).reshape(1000, 4))
    np.save(tmp_path / "y.npy", np.arange(1000))
    mapped: list[weakref.ref] = []
    most = 0

    def counting(window):
        nonlocal most
        mapped.append(weakref.ref(window))
        most = max(most, sum(one() is not None for one in mapped))
        return window

    monkeypatch.setattr("calibrant.files.scanned.arrays._fetched", counting)
    rows = 0
    for batch in npy_batches(str(tmp_path / "z.npy"), Names(labels=str(tmp_path / "y.npy")), 100):
        assert batch.scores[0, 0] == 4 * rows
        rows += len(batch.scores)
        del batch
    assert rows == 1000
    assert len(mapped) == 20
    assert most <= 4  # two of scores, two of labels


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_nan_in_the_last_rows_is_told_with_file_and_row(tmp_path: Path, order):
    z = np.random.default_rng(0).standard_normal((30_000, 4))
    z[-1, 2] = np.nan
    np.save(tmp_path / "z.npy", np.asarray(z, order=order))
    np.save(tmp_path / "y.npy", np.arange(30_000) % 4)
    scan = calibrant.scan(tmp_path / "z.npy", label=tmp_path / "y.npy", memory="2MB")
    with pytest.raises(calibrant.errors.InvalidInput, match=r"row 29999 of .*z\.npy"):
        calibrant.make("ts").fit(scan)


def test_a_file_that_is_cut_short_meanwhile_is_told(tmp_path: Path):
    np.save(tmp_path / "z.npy", np.zeros((3000, 4)))
    coming = npy_batches(str(tmp_path / "z.npy"), Names(), 1000)
    next(coming)
    with (tmp_path / "z.npy").open("r+b") as file:
        file.truncate(70_000)  # within the third window; the second may be mapped already
    with pytest.raises(FileProblem, match="cut short"):
        for _ in coming:
            pass
