"""Speed of the metrics beside the peers', in one process: ``make bench`` or ``python benchmarks/metrics.py``.

Needs calibrant and the peers (benchmarks/peers-requirements.txt) in one environment, .venv-peers; a peer that is not
installed says so in its row. Peers that take (n, K) probabilities are compared on those, peers for one event on (n,)
probabilities. Times are the best of several calls, ours taken before and after the peers'; a peer that takes longer
than the limit is stopped and printed as such. ``--cpu`` counts processor time of all threads instead of wall time,
which is steadier on a busy machine (and gives threads no credit). Writes docs/evidence/metrics-speed.md.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import signal
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from calibrant import get_threads
from metric_contenders import Contenders, Metric, event_contenders, vector_contenders

ROOT = Path(__file__).resolve().parents[1]
Timer = Callable[[], float]
LIMIT = 30.0


def problem(n: int, k: int, dtype: Any, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Over-confident outputs: labels drawn from softmax(z), probabilities softmax(2 z)."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k)).astype(np.float32) * 3
    labels = (z + rng.gumbel(size=(n, k)).astype(np.float32)).argmax(axis=1)
    p = np.exp(2 * (z - z.max(axis=1, keepdims=True))).astype(dtype)
    return labels, p / p.sum(axis=1, keepdims=True)


class TooSlow(Exception):
    pass


def _stop(*_: Any) -> None:
    raise TooSlow


def clock(metric: Metric, y: np.ndarray, p: np.ndarray, timer: Timer) -> float | str:
    """Best of the calls that fit into a second (at least three, or one where a call takes seconds)."""
    signal.signal(signal.SIGALRM, _stop)
    signal.setitimer(signal.ITIMER_REAL, LIMIT)
    best, calls, end = np.inf, 0, time.perf_counter() + 1.0
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            while calls < 1 or (calls < 500 and time.perf_counter() < end + 3 * (calls < 3)):
                start = timer()
                metric(y, p)
                best, calls = min(best, timer() - start), calls + 1
    except TooSlow:
        return f"> {LIMIT:g} s"
    except ImportError:
        return "not installed"
    except Exception as error:
        return type(error).__name__
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return best


def shown(took: float | str) -> str:
    return took if isinstance(took, str) else f"{1e3 * took:.3g} ms"


def row(name: str, ours: Metric, peers: dict[str, Metric], y: np.ndarray, p: np.ndarray, timer: Timer) -> str:
    own = clock(ours, y, p, timer)
    times = {peer: clock(metric, y, p, timer) for peer, metric in peers.items()}
    own = min(own, clock(ours, y, p, timer), key=lambda took: (isinstance(took, str), took))
    known = {peer: took for peer, took in times.items() if not isinstance(took, str)}
    fastest = min(known, key=lambda peer: known[peer]) if known else None
    ratio = f"{known[fastest] / own:.1f}" if fastest and not isinstance(own, str) else ""
    everyone = ", ".join(f"{peer} {shown(took)}" for peer, took in times.items())
    return f"| {name} | {shown(own)} | {fastest or ''} | {ratio} | {everyone} |"


def table(title: str, rows: Contenders, y: np.ndarray, p: np.ndarray, options: argparse.Namespace) -> list[str]:
    timer = time.process_time if options.cpu else time.perf_counter
    lines = [f"\n## {title}, {p.dtype}{', processor time' if options.cpu else ''}\n"]
    lines += ["| metric | calibrant | fastest peer | times ours | all peers |", "| --- | --- | --- | --- | --- |"]
    for name, (ours, peers) in rows.items():
        if not options.only or options.only in name:
            print(name, file=sys.stderr)
            lines.append(row(name, ours, peers, y, p, timer))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="only metrics whose name contains this")
    parser.add_argument("--cpu", action="store_true", help="processor time instead of wall time")
    parser.add_argument("--tables", default="vectors-small,events-small,events,vectors")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/evidence/metrics-speed.md")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines: list[str] = []
    for which in options.tables.split(","):
        n, k, dtype = (1000, 10, np.float64) if which.endswith("small") else (25_000, 1000, np.float32)
        if which.startswith("events"):
            y, p = problem(n, 10, np.float64)
            best = p.argmax(axis=1)
            y, p = (best == y).astype(np.int64), p[np.arange(n), best]
            lines += table(f"{n:,} events", event_contenders(), y, p, options)
        else:
            lines += table(f"{n:,} × {k:,}", vector_contenders(), *problem(n, k, dtype), options)
    words = f"Written by `benchmarks/metrics.py{' --cpu' * options.cpu}`, {get_threads()} threads."
    lines = ["# Speed of the metrics beside the peers", "", verdict(lines), "", words, *lines]
    print("\n".join(lines))
    if not options.only:
        options.out.write_text("\n".join(lines) + "\n")


def verdict(lines: list[str]) -> str:
    """Return in how many rows the fastest peer takes longer than we do, and in which it does not."""
    slower, count, where = [], 0, ""
    for line in lines:
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        where = line.strip().removeprefix("## ") if line.strip().startswith("##") else where
        if len(cells) < 4 or not cells[3].replace(".", "").replace(",", "").isdigit():
            continue
        count += 1
        times = float(cells[3].replace(",", ""))
        slower += [f"`{cells[0]}` on {where} ({cells[2]}: {times:g})"] if times < 1 else []
    if not slower:
        return f"**Verdict: faster than the fastest peer in all {count} rows.**"
    return (
        f"**Verdict: faster than the fastest peer in {count - len(slower)} of {count} rows; not {', '.join(slower)}.**"
    )


if __name__ == "__main__":
    main()
