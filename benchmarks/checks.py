"""What the core's checks cost: each kernel with them and without, in turns, at the sizes of few and of many rows.

Builds a second core without the checks that look at every value, times both in processes of their own, and writes
docs/evidence/checks.md. Times are the best of many, as the machine may have other things to do.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import nanobind
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "evidence" / "checks.md"
SIZES = ((100, 3), (2000, 10), (100_000, 10), (20_000, 100))
LARGEST = 1.05  # above it a kernel is said to pay for its checks, where it takes 20 µs and more


def calls(core: Any, n: int, k: int) -> dict[str, Any]:
    """Return one call of each family that checks every label or edge."""
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(n, k)), rng.integers(0, k, n)
    groups, edges = np.zeros(k, np.int64), np.linspace(-3, 3, 14)[None]
    out = np.empty_like(z)
    return {
        "temperature_sums": lambda: core.temperature_sums(z, y, None, None, np.ones(1), 0, 1),
        "temperature_rows": lambda: core.temperature_rows(z, y, 1.0, 1),
        "bin_sums": lambda: core.bin_sums(z, y, None, groups, None, edges, 1),
        "bin_lift": lambda: core.bin_lift(z, edges, np.linspace(0, 1, 15)[None], True, 1, out),
        "row_keys": lambda: core.row_keys(z, y, False, 1),
        "log_odds": lambda: core.log_odds(z, 1, out),
    }


def worker(path: str) -> None:
    """Time what is asked for on standard input: a line of size, kernel and repeats each."""
    found = importlib.util.spec_from_file_location("_core", path)
    assert found is not None and found.loader is not None  # noqa: PT018
    core = importlib.util.module_from_spec(found)
    found.loader.exec_module(core)
    made = {size: calls(core, *size) for size in SIZES}
    for line in sys.stdin:
        n, k, name, repeats = json.loads(line)
        call = made[n, k][name]
        call()
        start = time.thread_time()  # of the processor: others may use it too
        for _ in range(repeats):
            call()
        print((time.thread_time() - start) / repeats, flush=True)


def unchecked() -> Path:
    """Build the core without the checks and return its file."""
    room, tools = ROOT / "build" / "unchecked", Path(sys.executable).parent
    command = [
        *(str(tools / "cmake"), "-S", str(ROOT), "-B", str(room), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"),
        f"-DCMAKE_MAKE_PROGRAM={tools / 'ninja'}",
        "-DCALIBRANT_UNCHECKED=ON",
        "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache",
        f"-DPython_EXECUTABLE={sys.executable}",
        f"-Dnanobind_DIR={nanobind.cmake_dir()}",
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([str(tools / "ninja"), "-C", str(room)], check=True, stdout=subprocess.DEVNULL)
    return next(room.glob("_core*.so"))


def main() -> None:
    """Time both cores in turns, and write the page."""
    from calibrant import _core

    both = [_started(str(_core.__file__)), _started(str(unchecked()))]
    rows = []
    for n, k in SIZES:
        repeats = max(1, 1_000_000 // (n * k))
        for name in calls(_core, 4, 3):
            best = [np.inf, np.inf]
            for _ in range(30):
                for place, process in enumerate(both):
                    best[place] = min(best[place], _ask(process, [n, k, name, repeats]))
            rows.append((n, k, name, best[0] * 1e6, best[1] * 1e6))
            print(rows[-1], flush=True)
    PAGE.write_text(_page(rows))


def _started(path: str) -> Any:
    command = [sys.executable, __file__, "--worker", path]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _ask(process: Any, question: list[Any]) -> float:
    process.stdin.write(json.dumps(question) + "\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def _page(rows: list[tuple[int, int, str, float, float]]) -> str:
    seen = [row for row in rows if row[4] >= 20]
    ratios = sorted(row[3] / row[4] for row in seen)
    middle, worst = ratios[len(ratios) // 2], max(ratios)
    extra = max(row[3] - row[4] for row in rows if row[4] < 20) if len(seen) < len(rows) else 0.0
    verdict = "holds" if worst <= LARGEST else "does not hold"
    lines = [
        "# What the core's checks cost",
        "",
        f"**Verdict: {verdict}.** With its checks a kernel of 20 µs and more takes {middle:.3f} times as long as "
        f"without them in the median and {worst:.3f} times at most (asked for: at most {LARGEST}); "
        f"a call of less than 20 µs takes at most {extra:.1f} µs longer.",
        "",
        "Two cores, one built without the checks that look at every label, edge or value (`CALIBRANT_UNCHECKED`),",
        "timed in turns on one thread, processor time, best of 30: `python benchmarks/checks.py`.",
        "",
        "| rows | classes | kernel | µs with checks | µs without | ratio |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    lines += [f"| {n:,} | {k} | `{name}` | {a:,.1f} | {b:,.1f} | {a / b:.3f} |" for n, k, name, a, b in rows]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    if "--worker" in sys.argv:
        worker(sys.argv[-1])
    else:
        main()
