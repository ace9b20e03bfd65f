"""Speed and memory of binned maps at N = 25,000 × K = 1,000 float32: ``python benchmarks/fit_binning.py``.

Writes docs/evidence/fit_binning.md: ratios taken in one run, a fit against one ``np.sort`` of all scores, a prediction
against one copy of the array, and the peak memory of a fit beyond its input, in a process of its own. Wall time, best
of several; CPU time beside it, which a busy machine disturbs less (the fit and the prediction use all threads, sort and
copy one).
"""

from __future__ import annotations

import argparse
import multiprocessing
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from calibrant import get_threads, make

ROOT = Path(__file__).resolve().parents[1]
SHARED = ("imax", "mi-binning", "hb-mass-s", "hb-width-s", "imax-ts", "imax-platt", "imax-beta", "imax-isotonic")
BY_CLASS = ("hb-mass", "scaling-binning", "imax-cw")
SLOW = ("imax-gp",)  # its own fit is what takes long: fitted on some rows
SOME = 2_000


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


def peak_of(name: str, n: int, k: int) -> float:
    """Memory beyond its input that a fit takes, as a share of that, in this process."""
    warnings.simplefilter("ignore")
    z, y = scores(n, k)
    make(name).fit(z[:300], y[:300])
    before, highest, running = resident(), [0], [True]

    def watch() -> None:
        while running[0]:
            highest[0] = max(highest[0], resident())
            time.sleep(0.001)

    watcher = threading.Thread(target=watch)
    watcher.start()
    make(name).fit(z, y)
    running[0] = False
    watcher.join()
    return (highest[0] - before) / z.nbytes


def memory_of(name: str, n: int, k: int) -> float:
    """Return `peak_of` from a new process, where no earlier fit has left memory that hides or adds to it."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as other:
        return other.submit(peak_of, name, n, k).result()


def row(name: str, z: np.ndarray, y: np.ndarray, sort: np.ndarray, copy: np.ndarray) -> str:
    """One line of the table."""
    make(name).fit(z[:300], y[:300])
    if name in SLOW:
        fitted, learnt = make(name).fit(z[:SOME], y[:SOME]), f"| on {SOME:,} rows | | "
    else:
        memory = memory_of(name, *z.shape)
        fit = best(lambda: make(name).fit(z, y), 2 if name in BY_CLASS else 3)
        fitted, learnt = make(name).fit(z, y), f"| {seconds(fit)} | {ratio(fit, sort)} | {memory:.0%} "
    answer, marginals = (best(lambda f=f: f(z), 9) for f in (fitted.predict_proba, fitted.predict_marginals))
    looked_up = " | ".join(f"{seconds(times)} | {ratio(times, copy)}" for times in (answer, marginals))
    return f"| {name} {learnt}| {looked_up} |"


def seconds(times: np.ndarray) -> str:
    return f"{times[0]:.3f} ({times[1]:.3f})"


def ratio(times: np.ndarray, unit: np.ndarray) -> str:
    return f"{times[0] / unit[0]:.1f} ({times[1] / unit[1]:.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=25_000)
    parser.add_argument("--classes", type=int, default=1_000)
    parser.add_argument("--names", nargs="*", help="print these lines only, and write nothing")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    z, y = scores(arguments.rows, arguments.classes)
    sort, copy = best(lambda: np.sort(z.ravel()), 3), best(lambda: z.copy(), 9)
    lines = [
        "# Fitting and looking up binned maps", "",
        f"`python benchmarks/fit_binning.py`: {z.shape[0]:,} × {z.shape[1]:,} float32, {get_threads()} threads, best "
        "of several, held-out check included; wall (CPU) seconds.", "",
        f"`np.sort` of all scores {seconds(sort)}; a copy of the array {copy[0]:.4f} ({copy[1]:.4f}).", "",
        "| map | fit | sorts | memory beyond the input | predict_proba | copies | predict_marginals | copies |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]  # fmt: skip
    print("\n".join(lines))
    for name in arguments.names or (*SHARED, *SLOW, *BY_CLASS):
        lines.append(row(name, z, y, sort, copy))
        print(lines[-1], flush=True)
    if not arguments.names:
        (ROOT / "docs/evidence/fit_binning.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
