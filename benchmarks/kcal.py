"""KCal's prediction beside the bare matrix product it contains, and its memory; run by ``python benchmarks/kcal.py``.

25,000 calibration rows, 25,000 test rows, 128 dimensions, 1,000 classes, given as float32 and computed in double. The
product is taken in the same tiles and precision, by NumPy's BLAS, in the same run; each figure is the best of several,
taken in turns.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
import tracemalloc

import numpy as np

from calibrant import KCal
from calibrant.maps import density


def clouds(n: int, d: int, k: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    centres = 0.4 * np.random.default_rng(0).normal(size=(k, d))  # classes overlap, so that no kernel underflows
    labels = np.concatenate([np.arange(k), generator.integers(k, size=n - k)])
    return (centres[labels] + generator.normal(size=(n, d))).astype(np.float32), labels


def bare_product(points: np.ndarray, support: np.ndarray) -> None:
    rows, columns = density._TILE_ROWS, density._TILE_COLUMNS
    for i in range(0, len(points), rows):
        for j in range(0, len(support), columns):
            points[i : i + rows] @ support[j : j + columns].T


def timed(work) -> tuple[float, float]:
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - processor


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=25_000)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=5)
    a = parser.parse_args()
    x, y = clouds(a.rows, a.dim, a.classes, 1)
    test, truth = clouds(a.rows, a.dim, a.classes, 2)
    cal = KCal("identity", classes=np.arange(a.classes))
    seconds, _ = timed(lambda: cal.fit(x, y))
    doubles, support = test.astype(np.float64), x.astype(np.float64)
    bare_product(doubles[:2000], support)
    tracemalloc.start()
    p = cal.predict_proba(test)
    grown = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    bare, whole = [], []
    for _ in range(a.repeats):
        bare.append(timed(lambda: bare_product(doubles, support)))
        whole.append(timed(lambda: cal.predict_proba(test)))
    best = [[min(t[i] for t in times) for i in (0, 1)] for times in (bare, whole)]
    out = sys.stdout.write
    out(f"N = {a.rows} × {a.rows}, d = {a.dim}, K = {a.classes}, float32, bandwidth {cal.bandwidth_:.3f} \n")
    out(f"fit with its search of the bandwidth: {seconds:.1f} s; accuracy {(p.argmax(1) == truth).mean():.3f}\n")
    out("| | wall s | processor s |\n| --- | ---: | ---: |\n")
    for name, (wall, processor) in zip(("the product alone", "predict_proba"), best, strict=True):
        out(f"| {name} | {wall:.2f} | {processor:.2f} |\n")
    out(f"| ratio | {best[1][0] / best[0][0]:.2f} | {best[1][1] / best[0][1]:.2f} |\n")
    out(f"memory of a prediction at its peak, its answer ({p.nbytes / 2**20:.0f} MB) in it: {grown:.0f} MB; ")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    out(f"of the whole process, inputs and fit in it: {most:.0f} MB\n")


if __name__ == "__main__":
    main()
