"""Change one place after another and see whether a test fails: ``python -m mutants --python 250 --cpp 60 --seed 1``.

The tree is copied to build/mutants; outcomes are kept in ``mutants/outcomes.jsonl``, so that a run goes on where
another ended. ``--again`` tries survivors once more, when tests have been added; ``--page`` writes
docs/evidence/mutants.md. ``--quickly`` records the kept tests alone, which takes minutes in place of an hour; what
these do not notice then meets the test files of its room that name what its file defines, for a minute.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import sysconfig
import time
from functools import partial
from pathlib import Path
from typing import Any

from . import children, page
from .change import Change, sample
from .compiled import Core
from .covering import KEPT, MOST, PYTEST, Patience, Tests, by_names, kept_files, record, test_files
from .in_cpp import cpp_changes
from .in_python import python_changes

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "mutants"
ROOMS = ("validation", "passes", "cells", "fits", "metrics", "operators", "maps")  # where numbers are made
# Changes of other seeds (Python, C++), in the order in which they were tried: what tests notice that were not written
# for them. The last decides.
FRESH = {3: (140, 40), 6: (80, 30), 8: (80, 30), 11: (700, 0), 9: (80, 30), 12: (700, 0), 13: (105, 35)}
FRESH |= {14: (75, 0), 15: (50, 0)}
OUTCOMES = ROOT / "mutants" / "outcomes.jsonl"


def say(text: str) -> None:
    """Print a line at once."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def copied(tree: Path) -> Path:
    """Copy what is changed and what tests it, and return the copy."""
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("src", "tests", "cpp", "benchmarks"):
        shutil.copytree(ROOT / name, tree / name, ignore=ignored)
    for name in ("pyproject.toml", "CMakeLists.txt", "README.md"):
        shutil.copy(ROOT / name, tree / name)
    if not list((tree / "src/calibrant").glob("_core*.so")):  # where it is installed beside the sources, not in them
        (installed,) = Path(sysconfig.get_path("platlib"), "calibrant").glob("_core*.so")
        shutil.copy(installed, tree / "src/calibrant")
    return tree


def drawn(tree: Path, python: int, cpp: int, seed: int) -> list[Change]:
    """Draw the changes that are tried."""
    modules = [path for room in ROOMS for path in sorted((tree / "src/calibrant" / room).rglob("*.py"))]
    kernels = sorted((tree / "cpp").glob("*.?pp"))
    own = [c for p in modules for c in python_changes(str(p.relative_to(tree)), p.read_text())]
    compiled = [c for p in kernels for c in cpp_changes(str(p.relative_to(tree)), p.read_text())]
    return [*sample(own, python, seed), *sample(compiled, cpp, seed)]


def pytest_run(tests: list[str], changed: children.Changed | None, seconds: float = 1e9) -> int:
    """Run tests in this process, which is a child, with the changed module; begin none after so many seconds."""
    import pytest

    sys.meta_path[:0] = [changed] if changed else []
    patience = Patience(seconds)
    code = int(pytest.main([*PYTEST, *tests], plugins=[patience]))
    if code == pytest.ExitCode.INTERRUPTED and patience.over:
        code = 0
    return code if changed is None or changed.took_effect() else children.NOT_CHANGED


def outcome(change: Change, tree: Path, tests: Tests, core: Core, quickly: bool) -> str:
    """Return how the tests ended that could see the change."""
    if change.room == "cpp":
        built = core.with_change(change)
        if built is None:
            return "does not compile"
        changed = children.Changed("calibrant._core", built, None)
    else:
        path = tree / change.path
        name = ".".join(Path(change.path).with_suffix("").parts[1:]).removesuffix(".__init__")
        changed = children.Changed(name, path, change.number)
    ended = "passed"
    for names, seconds in _rounds(change, tests):
        ended = children.run(partial(pytest_run, names, changed), 20 + 5 * seconds, tree.with_suffix(".log"))
        if ended == "not changed":
            raise RuntimeError(f"the tests loaded {change.path} without its change")
        if ended != "passed":
            break
    if ended == "passed" and quickly and change.room != "cpp":
        ended = by_room(change, changed, tree)
    return "survived" if ended == "passed" else ended


