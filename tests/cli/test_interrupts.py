"""Ctrl-C in the middle of a command: its code is 130, what was there before is there, and nothing else."""

import os
import signal
import subprocess
import sys
import time
import types

import numpy as np
import pytest

import calibrant
from calibrant.cli.start import main

pytestmark = pytest.mark.skipif(os.name != "posix", reason="as POSIX sends it")
pytest.importorskip("pyarrow")
HEAD = "logit_a,logit_b,logit_c,label\n"
LINE = "0.25,1.5,-0.75,b\n-1.0,0.5,0.25,a\n0.5,0.5,1.0,c\n"


@pytest.fixture
def room(tmp_path):
    """A directory with two files of some 10 s of work, a map, old outputs, and one for temporary files beside it."""
    for name in ("work/parts", "temporary"):
        (tmp_path / name).mkdir(parents=True)
    work = tmp_path / "work"
    for name in ("a", "b"):
        (work / "parts" / f"{name}.csv").write_text(HEAD + LINE * 200_000)
    calibrant.make("identity").fit(2 * np.eye(3), ["a", "b", "c"]).save(work / "map.calibrant")
    for name in ("old.calibrant", "old.csv"):
        (work / name).write_text("what was there before")
    return tmp_path


def files(place):
    """Every file and directory, with the bytes of the small ones."""
    found = sorted(place.rglob("*"))
    return {
        str(p.relative_to(place)): p.read_bytes() if p.is_file() and p.stat().st_size < 10**6 else None for p in found
    }


def interrupt(room, words, begun, fed=b""):
    """Run a command, press Ctrl-C once it has begun to write, and return its code and its last words."""
    command = [sys.executable, "-m", "calibrant", *words]
    hears = "import signal, os, sys; signal.signal(2, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
    child = subprocess.Popen(
        [sys.executable, "-S", "-c", hears, *command],  # as a shell's background job ignores it
        cwd=room / "work",
        env={**os.environ, "TMPDIR": str(room / "temporary"), "OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdin is not None
    child.stdin.write(fed)  # and not closed: more could come
    child.stdin.flush()
    end = time.monotonic() + 60
    while not begun():
        assert child.poll() is None, child.stderr.read() if child.stderr else ""
        assert time.monotonic() < end, "the command has not begun to write"
        time.sleep(0.002)
    child.send_signal(signal.SIGINT)
    code = child.wait(20)
    assert child.stdout is not None
    assert child.stderr is not None
    return code, child.stdout.read(), child.stderr.read().decode().strip()


@pytest.mark.parametrize(
    "words", [("fit", "-", "--method", "ets", "-o", "old.calibrant"), ("measure", "-")], ids=lambda words: words[0]
)
def test_a_stream_that_has_not_ended(room, words):
    """Standard input beyond the memory allowed is copied to a file, which is gone; the old map is not."""
    before = files(room / "work")
    copy = room / "temporary"
    fed = (HEAD + LINE * 2000).encode()
    ours = "calibrant-*/*"  # Python tries the directory with a file of its own before
    done = interrupt(room, [*words, "--memory", "50KB"], lambda: any(copy.glob(ours)), fed)
    assert done == (130, b"", "interrupted")
    assert files(room / "work") == before
    assert files(copy) == {}


@pytest.mark.parametrize(("source", "target"), [("parts", "out"), ("parts/a.csv", "old.csv")])
def test_files_that_are_half_written(room, source, target):
    before = files(room / "work")
    words = ["apply", "map.calibrant", source, "-o", target, "--memory", "1MB", "--quiet"]
    done = interrupt(room, words, lambda: any(p.stat().st_size for p in (room / "work").glob(".*.tmp/*")))
    assert done == (130, b"", "interrupted")
    assert files(room / "work") == before
    assert files(room / "temporary") == {}


def test_while_the_program_is_loaded(monkeypatch, capsys):
    class Loading(types.ModuleType):
        def __getattr__(self, name):
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "calibrant.cli.main", Loading("calibrant.cli.main"))
    assert main() == 130
    assert capsys.readouterr().err == "interrupted\n"
