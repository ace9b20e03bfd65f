"""Hoki's speed and its calibration error on real outputs: ``python benchmarks/hoki.py``. Writes docs/evidence/hoki.md.

Speed at N = 25,000, K = 1,000, M = 1,000 float32: the kernel beside a blocked NumPy loop (timed on a part of the rows,
and scaled), and a fit with given noise beside our own fit of a temperature. Then ECE-15 of the top label on every CIFAR
set of ../shared/data, fitted on val and judged on test (sets of one part are split in half by a seeded permutation),
the paper's ablation of the start (Table 9), and integration against sampling.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import calibrant
from calibrant import _core
from calibrant.metrics import calibration_error_bound, ece
from calibrant.threads import get_threads, set_threads
from generator import realistic
from quality import Parts, load

ROOT = Path(__file__).resolve().parents[1]
PEERS = ["ts", "ets", "irm", "irova-ts"]
SEEDS = 5
NUMPY_ROWS = 64
OTHER_BINS: dict[str, Any] = {"bins": 20, "edges": "equal_mass"}  # than those Hoki is fitted on


def best(function: Callable[[], object], repeats: int, clock: Callable[[], float] = time.perf_counter) -> float:
    times = []
    for _ in range(repeats):
        start = clock()
        function()
        times.append(clock() - start)
    return min(times)


def numpy_shares(z: np.ndarray, vectors: np.ndarray, rows: int = 16, draws: int = 16) -> np.ndarray:
    """The share of noise vectors (one a row) that keep the label; blocks of a megabyte, the fastest of those tried."""
    kept, top = np.zeros(len(z)), z.argmax(axis=1)
    for i in range(0, len(z), rows):
        for j in range(0, len(vectors), draws):
            moved = (z[i : i + rows, None, :] + vectors[None, j : j + draws]).argmax(axis=2)
            kept[i : i + rows] += (moved == top[i : i + rows, None]).sum(axis=1)
    return kept / len(vectors)


def speed(n: int, k: int, m: int, repeats: int) -> list[str]:
    z, y = realistic(n, k)
    two = np.partition(z, -2, axis=1)[:, -2:]
    gap = float((two[:, 1] - two[:, 0]).mean())
    searched = calibrant.Hoki(transformations=m, random_state=0).fit(z, y)
    start = time.perf_counter()
    calibrant.Hoki(transformations=m, random_state=0).fit(z, y)
    search_seconds = time.perf_counter() - start
    ts = best(lambda: calibrant.make("ts").fit(z, y), repeats)
    noises = {
        f"{searched.law_}, as the search found": (searched.law_, 0.0, float(searched.scale_)),
        "gaussian, half of the mean gap": ("gaussian", 0.0, 0.5 * gap),
        "gaussian, the mean gap": ("gaussian", 0.0, gap),
        "gaussian, four mean gaps": ("gaussian", 0.0, 4 * gap),
    }
    lines = [
        f"N = {n:,}, K = {k:,}, M = {m:,}, float32, {get_threads()} threads, best of {repeats}. The NumPy loop ran on "
        f"{NUMPY_ROWS} rows, scaled",
        f"to {n:,}; a temperature fit takes {ts:.3f} s. The mean gap of the two best logits is {gap:.2f}.",
        "",
        "| noise | mean γ | kernel, s | NumPy loop, s | times | processor time, times | fit, s | fit / ts |",
        "| --- " * 8 + "|",
    ]
    for title, noise in noises.items():
        lines.append(speed_line(title, noise, z, y, ts, m, repeats))
        print(lines[-1], flush=True)
    lines += ["", f'With `noise="search"` the fit takes {search_seconds:.2f} s, {search_seconds / ts:.0f} times `ts`.']
    return lines


def speed_line(
    title: str, noise: tuple[str, float, float], z: np.ndarray, y: np.ndarray, ts: float, m: int, repeats: int
) -> str:
    hoki = calibrant.Hoki(noise=noise, transformations=m, random_state=0).fit(z, y)
    assert hoki.noise_ is not None
    vectors = hoki.scale_ * np.ascontiguousarray(hoki.noise_.T)
    shares = _core.keep_shares(z, hoki.noise_, hoki.scale_, get_threads())
    np.testing.assert_allclose(shares[:NUMPY_ROWS], numpy_shares(z[:NUMPY_ROWS], vectors), atol=2.0 / m)
    own = best(lambda: _core.keep_shares(z, hoki.noise_, hoki.scale_, get_threads()), repeats)
    loop = best(lambda: numpy_shares(z[:NUMPY_ROWS], vectors), repeats) * len(z) / NUMPY_ROWS
    cpu = best(lambda: _core.keep_shares(z, hoki.noise_, hoki.scale_, get_threads()), repeats, time.process_time)
    loop_cpu = best(lambda: numpy_shares(z[:NUMPY_ROWS], vectors), repeats, time.process_time) * len(z) / NUMPY_ROWS
    fit = best(lambda: calibrant.Hoki(noise=noise, transformations=m, random_state=0).fit(z, y), repeats)
    figures = [f"{shares.mean():.3f}", f"{own:.3f}", f"{loop:.1f}", f"{loop / own:.0f}", f"{loop_cpu / cpu:.0f}"]
    figures += [f"{fit:.3f}", f"{fit / ts:.1f}"]
    return f"| {title} | {' | '.join(figures)} |"


def confidence_error(kind: str, parts: Parts, **parameters: object) -> tuple[float, calibrant.Hoki]:
    fit, labels, test, truth = parts
    hoki = calibrant.Hoki(inputs=kind, **parameters).fit(fit, labels)
    return ece(hoki.predict(test) == truth, hoki.predict_confidence(test)), hoki


def quality(data: Path) -> list[str]:
    """ECE-15 beside the peers; the two starts; sampling, over seeds, beside integration; the bound."""
    main = ["| set | as it is | " + " | ".join(PEERS) + " | hoki |", "| --- " * (len(PEERS) + 3) + "|"]
    starts = ["| set | accuracy | confidence |", "| --- " * 3 + "|"]
    ways = ["| set | M = 1,000, five seeds | M = 100, five seeds | `transformations=None` |", "| --- " * 4 + "|"]
    others = ["| set | as it is | " + " | ".join(PEERS) + " | hoki |", "| --- " * (len(PEERS) + 3) + "|"]
    bounds = ["| set | rows | ECE on the fit's bins + slack = bound at δ = 0.05 |", "| --- " * 3 + "|"]
    for path in sorted(data.glob("cifar*.npz")):
        kind, parts = load(path)
        fit, labels, test, truth = parts
        answers = [calibrant.make(n, inputs=kind).fit(fit, labels).predict_proba(test) for n in ["identity", *PEERS]]
        cells = [ece(truth, p) for p in answers]
        many = [confidence_error(kind, parts, random_state=seed)[0] for seed in range(SEEDS)]
        few = [confidence_error(kind, parts, random_state=seed, transformations=100)[0] for seed in range(SEEDS)]
        exact, _ = confidence_error(kind, parts, transformations=None)
        other, _ = confidence_error(kind, parts, random_state=0, init="confidence")
        _, hoki = confidence_error(kind, parts, random_state=0)
        main.append(f"| {path.stem} | {bold([*cells, many[0]])} |")
        right, confidence = hoki.predict(test) == truth, hoki.predict_confidence(test)
        fine = [ece(truth, p, **OTHER_BINS) for p in answers] + [ece(right, confidence, **OTHER_BINS)]
        others.append(f"| {path.stem} | {bold(fine)} |")
        starts.append(f"| {path.stem} | {many[0]:.4f} | {other:.4f} |")
        ways.append(f"| {path.stem} | {spread(many)} | {spread(few)} | {exact:.4f} |")
        bound = hoki.calibration_error_bound(test, truth)
        slack = calibration_error_bound(0.0, len(truth), hoki.bins)
        bounds.append(f"| {path.stem} | {len(truth):,} | {bound - slack:.4f} + {slack:.4f} = {bound:.4f} |")
        print(main[-1], others[-1], starts[-1], ways[-1], sep="\n", flush=True)
    return [
        "## ECE-15 on real outputs\n",
        *main,
        "\nHoki is fitted on these very bins. The same answers on 20 bins of equal mass:\n",
        *others,
        "\n## The start (the paper's Table 9)\n",
        *starts,
        "\n## Sampling and integration\n",
        *ways,
        "\n## The bound of Theorem 2\n",
        *bounds,
    ]


def bold(values: list[float]) -> str:
    return " | ".join(f"**{v:.4f}**" if v == min(values) else f"{v:.4f}" for v in values)


def spread(values: list[float]) -> str:
    return f"{np.mean(values):.4f} ± {np.std(values, ddof=1):.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=25_000)
    parser.add_argument("--classes", type=int, default=1_000)
    parser.add_argument("--transformations", type=int, default=1_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/evidence/hoki.md")
    options = parser.parse_args()
    warnings.simplefilter("ignore", calibrant.CalibrationWarning)
    set_threads(2)
    lines = ["# Hoki: speed and calibration error", "", "Written by `benchmarks/hoki.py`; its docstring says how.", ""]
    lines += ["## Speed", "", *speed(options.rows, options.classes, options.transformations, options.repeats), ""]
    lines += quality(options.data)
    options.out.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
