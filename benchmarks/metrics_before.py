"""Are metrics as fast as in version 0.1.0? ``python benchmarks/metrics_before.py``: both versions in one run, in turns.

Each version runs in a process of its own (.venv and .venv-before) on the same rows; the better of several turns counts,
in processor time, which is steadier on a busy machine. Writes docs/evidence/metrics-before.md.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
METRICS = "ece mce ece_sweep ece_debiased ece_kde smece ks_error brier nll cwece ace accuracy measure"
CASES = {
    "1,000 events": (1000, 0),
    "25,000 events": (25_000, 0),
    "1,000 × 10": (1000, 10),
    "25,000 × 10": (25_000, 10),
    "2,000 × 100": (2000, 100),
}
ROUNDS = 4


def problem(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Over-confident outputs: labels drawn from softmax(z), probabilities softmax(2 z); k = 0: the top label's."""
    rng = np.random.default_rng(0)
    z = 3 * rng.normal(size=(n, k or 10))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    p = np.exp(2 * (z - z.max(axis=1, keepdims=True)))
    p /= p.sum(axis=1, keepdims=True)
    top = p.argmax(axis=1)
    return (y, p) if k else ((top == y).astype(np.int64), p[np.arange(n), top])


def worker() -> None:
    """Answer each line, a case and a metric, by the best time of a few calls."""
    warnings.simplefilter("ignore")
    from calibrant import metrics

    rows = {case: problem(*size) for case, size in CASES.items()}
    for line in sys.stdin:
        case, name = json.loads(line)
        y, p = rows[case]
        best, end, calls = np.inf, time.process_time() + 0.05, 0
        while calls < 1 or (time.process_time() < end and calls < 200):
            start = time.process_time()
            getattr(metrics, name)(y, p)
            best, calls = min(best, time.process_time() - start), calls + 1
        print(best, flush=True)


def started(python: Path) -> subprocess.Popen[str]:
    command = [str(python), __file__, "--worker"]
    threads = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=threads)


def asked(process: Any, case: str, name: str) -> float:
    process.stdin.write(json.dumps([case, name]) + "\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def main() -> None:
    both = [started(ROOT / place / "bin" / "python") for place in (".venv", ".venv-before")]
    lines, slow = [], []
    for case in CASES:
        for name in METRICS.split():
            if name in ("cwece", "ace", "accuracy") and "events" in case:
                continue
            turns = np.array([[asked(process, case, name) for process in both] for _ in range(ROUNDS)])
            now, then = turns.min(axis=0)
            lines.append(f"| {name} | {case} | {1e3 * now:.3g} ms | {1e3 * then:.3g} ms | {now / then:.2f} |")
            print(lines[-1], flush=True)
            slow += [f"`{name}` on {case} ({now / then:.2f})"] if now > 1.1 * then and now - then > 2e-5 else []
    for process in both:
        process.stdin.close()
        process.wait()
    holds = (
        "no metric takes more than 1.1 times" if not slow else f"not everywhere. More than 1.1 times: {', '.join(slow)}"
    )
    verdict = f"**Verdict: as fast as version 0.1.0: {holds}.**"
    words = (
        f"`python benchmarks/metrics_before.py`: both versions in one run, in turns, one thread, best of {ROUNDS} turns"
    )
    head = ["# Metrics beside version 0.1.0", "", verdict, "", f"{words},\nprocessor time.", ""]
    head += ["| metric | rows | now | 0.1.0 | now / 0.1.0 |", "| --- | --- | --- | --- | --- |"]
    (ROOT / "docs/evidence/metrics-before.md").write_text("\n".join([*head, *lines]) + "\n")


if __name__ == "__main__":
    worker() if "--worker" in sys.argv else main()
