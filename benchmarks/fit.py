"""Speed and memory of fitting, beside version 0.1.0 and the peers: ``make bench`` or ``python benchmarks/fit.py``.

Writes docs/evidence/fit.md. Both versions of calibrant fit every preset in turn (`fit_before.py`). Each peer runs in a
process of its own, best of three, after a warm-up on 200 rows; memory is the peak beyond what the process held then,
the input included. Peers live in .venv-peers, version 0.1.0 in .venv-before (``make .venv-before/ready``); what is not
installed is a row that says so. A run that was stopped goes on where it was; ``--fresh`` begins anew.
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
import fit_before
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
MANY_CLASSES = ["calibrant sms", "probmetrics sms"]
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
    one = best(lambda: _core.temperature_sums(z, y, None, None, np.array([0.7]), 0, threads))
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


def contest(
    names: list[str], data: tuple[np.ndarray, np.ndarray], kept: Path, options: argparse.Namespace
) -> list[dict]:
    """Run contenders on the same rows; those that the record has are not run again."""
    results = json.loads(kept.read_text()) if kept.exists() else []
    known = {result["name"] for result in results}
    with tempfile.TemporaryDirectory() as folder:
        files = (Path(folder) / "z.npy", Path(folder) / "y.npy")
        for file, array in zip(files, data, strict=True):
            np.save(file, array)
        for name in names:
            if name not in known:
                results.append(run(name, files, options.peers, held_out=names is MEDIUM, limit=options.limit))
                print(results[-1], file=sys.stderr)
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.write_text(json.dumps(results, indent=1))
    return sorted(results, key=lambda result: names.index(result["name"]))


def on_many_classes(results: list[dict]) -> str:
    """Say who fits structured matrix scaling of 1,000 classes in less time."""
    ours, theirs = (result.get("seconds") for result in results)
    if ours is None or theirs is None:
        return "Not compared: see the table."
    word = "no slower" if ours <= theirs else "slower"
    return f"On 1,000 classes our sms is {word} than probmetrics': {ours:.2f} s against {theirs:.2f} s."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=Path, default=ROOT / ".venv-peers/bin/python")
    parser.add_argument("--before", type=Path, default=ROOT / ".venv-before/bin/python")
    parser.add_argument("--output", type=Path, default=ROOT / "docs/evidence/fit.md")
    parser.add_argument("--record", type=Path, default=ROOT / "build/fit", help="folder of what was measured already")
    parser.add_argument("--fresh", action="store_true", help="measure everything again")
    parser.add_argument("--limit", type=int, default=900, help="seconds a contender may take in all")
    options = parser.parse_args()
    if options.fresh:
        for file in options.record.glob("*.json"):
            file.unlink()
    found = fit_before.compare(options.before, options.record / "before.json")
    many = contest(MANY_CLASSES, realistic(5000, 1000), options.record / "many.json", options)
    medium = contest(MEDIUM, realistic(10_000, 100), options.record / "medium.json", options)
    rows = realistic(25_000, 1000)
    large = contest(LARGE, rows, options.record / "large.json", options)
    kinds = {"temperature": "ts", "vector": "vector", "svs": "vector", "ets": "ts"}
    report = [
        "# Speed and memory of fitting",
        "",
        f"Written by `benchmarks/fit.py`, {get_threads()} threads. {on_many_classes(many)}",
        "",
        *fit_before.section(found),
        "## Structured matrix scaling, N = 5,000, K = 1,000",
        "",
        *table(many, {"sms": "calibrant sms"}),
        "",
        "## Peers, N = 25,000, K = 1,000, float32",
        "",
        *own_figures(*rows),
        "",
        *table(large, {kind: f"calibrant {name}" for kind, name in kinds.items()}),
        "",
        "## Peers, N = 5,000, K = 100, judged on 5,000 others",
        "",
        *table(medium, dict.fromkeys(("matrix", "sms", "logistic"), "calibrant matrix")),
        "",
        "## Growth",
        "",
        *growth(),
        "",
    ]
    options.output.write_text("\n".join(report), encoding="utf-8")
    print("\n".join(report))


if __name__ == "__main__":
    main()
