"""Speed and memory of the isotonic lifts beside `ts` and scikit-learn: ``python benchmarks/fit_binary.py``.

N = 25,000 × K = 1,000 float32 by default. Writes docs/evidence/fit_binary.md. Times are the best of several in one
process; memory is the peak of a fresh process beyond the input, as a share of the input.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.isotonic import IsotonicRegression

import calibrant
from generator import realistic

ROOT = Path(__file__).resolve().parents[1]
OURS = ["ts", "irm", "irova", "isotonic-s"]


def best(function: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def scikit_learn_loop(z: np.ndarray, y: np.ndarray, classes: int) -> None:
    e = np.exp(z - z.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    for k in range(classes):
        IsotonicRegression(out_of_bounds="clip").fit(p[:, k], y == k)


def peak() -> int:
    """Highest resident memory of this process so far; ru_maxrss would start at the parent's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def memory(name: str, n: int, k: int) -> float:
    """Peak memory of a fit beyond the input, measured in a process of its own."""
    command = [sys.executable, __file__, "--one", name, "--rows", str(n), "--classes", str(k)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1])


def one(name: str, n: int, k: int) -> None:
    small, labels = realistic(200, k)
    calibrant.make(name).fit(small, labels)  # imports and thread stacks are not the fit's
    z, y, rng = np.empty((n, k), dtype=np.float32), np.arange(n) % 200, np.random.default_rng(0)
    for i in range(n):
        z[i] = small[y[i]] + rng.normal(size=k).astype(np.float32)
    y = labels[y]
    before = peak()
    calibrant.make(name).fit(z, y)
    print((peak() - before) / z.nbytes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=25_000)
    parser.add_argument("--classes", type=int, default=1_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--one")
    options = parser.parse_args()
    warnings.simplefilter("ignore", calibrant.CalibrationWarning)
    n, k = options.rows, options.classes
    if options.one:
        one(options.one, n, k)
        return
    z, y = realistic(n, k)
    seconds = {name: best(lambda name=name: calibrant.make(name).fit(z, y), options.repeats) for name in OURS}
    part = max(1, k // 20)
    loop = best(lambda: scikit_learn_loop(z, y, part), 1) * k / part
    lines = [
        "# Fitting the isotonic lifts", "",
        f"`python benchmarks/fit_binary.py`: {n:,} × {k:,} float32, {calibrant.get_threads()} threads, best of "
        f"{options.repeats}, held-out check included.", "",
        "| fit | seconds | times `ts` | memory beyond the input |", "| --- | --- | --- | --- |",
        *(f"| `{m}` | {s:.3f} | {s / seconds['ts']:.1f} | {memory(m, n, k):.0%} |" for m, s in seconds.items()),
        f"| scikit-learn, looped over the classes ({part} timed) | {loop:.1f} | {loop / seconds['ts']:.0f} | |", "",
        f"The loop over scikit-learn takes {loop / seconds['irova']:.0f} times as long as `irova`.",
    ]  # fmt: skip
    (ROOT / "docs/evidence/fit_binary.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
