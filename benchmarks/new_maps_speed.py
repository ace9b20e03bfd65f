"""Processor time of fits on 1,000,000 events beside our isotonic map and the same method of a peer, and of one row.

``python benchmarks/new_maps_speed.py`` runs both sides in turn, three times each, every fit in a process of its own
(those that take longer than ten minutes are stopped, counted with that and not tried again), and writes
docs/evidence/new_maps_speed.md. The peers need .venv-peers; without it their column stays empty.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "build" / "new_maps_speed.json"
ROWS = 1_000_000
TURNS = 3
LONGEST = 600  # seconds that a peer may take
ALONE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # a BLAS that waits for work is no work
PEERS = {
    "QuadraticScaling": "probmetrics quadratic",
    "LogitSpline": "splinecalib",
    "CentredIsotonic": "cir-model",
    "VennAbers": "venn-abers",
}
MAPS = ("Isotonic", *PEERS)
NOTES = f"""\
Ours with the held-out check that every `fit` makes. The best of {TURNS} runs on either side, each the first fit of a
process of its own, in turn; one BLAS thread, a machine with other work on its two cores. Peers are stopped after
{LONGEST} seconds, and then not tried again. `python benchmarks/new_maps_speed.py`.

Half a million scores of one event or more, without weights, are never made logits: two goes count them by the upper
bits of their log-odds, and in fine cells by fold (`calibrant.cells.one_score`). What a map learns is to the last bit
what it learns from logits. Weights, scores of exactly 0 or 1, two columns, and scores so much alike that more digits
must tell their folds take passes over logits, at five to ten times the time.
"""


def events() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    odds = rng.normal(size=ROWS) * 2
    y = (rng.random(ROWS) < 1 / (1 + np.exp(-0.7 * odds + 0.1 * odds**2))).astype(int)
    return 1 / (1 + np.exp(-odds)), y


def ours(name: str) -> tuple[float, float]:
    """Return processor seconds of a fit, and the best of twenty times fifty answers to one row, in seconds."""
    import calibrant

    p, y = events()
    map_ = getattr(calibrant, name)(inputs="probabilities")
    start = time.process_time()
    map_.fit(p, y)
    seconds = time.process_time() - start
    return seconds, min(_one(map_.predict_proba, p[:1]) for _ in range(20))


def _one(answer: Callable, row: np.ndarray) -> float:
    start = time.perf_counter()
    for _ in range(50):
        answer(row)
    return (time.perf_counter() - start) / 50


def peer(name: str) -> tuple[float, float]:
    """Return processor seconds of a peer's fit; those of venn-abers answer two rows as well, as it fits when asked."""
    p, y = events()
    pair = np.stack([1 - p, p], axis=1)
    start = time.process_time()
    if name == "probmetrics quadratic":
        from probmetrics.calibrators import get_calibrator

        start = time.process_time()
        get_calibrator("quadratic-scaling").fit(pair, y)
    elif name == "splinecalib":
        import splinecalib

        start = time.process_time()
        splinecalib.SplineCalib().fit(p, y)
    elif name == "cir-model":
        from cir_model import CenteredIsotonicRegression

        start = time.process_time()
        CenteredIsotonicRegression(out_of_bounds="clip").fit(p, y)
    else:
        from venn_abers import VennAbers

        start = time.process_time()
        VennAbers().fit(pair, y)
    return time.process_time() - start, 0.0


def run(python: Path | str, side: str, name: str) -> list[float]:
    command = [str(python), __file__, side, name]
    start = time.monotonic()
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=LONGEST, check=True, env=os.environ | ALONE
        )
    except subprocess.TimeoutExpired:
        return [time.monotonic() - start, 0.0, 1.0]
    except subprocess.CalledProcessError as error:
        sys.stdout.write(f"{name}: {error.stderr[-300:]}\n")
        return [float("nan"), 0.0, 0.0]
    return [*json.loads(done.stdout.splitlines()[-1]), 0.0]


def main() -> None:
    found: dict[str, list[list[float]]] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    python = ROOT / ".venv-peers" / "bin" / "python"
    for turn in range(TURNS):
        for name in MAPS:
            if len(found.setdefault(name, [])) <= turn:
                found[name].append(run(sys.executable, "ours", name))
            theirs = PEERS.get(name)
            if theirs and python.exists():
                runs = found.setdefault(theirs, [])
                if len(runs) <= turn and not any(stopped for _, _, stopped in runs):
                    runs.append(run(python, "peer", theirs))
            KEPT.parent.mkdir(parents=True, exist_ok=True)
            KEPT.write_text(json.dumps(found))
    (ROOT / "docs" / "evidence" / "new_maps_speed.md").write_text(page(found))


def page(found: dict[str, list[list[float]]]) -> str:
    seconds = {name: min(one[0] for one in runs) for name, runs in found.items()}
    rows = {name: min(one[1] for one in found[name]) for name in MAPS}
    shares = {name: seconds[name] / seconds["Isotonic"] for name in PEERS}
    ratios = {name: seconds[theirs] / seconds[name] for name, theirs in PEERS.items() if theirs in seconds}
    fast = [f"{PEERS[name]} (×{ratio:.1f})" for name, ratio in ratios.items()]
    slow = [f"{PEERS[name]} (×{ratio:.1f})" for name, ratio in ratios.items() if not ratio >= 10]
    lines = []
    for name in MAPS:
        theirs = PEERS.get(name, "")
        stopped = bool(theirs in found and found[theirs][0][2])
        beside = f"{theirs}: {'more than ' if stopped else ''}{seconds[theirs]:.2f}" if theirs in seconds else "–"
        ratio = f"{'> ' if stopped else ''}{ratios[name]:.1f}" if name in ratios else "–"
        share = seconds[name] / seconds["Isotonic"]
        lines.append(
            f"| `{name}` | {seconds[name]:.3f} | {share:.2f} | {1e6 * rows[name]:.0f} µs | {beside} | {ratio} |"
        )
    return "\n".join([
        "# Speed of the new maps on one score", "",
        f"**Verdict.** At 1,000,000 events each fit takes at most {max(shares.values()):.2f} of our isotonic map's "
        f"processor time (the bound of five is {'met' if max(shares.values()) <= 5 else 'missed'}), and one row "
        f"at most {1e6 * max(rows.values()):.0f} µs (the bound of 100 is "
        f"{'met' if max(rows.values()) <= 1e-4 else 'missed'}). "
        + (f"Ten times as fast as its peer: missed beside {', '.join(slow)}." if slow else
           f"Each is at least ten times as fast as its peer: {', '.join(fast)}." if ratios else
           "The peers were not there."),
        "", "| map | fit, processor seconds | of isotonic | one row | the peer's fit | times as long |",
        "| --- | --- | --- | --- | --- | --- |", *lines, "",
        NOTES,
    ])  # fmt: skip


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if len(sys.argv) == 3:
        print(json.dumps({"ours": ours, "peer": peer}[sys.argv[1]](sys.argv[2])))
    else:
        main()
