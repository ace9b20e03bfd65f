"""Processor time of fits on 1,000,000 events, and of one row: ``python benchmarks/new_maps_speed.py``.

What it prints is recorded in docs/evidence/new_maps_speed.md.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np

import calibrant

ROWS = 1_000_000


def main() -> None:
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    odds = rng.normal(size=ROWS) * 2
    y = (rng.random(ROWS) < 1 / (1 + np.exp(-0.7 * odds + 0.1 * odds**2))).astype(int)
    p = 1 / (1 + np.exp(-odds))
    maps = (calibrant.Isotonic, calibrant.QuadraticScaling, calibrant.LogitSpline, calibrant.CentredIsotonic)
    base = None
    for made in (*maps, calibrant.VennAbers):
        start = time.process_time()
        fitted = made(inputs="probabilities").fit(p, y)
        seconds = time.process_time() - start
        base = base or seconds
        best = min(_one(fitted, p[:1]) for _ in range(20))
        figures = f"{seconds:6.2f} s, {seconds / base:.2f} of isotonic; one row {1e6 * best:.0f} µs"
        sys.stdout.write(f"{made.__name__:18s} {figures}\n")
        sys.stdout.flush()


def _one(fitted: calibrant.Calibrator, row: np.ndarray) -> float:
    start = time.perf_counter()
    for _ in range(50):
        fitted.predict_proba(row)
    return (time.perf_counter() - start) / 50


if __name__ == "__main__":
    main()
