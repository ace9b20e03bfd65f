"""Which tests run which lines: recorded once, a test file at a time; a change meets the tests that could see it."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

from . import children
from .change import Change

# The tests of a room are those of its name, but for these; what was recorded for other rooms is run as well.
MORE = {
    "cpp": (
        "core",
        "kept/test_kept_core.py",
        "kept/test_kept_widths.py",
        "maps/scaling/test_linear_kernels.py",
        "maps/test_density_kernels.py",
        "metrics/test_metric_kernels.py",
    ),
    "validation": (
        "validation",
        "test_validation.py",
        "test_columns.py",
        "test_saturation.py",
        "test_half_precision.py",
        "kept/test_kept_validation.py",
    ),
    "maps": (  # whose formulas are tested where they are shipped, and whose promises and states for all at once
        "maps",
        "exports/test_torch_module.py",
        "contract/test_contract.py",
        "files/test_invariants.py",
        "kept/test_kept_maps.py",
        "kept/test_kept_kernels.py",
        "kept/test_kept_blocks.py",
        "kept/test_kept_formulas.py",
        "kept/test_kept_map_corners.py",
        "kept/test_kept_settings.py",
        "kept/test_kept_in_parts.py",
    ),
    "metrics": (
        "metrics",
        "kept/test_kept_laws.py",
        "kept/test_kept_corners.py",
        "kept/test_kept_in_parts.py",
        "kept/test_kept_options.py",
        "kept/test_kept_blocks.py",
        "kept/test_kept_metrics.py",
        "kept/test_kept_cells.py",
        "kept/test_kept_signatures.py",
    ),
    "cells": ("cells", "kept/test_kept_cells.py"),
    "fits": ("fits", "kept/test_kept_solvers.py", "kept/test_kept_maps.py"),
    "operators": (
        "operators",
        "kept/test_kept_lifts.py",
        "exports/test_operators.py",
        "kept/test_kept_operators.py",
        "kept/test_kept_formulas.py",
    ),
    "passes": ("passes", "kept/test_kept_blocks.py", "scanning/test_sources.py", "test_scanning.py"),
}
KEPT = "tests/kept/"
OF_ALL = "tests/kept/test_kept_signatures.py"  # looks at every public name and runs none of their lines
MOST = 30.0  # seconds of tests, as recorded, for one change: the quickest of those that reach it come first
# Modules of ours may end in _test.py, which pytest would load itself, past the change.
PYTEST = ("-x", "-q", "-p", "no:cacheprovider", "-o", "addopts=", "-o", "python_files=test_*.py", "--no-header")


def digest(path: Path) -> str:
    """Return a short hash of a file's contents."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def record(root: Path, room: Path, files: list[Path], end: float, say: Any) -> bool:
    """Run test files that have not been recorded; keep what each test ran, unless the time is over."""
    room.mkdir(parents=True, exist_ok=True)
    for path in files:
        kept = room / (str(path.relative_to(root)).replace("/", "-") + f"-{digest(path)}.json")
        if kept.exists():
            continue
        if time.monotonic() > end:
            return False
        for old in room.glob(kept.name.rsplit("-", 1)[0] + "-*.json"):
            old.unlink()
        ended = children.run(lambda path=path, kept=kept: _watch(root, path, kept), 900, room / "last.log")
        say(f"recorded {path.relative_to(root)}: {ended}")
        if not kept.exists():
            raise RuntimeError(f"{path} cannot be recorded: {(room / 'last.log').read_text()[-500:]}")
    return True


def test_files(root: Path, room: str) -> list[Path]:
    """Return the test files of a room."""
    places = [root / "tests" / name for name in MORE.get(room, (room,))]
    return sorted(path for at in places for path in ([at] if at.suffix == ".py" else at.rglob("test_*.py")))


def kept_files(root: Path) -> list[Path]:
    """Return the test files that keep what all maps, figures and kernels say."""
    return sorted((root / KEPT).glob("test_*.py"))


def by_names(root: Path, change: Change) -> list[str]:
    """Return other test files: those that name what the changed file defines, most often first, then those of its room.

    What the files define that import it counts as well: a helper is tested by those whom it helps.
    """
    source = root / change.path
    importing = re.compile(rf"import.*\b{source.stem}\b|\b{source.stem} import")
    others = [path for path in source.parent.rglob("*.py") if importing.search(path.read_text())]
    names = {source.stem}
    for path in (source, *others):
        names |= {path.stem, *re.findall(r"^\s*(?:def|class) (\w{5,})", path.read_text(), re.MULTILINE)}
    word = re.compile(rf"\b(?:test_)?(?:{'|'.join(sorted(names))})\b")
    own = set(test_files(root, change.room))
    rooms = {path for room in MORE if room != "cpp" for path in test_files(root, room)}  # the others need more files
    files = [path for path in sorted(rooms) if path.parent != root / KEPT]
    counts = {path: len(word.findall(path.stem + " " + path.read_text())) for path in files}
    named = sorted((path for path in files if counts[path] or path in own), key=lambda path: -counts[path])
    return [str(path.relative_to(root)) for path in named]


