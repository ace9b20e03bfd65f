"""The core with one change: one file is compiled again, without much optimisation, and linked."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import nanobind

from .change import Change
from .in_cpp import changed_source


class Core:
    """A build of the copied tree, made when it is first needed."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        self.room = tree.with_suffix(".cmake")
        self.last = self.room / "changed"  # the file of the change that was built last, which is as it was again
        self.built = False

    def _configure(self) -> None:
        tools = Path(sys.executable).parent
        command = [
            *(str(tools / "cmake"), "-S", str(self.tree), "-B", str(self.room), "-G", "Ninja"),
            f"-DCMAKE_MAKE_PROGRAM={tools / 'ninja'}",
            "-DCMAKE_BUILD_TYPE=Release",
            "-DCALIBRANT_QUICK=ON",
            f"-DPython_EXECUTABLE={sys.executable}",
            f"-Dnanobind_DIR={nanobind.cmake_dir()}",
        ]
        if shutil.which("ccache"):
            command.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        if self.last.exists():  # a new copy of it is older than what was made of it changed
            (self.tree / self.last.read_text()).touch()
        assert self._ninja(), "the core does not build as it is"
        self.built = True

    def _ninja(self) -> bool:
        ninja = str(Path(sys.executable).parent / "ninja")
        return subprocess.run([ninja, "-C", str(self.room)], capture_output=True).returncode == 0

    def unchanged(self) -> Path:
        """Return the file of the core as it is, built as the changed ones are."""
        if not self.built:
            self._configure()
        return next(self.room.glob("_core*.so"))

    def with_change(self, change: Change) -> Path | None:
        """Return the core's file with the change, or nothing where it does not compile."""
        if not self.built:
            self._configure()
        path = self.tree / change.path
        source = path.read_text()
        self.last.write_text(change.path)
        path.write_text(changed_source(source, change))
        try:
            good = self._ninja()
        finally:
            path.write_text(source)
        return next(self.room.glob("_core*.so")) if good else None
