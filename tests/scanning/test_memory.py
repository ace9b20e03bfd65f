"""What a scan takes in memory: no more than its user allows, whatever is fitted and however the file is laid out."""

import json
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import calibrant
from calibrant.cells import counted
from calibrant.cli import scans
from calibrant.errors import CalibrationWarning, InvalidInput
from calibrant.passes import room as rooms
from calibrant.passes.room import Room
from calibrant.scanning.looking import Wanted
from calibrant.scanning.reading import Reading

JOBS = """
import json, sys
import numpy as np
import calibrant

def peak():
    text = open("/proc/self/status").read()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmHWM")) / 1024

room = sys.argv[1]
few = calibrant.scan(lambda: [(np.random.default_rng(0).normal(size=(300, 100)), np.arange(300) % 100)])
ts, _ = calibrant.make("ts").fit(few), calibrant.make("hb-mass").fit(few)
calibrant.scan(room + "/few.parquet").source.head()
base, found = peak(), {}
for name in ("ts", "apply", "hb-mass"):
    data = calibrant.scan(room + "/z.parquet", memory="200MB")
    calibrant.apply(ts, data, to=room + "/q.parquet") if name == "apply" else calibrant.make(name).fit(data)
    found[name] = peak() - base
print(json.dumps(found))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell what a process takes")
def test_no_more_memory_is_taken_than_was_allowed(tmp_path):
    """60 MB of scores in one group of rows, of as many classes as cells of each were 380 MB once."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rng = np.random.default_rng(0)
    z = rng.standard_normal((150_000, 100), dtype=np.float32)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(z.ravel()), 100)
    table = pa.table(
        {"logits": lists.cast(pa.list_(pa.float32())), "label": (z + rng.gumbel(size=z.shape)).argmax(axis=1)}
    )
    pq.write_table(table, tmp_path / "z.parquet", row_group_size=len(z))
    pq.write_table(table.slice(0, 300), tmp_path / "few.parquet")
    command = [sys.executable, "-W", "ignore", "-c", JOBS, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert max(found.values()) < 1.25 * 200, found  # needs are known to a quarter, see `room`
    assert pq.ParquetFile(tmp_path / "q.parquet").metadata.num_rows == len(z)


def test_too_little_room_is_told_and_far_too_little_is_refused():
    assert Room(10**9).taking(3e8, "this") == Room(10**9, 300_000_000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Room(1000).taking(6e7, "this").taken == 60_000_000  # as much as nobody is told of
    with pytest.warns(CalibrationWarning, match=r"takes about 160MB .* allows 50MB"):
        Room(50_000_000, 100_000_000).taking(6e7, "this")
    with pytest.raises(InvalidInput, match=r"with cells this takes about 700MB .* memory=500MB.* memory=700MB or more"):
        Room(500_000_000, 100_000_000).taking(6e8, "cells")
    with pytest.warns(CalibrationWarning, match="600MB"):
        Room(500_000_000).taking(6e8, "what is known to a quarter of it")
    Room(500_000_000).refuse_much(6e8, "this")
    with pytest.raises(InvalidInput, match="700MB"):
        Room(500_000_000).refuse_much(7e8, "this")


def batches():
    for seed in range(4):
        z = np.random.default_rng(seed).normal(size=(500, 20))
        yield z, (z + np.random.default_rng(seed).gumbel(size=z.shape)).argmax(axis=1)


@pytest.mark.parametrize(("name", "words"), [("ts", "its samples of the rows"), ("hb-mass", "cells of 20 groups")])
def test_maps_say_what_they_need(monkeypatch, name, words):
    monkeypatch.setattr(rooms, "_LITTLE", 100 if name == "ts" else 10_000_000)
    monkeypatch.setattr(counted, "_EXACT", 0)
    with pytest.warns(CalibrationWarning) as told:
        calibrant.make(name).fit(calibrant.scan(batches, memory="100KB"))
    assert any(words in str(one.message) for one in told)


def test_a_sample_that_needs_more_than_was_allowed_is_refused_before_it_is_there(monkeypatch):
    monkeypatch.setattr(rooms, "_MUCH", 200_000)
    seen = []

    def counted():
        for number, batch in enumerate(batches()):
            seen.append(number)
            yield batch

    with pytest.raises(InvalidInput, match="its samples of the rows") as refused:
        calibrant.make("ts").fit(calibrant.scan(counted, memory="200KB", sample=2000))
    assert "sample=" in refused.value.hint
    assert max(seen) < 3
    calibrant.make("ts").fit(calibrant.scan(batches, sample=2000))  # nothing was asked for


def test_rows_are_held_where_they_and_what_fits_make_of_them_have_room():
    def few(columns, dtype, memory):
        return Wanted(8_000_000, memory=memory).few_rows(Reading("logits", False, columns, None, dtype, None))

    assert few(100, np.float32, None) == 80_000
    assert few(100, np.float32, 10**9) == 80_000
    assert few(100, np.float32, 64_500_000) == 10_000
    assert few(100, np.float64, 62_250_000) == 5_000
    assert few(2, np.float32, 57_000_000) == 100_000  # labels, keys and losses outweigh two scores


def test_files_are_read_whole_where_what_becomes_of_them_has_room(tmp_path):
    z = np.zeros((1000, 25), dtype=np.float64)  # 200 KB, and next to nothing when packed
    np.save(tmp_path / "z.npy", z)
    np.savez_compressed(tmp_path / "z.npz", logits=z)
    (tmp_path / "z.csv").write_bytes(b"x" * 100_000)
    (tmp_path / "z.csv.gz").write_bytes(b"x" * 100_000)
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({str(i): z[:, i] for i in range(25)}), tmp_path / "z.parquet")
    for name, size in {"z.parquet": 0.8e6, "z.npy": 0.8e6, "z.npz": 0.8e6, "z.csv": 1.6e6, "z.csv.gz": 6.4e6}.items():
        path = str(tmp_path / name)
        assert scans._is_large(path, int(size * 0.9), asked=True)
        assert not scans._is_large(path, int(size * 1.1), asked=True)


@pytest.mark.parametrize("packed", ["lz4", None])
def test_large_batches_of_arrow_files_are_read_in_slices(tmp_path, packed):
    pa, ipc = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.ipc")
    z = np.random.default_rng(0).normal(size=(4000, 8))
    table = pa.table({"logits": list(z), "label": np.arange(4000) % 8})
    with ipc.new_file(tmp_path / "z.arrow", table.schema, options=ipc.IpcWriteOptions(compression=packed)) as file:
        file.write_table(table)
        file.write_table(table.slice(0, 10))
    source = calibrant.scan(tmp_path / "z.arrow", memory="1MB").source
    found = list(source.batches())
    assert len(found) > 2
    assert {len(batch.scores) for batch in found[:2]} == {source.rows_a_batch}
    np.testing.assert_array_equal(np.concatenate([batch.scores for batch in found]), np.concatenate([z, z[:10]]))
