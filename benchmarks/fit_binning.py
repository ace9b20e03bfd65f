"""Speed and memory of binned maps at N = 25,000 × K = 1,000 float32: ``python benchmarks/fit_binning.py``.

Prints ratios taken in one run: a fit against one ``np.sort`` of all scores, a prediction against one copy of the array,
and the peak memory of a fit beyond its input. Wall time, best of several; CPU time beside it, which a busy machine
disturbs less (the fit and the prediction use all threads, sort and copy one).
"""

from __future__ import annotations

import argparse
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from calibrant import get_threads, make

NAMES = ("imax", "mi-binning", "hb-mass-s", "hb-width-s", "imax-ts")


def scores(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Logits of a model that is mostly right, made in blocks so that the peak is ours."""
    rng = np.random.default_rng(0)
    y, z = rng.integers(0, k, n), np.empty((n, k), dtype=np.float32)
    for start in range(0, n, 500):
        z[start : start + 500] = rng.normal(size=z[start : start + 500].shape) * 2
    z[np.arange(n), y] += 6
    return z, y


def best(function: Callable[[], object], repeats: int) -> np.ndarray:
    """Smallest wall and CPU seconds."""
    times = []
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        function()
        times.append((time.perf_counter() - wall, time.process_time() - cpu))
    return np.min(times, axis=0)


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def peak_of(function: Callable[[], object]) -> int:
    """Bytes of memory beyond what is there, while a function runs."""
    before, highest, running = resident(), [0], [True]

    def watch() -> None:
        while running[0]:
            highest[0] = max(highest[0], resident())
            time.sleep(0.001)

    watcher = threading.Thread(target=watch)
    watcher.start()
    function()
    running[0] = False
    watcher.join()
    return highest[0] - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=25_000)
    parser.add_argument("--classes", type=int, default=1_000)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    z, y = scores(arguments.rows, arguments.classes)
    sort, copy = best(lambda: np.sort(z.ravel()), 3), best(lambda: z.copy(), 5)
    print(f"{z.shape[0]:,} × {z.shape[1]:,} float32, {get_threads()} threads; wall (CPU) seconds")
    print(f"np.sort {sort[0]:.3f} ({sort[1]:.3f}), copy {copy[0]:.4f} ({copy[1]:.4f})")
    print("| map | fit | sorts | memory beyond the input | predict_proba | copies |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in NAMES:
        make(name).fit(z[:300], y[:300])
        memory = peak_of(lambda n=name: make(n).fit(z, y)) / z.nbytes
        fit = best(lambda n=name: make(n).fit(z, y), 3)
        fitted = make(name).fit(z, y)
        answer = best(lambda m=fitted: m.predict_proba(z), 5)
        print(
            f"| {name} | {fit[0]:.3f} ({fit[1]:.3f}) | {fit[0] / sort[0]:.1f} ({fit[1] / sort[1]:.1f}) | {memory:.0%} "
            f"| {answer[0]:.4f} ({answer[1]:.4f}) | {answer[0] / copy[0]:.1f} ({answer[1] / copy[1]:.1f}) |"
        )


if __name__ == "__main__":
    main()
