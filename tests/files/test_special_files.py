"""Devices and pipes have no end, or are waited for: whatever reads a file says so at once."""

import os
import threading

import numpy as np
import pytest

import calibrant
from calibrant.errors import FileProblem
from calibrant.files import reading
from calibrant.monitoring import Monitor, Pending

pytestmark = pytest.mark.skipif(not os.path.exists("/dev/zero") or not hasattr(os, "mkfifo"), reason="needs devices")
READERS = {
    "load": calibrant.load,
    "read": reading.read,
    "scan": calibrant.scan,
    "spilled": lambda path: calibrant.scan(path, spill=True),
    "monitor": Monitor.load,
    "pending": Pending.load,
}


@pytest.fixture(params=["/dev/zero", "/dev/random", "pipe", "directory"])
def special(request, tmp_path):
    """A place that has the ending of a file of data."""
    path = tmp_path / "scores.npz"
    if request.param == "pipe":
        os.mkfifo(path)
    elif request.param == "directory":
        path.mkdir()
    else:
        path.symlink_to(request.param)
    return path


@pytest.mark.parametrize("name", READERS)
def test_what_is_no_regular_file_is_refused_at_once(name, special):
    if special.is_fifo() and name in ("read", "spilled"):
        pytest.skip("waits for who writes, as it should")
    with pytest.raises(calibrant.CalibrantError, match=r"cannot read|read once|no files"):
        READERS[name](special)


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/random"])
def test_devices_are_refused_by_their_own_names(name, device):
    with pytest.raises(FileProblem, match=r"cannot read|ending"):
        READERS[name](device)


def test_labels_of_an_array_are_read_from_no_device(tmp_path):
    np.save(tmp_path / "scores.npy", np.eye(3))
    with pytest.raises(FileProblem, match="no regular file"):
        reading.read(tmp_path / "scores.npy", kind="probs", labels="/dev/zero")


def test_data_come_through_a_pipe(tmp_path):
    np.savez(tmp_path / "made.npz", probs=np.eye(3), labels=np.arange(3))
    pipe = tmp_path / "scores.npz"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes((tmp_path / "made.npz").read_bytes()))
    writer.start()
    found = reading.read(pipe)
    writer.join()
    assert found.path == str(pipe)