def by_room(change: Change, changed: children.Changed, tree: Path) -> str:
    """Return how the tests of the room ended, without those that fail as the code is."""
    log, names = tree.with_suffix(".log"), by_names(tree, change)
    while True:
        ended = children.run(partial(pytest_run, names, changed, 2 * MOST), 20 + 10 * MOST, log)
        failed = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", log.read_text(), re.MULTILINE)
        if ended != "failed" or not failed:
            return ended
        if children.run(partial(pytest_run, failed[:1], None), 20 + 10 * MOST, log) == "passed":
            return ended
        names += ["--deselect", failed[0]]


def _rounds(change: Change, tests: Tests) -> Any:
    """Yield tests and their seconds: those that ran the line, first those of all maps and figures at once.

    These are quick and see most. Then all that ran its file: one test alone is seen to run what is run once.
    """
    reached = tests.of(change)
    for some in ([n for n in reached if n.startswith(KEPT)], [n for n in reached if not n.startswith(KEPT)]):
        if some:
            yield some, tests.seconds(some)
    if change.room != "cpp" and (more := [name for name in tests.whole_file(change) if name not in reached]):
        yield more, tests.seconds(more)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--python", type=int, default=250)
    parser.add_argument("--cpp", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9, help="stop then; another call goes on")
    parser.add_argument("--again", action="store_true", help="try survivors once more that a test could notice")
    parser.add_argument("--rooms", nargs="+", choices=[*ROOMS, "cpp"], default=[*ROOMS, "cpp"], help="try these alone")
    parser.add_argument("--quickly", action="store_true", help="record the kept tests alone")
    parser.add_argument("--page", action="store_true", help="write the page of what is known, and try nothing")
    arguments = parser.parse_args()
    tree = copied(WORK / ("page" if arguments.page else "-".join(["tree", *arguments.rooms])))
    changes = drawn(tree, arguments.python, arguments.cpp, arguments.seed)
    if not arguments.page:
        os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
        children.preload(tree)
        end = time.monotonic() + arguments.seconds
        good = all(tried(room, changes, tree, arguments, end) for room in arguments.rooms)
        say("all tried" if good else "the time is over: call again to go on")
    fresh = {seed: drawn(tree, *counts, seed) for seed, counts in FRESH.items() if seed != arguments.seed}
    first, own = page.outcomes(OUTCOMES, first=True), page.as_drawn(OUTCOMES)
    at_first = {seed: {**first, **own.get(seed, {})} for seed in fresh}
    written = page.write(changes, arguments.seed, fresh, page.outcomes(OUTCOMES), at_first)
    raise SystemExit(written)


def refuse_rounding(core: Core, tree: Path) -> None:
    """Raise where kept numbers are not those of the core as it is: built otherwise, it rounds otherwise."""
    as_it_is = children.Changed("calibrant._core", core.unchanged(), None)
    kept = [str(path.relative_to(tree)) for path in test_files(tree, "cpp") if path.parent == tree / KEPT]
    if children.run(partial(pytest_run, kept, as_it_is), 900, tree.with_suffix(".log")) != "passed":
        raise RuntimeError(f"kept tests fail without a change: {tree.with_suffix('.log').read_text()[-500:]}")


def tried(room: str, changes: list[Change], tree: Path, asked: argparse.Namespace, end: float) -> bool:
    """Try the changes of a room that have not been tried; return whether there was time for all."""
    files = kept_files(tree) if asked.quickly and room != "cpp" else test_files(tree, room)
    if not record(tree, WORK / "lines", files, end, say):
        return False
    tests, core = Tests(tree, WORK / "lines"), Core(tree)
    if room == "cpp":
        refuse_rounding(core, tree)
    known, why = page.outcomes(OUTCOMES), page.reasons()
    for place, change in enumerate(changes):
        old, same = known.get(change.key), why.get(change.key, (False, ""))[0]
        if change.room != room or (old is not None and not (asked.again and old == "survived" and not same)):
            continue
        if time.monotonic() > end:
            return False
        found = outcome(change, tree, tests, core, asked.quickly)
        with OUTCOMES.open("a") as out:
            out.write(json.dumps({"key": change.key, "outcome": found}) + "\n")
        where = f"{change.path}:{change.line} {change.kind} [{change.key}]"
        say(f"{place + 1}/{len(changes)} {found}: {where}")
    return True


if __name__ == "__main__":
    main()
