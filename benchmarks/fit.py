"""Speed and memory of fitting, beside the peers, in one run: ``make bench`` or ``python benchmarks/fit.py``.

Writes docs/evidence/fit.md. Each contender runs in a process of its own, best of three, after a warm-up on 200 rows;
memory is the peak beyond what the process held then, the input included. Peers live in .venv-peers; one that is not
installed is a row that says so.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import calibrant
from calibrant import _core, get_threads
from generator import realistic

ROOT = Path(__file__).resolve().parents[1]
LARGE = [
    "calibrant ts", "calibrant ts brier", "calibrant ets", "calibrant vector", "scikit-learn temperature",
    "netcal temperature", "probmetrics temperature", "torch snippet temperature", "torch temperature", "torch vector",
    "probmetrics svs",
]  # fmt: skip
MEDIUM = [
    "calibrant matrix", "calibrant dirichlet", "calibrant sms", "torch matrix", "probmetrics sms",
    "probmetrics logistic",
]  # fmt: skip
SMALL_INPUT = 20_000_000  # bytes


def best(function: Callable[[], object], repeats: int = 5) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def run(name: str, files: tuple[Path, Path], peers: Path, held_out: bool = False, limit: int = 900) -> dict:
    python = sys.executable if name.startswith("calibrant") else str(peers)
    repeats = "1" if name in ("torch snippet temperature", "netcal temperature", "probmetrics svs") else "3"
    command = [
        python,
        str(ROOT / "benchmarks/contender.py"),
        name,
        *map(str, files),
        repeats,
        *(["half"] if held_out else []),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return {"name": name, "error": f"not finished in {limit} s"}
    except OSError:
        return {"name": name, "error": "no environment for peers: `make bench` builds it"}
    if done.returncode:
        return {"name": name, "error": (done.stderr.strip().splitlines() or ["failed"])[-1][:90]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def table(results: list[dict], reference: dict[str, str]) -> list[str]:
    """Rows with the ratio of each contender's time to ours for the same kind of map."""
    seconds = {r["name"]: r.get("seconds") for r in results}
    lines = [
        "| contender | seconds | times ours | memory beyond the input | held-out NLL |",
        "| --- | --- | --- | --- | --- |",
    ]
    for r in results:
        if "error" in r:
            lines.append(f"| {r['name']} | {r['error']} | | | |")
            continue
        ours = seconds.get(reference.get(r["name"].split()[-1], ""))
        ratio = f"{r['seconds'] / ours:.1f}" if ours else ""
        held = f"{r['nll']:.4f}" if "nll" in r else ""
        lines.append(f"| {r['name']} | {r['seconds']:.3f} | {ratio} | {beyond(r)} | {held} |")
    return lines


def beyond(r: dict) -> str:
    """Peak memory beyond the input: a share of a large input; of a small one, in which fixed costs weigh more, MB."""
    if r["input"] < SMALL_INPUT:
        return f"{r['beyond'] / 1e6:.0f} MB"
    return f"{100 * r['beyond'] / r['input']:.0f} %"


def own_figures(z: np.ndarray, y: np.ndarray) -> list[str]:
    """What one pass, one read and one prediction take."""
    threads = get_threads()
    read = best(lambda: z.max())
    one = best(lambda: _core.temperature_sums(z, y, None, 0.7, 0, threads))
    copy, cal = best(lambda: z.copy()), calibrant.make("ts").fit(z[:2000], y[:2000])
    predict = best(lambda: cal.predict_proba(z))
    small_problem = realistic(1000, 10)
    small = best(lambda: calibrant.make("ts").fit(*small_problem), 50)
    return [
        f"- one read of the array (`z.max()`): {1e3 * read:.1f} ms; one pass of temperature scaling: {1e3 * one:.1f} ms, "  # noqa: E501
        f"{one / read:.1f} reads",
        f"- copying the array: {1e3 * copy:.1f} ms; `predict_proba` of ts: {1e3 * predict:.1f} ms, {predict / copy:.2f} copies",  # noqa: E501
        f"- ts on 1,000 × 10: {1e3 * small:.2f} ms",
    ]


def growth() -> list[str]:
    """Time of each of our fits over N and K, and the exponents of t ~ N^a K^b by least squares."""
    lines = ["| map | " + " | ".join(f"{n:,} × {k}" for n in SIZES for k in CLASSES) + " | N exponent | K exponent |"]
    lines.append("| --- " * (len(SIZES) * len(CLASSES) + 3) + "|")
    problems = {(n, k): realistic(n, k) for n in SIZES for k in CLASSES}
    for name in ("ts", "ets", "vector"):
        times = {}
        for size, (z, y) in problems.items():
            times[size] = best(lambda z=z, y=y, name=name: calibrant.make(name).fit(z, y), 3)
        rows = [s for s in times if s[0] * s[1] >= 500_000]  # below, fixed costs hide the growth
        design = np.array([[1, np.log(n), np.log(k)] for n, k in rows])
        _, a, b = np.linalg.lstsq(design, np.log([times[s] for s in rows]), rcond=None)[0]
        lines.append(
            f"| {name} | " + " | ".join(f"{1e3 * t:.1f} ms" for t in times.values()) + f" | {a:.2f} | {b:.2f} |"
        )
    return lines


SIZES, CLASSES = (1000, 5000, 25_000), (10, 100, 1000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=Path, default=ROOT / ".venv-peers/bin/python")
    parser.add_argument("--output", type=Path, default=ROOT / "docs/evidence/fit.md")
    parser.add_argument("--limit", type=int, default=900, help="seconds a contender may take in all")
    options = parser.parse_args()
    report = [
        "# Speed and memory of fitting",
        "",
        f"Written by `benchmarks/fit.py`, {get_threads()} threads, best of three.",
        "",
    ]
    with tempfile.TemporaryDirectory() as folder:
        z, y = realistic(25_000, 1000)
        large = (Path(folder) / "z.npy", Path(folder) / "y.npy")
        np.save(large[0], z), np.save(large[1], y)
        print("25,000 × 1,000", file=sys.stderr)
        results = []
        for name in LARGE:
            results.append(run(name, large, options.peers, limit=options.limit))
            print(results[-1], file=sys.stderr)
        reference = {
            "temperature": "calibrant ts",
            "vector": "calibrant vector",
            "svs": "calibrant vector",
            "ets": "calibrant ts",
        }
        report += ["## N = 25,000, K = 1,000, float32", "", *own_figures(z, y), "", *table(results, reference), ""]
        z, y = realistic(10_000, 100)
        medium = (Path(folder) / "z2.npy", Path(folder) / "y2.npy")
        np.save(medium[0], z), np.save(medium[1], y)
        results = []
        for name in MEDIUM:
            results.append(run(name, medium, options.peers, held_out=True, limit=options.limit))
            print(results[-1], file=sys.stderr)
        reference = dict.fromkeys(("matrix", "sms", "logistic"), "calibrant matrix")
        report += ["## N = 5,000, K = 100, judged on 5,000 others", "", *table(results, reference), ""]
        report += ["## Growth", "", *growth(), ""]
    options.output.write_text("\n".join(report), encoding="utf-8")
    print("\n".join(report))


if __name__ == "__main__":
    main()