def _watch(root: Path, path: Path, kept: Path) -> int:
    import pytest

    import coverage

    lines = coverage.Coverage(data_file=None, config_file=False, include=[str(root / "src" / "*")])
    watcher = Watcher(lines)
    lines.start()
    code = pytest.main([*PYTEST[1:], str(path.relative_to(root))], plugins=[watcher])
    lines.stop()
    data = lines.get_data()
    for name in data.measured_files():
        for line, contexts in data.contexts_by_lineno(name).items():
            for test in contexts:
                if test in watcher.tests:
                    found = watcher.tests[test]["lines"].setdefault(str(Path(name).relative_to(root)), [])
                    found.append(line)
    files = {name: digest(root / name) for test in watcher.tests.values() for name in test["lines"]}
    kept.write_text(json.dumps({"files": files, "tests": watcher.tests}))
    return int(code)


class Watcher:
    """A plugin of pytest: each test is a context of its own, with its time and the functions of the core it called."""

    def __init__(self, lines: Any) -> None:
        from calibrant import _core

        self.lines = lines
        self.tests: dict[str, Any] = {}
        self.now: set[str] = set()
        self.began = 0.0
        for name in dir(_core):
            if not name.startswith("_") and callable(getattr(_core, name)):
                setattr(_core, name, self._noted(name, getattr(_core, name)))

    def _noted(self, name: str, function: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            self.now.add(name)
            return function(*arguments, **named)

        call.__doc__ = function.__doc__
        return call

    def pytest_runtest_setup(self, item: Any) -> None:
        """Begin a test."""
        self.lines.switch_context(item.nodeid)
        self.now.clear()
        self.began = time.process_time()  # by the clock a busy machine makes tests slow, and slow ones are left out
        self.tests[item.nodeid] = {"seconds": 0.0, "good": True, "lines": {}, "core": []}

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note how long a part of a test took and how it ended."""
        test = self.tests[report.nodeid]
        test["seconds"] = time.process_time() - self.began
        test["good"] &= report.outcome == "passed"
        test["core"] = sorted(self.now)


class Patience:
    """A plugin of pytest: after so many seconds of processor time no more tests are begun."""

    def __init__(self, seconds: float) -> None:
        self.end = time.process_time() + seconds
        self.session: Any = None

    def pytest_sessionstart(self, session: Any) -> None:
        """Remember what to stop."""
        self.session = session

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Stop where the time is over."""
        if self.over:
            self.session.shouldstop = "the time is over"

    @property
    def over(self) -> bool:
        """Whether the time is over."""
        return time.process_time() > self.end


class Tests:
    """What was recorded, and which tests a change should meet."""

    def __init__(self, root: Path, room: Path) -> None:
        self.root = root
        self.files: list[dict[str, Any]] = [json.loads(path.read_text()) for path in sorted(room.glob("*.json"))]

    @cached_property
    def tests(self) -> dict[str, Any]:
        """Every test that passed."""
        return {name: test for file in self.files for name, test in file["tests"].items() if test["good"]}

    def of(self, change: Change) -> list[str]:
        """Return the tests that ran the changed line, those of its room first, then the quick ones."""
        if change.room == "cpp":
            called = set[str]().union(*map(self._core_functions, self._declared(Path(change.path))))
            reached = [name for name, test in self.tests.items() if called & set(test["core"])]
        else:
            reached = list(self._reaching(change))
        own = f"tests/{change.room}/" if change.room != "cpp" else "tests/core/"
        reached.sort(key=lambda name: (not name.startswith((KEPT, own)), self.tests[name]["seconds"]))
        return list(self._within(reached))

    def _reaching(self, change: Change) -> Iterable[str]:
        same = digest(self.root / change.path)
        for file in self.files:
            moved = (
                file["files"].get(change.path) != same
            )  # its lines have other numbers: whatever ran the file may see it
            for name, test in file["tests"].items():
                lines = test["lines"].get(change.path, ())
                if test["good"] and (change.line in lines or (lines and moved)):
                    yield name

    def whole_file(self, change: Change) -> list[str]:
        """Return every test that ran any line of the changed file: for what runs once, when a module is imported."""
        reached = [name for name, test in self.tests.items() if change.path in test["lines"] or name.startswith(OF_ALL)]
        own = f"tests/{change.room}/"
        return list(self._within(sorted(reached, key=lambda n: (not n.startswith(own), self.tests[n]["seconds"]))))

    def _within(self, names: list[str]) -> Iterable[str]:
        spent = 0.0
        for name in names:
            spent += self.tests[name]["seconds"] + 0.01
            if spent > MOST:
                return
            yield name

    def seconds(self, names: list[str]) -> float:
        """Return how long the tests took when they were recorded."""
        return sum(self.tests[name]["seconds"] for name in names)

    def _declared(self, path: Path) -> list[str]:
        """Return the stems of the headers that declare what a file has: its own, or else those of other files."""
        room = self.root / "cpp"
        if path.stem.startswith("bind") or (room / f"{path.stem}.hpp").exists():
            return [path.stem]
        included = re.findall(r'#include "(\w+)\.hpp"', (self.root / path).read_text())
        return [stem for stem in included if (room / f"{stem}.cpp").exists()]

    def _core_functions(self, stem: str) -> set[str]:
        """Return the functions of the core whose binding file includes, directly or not, what the stem declares."""
        found: set[str] = set()
        for path in (self.root / "cpp").glob("bind_*.cpp"):
            if stem == path.stem or stem in self._included(path.stem, set()):
                found |= set(re.findall(r'm\.def\(\s*"(\w+)"', path.read_text()))
        return found

    def _included(self, stem: str, seen: set[str]) -> set[str]:
        for path in (self.root / "cpp").glob(f"{stem}.?pp"):
            for other in re.findall(r'#include "(\w+)\.hpp"', path.read_text()):
                if other not in seen:
                    seen.add(other)
                    self._included(other, seen)
        return seen
