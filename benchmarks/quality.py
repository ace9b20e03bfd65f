"""Held-out quality of every map on real outputs, beside probmetrics, in one run: ``python benchmarks/quality.py``.

Reads the sets of ../shared/data: fits on val and judges on test; sets of one part are split in half by a seeded
permutation, soccer in time order. A map that takes longer than the limit on a set is a cell that says so. Writes
docs/evidence/quality.md; progress goes to stderr. Peers live in .venv-peers.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from calibrant import make
from calibrant.arrays import softmax
from calibrant.registry import entries
from figures import figures

ROOT = Path(__file__).resolve().parents[1]
SKIPPED = {"top1_guo_models"}  # confidences and correctness only
LIMIT = 0.003  # how much worse than probmetrics' sms ours may be
CHAINS = ["iop > svs", "iop > sms", "iop > dirichlet-odir"]  # an order-preserving curve, then what differs by class
Parts = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
Results = dict[str, dict[str, Any]]


def load(path: Path) -> tuple[str, Parts]:
    """Return the kind of the scores and (fit, labels, test, labels)."""
    with np.load(path) as file:
        data = {key: file[key] for key in file.files}
    kind = "logits" if any(key.startswith("logits") for key in data) else "probabilities"
    key = "logits" if kind == "logits" else "probs"
    if f"{key}_val" in data:
        return kind, (data[f"{key}_val"], data["labels_val"], data[f"{key}_test"], data["labels_test"])
    n = len(data["labels"])
    timed = path.stem.startswith("soccer")
    order = np.arange(n) if timed else np.random.default_rng(0).permutation(n)
    fit, test = order[: n // 2], order[n // 2 :]
    return kind, (data[key][fit], data["labels"][fit], data[key][test], data["labels"][test])


def ours(kind: str, parts: Parts, names: list[str], limit: float) -> Results:
    """Fit and judge each map in a process of its own, so that one that takes too long can be stopped."""
    found: Results = {}
    for name in names:
        started = time.perf_counter()
        found[name] = within(limit, figures_of, name, kind, parts)
        print(f"  {name}: {time.perf_counter() - started:.1f} s {found[name].get('error', '')}", file=sys.stderr)
    return found


def within(limit: float, function: Callable[..., dict[str, Any]], *arguments: object) -> dict[str, Any]:
    """Return what a function says, or an error where it fails or takes longer than ``limit`` seconds."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=tell, args=(sender, function, *arguments))
    process.start()
    sender.close()
    try:
        if not receiver.poll(limit):
            return {"error": f"not finished in {limit:g} s"}
        return receiver.recv()
    except EOFError:
        return {"error": "the process died"}
    finally:
        process.kill()
        process.join()


def tell(sender: Connection, function: Callable[..., dict[str, Any]], *arguments: object) -> None:
    try:
        sender.send(function(*arguments))
    except Exception as error:  # the table says so, the other maps go on
        sender.send({"error": f"{type(error).__name__}: {error}"[:90]})


def figures_of(name: str, kind: str, parts: Parts) -> dict[str, float]:
    fit, fit_labels, test, test_labels = parts
    start = time.perf_counter()
    model = make(name, inputs=kind).fit(fit, fit_labels)
    seconds = time.perf_counter() - start
    return {**figures(model.predict_proba(test), test_labels), "seconds": seconds}


def as_probabilities(kind: str, scores: np.ndarray) -> np.ndarray:
    """Rows that sum to one exactly, which the peers insist on."""
    scores = scores.astype(np.float64)
    return softmax(scores) if kind == "logits" else scores / scores.sum(axis=1, keepdims=True)


def theirs(kind: str, parts: Parts, python: Path) -> Results:
    """Run the peers on the same rows, as probabilities, in their own environment."""
    fit, fit_labels, test, test_labels = parts
    fit, test = (as_probabilities(kind, part) for part in (fit, test))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "set.npz"
        np.savez(path, fit=fit, fit_labels=fit_labels, test=test, test_labels=test_labels)
        command = [str(python), str(ROOT / "benchmarks/peer_quality.py"), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    return json.loads(done.stdout.strip().splitlines()[-1]) if done.returncode == 0 else {}


def table(figure: str, results: dict[str, Results], names: list[str]) -> list[str]:
    lines = ["| set | " + " | ".join(names) + " |", "| --- " * (len(names) + 1) + "|"]
    for title, found in results.items():
        cells = [cell(found.get(n, {}), figure) for n in names]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return lines


def cell(found: dict[str, Any], figure: str) -> str:
    return f"{found[figure]:.4f}" if figure in found else found.get("error", "-")


def verdict(results: dict[str, Results], own: list[str]) -> list[str]:
    """Compare our sms, and the best of ours, with theirs."""
    lines = ["| set | our sms / theirs | best of ours / best of theirs | seconds: ours, theirs |", "| --- " * 4 + "|"]
    good, all_good, total = 0, 0, 0
    for title, found in results.items():
        peers = {n: f for n, f in found.items() if n.startswith("probmetrics") and "nll" in f}
        if "probmetrics sms" not in peers or "sms" not in found:
            continue
        if "nll" not in found["sms"]:  # ours failed where theirs did not: that counts against us
            lines.append(f"| {title} | {found['sms'].get('error', '-')} | - | - |")
            total += 1
            continue
        ratio = found["sms"]["nll"] / peers["probmetrics sms"]["nll"]
        best = min(found[n]["nll"] for n in own if "nll" in found[n]) / min(f["nll"] for f in peers.values())
        times = f"{found['sms']['seconds']:.2f}, {peers['probmetrics sms']['seconds']:.2f}"
        lines.append(f"| {title} | {ratio:.4f} | {best:.4f} | {times} |")
        good, all_good, total = good + (ratio <= 1 + LIMIT), all_good + (best <= 1.0), total + 1
    print(f"sms within {LIMIT:.1%}: {good} of {total}; best of ours no worse: {all_good} of {total}")
    lines.append("")
    lines.append(f"Our sms is within {LIMIT:.1%} of theirs or better on {good} of {total} sets that they can run; the")
    lines.append(f"best of ours is no worse than the best of theirs on {all_good} of {total}.")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--peers", type=Path, default=ROOT / ".venv-peers/bin/python")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/evidence/quality.md")
    parser.add_argument("--maps", nargs="*", help="names of ours to run; all that need scores by default")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds that one map may take on one set")
    arguments = parser.parse_args()
    own = arguments.maps or [*(e.name for e in entries() if e.traits.needs == "scores"), *CHAINS]
    results: dict[str, Results] = {}
    for path in sorted(arguments.data.glob("*.npz")):
        if path.stem in SKIPPED:
            continue
        kind, parts = load(path)
        print(path.stem, file=sys.stderr)
        results[path.stem] = {**ours(kind, parts, own, arguments.limit), **theirs(kind, parts, arguments.peers)}
        print(path.stem, {n: round(f["nll"], 4) for n, f in results[path.stem].items() if "nll" in f}, flush=True)
    names = [*own, "probmetrics ts-mix", "probmetrics svs", "probmetrics sms"]
    lines = [
        "# Held-out quality on real outputs",
        "",
        "Written by `benchmarks/quality.py`; its docstring says how.",
        "",
    ]
    lines += ["## Beside probmetrics (NLL)", "", *verdict(results, own), ""]
    for figure, title in (("nll", "Log-loss"), ("brier", "Brier score"), ("accuracy", "Accuracy")):
        lines += [f"## {title}", "", *table(figure, results, names), ""]
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(main())
