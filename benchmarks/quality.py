"""Held-out quality of every map on real outputs, beside probmetrics: ``python benchmarks/quality.py``.

Reads the sets of ../shared/data: fits on val and judges on test; sets of one part are split in half by a seeded
permutation, soccer in time order. Each map runs on each set in a process of its own, which may use so many seconds of
the processor: a map that needs more is a cell that says so. Results go to build/quality.json as they come, so that a
run that was stopped goes on where it was; ``--maps svs sms`` runs these anew and keeps the others.

Writes docs/evidence/quality.md, which names the versions of the code that its figures come from; progress goes to
stderr. Peers live in .venv-peers.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import multiprocessing
import resource
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

import calibrant
from calibrant import make
from calibrant.arrays import softmax
from calibrant.registry import entries
from figures import figures
from quality_page import page

ROOT = Path(__file__).resolve().parents[1]
SKIPPED = {"top1_guo_models"}  # confidences and correctness only
CHAINS = [  # an order-preserving curve, then what differs by class
    "iop > svs",
    "iop > sms",
    "iop > dirichlet-odir",
    "iop > dirichlet, intercepts=origin",  # the prior as published
]
PEERS = ["probmetrics ts-mix", "probmetrics svs", "probmetrics sms"]
_PATIENCE = 60  # seconds on the wall for one of the processor
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


def version() -> str:
    """Return a mark of the package as it is: its source and its compiled core."""
    folder, mark = Path(calibrant.__file__).parent, hashlib.sha256()
    for path in sorted([*folder.rglob("*.py"), *folder.glob("*.so")]):
        mark.update(path.read_bytes())
    return mark.hexdigest()[:8]


def within(limit: float, function: Callable[..., dict[str, Any]], *arguments: object) -> dict[str, Any]:
    """Return what a function says, or an error where it fails or takes more than ``limit`` seconds of the processor.

    Others may load the machine, so the clock on the wall only ends what waits for nothing.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=tell, args=(sender, limit, function, *arguments))
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(_PATIENCE * limit) else {"error": "hangs"}
    except EOFError:
        return {"error": f"more than {limit:g} s"}
    finally:
        process.kill()
        process.join()


def tell(sender: Connection, limit: float, function: Callable[..., dict[str, Any]], *arguments: object) -> None:
    used = int(sum(resource.getrusage(resource.RUSAGE_SELF)[:2]))
    resource.setrlimit(resource.RLIMIT_CPU, (used + int(np.ceil(limit)), resource.RLIM_INFINITY))
    try:
        sender.send(function(*arguments))
    except Exception as error:  # the table says so, the other maps go on
        sender.send({"error": f"{type(error).__name__}: {error}"[:90]})


def figures_of(name: str, kind: str, parts: Parts) -> dict[str, float]:
    fit, fit_labels, test, test_labels = parts
    start = time.process_time()
    name, *given = name.split(", ")
    model = make(name, inputs=kind, **dict(pair.split("=") for pair in given)).fit(fit, fit_labels)
    seconds = time.process_time() - start
    found = figures(model.predict_proba(test), test_labels)
    return {**found, "seconds": seconds, "all_seconds": time.process_time() - start}


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
        done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    return json.loads(done.stdout.strip().splitlines()[-1]) if done.returncode == 0 else {}


class Store:
    """Results by set and map, in a file that is written after each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.results: dict[str, Results] = {}
        with contextlib.suppress(FileNotFoundError):
            self.results = json.loads(path.read_text(encoding="utf-8"))

    def add(self, title: str, found: Results) -> None:
        self.results.setdefault(title, {}).update(found)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.results, indent=1), encoding="utf-8")


def run(title: str, path: Path, names: list[str], store: Store, arguments: argparse.Namespace, code: str) -> None:
    """Fill in what is missing of one set: what was never run, or by other code unless the maps to run are named."""
    found = store.results.get(title, {})
    kind, parts = load(path)
    for name in names:
        if found.get(name, {}).get("code") != code:
            result = within(arguments.limit, figures_of, name, kind, parts)
            store.add(title, {name: {**result, "code": code}})
            print(f"  {title} {name}: {result.get('error') or result}", file=sys.stderr, flush=True)
    if not all(name in found for name in PEERS):
        store.add(title, theirs(kind, parts, arguments.peers))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--peers", type=Path, default=ROOT / ".venv-peers/bin/python")
    parser.add_argument("--results", type=Path, default=ROOT / "build/quality.json")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/evidence/quality.md")
    parser.add_argument("--maps", nargs="*", help="names of ours to run; all that need scores by default")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of processor for one map on one set")
    arguments = parser.parse_args()
    every = [*(e.name for e in entries() if e.traits.needs == "scores"), *CHAINS]
    store, code = Store(arguments.results), version()
    paths = {path.stem: path for path in sorted(arguments.data.glob("*.npz")) if path.stem not in SKIPPED}
    for title, path in paths.items():
        run(title, path, arguments.maps or every, store, arguments, code)
    results = {title: store.results[title] for title in paths}
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(page(results, every, PEERS, code), encoding="utf-8")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(main())
