"""One row through every fitted map: ``python benchmarks/latency.py``. Writes docs/evidence/latency.md.

A service that answers one request at a time feels what a call costs, not what a row costs. Each map is fitted on 2,000
rows; one row then goes through `predict_proba` many times, and the best of several rounds counts. The limits are 100 µs
and five times temperature scaling.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np

import calibrant
from calibrant.registry import names
from generator import realistic

ROOT = Path(__file__).resolve().parents[1]
CLASSES = (10, 300)
MOST_SECONDS, MOST_RATIO = 100e-6, 5.0


def seconds_of_one_row(name: str, k: int, rows: int = 2000, rounds: int = 15, calls: int = 40) -> float:
    """Return the time of one call with one row, the best of several rounds."""
    z, y = realistic(rows, k)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = calibrant.make(name, classes=range(k)).fit(z, y)
    one = z[:1].copy()
    fitted.predict_proba(one)
    best = np.inf
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            fitted.predict_proba(one)
        best = min(best, (time.perf_counter() - start) / calls)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=ROOT / "docs/evidence/latency.md")
    parser.add_argument("--maps", nargs="*", default=[n for n in names() if not n.startswith("kcal")])
    options = parser.parse_args()
    unit = {k: seconds_of_one_row("ts", k) for k in CLASSES}
    lines, late = [], []
    for name in options.maps:
        cells = []
        for k in CLASSES:
            found = seconds_of_one_row(name, k)
            # Measured beside ts, in the same minute, as the machine may have become slower meanwhile.
            unit[k] = min(unit[k], seconds_of_one_row("ts", k, rounds=5))
            cells.append(f"{1e6 * found:.0f} µs | {found / unit[k]:.1f}")
            if found > MOST_SECONDS or found > MOST_RATIO * unit[k]:
                late.append(f"{name} at K = {k}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
        print(lines[-1], file=sys.stderr, flush=True)
    verdict = "Every map is within both limits." if not late else f"Beyond a limit: {', '.join(late)}."
    page = [
        "# One row through a fitted map",
        "",
        f"**{verdict}** The limits: 100 µs, and five times temperature scaling.",
        "",
        "Written by `benchmarks/latency.py`: float32, fitted on 2,000 rows, best of 15 rounds of 40 calls.",
        "",
        "| map | " + " | ".join(f"K = {k} | times ts" for k in CLASSES) + " |",
        "| --- " * (1 + 2 * len(CLASSES)) + "|",
        *lines,
        "",
    ]
    options.output.write_text("\n".join(page), encoding="utf-8")
    print(verdict)


if __name__ == "__main__":
    main()
