"""Tests in processes that start at once: this one has imported all but calibrant, and each run is a fork of it."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .in_python import changed_code

# What the tests import, but for calibrant and pytest's plugins: a child need not import it again.
PRELOADED = (
    "numpy",
    "scipy.optimize",
    "scipy.stats",
    "sklearn.isotonic",
    "pandas",
    "pytest",
    "torch",
)
NOT_CHANGED = 99  # how a child ends whose tests loaded the module past its change


class Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds one module changed: a Python module by the number of its change, the compiled core by its file."""

    def __init__(self, name: str, path: Path, number: int | None) -> None:
        self.name = name
        self.path = path
        self.number = number

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        """Return where the changed module is, and nothing for others."""
        if fullname != self.name:
            return None
        if self.number is None:
            return importlib.util.spec_from_file_location(fullname, self.path)
        package = [str(self.path.parent)] if self.path.name == "__init__.py" else None
        return importlib.util.spec_from_file_location(
            fullname, self.path, loader=self, submodule_search_locations=package
        )

    def took_effect(self) -> bool:
        """Whether the module, if the tests loaded it, is the changed one."""
        spec = getattr(sys.modules.get(self.name), "__spec__", None)
        if spec is None:
            return True
        return spec.origin == str(self.path) if self.number is None else spec.loader is self

    def exec_module(self, module: Any) -> None:
        """Run the changed code."""
        exec(changed_code(self.path.read_text(), self.number or 0, str(self.path)), module.__dict__)


def preload(root: Path) -> None:
    """Import what all tests share, and let calibrant come from the copied tree."""
    os.chdir(root)
    sys.meta_path[:] = [f for f in sys.meta_path if "ScikitBuild" not in type(f).__name__]
    sys.path.insert(0, str(root / "src"))
    for name in PRELOADED:
        importlib.import_module(name)
    assert "calibrant" not in sys.modules


def run(work: Callable[[], int], seconds: float, log: Path) -> str:
    """Run the work in a child and return how it ended: passed, failed, crashed or slow.

    Seconds are of processor time, as the machine may have other things to do; a child that waits has ten times as many.
    """
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it, a test sends it
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        try:
            code = int(work())
        except BaseException as error:
            print(repr(error), flush=True)
            code = 9
        sys.stdout.flush()
        os._exit(code)
    return _ending(child, 10 * seconds)


def _ending(child: int, seconds: float) -> str:
    end = time.monotonic() + seconds
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            endings = {
                0: "passed",
                5: "passed",
                NOT_CHANGED: "not changed",
                -signal.SIGXCPU: "slow",
                -signal.SIGKILL: "slow",
            }
            return endings.get(code, "crashed" if code < 0 else "failed")
        if time.monotonic() > end:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "slow"
        time.sleep(0.02)
