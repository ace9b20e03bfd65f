"""A write that is stopped leaves the old file and no litter."""

import os
from pathlib import Path
from typing import Any

import pytest

from calibrant.errors import FileProblem
from calibrant.files.atomic import replacing


def _write(path: Path, text: bytes) -> None:
    with replacing(path) as out:
        out.write(text)


def _stopped_write(path: Path, stop: type[BaseException]) -> None:
    with replacing(path) as out:
        out.write(b"half")
        raise stop


def test_the_new_file_replaces_the_old(tmp_path: Path) -> None:
    _write(tmp_path / "f", b"old")
    _write(tmp_path / "f", b"new")
    assert (tmp_path / "f").read_bytes() == b"new"
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, MemoryError, ValueError])
def test_an_interrupted_write_keeps_the_old_file(tmp_path: Path, stop: type[BaseException]) -> None:
    _write(tmp_path / "f", b"old")
    with pytest.raises(stop):
        _stopped_write(tmp_path / "f", stop)
    assert (tmp_path / "f").read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    _write(tmp_path / "f", b"old")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, call, full)
    with pytest.raises(FileProblem, match="No space left"):
        _write(tmp_path / "f", b"new")
    assert (tmp_path / "f").read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


def test_links_are_followed(tmp_path: Path) -> None:
    _write(tmp_path / "real", b"old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    _write(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_a_device_is_written_to_as_it_is() -> None:
    _write(Path("/dev/null"), b"gone")
    assert not Path("/dev/null").is_file()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_device_is_reported() -> None:
    with pytest.raises(FileProblem, match="No space left"):
        _write(Path("/dev/full"), b"x" * 100_000)
